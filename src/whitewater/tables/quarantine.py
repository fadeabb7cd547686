"""Quarantine of rejected rows, unchanged, with all reasons, so that rows in = rows kept + rows quarantined."""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.io.store import remove_unfinished
from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.eras import Rule, Source
from whitewater.tables.partitions import write_table
from whitewater.tables.raw_files import MALFORMED, CheckedBlocks, Counts, Unit, read_files

# The only file of a data set without rows.
EMPTY_PART = "part-none.parquet"


def split_files(
    run: Run[RawFiles], inputs: Path, source: Source, *, kept: Path, quarantine: Path, schema: pa.Schema,
    rules: Sequence[Rule],
) -> dict[str, Any]:  # fmt: skip
    """Keep the rows of an application's raw files that break no rule, and quarantine the others with all reasons.

    Rows go to ``part-FILE-UNIT-PIECE.parquet`` in one of the two folders, which are created; malformed lines go to
    ``malformed-FILE-UNIT-PIECE.parquet`` in ``quarantine``. Returns the numbers of rows of each file, and in total.
    Raises as `whitewater.tables.raw_files.read_files` and `finish_data_sets`.
    """
    if run.engine == "local":
        from whitewater.tables.with_polars import check_blocks
    else:
        from whitewater.tables.with_dask import check_blocks
    # Bit 0 of a mask marks a malformed line, which no rule sees.
    reasons = (MALFORMED, *(rule.reason for rule in rules))
    blocks = partial(check_blocks, schema=schema, rules=rules, run=run)
    split = partial(_split_unit, blocks=blocks, kept=kept, quarantine=quarantine, reasons=reasons)
    kept.mkdir()
    quarantine.mkdir()
    files = []
    for file, counts in read_files(run, inputs, source, split):
        masks = Counter({1 if mask == MALFORMED else mask: rows for mask, rows in counts.items()})
        summary = count_reasons(masks, reasons)
        files.append({"path": file.name, **summary, "quarantined": summary["rows_in"] - summary["rows_out"]})
    totals = total_rows(files)
    finish_data_sets(kept, quarantine, schema, totals)
    return {"totals": totals, "files": files}


def _split_unit(
    unit: Unit, *, blocks: Callable[[Unit], CheckedBlocks], kept: Path, quarantine: Path, reasons: Sequence[str]
) -> Counts:
    """Write the rows of a unit; count them by mask of reasons."""
    counts, origin = Counts(), unit.file.name
    for piece, (rows, rule_mask, malformed) in enumerate(blocks(unit)):
        name, mask = f"{unit.stem(piece)}.parquet", rule_mask << 1  # bit 0 is for malformed lines
        if len(accepted := rows.filter(pa.array(mask == 0))):
            write_table(accepted, kept / f"part-{name}")
        if len(rejected := rows.filter(pa.array(mask > 0))):
            path, origins = quarantine / f"part-{name}", [origin] * len(rejected)
            write_rejected(rejected, mask[mask > 0], origins, path, reasons=reasons)
        if malformed:
            write_malformed(pa.array(malformed), quarantine / f"malformed-{name}", schema=rows.schema, origin=origin)
            counts[MALFORMED] += len(malformed)
        counts.update(mask.tolist())
    return counts


def total_rows(files: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the numbers of rows read, kept and quarantined in all files together."""
    return {key: sum(file[key] for file in files) for key in ("rows_in", "rows_out", "quarantined")}


def finish_data_sets(
    kept: Path, quarantine: Path, schema: pa.Schema, totals: Mapping[str, int], *, directory: str = ""
) -> None:
    """Write one empty file to a data set without rows, so that readers see its columns; check the rows on disk.

    Raises IntegrityError if the number of rows on disk is not that in ``totals``.
    """
    remove_unfinished(kept)
    remove_unfinished(quarantine)
    if not any(kept.iterdir()):
        write_table(schema.empty_table(), kept / directory / EMPTY_PART)
    if not any(quarantine.iterdir()):
        write_malformed(pa.nulls(0), quarantine / directory / EMPTY_PART, schema=schema, origin="")
    for data_set, rows in ((kept, totals["rows_out"]), (quarantine, totals["quarantined"])):
        on_disk = sum(pq.read_metadata(path).num_rows for path in data_set.rglob("*.parquet"))
        if on_disk != rows:
            raise IntegrityError(f"{data_set} holds {on_disk} rows where {rows} were written. Run the step again; "
                                 "if it happens again, a disk or file system loses data.")  # fmt: skip


def write_rejected(
    rows: pa.Table, mask: Array, origins: Sequence[str], path: Path, *, reasons: Sequence[str],
    lines: pa.Array | pa.ChunkedArray | None = None,
) -> None:  # fmt: skip
    """Write rejected rows with the columns ``reasons``, ``source_file`` and ``raw_line``, null without ``lines``.

    ``mask``, int64 (rows,), has bit *i* set if a row has ``reasons[i]``. ``origins`` names the file of each row as the
    user did.
    """
    values, places = np.unique(mask, return_inverse=True)
    names = [[reason for bit, reason in enumerate(reasons) if value >> bit & 1] for value in values.tolist()]
    added = {
        "reasons": pa.array(names, pa.list_(pa.string())).take(pa.array(places)),
        "source_file": pa.array(origins, pa.string()),
        "raw_line": pa.nulls(len(rows), pa.string()) if lines is None else lines.cast(pa.string()),
    }
    table = pa.Table.from_arrays([*rows.columns, *added.values()], [*rows.column_names, *added])
    write_table(table, path, compression="zstd")


def write_malformed(lines: pa.Array | pa.ChunkedArray, path: Path, *, schema: pa.Schema, origin: str) -> None:
    """Write lines that could not be parsed: the line in ``raw_line``, all columns of the schema null."""
    rows = pa.table([pa.nulls(len(lines), field.type) for field in schema], schema)
    mask, origins = np.ones(len(lines), np.int64), [origin] * len(lines)
    write_rejected(rows, mask, origins, path, reasons=[MALFORMED], lines=lines)


def count_reasons(masks: Counter[int], reasons: Sequence[str]) -> dict[str, Any]:
    """Count the rows read and kept, and the rejected ones under each of their reasons, bit *i* for ``reasons[i]``."""
    counts = {reason: sum(masks[mask] for mask in masks if mask >> bit & 1) for bit, reason in enumerate(reasons)}
    by_reason = {reason: rows for reason, rows in counts.items() if rows}
    return {"rows_in": masks.total(), "rows_out": masks[0], "by_reason": by_reason}


def funnel(masks: Counter[int], reasons: Sequence[str], *, rare: Container[str] = ()) -> list[dict[str, Any]]:
    """Count the rows that remain after each rule in turn; a ``rare`` one is listed only if it rejects a row first."""
    rejected: Counter[int] = Counter()
    for mask, rows in masks.items():
        rejected[(mask & -mask).bit_length() - 1] += rows  # by the lowest bit; kept rows at -1
    remaining = masks.total()
    stages: list[dict[str, Any]] = [{"rule": "read", "rows": remaining}]
    for bit, reason in enumerate(reasons):
        remaining -= rejected[bit]
        if rejected[bit] or reason not in rare:
            stages.append({"rule": reason, "rows": remaining})
    return stages

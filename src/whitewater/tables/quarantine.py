"""Quarantine: rejected rows, unchanged, with all their reasons, so that rows in = rows kept + rows quarantined."""

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
    """Keep the rows of an application's raw files that break no rule, and quarantine the others with all their reasons.

    The rows of a unit, in the columns of the schema, are in ``part-FILE-UNIT-PIECE.parquet`` of both folders, which
    are made; lines that cannot be parsed are in ``malformed-FILE-UNIT-PIECE.parquet`` of ``quarantine``. Returns what
    became of the rows of each file, and of all.

    Raises as `whitewater.tables.raw_files.read_files` and `finish_data_sets`.
    """
    if run.engine == "local":
        from whitewater.tables.with_polars import checked_blocks
    else:
        from whitewater.tables.with_dask import checked_blocks
    # Bit 0 of a mask: a line of text that could not be parsed, which no rule sees.
    reasons = (MALFORMED, *(rule.reason for rule in rules))
    blocks = partial(checked_blocks, schema=schema, rules=rules, run=run)
    split = partial(_split_unit, blocks=blocks, kept=kept, quarantine=quarantine, reasons=reasons)
    kept.mkdir()
    quarantine.mkdir()
    described = []
    for file, counts in read_files(run, inputs, source, split):
        masks = Counter({1 if mask == MALFORMED else mask: rows for mask, rows in counts.items()})
        summary = count_reasons(masks, reasons)
        rejected = summary["rows_in"] - summary["rows_out"]
        described.append({"path": file.name, **summary, "quarantined": rejected})
    totals = total_rows(described)
    finish_data_sets(kept, quarantine, schema, totals)
    return {"totals": totals, "files": described}


def _split_unit(
    unit: Unit, *, blocks: Callable[[Unit], CheckedBlocks], kept: Path, quarantine: Path, reasons: Sequence[str]
) -> Counts:
    """Write the rows of a unit; count them by the mask of their reasons."""
    counts, origin = Counts(), unit.file.name
    for piece, (rows, rule_mask, malformed) in enumerate(blocks(unit)):
        name, mask = f"{unit.stem(piece)}.parquet", rule_mask << 1  # bit 0 is for malformed lines
        if len(sound := rows.filter(pa.array(mask == 0))):
            write_table(sound, kept / f"part-{name}")
        if len(rejected := rows.filter(pa.array(mask > 0))):
            path, origins = quarantine / f"part-{name}", [origin] * len(rejected)
            write_rejected(rejected, mask[mask > 0], origins, path, reasons=reasons)
        if malformed:
            write_malformed(pa.array(malformed), quarantine / f"malformed-{name}", schema=rows.schema, origin=origin)
            counts[MALFORMED] += len(malformed)
        counts.update(mask.tolist())
    return counts


def total_rows(files: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many rows of all files together were read, kept and quarantined."""
    return {key: sum(file[key] for file in files) for key in ("rows_in", "rows_out", "quarantined")}


def finish_data_sets(
    kept: Path, quarantine: Path, schema: pa.Schema, totals: Mapping[str, int], *, directory: str = ""
) -> None:
    """Give a data set without rows one empty file, so that readers find the columns; check the number of rows on disk.

    Raises IntegrityError if more or fewer rows are on disk than ``totals`` says.
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
    """Write rejected rows: their columns, ``reasons``, ``source_file``, and ``raw_line``, null but for ``lines``.

    ``mask``, int64 (rows,), has bit *i* set where a row has ``reasons[i]``. ``origins``, of each row, are what the user
    named its file by.
    """
    values = np.unique(mask).tolist()
    names = {value: [reason for bit, reason in enumerate(reasons) if value >> bit & 1] for value in values}
    added = {
        "reasons": pa.array([names[value] for value in mask.tolist()], pa.list_(pa.string())),
        "source_file": pa.array(origins, pa.string()),
        "raw_line": pa.nulls(len(rows), pa.string()) if lines is None else lines.cast(pa.string()),
    }
    table = pa.Table.from_arrays([*rows.columns, *added.values()], [*rows.column_names, *added])
    write_table(table, path, compression="zstd")


def write_malformed(lines: pa.Array | pa.ChunkedArray, path: Path, *, schema: pa.Schema, origin: str) -> None:
    """Write lines of text that could not be parsed: all columns of the schema null, the line in ``raw_line``."""
    rows = pa.table([pa.nulls(len(lines), field.type) for field in schema], schema)
    mask, origins = np.ones(len(lines), np.int64), [origin] * len(lines)
    write_rejected(rows, mask, origins, path, reasons=[MALFORMED], lines=lines)


def count_reasons(masks: Counter[int], reasons: Sequence[str]) -> dict[str, Any]:
    """Count the rows read and kept, and the rejected ones by reason: a row counts once under each of its reasons.

    ``masks`` counts rows by mask; bit *i* of a mask is set where ``reasons[i]`` holds, and 0 means kept.
    """
    counts = {reason: sum(masks[mask] for mask in masks if mask >> bit & 1) for bit, reason in enumerate(reasons)}
    by_reason = {reason: rows for reason, rows in counts.items() if rows}
    return {"rows_in": masks.total(), "rows_out": masks[0], "by_reason": by_reason}


def funnel(masks: Counter[int], reasons: Sequence[str], *, rare: Container[str] = ()) -> list[dict[str, Any]]:
    """Count the rows left after each rule in turn: a row leaves at its first reason.

    A ``rare`` reason is listed only if it is the first one of some row.
    """
    rows_leaving: Counter[int] = Counter()
    for mask, rows in masks.items():
        rows_leaving[(mask & -mask).bit_length() - 1] += rows  # by the lowest bit; kept rows at -1
    rows_left = masks.total()
    stages: list[dict[str, Any]] = [{"rule": "read", "rows": rows_left}]
    for bit, reason in enumerate(reasons):
        rows_left -= rows_leaving[bit]
        if rows_leaving[bit] or reason not in rare:
            stages.append({"rule": reason, "rows": rows_left})
    return stages

"""Rows in = rows kept + rows quarantined: rejected rows as they were, with all reasons; none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.io.store import remove_unfinished
from whitewater.tables.partitions import write_table
from whitewater.tables.raw_files import Unit, UnitCounts
from whitewater.tables.rules import Rule

# Bit 0 of a mask: lines of text that could not be parsed, which no rule sees.
MALFORMED = "malformed_line"
NO_ROWS = "part-none.parquet"


@dataclass(frozen=True)
class Split:
    """Where the rows of raw files go: each is kept, or in quarantine with all its reasons.

    Parameters
    ----------
    kept, quarantine
        Folders; units become ``part-FILE-UNIT-PIECE.parquet`` in each, and what cannot be parsed
        ``malformed-FILE-UNIT-PIECE.parquet``.
    schema
        The columns of a row.
    rules
        A row is kept that breaks none of them.
    """

    kept: Path
    quarantine: Path
    schema: pa.Schema
    rules: Sequence[Rule]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons by their bit in the mask of a row: malformed lines have bit 0, the rules follow."""
        return (MALFORMED, *(rule.reason for rule in self.rules))

    def write(self, rows: pa.Table, broken: Array, malformed: Sequence[str], unit: Unit, piece: int) -> UnitCounts:
        """Write rows of the schema; count them by mask.

        ``broken``, int64 (rows,) on the host, has bit *i* set where a row breaks ``rules[i]``.
        """
        (number, _), origin, name, mask = unit.place, unit.file.name, f"{unit.stem(piece)}.parquet", broken << 1
        if len(kept := rows.filter(pa.array(mask == 0))):
            write_table(kept, self.kept / f"part-{name}")
        if len(rejected := rows.filter(pa.array(mask > 0))):
            masks, files, place = mask[mask > 0], np.full(len(rejected), number), self.quarantine / f"part-{name}"
            write_rejected(rejected, masks, files, place, reasons=self.reasons, origins={number: origin})
        if malformed:
            place = self.quarantine / f"malformed-{name}"
            write_malformed(pa.array(malformed), place, schema=self.schema, origin=origin)
        counts = dict(zip(*np.unique(mask, return_counts=True), strict=True))
        groups = Counter[tuple[int | None, ...]]({(int(each),): int(rows) for each, rows in counts.items()})
        return UnitCounts(len(malformed), next(iter(malformed), None), groups)

    def describe(self, counts: UnitCounts) -> dict[str, Any]:
        """Return the rows read, kept and quarantined, and those of each reason."""
        masks = Counter({mask or 0: rows for (mask,), rows in counts.groups.items()}) + Counter({1: counts.malformed})
        rows = count_reasons(masks, self.reasons)
        return {**rows, "quarantined": rows["rows_in"] - rows["rows_out"]}


def add_up(described: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the rows of all files that were read, kept and quarantined."""
    return {key: sum(file[key] for file in described) for key in ("rows_in", "rows_out", "quarantined")}


def finish_data_sets(
    kept: Path, quarantine: Path, schema: pa.Schema, totals: Mapping[str, int], *, directory: str = ""
) -> None:
    """Give a data set without rows one empty file, so that its readers find the columns; check the rows on the disk.

    Raises IntegrityError if a row is missing or there twice.
    """
    remove_unfinished(kept)
    remove_unfinished(quarantine)
    if not any(kept.iterdir()):
        write_table(schema.empty_table(), kept / directory / NO_ROWS)
    if not any(quarantine.iterdir()):
        write_malformed(pa.nulls(0), quarantine / directory / NO_ROWS, schema=schema, origin="")
    for data_set, rows in ((kept, totals["rows_out"]), (quarantine, totals["quarantined"])):
        on_disk = sum(pq.read_metadata(path).num_rows for path in data_set.rglob("*.parquet"))
        if on_disk != rows:
            raise IntegrityError(f"{data_set} holds {on_disk} rows where {rows} were written. Run the step again; "
                                 "if this stays, a disk or file system loses data.")  # fmt: skip


def write_rejected(
    rows: pa.Table, mask: Array, file: Array, path: Path, *, reasons: Sequence[str], origins: Mapping[int, str]
) -> None:
    """Write rejected rows: their columns, ``reasons``, ``source_file``, and a null ``raw_line``.

    ``mask`` int64 (rows,): bit *i* is set where a row has ``reasons[i]``; ``file`` int (rows,): key into ``origins``,
    what the user named each file by.
    """
    # Distinct masks and files are few, so each is spelled out once.
    masks, kind = np.unique(mask, return_inverse=True)
    files, source = np.unique(file, return_inverse=True)
    names = [[reason for bit, reason in enumerate(reasons) if each >> bit & 1] for each in masks.tolist()]
    texts = pa.array(names, pa.list_(pa.string()))
    origin = pa.array([origins[each] for each in files.tolist()], pa.string())
    _write(rows, texts.take(pa.array(kind)), origin.take(pa.array(source)), pa.nulls(len(mask), pa.string()), path)


def write_malformed(lines: pa.Array | pa.ChunkedArray, path: Path, *, schema: pa.Schema, origin: str) -> None:
    """Write lines of text that could not be parsed: all columns of the schema null, the line in ``raw_line``."""
    count = len(lines)
    reasons = pa.array([[MALFORMED]] * count, pa.list_(pa.string()))
    rows = pa.table([pa.nulls(count, field.type) for field in schema], schema)
    _write(rows, reasons, pa.array([origin] * count, pa.string()), lines.cast(pa.string()), path)


def _write(rows: pa.Table, reasons: pa.Array, files: pa.Array, lines: pa.Array | pa.ChunkedArray, path: Path) -> None:
    table = rows
    for name, column in {"reasons": reasons, "source_file": files, "raw_line": lines}.items():
        table = table.append_column(name, column)
    write_table(table, path, compression="zstd")


def count_reasons(masks: Counter[int], reasons: Sequence[str]) -> dict[str, Any]:
    """Return the rows read and kept, and the rejected ones by reason: a row counts once under each of its reasons.

    ``masks`` counts rows by mask; bit *i* of a mask is set where ``reasons[i]`` holds, and 0 means kept.
    """
    counts = {reason: sum(masks[mask] for mask in masks if mask >> bit & 1) for bit, reason in enumerate(reasons)}
    by_reason = {reason: rows for reason, rows in counts.items() if rows}
    return {"rows_in": masks.total(), "rows_out": masks[0], "by_reason": by_reason}


def funnel(masks: Counter[int], reasons: Sequence[str], *, rare: Container[str] = ()) -> list[dict[str, Any]]:
    """Return the rows left after each rule in turn: a row leaves at its first reason.

    ``rare`` reasons are listed only where a row has one of them first.
    """
    first: Counter[int] = Counter()
    for mask, rows in masks.items():
        first[(mask & -mask).bit_length() - 1] += rows
    left = masks.total()
    stages: list[dict[str, Any]] = [{"rule": "read", "rows": left}]
    for bit, reason in enumerate(reasons):
        left -= first[bit]
        if first[bit] or reason not in rare:
            stages.append({"rule": reason, "rows": left})
    return stages

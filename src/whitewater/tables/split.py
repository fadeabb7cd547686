"""Rows of raw files split by rules: each is kept, or in quarantine with all its reasons; none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whitewater.engines import Array
from whitewater.io.store import remove_unfinished
from whitewater.tables.conservation import check_written, count_reasons
from whitewater.tables.partitions import write_table
from whitewater.tables.quarantine import MALFORMED, write_malformed, write_rejected
from whitewater.tables.raw_files import RawFile, Unit, UnitCounts
from whitewater.tables.rules import Rule


@dataclass(frozen=True)
class Split:
    """Where the rows of raw files go.

    Parameters
    ----------
    kept, quarantine
        Folders; units become ``part-FILE-UNIT-PIECE.parquet`` in each, and what cannot be parsed
        ``malformed-FILE-UNIT-PIECE.parquet``.
    schema
        The columns of a row.
    rules
        A row is kept that breaks none of them.
    origins
        What each file is called in quarantine, by its number.
    """

    kept: Path
    quarantine: Path
    schema: pa.Schema
    rules: Sequence[Rule]
    origins: Mapping[int, str]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons by their bit in the mask of a row: malformed lines have bit 0, the rules follow."""
        return (MALFORMED, *(rule.reason for rule in self.rules))

    def write(self, rows: pa.Table, broken: Array, malformed: Sequence[str], unit: Unit, piece: int) -> UnitCounts:
        """Write rows of the schema; count them by mask.

        ``broken``, int64 (rows,) on the host, has bit *i* set where a row breaks ``rules[i]``.
        """
        file, name, mask = unit.place[0], f"part-{unit.stem(piece)}.parquet", broken << 1
        if len(kept := rows.filter(pa.array(mask == 0))):
            write_table(kept, self.kept / name)
        if len(rejected := rows.filter(pa.array(mask > 0))):
            masks, files, place = mask[mask > 0], np.full(len(rejected), file), self.quarantine / name
            write_rejected(rejected, masks, files, place, reasons=self.reasons, origins=self.origins)
        if malformed:
            place = self.quarantine / f"malformed-{unit.stem(piece)}.parquet"
            write_malformed(pa.array(malformed), place, schema=self.schema, origin=self.origins[file])
        counts = dict(zip(*np.unique(mask, return_counts=True), strict=True))
        groups = Counter[tuple[int | None, ...]]({(int(each),): int(rows) for each, rows in counts.items()})
        return UnitCounts(len(malformed), next(iter(malformed), None), groups)

    def finish(self, files: Sequence[RawFile], by_file: Sequence[UnitCounts]) -> dict[str, Any]:
        """Return what became of the rows of each file, and of all; a data set without rows gets one empty file.

        Raises IntegrityError if the rows on the disk are not those that were counted.
        """
        remove_unfinished(self.kept)
        remove_unfinished(self.quarantine)
        if not any(self.kept.iterdir()):
            write_table(self.schema.empty_table(), self.kept / "part-none.parquet")
        if not any(self.quarantine.iterdir()):
            write_malformed(pa.nulls(0), self.quarantine / "malformed-none.parquet", schema=self.schema, origin="")
        told = [{"path": file.name, **self._describe(each)} for file, each in zip(files, by_file, strict=True)]
        totals = {key: sum(each[key] for each in told) for key in ("rows_in", "rows_out", "quarantined")}
        check_written(self.kept, totals["rows_out"])
        check_written(self.quarantine, totals["quarantined"])
        return {"totals": totals, "files": told}

    def _describe(self, counts: UnitCounts) -> dict[str, Any]:
        masks = Counter({mask or 0: rows for (mask,), rows in counts.groups.items()}) + Counter({1: counts.malformed})
        found = count_reasons(masks, self.reasons)
        return {**found, "quarantined": found["rows_in"] - found["rows_out"]}

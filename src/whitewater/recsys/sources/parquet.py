"""Parquet files of a source: spans of row groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.places import Input
from whitewater.recsys.sources.layout import Layout
from whitewater.recsys.sources.spans import Rows, Tally
from whitewater.recsys.sources.values import Values

MAGIC = b"PAR1"
SPAN_ROWS = 4 << 20
_BATCH_ROWS = 1 << 16
_FAULTS = (OSError, ValueError, pa.ArrowException)


@dataclass(frozen=True)
class ParquetSpan:
    """Row groups of a Parquet file; see `whitewater.recsys.sources.spans.Span`."""

    path: str
    origin: str
    file: int
    groups: tuple[int, ...]
    rows: int

    def count(self) -> int:
        return self.rows

    def read(self, layout: Layout, tally: Tally) -> Iterator[Rows]:
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, self.groups, columns=layout.names, use_threads=False):
                    batch.validate(full=True)  # of text, that it is UTF-8
                    if batch.num_rows:
                        places = np.arange(tally.lines, tally.lines + batch.num_rows)
                        columns = self._converted(pa.Table.from_batches([batch]), layout, tally)
                        tally.lines += batch.num_rows
                        yield Rows(places, columns)
        except _FAULTS as error:
            row = tally.before + tally.lines
            raise InputError(f"{self.origin} cannot be read after row {row:,}: {error}. Write it again.") from error

    def _converted(self, table: pa.Table, layout: Layout, tally: Tally) -> dict[str, Values]:
        try:
            return layout.convert(table)
        except ValueError as error:
            row = _first_fault(table, layout)
            number = tally.before + tally.lines + row + 1
            found = _fault(table.slice(row, 1), layout) or error
            raise InputError(f"{self.origin}, row {number:,}: {found}. Correct the file, or what recsys.fetch says "
                             "of it.") from error  # fmt: skip


def _first_fault(table: pa.Table, layout: Layout) -> int:
    """Return the first row that cannot be converted, of a table in which there is one."""
    start, stop = 0, len(table)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fault(table.slice(start, middle - start), layout):
            stop = middle
        else:
            start = middle
    return start


def _fault(table: pa.Table, layout: Layout) -> ValueError | None:
    try:
        layout.convert(table)
    except ValueError as error:
        return error
    return None


def is_parquet(file: Input) -> bool:
    """Say whether a file begins as Parquet's do. Raises InputError if it cannot be read."""
    try:
        with Path(file.path).open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise InputError(f"{file.origin} cannot be read: {error}. Check recsys.fetch.") from error


def parquet_schema(file: Input) -> pa.Schema:
    """Return the columns of a Parquet file. Raises InputError if it is none."""
    return _opened(file).schema.to_arrow_schema()


def parquet_spans(file: Input, number: int) -> list[ParquetSpan]:
    """Return the spans of a Parquet file: row groups with `SPAN_ROWS` rows or more together."""
    footer = _opened(file)
    spans: list[ParquetSpan] = []
    groups: list[int] = []
    rows = 0
    for group in range(footer.num_row_groups):
        groups.append(group)
        rows += footer.row_group(group).num_rows
        if rows >= SPAN_ROWS or group == footer.num_row_groups - 1:
            spans.append(ParquetSpan(file.path, file.origin, number, tuple(groups), rows))
            groups, rows = [], 0
    return spans


def _opened(file: Input) -> pq.FileMetaData:
    try:
        with pq.ParquetFile(file.path) as opened:
            return opened.metadata
    except _FAULTS as error:
        raise InputError(f"{file.origin} is no whole Parquet file: {error}. Check recsys.fetch.") from error

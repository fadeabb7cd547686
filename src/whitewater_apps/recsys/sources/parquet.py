"""Parquet files of a source: spans of row groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.features.log_folder import LABEL
from whitewater.io.download import Input
from whitewater_apps.recsys.sources.layout import Layout
from whitewater_apps.recsys.sources.spans import Rows, Span, Tally

MAGIC = b"PAR1"
SPAN_ROWS = 4 << 20
_BATCH_ROWS = 1 << 16
_FAULTS = (OSError, ValueError, pa.ArrowException)


@dataclass(frozen=True)
class ParquetSpan(Span):
    """Row groups of a Parquet file."""

    groups: tuple[int, ...]
    rows: int

    def count(self) -> int:
        return self.rows

    def read(self, layout: Layout, tally: Tally) -> Iterator[Rows]:
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, self.groups, columns=layout.names, use_threads=False):
                    batch.validate(full=True)  # of text, that it is UTF-8
                    places = np.arange(tally.lines, tally.lines + batch.num_rows)
                    for first, found in layout.pieces(pa.Table.from_batches([batch])):
                        if isinstance(found, ValueError):
                            row = tally.before + int(places[first]) + 1
                            raise InputError(f"{self.origin}, row {row:,}: {found}. Correct the file, or what "
                                             "recsys.fetch says of it.")  # fmt: skip
                        yield Rows(places[first : first + len(found[LABEL])], found)
                    tally.lines += len(places)
        except _FAULTS as error:
            row = tally.before + tally.lines
            raise InputError(f"{self.origin} cannot be read after row {row:,}: {error}. Write it again.") from error


def is_parquet(file: Input) -> bool:
    """Say whether a file begins as Parquet's do. Raises InputError if it cannot be read."""
    try:
        with Path(file.path).open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise InputError(f"{file.origin} cannot be read: {error}. Check recsys.fetch.") from error


def parquet_schema(file: Input) -> pa.Schema:
    """Return the columns of a Parquet file. Raises InputError if it is not one."""
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
        raise InputError(f"{file.origin} is not a whole Parquet file: {error}. Check recsys.fetch.") from error

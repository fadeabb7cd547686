"""Spans of a source's files, Parquet and delimited text, plain or gzip: read block by block as columns of a log.

A line of text that cannot be converted is malformed, and left out. Which lines these are does not depend on the blocks.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.features.log_folder import LABEL
from whitewater.io.download import Input
from whitewater.io.folder import open_parquet
from whitewater.io.text_files import BYTE_ORDER_MARK, line_blocks, open_text, parse_sound, ranges
from whitewater.tables.partitions import ranges_of
from whitewater_apps.recsys.sources.columns import Layout
from whitewater_apps.recsys.sources.times import RefusedError, Values

logger = logging.getLogger(__name__)

# Of the lines of a file, the share that may be malformed.
MALFORMED_SHARE = 0.01
# With more malformed lines in a block a file is of another format: to find each of them would take long.
MALFORMED_OF_BLOCK, SHARE_OF_BLOCK = 100, 0.1
# Malformed lines of a file that are described, and letters of a description.
_EXAMPLES, _REASON_LENGTH = 5, 160
# About so much is in a span; and rows of Parquet that are converted at once.
SPAN_BYTES, SPAN_ROWS, _BATCH_ROWS = 256 << 20, 4 << 20, 1 << 16
_HEAD_BYTES = 1 << 20


class Block(NamedTuple):
    """Columns of some rows, the places of these among the lines of the block, why other lines are malformed by place.

    There may be empty lines as well. A row of Parquet counts as a line.
    """

    raw: pa.Table
    places: npt.NDArray[np.int64]
    faults: dict[int, str]
    lines: int


@dataclass
class Tally:
    """How many lines or rows of a span there are, empty and malformed ones among them, and what is wrong with some.

    ``before`` are the lines of the file before those of the span.
    """

    before: int = 0
    lines: int = 0
    empty: int = 0
    malformed: int = 0
    examples: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        counts = (self.lines + other.lines, self.empty + other.empty, self.malformed + other.malformed)
        return Tally(self.before, *counts, [*self.examples, *other.examples])

    def add(self, lines: int, empty: int, faults: Mapping[int, str]) -> None:
        """Count the lines of the next block, of which some are empty, and some have faults, by place."""
        first = [f"line {self.before + self.lines + place + 1:,}: {faults[place]}" for place in sorted(faults)]
        self.examples += first[: _EXAMPLES - len(self.examples)]
        self.lines += lines
        self.empty += empty
        self.malformed += len(faults)

    def describe(self, origin: str) -> str:
        """Return a sentence on the malformed lines of a file."""
        examples = "; ".join(self.examples[:_EXAMPLES])
        return f"{origin}: {self.malformed:,} of {self.lines:,} lines are malformed: {examples}."

    @property
    def counts(self) -> dict[str, int]:
        """Lines, empty lines and malformed ones."""
        return {"lines": self.lines, "empty": self.empty, "malformed": self.malformed}

    def refuse_malformed(self, origin: str) -> None:
        """Log which lines of a file were left out; raise InputError if they are more than `MALFORMED_SHARE`."""
        if self.malformed > MALFORMED_SHARE * self.lines:
            raise InputError(f"{self.describe(origin)} More than {MALFORMED_SHARE:.0%} are too many: correct the file, "
                             "or the settings of its format in recsys.fetch.")  # fmt: skip
        if self.malformed:
            logger.warning("%s They were left out.", self.describe(origin))


@dataclass(frozen=True)
class ParquetSpan:
    """Row groups of a Parquet file: ``origin`` is what the user calls the file, ``file`` its number, from 0."""

    path: str
    origin: str
    file: int
    groups: tuple[int, ...]
    rows: int
    header: int = 0

    def count(self) -> int:
        """Return how many row numbers the span takes."""
        return self.rows

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Yield some columns."""
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, self.groups, columns=names, use_threads=False):
                    batch.validate(full=True)  # of text, that it is UTF-8
                    yield Block(pa.Table.from_batches([batch]), np.arange(batch.num_rows), {}, batch.num_rows)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{self.origin} cannot be read: {error}. Write it again.") from error


@dataclass(frozen=True)
class TextSpan:
    """The lines of a file, or of a member of a zip file, from ``begin`` to ``end``, or to its end."""

    path: str
    origin: str
    file: int
    names: tuple[str, ...]  # of the fields of a line
    types: Mapping[str, pa.DataType]  # as what some are read
    delimiter: str  # of more than one character only where no field has a tab
    quoted: bool  # whether fields may be
    header: int  # lines before the first row of the file
    begin: int
    end: int | None = None
    member: str = ""

    def count(self) -> int:
        """Return how many row numbers the span takes."""
        return sum(block.count(b"\n") for block in self._blocks())

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Yield some columns, as text."""
        texts = dict.fromkeys(names, pa.string())
        delimiter = self.delimiter if len(self.delimiter) == 1 else "\t"
        for data in self._blocks():
            raw, unsound = parse_sound(data, self.names, texts, delimiter=delimiter, quoted=self.quoted)
            filled = _filled(data)
            faults = {int(filled[number]): reason for number, reason in unsound.items()}
            yield Block(raw, np.delete(filled, list(unsound)), faults, data.count(b"\n"))

    def _blocks(self) -> Iterator[bytes]:
        for data in line_blocks(self.path, self.begin, self.end, origin=self.origin, member=self.member):
            yield data if len(self.delimiter) == 1 else data.replace(self.delimiter.encode(), b"\t")


Span = ParquetSpan | TextSpan


def read(span: Span, layout: Layout, tally: Tally) -> Iterator[tuple[npt.NDArray[np.int64], dict[str, Values]]]:
    """Yield the rows of a span, their places in it, ascending, and the log's columns; count all lines.

    Raises InputError if a row of Parquet cannot be converted, a label or a time must not be in a log, or more than
    `MALFORMED_OF_BLOCK` and than `SHARE_OF_BLOCK` of the lines of a block are malformed.
    """
    types: Mapping[str, pa.DataType] = span.types if isinstance(span, TextSpan) else {}
    for block in span.blocks([column.name for column in layout.columns]):
        faults, most = block.faults, max(MALFORMED_OF_BLOCK, SHARE_OF_BLOCK * block.lines)
        empty = block.lines - len(block.places) - len(faults)
        for first, columns in layout.convert(block.raw, types):
            if len(faults) > most:
                break
            place = int(block.places[first])
            if isinstance(columns, RefusedError) or (isinstance(columns, ValueError) and not types):
                kind = "line" if types else "row"
                raise InputError(f"{span.origin}, {kind} {tally.before + tally.lines + place + 1:,}: {columns}. "
                                 "Correct the file, or the settings of its format in recsys.fetch.")  # fmt: skip
            if isinstance(columns, ValueError):
                faults[place] = str(columns)[:_REASON_LENGTH]
            else:
                yield block.places[first : first + len(columns[LABEL])] + tally.lines, columns
        tally.add(block.lines, empty, faults)
        if len(faults) > most:
            raise InputError(f"{tally.describe(span.origin)} Correct the file, or the settings of its format in "
                             "recsys.fetch.")  # fmt: skip


def _filled(data: bytes) -> npt.NDArray[np.int64]:
    """Return the numbers of the lines that are not empty, from 0."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    lengths = np.diff(ends, prepend=-1) - 1
    return np.flatnonzero((lengths > 1) | ((lengths == 1) & (text[ends - 1] != ord("\r"))))


def parquet_spans(file: Input, number: int) -> list[Span]:
    """Return the spans of a Parquet file. Raises InputError if it is not one, or cut off."""
    with open_parquet(Path(file.path)) as parquet:
        footer = parquet.metadata
    rows = [footer.row_group(each).num_rows for each in range(footer.num_row_groups)]
    return [
        ParquetSpan(file.path, file.origin, number, tuple(range(start, stop)), sum(rows[start:stop]))
        for start, stop in ranges_of(rows, SPAN_ROWS)
    ]


class Head(NamedTuple):
    """The first line of a file: its fields, those of the second by these, and where the first and second begin."""

    fields: tuple[str, ...]
    second: Mapping[str, str]
    begins: tuple[int, int]


def head_of(path: str, origin: str, delimiter: str, *, member: str = "") -> Head:
    """Return the first line of a file, or of a member of a zip file.

    Raises InputError if there is none, or the file cannot be read.
    """
    with open_text(path, origin, member=member) as stream:
        start = stream.read(_HEAD_BYTES)
    begin = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    if not start[begin:].strip():
        raise InputError(f"{origin} is empty. Fetch it again, or leave it out.")
    first, *others = start[begin:].splitlines(keepends=True)
    shown = [first, *[line for line in others if line.strip()][:1]]
    try:
        fields, *second = csv.reader([line.decode(errors="replace") for line in shown], delimiter=delimiter)
    except csv.Error as error:
        raise InputError(f"{origin}: the first lines are not text: {error}. Check recsys.fetch.") from error
    return Head(tuple(fields), dict(zip(fields, *(second or [[]]), strict=False)), (begin, begin + len(first)))


def text_spans(text: TextSpan) -> list[Span]:
    """Cut all lines of a file into spans; a gzip file cannot be cut."""
    return [replace(text, begin=begin, end=end) for begin, end in ranges(text.path, text.begin, SPAN_BYTES)]

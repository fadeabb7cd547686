"""Rows of a source's files as files of a log: spans of rows are numbered, then converted beside each other."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, groupby, pairwise
from operator import add, methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.features.log_folder import DAY, LABEL, ROW_ID, TIME, LogFile, LogWriter, file_name
from whitewater.io.download import Input
from whitewater.io.folder import open_parquet
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.sources.columns import Layout, Values

logger = logging.getLogger(__name__)

DAY_SECONDS = 86_400
# Of the lines of a file, the share that may be malformed.
MALFORMED_SHARE = 0.01
# Malformed lines of a span or file that are described.
EXAMPLES = 5
# Of Parquet, in a span; and those that are converted at once.
SPAN_ROWS, _BATCH_ROWS = 4 << 20, 1 << 16


@dataclass(frozen=True)
class Rows:
    """One row or more: their places in the span, ascending int64 (rows,), and the log's columns; see `Layout`."""

    places: npt.NDArray[np.int64]
    columns: Mapping[str, Values]


@dataclass
class Tally:
    """What was met in a span: its lines or rows, empty lines, and malformed ones, of which the first are told.

    In the file there are ``before`` lines or rows before those of the span.
    """

    before: int = 0
    lines: int = 0
    empty: int = 0
    malformed: int = 0
    examples: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        examples = [*self.examples, *other.examples]
        counts = (self.lines + other.lines, self.empty + other.empty, self.malformed + other.malformed)
        return Tally(self.before, *counts, examples)

    def add_malformed(self, line: int, reason: str) -> None:
        """Count a malformed line, of which the number in the span is given, from 0."""
        self.malformed += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"line {self.before + line + 1:,}: {reason}")

    def describe(self, origin: str) -> str:
        """Return a sentence on the malformed lines of a file."""
        told = "; ".join(self.examples[:EXAMPLES])
        return f"{origin}: {self.malformed:,} of {self.lines:,} lines are malformed: {told}."

    @property
    def counts(self) -> dict[str, int]:
        """Lines, empty lines and malformed ones."""
        return {"lines": self.lines, "empty": self.empty, "malformed": self.malformed}


@dataclass(frozen=True)
class Span(ABC):
    """Some rows of a file. ``origin`` is what the user calls the file, ``file`` its number, from 0."""

    path: str
    origin: str
    file: int

    @abstractmethod
    def count(self) -> int:
        """Return how many row numbers the span takes."""

    @abstractmethod
    def read(self, layout: Layout, tally: Tally) -> Iterator[Rows]:
        """Yield the rows in their order, and count what is none."""


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
        except (OSError, ValueError, pa.ArrowException) as error:
            row = tally.before + tally.lines
            raise InputError(f"{self.origin} cannot be read after row {row:,}: {error}. Write it again.") from error


def parquet_spans(file: Input, number: int) -> list[ParquetSpan]:
    """Return the spans of a Parquet file: row groups with `SPAN_ROWS` rows or more together.

    Raises InputError if it is not one, or cut off.
    """
    with open_parquet(Path(file.path)) as parquet:
        footer = parquet.metadata
    rows = [footer.row_group(each).num_rows for each in range(footer.num_row_groups)]
    spans, start = list[ParquetSpan](), 0
    for stop in range(1, len(rows) + 1):
        together = sum(rows[start:stop])
        if together >= SPAN_ROWS or stop == len(rows):
            spans.append(ParquetSpan(file.path, file.origin, number, tuple(range(start, stop)), together))
            start = stop
    return spans


def write_spans(
    spans: Sequence[Span], layout: Layout, writer: LogWriter, *, run: Run[Any], days_of_time: bool = False
) -> dict[str, int]:
    """Write the log of the spans of all files, which are in the order of the rows, and return what was counted.

    With ``days_of_time`` a day is one of UTC, counted from that of the first row: then days must ascend from row to
    row, while the rows of a day may be in any order. Else a file is a day.

    Raises InputError if there are no rows, more than `MALFORMED_SHARE` of the lines of a file are malformed, or a row
    is of an earlier day than the row before.
    """
    if not spans:
        raise InputError("The files have no rows. Check recsys.fetch.")
    with run.workers() as workers:
        # Of the last one nothing has to be known beforehand.
        counts = workers.map(methodcaller("count"), spans[:-1], label="files counted", ordered=True)
        firsts = [0, *accumulate(counts)]
        first_of_file = {span.file: first for span, first in reversed(list(zip(spans, firsts, strict=True)))}
        tasks = [
            (number, first, span, Tally(before=first - first_of_file[span.file]))
            for number, (first, span) in enumerate(zip(firsts, spans, strict=True))
        ]
        shared = {"layout": layout, "writer": writer, "origin": _first_day(spans, layout) if days_of_time else None}
        written = list(workers.map(write_span, tasks, label="files read", ordered=True, shared=shared))
    tallies = [tally for _, tally in written]
    for origin, group in groupby(zip(spans, tallies, strict=True), key=lambda each: each[0].origin):
        refuse_malformed(origin, reduce(add, [tally for _, tally in group]))
    files = [file for found, _ in written for file in found]
    origins = [span.origin for span, (found, _) in zip(spans, written, strict=True) for _ in found]
    for (before, after), origin in zip(pairwise(files), origins[1:], strict=True):
        if after.day < before.day:
            raise _unsorted(origin)
    if not files:
        raise InputError(f"{', '.join(dict.fromkeys(span.origin for span in spans))}: no rows. Check recsys.fetch.")
    counted = reduce(add, tallies).counts
    writer.finish(files, counts=counted)
    return counted


def write_span(
    task: tuple[int, int, Span, Tally], *, layout: Layout, writer: LogWriter, origin: int | None
) -> tuple[list[LogFile], Tally]:
    """Write the files of a span, one for each of its days, and return them and what was met.

    The task is the number of the span, that of its first row, the span, and an empty tally; ``origin`` is the first day
    of UTC, or None.
    """
    number, first, span, tally = task
    files: list[LogFile] = []
    tables = _tables(span, first, tally, layout=layout, writer=writer, origin=origin)
    for day, of_day in groupby(tables, key=lambda each: each[0]):
        with writer.file(file_name(day, number), day=day) as file:
            for _, table in of_day:
                file.write(table)
        files.append(file.file)
    return files, tally


def _tables(
    span: Span, first_row: int, tally: Tally, *, layout: Layout, writer: LogWriter, origin: int | None
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a span as tables of the log, each of one day."""
    last = None
    for rows in span.read(layout, tally):
        row_id = rows.places + first_row
        time = to_numpy(rows.columns[TIME]) if TIME in rows.columns else row_id
        days = np.full(len(row_id), span.file) if origin is None else time // DAY_SECONDS - origin
        starts = np.flatnonzero(np.diff(days, prepend=days[0] - 1))
        if (last is not None and days[0] < last) or (np.diff(days[starts]) < 0).any():
            raise _unsorted(span.origin)
        last = days[-1]
        own = {ROW_ID: to_arrow(row_id), DAY: to_arrow(days.astype(np.int32)), TIME: to_arrow(time)}
        columns = {**rows.columns, **own}
        table = pa.Table.from_arrays([columns[name] for name in writer.schema.names], schema=writer.schema)
        for first, stop in pairwise([*starts.tolist(), len(days)]):
            yield int(days[first]), table.slice(first, stop - first)


def _first_day(spans: Sequence[Span], layout: Layout) -> int:
    """Return the day of UTC, since 1970, of the first row."""
    for span in spans:
        for rows in span.read(layout, Tally()):
            return int(to_numpy(rows.columns[TIME])[0]) // DAY_SECONDS
    return 0


def refuse_malformed(origin: str, tally: Tally) -> None:
    """Say which lines of a file were left out. Raises InputError if they are more than `MALFORMED_SHARE`."""
    if tally.malformed > MALFORMED_SHARE * tally.lines:
        raise InputError(f"{tally.describe(origin)} More than {MALFORMED_SHARE:.0%} are too many: correct the file, or "
                         "the settings of its format in recsys.fetch.")  # fmt: skip
    if tally.malformed:
        logger.warning("%s They were left out.", tally.describe(origin))


def _unsorted(origin: str) -> InputError:
    return InputError(f"{origin}: a row is of an earlier day than the row before it. Sort the rows of the files, and "
                      "the files, by time; or declare no column of time, and a file is a day.")  # fmt: skip

"""Rows of a source's files as files of a log: spans of rows are numbered, then converted beside each other."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from operator import methodcaller
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.log_folder import DAY, ROW_ID, TIME, LogFile, LogWriter, file_name
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.sources.layout import Layout
from whitewater_apps.recsys.sources.values import Values

logger = logging.getLogger(__name__)

DAY_SECONDS = 86_400
# Of the lines of a file, the share that may be malformed.
MALFORMED_SHARE = 0.01
# Malformed lines of a span or file that are described.
EXAMPLES = 5


@dataclass(frozen=True)
class Rows:
    """One row or more: their places in the span, ascending int64 (rows,), and the columns of `Layout.convert`."""

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

    def add_malformed(self, line: int, reason: str) -> None:
        """Count a malformed line, of which the number in the span is given, from 0."""
        self.malformed += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"line {self.before + line + 1:,}: {reason}")


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
class Task:
    """A span, its number, and the numbers of its first row in the log and in its file."""

    span: Span
    number: int
    first: int
    first_in_file: int


def write_spans(
    spans: Sequence[Span], layout: Layout, writer: LogWriter, *, run: Run[Any], days_of_time: bool = False
) -> dict[str, int]:
    """Write the log of a source's files, and return what was counted.

    Parameters
    ----------
    spans
        Of all files, in the order of the rows.
    layout
        The columns, and what becomes of them.
    writer
        Of the log.
    run
        The step, whose workers convert the spans.
    days_of_time
        Whether a day is one of UTC, counted from that of the first row: then days must ascend from row to row, while
        the rows of a day may be in any order. Else a file is a day.

    Raises
    ------
    InputError
        If there are no rows, more than `MALFORMED_SHARE` of the lines of a file are malformed, or a row is of an
        earlier day than the row before.
    """
    if not spans:
        raise InputError("The files have no rows. Check recsys.fetch.")
    with run.workers() as workers:
        # Of the last one nothing has to be known beforehand.
        counts = list(workers.map(methodcaller("count"), spans[:-1], label="files counted", ordered=True))
        shared = {"layout": layout, "writer": writer, "origin": _first_day(spans, layout) if days_of_time else None}
        written = list(
            workers.map(write_span, _numbered(spans, counts), label="files read", ordered=True,
                    shared=shared)
        )  # fmt: skip
    tallies = [tally for _, tally in written]
    for origin, group in groupby(zip(spans, tallies, strict=True), key=lambda each: each[0].origin):
        refuse_malformed(origin, [tally for _, tally in group])
    day = None
    for span, (found, _) in zip(spans, written, strict=True):
        if found and day is not None and found[0].day < day:
            raise _unsorted(span.origin)
        day = found[-1].day if found else day
    files = [file for found, _ in written for file in found]
    if not files:
        raise InputError(f"{', '.join(dict.fromkeys(span.origin for span in spans))}: no rows. Check recsys.fetch.")
    counted = {name: sum(getattr(tally, name) for tally in tallies) for name in ("lines", "empty", "malformed")}
    writer.finish(files, counts=counted)
    return counted


def write_span(task: Task, *, layout: Layout, writer: LogWriter, origin: int | None) -> tuple[list[LogFile], Tally]:
    """Write the files of a span, one for each of its days; ``origin`` is the first day of UTC, or None."""
    tally = Tally(before=task.first_in_file)
    files: list[LogFile] = []
    for day, tables in groupby(_tables(task, layout, writer, tally, origin), key=lambda each: each[0]):
        with writer.file(file_name(day, task.number), day=day) as file:
            for _, table in tables:
                file.write(table)
        files.append(file.file)
    return files, tally


def _tables(
    task: Task, layout: Layout, writer: LogWriter, tally: Tally, origin: int | None
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a span as tables of the log, each of one day."""
    last = None
    for rows in task.span.read(layout, tally):
        row_id = rows.places + task.first
        time = to_numpy(rows.columns[TIME]) if TIME in rows.columns else row_id
        days = np.full(len(row_id), task.span.file) if origin is None else time // DAY_SECONDS - origin
        starts = np.flatnonzero(np.diff(days, prepend=days[0] - 1))
        if (last is not None and days[0] < last) or (np.diff(days[starts]) < 0).any():
            raise _unsorted(task.span.origin)
        last = days[-1]
        own = {ROW_ID: to_arrow(row_id), DAY: to_arrow(days.astype(np.int32)), TIME: to_arrow(time)}
        columns = {**rows.columns, **own}
        table = pa.Table.from_arrays([columns[name] for name in writer.schema.names], schema=writer.schema)
        for first, stop in pairwise([*starts.tolist(), len(days)]):
            yield int(days[first]), table.slice(first, stop - first)


def _numbered(spans: Sequence[Span], counts: Sequence[int]) -> list[Task]:
    firsts = [0, *accumulate(counts)]
    first_of_file: dict[int, int] = {}
    for span, first in zip(spans, firsts, strict=True):
        first_of_file.setdefault(span.file, first)
    return [
        Task(span, number, first, first - first_of_file[span.file])
        for number, (span, first) in enumerate(zip(spans, firsts, strict=True))
    ]


def _first_day(spans: Sequence[Span], layout: Layout) -> int:
    """Return the day of UTC, since 1970, of the first row."""
    for span in spans:
        for rows in span.read(layout, Tally()):
            return int(to_numpy(rows.columns[TIME])[0]) // DAY_SECONDS
    return 0


def refuse_malformed(origin: str, tallies: Sequence[Tally]) -> None:
    """Say which lines of a file were left out. Raises InputError if they are more than `MALFORMED_SHARE`."""
    lines, malformed = sum(each.lines for each in tallies), sum(each.malformed for each in tallies)
    if not malformed:
        return
    told = describe_malformed(origin, malformed, lines, [each for tally in tallies for each in tally.examples])
    if malformed > MALFORMED_SHARE * lines:
        raise InputError(f"{told} More than {MALFORMED_SHARE:.0%} are too many: correct the file, or the settings of "
                         "its format in recsys.fetch.")  # fmt: skip
    logger.warning("%s They were left out.", told)


def describe_malformed(origin: str, malformed: int, lines: int, examples: Sequence[str]) -> str:
    """Return a sentence on malformed lines."""
    return f"{origin}: {malformed:,} of {lines:,} lines are malformed: {'; '.join(examples[:EXAMPLES])}."


def _unsorted(origin: str) -> InputError:
    return InputError(f"{origin}: a row is of an earlier day than the row before it. Sort the rows of the files, and "
                      "the files, by time; or declare no column of time, and a file is a day.")  # fmt: skip

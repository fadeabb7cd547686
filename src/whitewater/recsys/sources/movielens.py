"""Source `movielens`: a release of MovieLens, its zip file or its folder, of any size and age.

============================ ================================= ================================= ========
release                      ratings                           movies                            text
============================ ================================= ================================= ========
100K                         ``u.data``, tabs                  ``u.item``, bars, a flag a genre  Latin-1
1M, 10M                      ``ratings.dat``, double colons    ``movies.dat``, double colons     see below
20M, 25M, 32M, latest        ``ratings.csv``, header           ``movies.csv``, header, quotes    UTF-8
============================ ================================= ================================= ========

``movies.dat`` is Latin-1 in 1M and UTF-8 in 10M: it is read as UTF-8 if it is that.

A rating is a row: ``user`` and ``item`` (ids), ``genres`` of the item (none if its list is empty or the item unknown)
and ``year`` in its title, if there is one. The label is 1 where the rating is at least ``positive``; the rating itself
is left out, since it tells the label. Rows are in the order of time, those of one time in that of the file, and
``row_id`` is the place in this order. The days of ratings are thousands, many with few rows, so ``day`` is one of at
most `PERIODS` periods with about equally many rows; rows of one time are in one.

Source: the README of each release, https://grouplens.org/datasets/movielens/.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.arrow_arrays import to_arrow, to_numpy
from whitewater.config.recsys import Fetch, FileColumn
from whitewater.download import Input
from whitewater.errors import InputError
from whitewater.memory import forecast
from whitewater.recsys.log_folder import DAY, LABEL, ROW_ID, TIME, LogColumn, LogFile, LogWriter, file_name
from whitewater.recsys.sources.layout import Layout
from whitewater.recsys.sources.movielens_release import KEY, Items, Member, Release, items_of, open_release, refuse_size
from whitewater.recsys.sources.spans import Tally, refuse_malformed
from whitewater.recsys.sources.text import Format, read_rows
from whitewater.recsys.sources.values import Values
from whitewater.step import Run
from whitewater.text_files import BYTE_ORDER_MARK, whole_lines

logger = logging.getLogger(__name__)

PERIODS = 20
COLUMNS = (
    LogColumn("user", "categorical", "int64"),
    LogColumn("item", "categorical", "int64"),
    LogColumn("genres", "list", "list<string>"),
    LogColumn("year", "continuous", "int32"),
)
# Several times what the largest release has.
LARGEST_RATINGS = 4 << 30
_HEADER = b"userId\tmovieId\trating\ttimestamp"
_ROW_BYTES, _SHORTEST_LINE = 48, 18
_IDS = {"user": "int32", "item": "int32"}
_TYPES = {"user": pa.int32(), "item": pa.int32(), "rating": pa.float64(), "timestamp": pa.int64()}
_READ_COLUMNS = (
    FileColumn(name="user", role="key"),
    FileColumn(name="item", role="key"),
    FileColumn(name="rating", role="label"),
    FileColumn(name="timestamp", role="time", unit="s"),
)


@dataclass(frozen=True)
class Ratings:
    """Ratings in the order of time, (rows,)."""

    user: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    label: npt.NDArray[np.int8]
    time: npt.NDArray[np.int64]

    def periods(self) -> list[tuple[int, int]]:
        """Return where each period begins and ends."""
        ranks = [number * len(self.time) // PERIODS for number in range(PERIODS)]
        begins = np.unique(np.searchsorted(self.time, self.time[ranks]))
        return list(pairwise([*begins.tolist(), len(self.time)]))


def read_movielens(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of a release: a zip file, or ratings and movies.

    Raises
    ------
    InputError
        If a file is none of a release, is damaged, or unfolds to more than any release; or lines are malformed, of the
        ratings more than `whitewater.recsys.sources.spans.MALFORMED_SHARE`.
    ResourceError
        If there is not the memory to sort the ratings.
    """
    with open_release(files) as (release, ratings, movies):
        items = items_of(release, movies)
        found, counts = _ratings(release, ratings, run.settings.movielens.positive)
    unknown = int(np.count_nonzero(items.places(found.item) == len(items.ids)))
    if unknown:
        logger.warning("%s has no entry for the items of %d ratings: they have no genres", movies.origin, unknown)
    writer = LogWriter(log, "movielens", COLUMNS, "seconds", run.settings.row_group_rows, "period")
    files_written = [_write(number, span, found, items, writer=writer) for number, span in enumerate(found.periods())]
    counts = {**counts, "of_unknown_items": unknown}
    writer.finish(files_written, counts=counts)
    return counts


def _ratings(release: Release, ratings: Member, positive: float) -> tuple[Ratings, dict[str, int]]:
    refuse_size(ratings, LARGEST_RATINGS)
    forecast(ratings.size // _SHORTEST_LINE * _ROW_BYTES, what="Sorting the ratings by time",
             remedy="Use a smaller release.")  # fmt: skip
    # All fields are numbers.
    lines = whole_lines(ratings.stream, ratings.origin)
    given: Iterator[bytes] = (block.replace(release.separator, b"\t") for block in lines)
    if release.header:
        given = _after_header(given, ratings.origin)
    layout = Layout(_READ_COLUMNS, _IDS, positive, frozenset(_IDS))
    format_, tally = Format(tuple(_TYPES), "\t", quoted=False, types=(_TYPES,)), Tally()
    read = read_rows(given, format_, layout, tally, origin=ratings.origin, header=int(release.header))
    parts = [rows.columns for rows in read]
    refuse_malformed(ratings.origin, [tally])
    if not parts:
        raise InputError(f"{ratings.origin} has no ratings. Check {KEY}.")
    return _in_order(parts), {"lines": tally.lines, "empty": tally.empty, "malformed": tally.malformed}


def _in_order(parts: Sequence[Mapping[str, Values]]) -> Ratings:
    columns = {name: np.concatenate([to_numpy(part[name]) for part in parts]) for name in parts[0]}
    order = np.argsort(columns[TIME], kind="stable")
    user, item, label, time = (columns[name][order] for name in ("user", "item", LABEL, TIME))
    return Ratings(user, item, label, time)


def _after_header(given: Iterator[bytes], origin: str) -> Iterator[bytes]:
    first = next(given, b"")
    line, _, rest = first.partition(b"\n")
    if line.strip().removeprefix(BYTE_ORDER_MARK) != _HEADER:
        wanted = ", ".join(_HEADER.decode().split())
        raise InputError(f"{origin} does not begin with {wanted}, but with {line[:80]!r}. Check {KEY}.")
    if rest:
        yield rest
    yield from given


def _write(number: int, span: tuple[int, int], ratings: Ratings, items: Items, *, writer: LogWriter) -> LogFile:
    begin, end = span
    with writer.file(file_name(number), day=number) as file:
        for first in range(begin, end, writer.row_group_rows):
            rows = slice(first, min(first + writer.row_group_rows, end))
            places = to_arrow(items.places(ratings.item[rows]))
            columns = {
                ROW_ID: to_arrow(np.arange(rows.start, rows.stop)),
                DAY: to_arrow(np.full(rows.stop - rows.start, number, np.int32)),
                TIME: to_arrow(ratings.time[rows]),
                LABEL: to_arrow(ratings.label[rows]),
                "user": to_arrow(ratings.user[rows].astype(np.int64)),
                "item": to_arrow(ratings.item[rows].astype(np.int64)),
                "genres": items.genres.take(places),
                "year": items.year.take(places),
            }
            schema = writer.schema
            file.write(pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema))
    return file.file

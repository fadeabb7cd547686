"""How often each value of columns occurs, and the order that this gives them, in bounded memory.

Values are counted in memory. Where they outgrow it they go to files, parted by their hash into shares; each share is
then counted, pruned and sorted by itself, and the sorted files are merged.

Source: G. Graefe, "Query evaluation techniques for large databases", ACM Computing Surveys 25(2), 1993, on aggregation
by hashing with overflow.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.recsys.categories import CategoryCounter, order_by_frequency
from whitewater.recsys.counted_values import Counted, CountsWriter, Integers, MappedCounts, pieces, together
from whitewater.recsys.hashing import hash_values

logger = logging.getLogger(__name__)

# Values are parted by SHARE_BITS of their hash, and again by the next ones where a share is still too large.
SHARE_BITS = 6
SHARES = 1 << SHARE_BITS
_LEVELS = 64 // SHARE_BITS
SEED = 6151
"""Of the hash that parts values; another than that of buckets, which come from the same values."""
# Values that are added at once, and that are kept in memory whatever they may take: files of fewer would be many.
PIECE = 1 << 16
FEWEST = 1 << 12
# Values that there is room for at first; columns of few values are many.
_ROOM = 1 << 8
# A counter hands over its texts as one array of Arrow, which has at most 2**31 bytes.
_MOST_BYTES = 1 << 30
# Of the memory, for what is kept at the end: a table of look-ups takes more, and other columns have theirs.
RESULT_SHARE = 64


@dataclass(frozen=True)
class Choice:
    """Which values are kept, and their order: descending count; where counts are equal, ascending value.

    Kept are values that occur ``least`` times, and of them the first ``most``, if that is not None.
    """

    least: int = 1
    most: int | None = None

    def of(self, counted: Counted) -> Counted:
        """Return the values that are kept, in order."""
        kept = counted.counts >= self._threshold(counted.counts)
        some = counted if kept.all() else counted.take(np.flatnonzero(kept))
        order = order_by_frequency(some.counts, some.values)
        return some.take(order[: self.most])

    def _threshold(self, counts: Integers) -> int:
        """Return the count that a value must have to be kept; some that have it may be too many."""
        if self.most is None or len(counts) <= self.most:
            return self.least
        return max(self.least, int(np.partition(counts, len(counts) - self.most)[len(counts) - self.most]))


@dataclass(frozen=True)
class Run:
    """Values in files, each once, parted by hash: share *i* is from ``starts[i]`` to ``starts[i + 1]``."""

    counts: MappedCounts
    starts: Integers

    def share(self, index: int) -> Counted:
        """Return the values of one share."""
        return self.counts.slice(int(self.starts[index]), int(self.starts[index + 1]))


class Tally:
    """Counts values of string, binary or int64; those that outgrow the memory, in bytes, are in ``runs`` on disk.

    ``name`` is what the log calls them, and ``level`` how many times they were parted before.
    """

    def __init__(self, name: str, kind: pa.DataType, *, memory: int, scratch: Path, level: int = 0) -> None:
        self.name, self.kind, self.memory, self.scratch, self.level = name, kind, memory, scratch, level
        self.runs: list[Run] = []
        # Values are copied when they are parted or sorted.
        self._most = min(memory // 3, _MOST_BYTES)
        self._begin()

    def _begin(self) -> None:
        self._counter = CategoryCounter(self.kind)
        self._counts = np.zeros(_ROOM, np.int64)

    def add(self, counted: Counted | MappedCounts) -> None:
        """Count values, which may repeat; those with a count of 0 do not occur."""
        for piece in pieces(counted, PIECE):
            numbers = self._counter.add(piece.values)
            self._counts = _with_room(self._counts, self._counter.size)
            np.add.at(self._counts, numbers, piece.counts)
            if self._nbytes > self._most and self._counter.size >= FEWEST and self.level < _LEVELS:
                self.spill()

    @property
    def _nbytes(self) -> int:
        return self._counter.nbytes + self._counts.nbytes

    def counted(self) -> Counted:
        """Return the values in memory that occur."""
        counts = self._counts[: self._counter.size]
        every = Counted(self._counter.values(), counts)
        return every if counts.all() else every.take(np.flatnonzero(counts))

    def spill(self) -> None:
        """Move the values in memory to files."""
        if not self.level and not self.runs:
            logger.warning(
                "%s: %d different values, and there are more, take %.1f MB, and counting may take %.1f MB: they go to "
                "%s and are counted there, which takes longer. Raise fit.memory_share, or use HashBucket instead.",
                self.name, self._counter.size, self._nbytes / 1e6, self.memory / 1e6, self.scratch,
            )  # fmt: skip
        counted = self.counted()
        self._begin()
        self.runs.append(_parted(counted, self.kind, self.scratch, self.level))

    def shares(self) -> Iterator[Counted]:
        """Yield all values, each once, and remove the files."""
        if not self.runs:
            yield self.counted()
            return
        self.spill()
        for share in range(SHARES):
            part = Tally(self.name, self.kind, memory=self.memory, scratch=self.scratch, level=self.level + 1)
            for run in self.runs:
                part.add(run.share(share))
            yield from part.shares()
        for run in self.runs:
            run.counts.remove()


def _with_room(counts: Integers, size: int) -> Integers:
    if size <= len(counts):
        return counts
    return np.concatenate((counts, np.zeros(max(size, 2 * len(counts)) - len(counts), np.int64)))


def _parted(counted: Counted, kind: pa.DataType, scratch: Path, level: int) -> Run:
    """Write values by shares."""
    shift = np.uint64(64 - SHARE_BITS * (level + 1))
    shares = (hash_values(counted.values, SEED) >> shift & np.uint64(SHARES - 1)).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(np.bincount(shares, minlength=SHARES))))
    order = np.argsort(shares, kind="stable")
    with CountsWriter(scratch, kind) as writer:
        for start, stop in pairwise(starts.tolist()):
            writer.add(counted.take(order[start:stop]))
    return Run(writer.mapped(), starts)


@dataclass(frozen=True)
class Ordered:
    """The values that were kept, in order; and how many there were, and their counts' sum, before any was left out."""

    kept: Counted | MappedCounts
    values: int
    rows: int


def in_order(counted: Counted | MappedCounts, choice: Choice) -> Ordered:
    """Return values that fit into memory, each once, in order."""
    every = counted.slice(0, len(counted))
    return Ordered(choice.of(every), len(every), int(every.counts.sum()))


def ordered(tally: Tally, choice: Choice) -> Ordered:
    """Return what was counted, in order: in memory, or mapped where others would have little room."""
    if not tally.runs:
        return in_order(tally.counted(), choice)
    stored = sum(run.counts.nbytes for run in tally.runs)
    logger.info("%s: %d files of %.2f GB are put together share by share", tally.name, len(tally.runs), stored / 1e9)
    values = rows = 0
    parts = []
    for share in tally.shares():
        values, rows = values + len(share), rows + int(share.counts.sum())
        parts.append(_written([choice.of(share)], tally))
    return Ordered(_together(parts, choice, tally), values, rows)


def _together(parts: list[MappedCounts], choice: Choice, tally: Tally) -> Counted | MappedCounts:
    """Return sorted values as one; their files are removed."""
    rows, nbytes = sum(map(len, parts)), sum(part.nbytes for part in parts)
    kept: Counted | MappedCounts
    if nbytes <= tally.memory // RESULT_SHARE:
        kept = choice.of(together(part.slice(0, len(part)) for part in parts))
    else:
        # Windows of a few values would take for ever, so there is always memory for these.
        at_once = max(FEWEST, rows * (tally.memory // 3) // nbytes)
        parts = _fewer(parts, at_once, tally)
        sequence = merged(parts, at_once)
        kept = _written(sequence if choice.most is None else _first(sequence, choice.most), tally, for_look_up=True)
    for part in parts:
        part.remove()
    return kept


def _fewer(parts: list[MappedCounts], rows: int, tally: Tally) -> list[MappedCounts]:
    """Merge sorted parts until they are at most `SHARES`: the window of each of more would be too small."""
    while len(parts) > SHARES:
        some, parts = parts[:SHARES], parts[SHARES:]
        parts.append(_written(merged(some, rows), tally))
        for part in some:
            part.remove()
    return parts


def _first(parts: Iterator[Counted], most: int) -> Iterator[Counted]:
    for part in parts:
        yield part.slice(0, min(most, len(part)))
        most -= len(part)
        if most <= 0:
            return


def _written(parts: Iterable[Counted], tally: Tally, *, for_look_up: bool = False) -> MappedCounts:
    with CountsWriter(tally.scratch, tally.kind) as writer:
        for part in parts:
            writer.add(part)
    return writer.mapped(for_look_up=for_look_up)


def merged(parts: Sequence[Counted | MappedCounts], rows: int) -> Iterator[Counted]:
    """Merge sorted values, of which each part has some, and yield them in order.

    At each step a window of each part is looked at. What is not behind the last value of any window comes next: values
    that were not looked at are behind it. Parts are in the order of `Choice`, each value in one of them; ``rows``
    values are in memory at a time, at most, if there are not more parts.
    """
    window = max(1, rows // max(1, len(parts)))
    places = [0] * len(parts)
    left = [index for index, part in enumerate(parts) if len(part)]
    while left:
        windows = [parts[each].slice(places[each], min(places[each] + window, len(parts[each]))) for each in left]
        bound = min(_key(each, len(each) - 1) for each in windows)
        heads = [each.slice(0, _up_to(each, bound)) for each in windows]
        for index, head in zip(left, heads, strict=True):
            places[index] += len(head)
        left = [index for index in left if places[index] < len(parts[index])]
        yield Choice().of(together(heads))


def _key(counted: Counted, place: int) -> tuple[int, str | bytes | int]:
    return -int(counted.counts[place]), counted.values[place].as_py()


def _up_to(counted: Counted, bound: tuple[int, str | bytes | int]) -> int:
    """Return how many of sorted values are not behind a bound."""
    return bisect_right(range(len(counted)), bound, key=lambda place: _key(counted, place))

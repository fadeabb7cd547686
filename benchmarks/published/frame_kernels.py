"""Group-by and self-join of a column of integers on threads, through partitions of keys that fit the cache of a core.

Rows are first moved into partitions of neighbouring keys, each thread its own rows into places of its own, so that the
order within a partition stays that of the rows. The tables of a partition then fit the second-level cache, in which
looking up a key costs a hundredth of what it costs in memory. Method: Polychroniou, Ross: A comprehensive study of
main-memory partitioning, SIGMOD 2014; Balkesen, Teubner, Alonso, Ozsu: Main-memory hash joins on multi-core CPUs, ICDE
2013.

Keys that lie close together need no hashing: their distance from the smallest one is their place. Others are numbered
by sorting them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from whitewater.devices.kernel import kernel

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint16]
# Codes and values of rows in the order of their partition, and the first row of each partition.
Rows = tuple[Codes, Reals, Integers]

# Keys of a partition: a float64 and an int32 for each take 384 KiB, less than a core's second-level cache.
PARTITION_BITS = 15
# Keys lie close together if there are at most so many possible ones for each row; one costs a few bytes, written once.
SPAN_PER_ROW = 4
# Partitions are handed out in so many tasks a thread: few, but not so few that one thread waits for another.
TASKS_PER_THREAD = 4


@dataclass(frozen=True)
class Partitioned:
    """Rows in the order of the partition of their key, and within it in the order in which they came.

    Partition *p* has the rows from ``starts[p]`` to before ``starts[p + 1]``. The number of row *i* of it is
    ``low + (p << PARTITION_BITS) + codes[i]``: its key, or the place of its key in ``names`` where there are names.
    """

    low: int
    names: Integers | None
    starts: Integers
    codes: Codes
    values: Reals

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.starts) - 1

    def keys(self, numbers: Integers) -> Integers:
        """Return the keys of numbers."""
        return numbers if self.names is None else self.names[numbers]


@dataclass(frozen=True)
class Threads:
    """A pool and how many threads it has."""

    pool: Executor
    count: int

    def over_partitions(self, function: Callable[[tuple[int, int]], None], partitions: int) -> None:
        """Call a function with the first partition and the one behind the last of each task."""
        tasks = max(1, min(partitions, TASKS_PER_THREAD * self.count))
        list(self.pool.map(function, pairwise(partitions * task // tasks for task in range(tasks + 1))))


def mean_by_key(keys: Integers, values: Reals, *, threads: Threads) -> tuple[Integers, Reals]:
    """Return each key that occurs, ascending, and the mean of its values, which are added in the order of the rows."""
    of = partitioned(keys, values, threads=threads)
    rows = of.codes, of.values, of.starts
    groups = np.zeros(of.partitions, np.int64)
    threads.over_partitions(lambda chosen: mean_partitions(rows, chosen, groups), of.partitions)
    ends = np.cumsum(groups)
    numbers, means = np.empty(_last(ends), np.int64), np.empty(_last(ends))
    threads.over_partitions(
        lambda chosen: gather_groups(rows, chosen, of.low, (groups, ends), (numbers, means)), of.partitions
    )
    return of.keys(numbers), means


def self_join(keys: Integers, values: Reals, *, threads: Threads) -> tuple[Integers, Reals, Reals]:
    """Join a table with itself on its keys: return the key and both values of every pair of rows with equal keys."""
    of = partitioned(keys, values, threads=threads)
    rows = of.codes, of.values, of.starts
    groups, pairs = np.zeros(of.partitions, np.int64), np.zeros(of.partitions, np.int64)
    sizes, grouped = np.empty(len(keys), np.int32), np.empty(len(keys))
    threads.over_partitions(lambda chosen: group_rows(rows, chosen, (groups, pairs), (sizes, grouped)), of.partitions)
    ends = np.cumsum(pairs)
    numbers, left, right = np.empty(_last(ends), np.int64), np.empty(_last(ends)), np.empty(_last(ends))
    ordered = of.codes, grouped, of.starts
    threads.over_partitions(
        lambda chosen: pair_rows(ordered, sizes, (*chosen, of.low), (groups, ends - pairs), (numbers, left, right)),
        of.partitions,
    )
    return of.keys(numbers), left, right


def partitioned(keys: Integers, values: Reals, *, threads: Threads) -> Partitioned:
    """Move rows into partitions of keys."""
    low, high = _bounds(keys, threads=threads)
    if high - low < max(SPAN_PER_ROW * len(keys), 1 << PARTITION_BITS):
        return _moved(keys, values, bounds=(low, high), names=None, threads=threads)
    names, numbers = np.unique(keys, return_inverse=True)
    return _moved(numbers, values, bounds=(0, len(names) - 1), names=names, threads=threads)


def _bounds(keys: Integers, *, threads: Threads) -> tuple[int, int]:
    """Return the smallest and the largest key; of no keys, 0 and -1."""
    parts = [part for part in np.array_split(keys, threads.count) if len(part)]
    found = list(threads.pool.map(lambda part: (int(part.min()), int(part.max())), parts))
    return min((low for low, _ in found), default=0), max((high for _, high in found), default=-1)


def _moved(
    keys: Integers, values: Reals, *, bounds: tuple[int, int], names: Integers | None, threads: Threads
) -> Partitioned:
    (low, high), parts = bounds, threads.count
    slices = [slice(*edges) for edges in pairwise(len(keys) * part // parts for part in range(parts + 1))]
    counts = np.zeros((parts, ((high - low) >> PARTITION_BITS) + 1), np.int64)
    list(threads.pool.map(lambda part, of: count_rows(keys[part], low, of), slices, counts))
    # Each thread's first place in each partition is behind all rows of earlier partitions, and of earlier threads.
    ends = np.cumsum(counts.T).reshape(counts.T.shape).T
    places = np.ascontiguousarray(ends - counts)
    starts = np.append(places[0], len(keys))
    moved = np.empty(len(keys), np.uint16), np.empty(len(keys))
    list(threads.pool.map(lambda part, at: move_rows((keys[part], values[part]), low, at, moved), slices, places))
    return Partitioned(low, names, starts, *moved)


def _last(ends: Integers) -> int:
    return int(ends[-1]) if len(ends) else 0


@kernel
def count_rows(keys: Integers, low: int, counts: Integers) -> None:
    """Count the rows of each partition."""
    for key in keys:
        counts[(key - low) >> PARTITION_BITS] += 1


@kernel
def move_rows(rows: tuple[Integers, Reals], low: int, places: Integers, moved: tuple[Codes, Reals]) -> None:
    """Move rows to the next place of their partition, and advance the places."""
    keys, values = rows
    codes, moved_values = moved
    mask = (1 << PARTITION_BITS) - 1
    for row in range(len(keys)):
        number = keys[row] - low
        partition = number >> PARTITION_BITS
        place = places[partition]
        codes[place] = number & mask
        moved_values[place] = values[row]
        places[partition] = place + 1


@kernel
def mean_partitions(rows: Rows, chosen: tuple[int, int], groups: Integers) -> None:
    """Put the codes and the means of the groups of partitions where the first of their rows were, and count them."""
    codes, values, starts = rows
    totals, counts = np.empty(1 << PARTITION_BITS), np.empty(1 << PARTITION_BITS, np.int32)
    for partition in range(chosen[0], chosen[1]):
        totals[:] = 0
        counts[:] = 0
        for row in range(starts[partition], starts[partition + 1]):
            totals[codes[row]] += values[row]
            counts[codes[row]] += 1
        place = starts[partition]
        for code in range(1 << PARTITION_BITS):
            if counts[code]:
                codes[place] = code
                values[place] = totals[code] / counts[code]
                place += 1
        groups[partition] = place - starts[partition]


@kernel
def gather_groups(
    rows: Rows,
    chosen: tuple[int, int],
    low: int,
    counted: tuple[Integers, Integers],
    output: tuple[Integers, Reals],
) -> None:
    """Copy the groups that `mean_partitions` left, those of each partition to before its end."""
    codes, means, starts = rows
    groups, ends = counted
    numbers, output_means = output
    for partition in range(chosen[0], chosen[1]):
        base, place = low + (partition << PARTITION_BITS), ends[partition] - groups[partition]
        for row in range(starts[partition], starts[partition] + groups[partition]):
            numbers[place] = base + codes[row]
            output_means[place] = means[row]
            place += 1


@kernel
def group_rows(
    rows: Rows,
    chosen: tuple[int, int],
    counted: tuple[Integers, Integers],
    output: tuple[npt.NDArray[np.int32], Reals],
) -> None:
    """Order the rows of partitions by code, and put codes and sizes of the groups where their first rows were.

    Counts the groups of each partition, and the pairs of rows that they make.
    """
    codes, values, starts = rows
    groups, pairs = counted
    sizes, grouped = output
    counts, places = np.empty(1 << PARTITION_BITS, np.int32), np.empty(1 << PARTITION_BITS, np.int64)
    for partition in range(chosen[0], chosen[1]):
        start, stop = starts[partition], starts[partition + 1]
        counts[:] = 0
        for row in range(start, stop):
            counts[codes[row]] += 1
        place, total = start, 0
        for code in range(1 << PARTITION_BITS):
            places[code] = place
            place += counts[code]
            total += np.int64(counts[code]) * counts[code]
        for row in range(start, stop):
            place = places[codes[row]]
            grouped[place] = values[row]
            places[codes[row]] = place + 1
        place = start
        for code in range(1 << PARTITION_BITS):
            if counts[code]:
                codes[place] = code
                sizes[place] = counts[code]
                place += 1
        groups[partition] = place - start
        pairs[partition] = total


@kernel
def pair_rows(
    rows: Rows,
    sizes: npt.NDArray[np.int32],
    chosen: tuple[int, int, int],
    counted: tuple[Integers, Integers],
    output: tuple[Integers, Reals, Reals],
) -> None:
    """Write every pair of rows of the groups of partitions, those of a partition from its first place on.

    ``chosen`` are the first partition, the one behind the last, and the number of the first code of all partitions.
    """
    codes, grouped, starts = rows
    groups, places = counted
    numbers, left, right = output
    for partition in range(chosen[0], chosen[1]):
        base, place = chosen[2] + (partition << PARTITION_BITS), places[partition]
        row = starts[partition]
        for group in range(starts[partition], starts[partition] + groups[partition]):
            number, behind = base + codes[group], row + sizes[group]
            for one in range(row, behind):
                for other in range(row, behind):
                    numbers[place] = number
                    left[place] = grouped[one]
                    right[place] = grouped[other]
                    place += 1
            row = behind

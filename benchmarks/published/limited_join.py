"""The result of a join in memory as far as a limit allows, and the rest of it in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from threading import local

import numpy as np

from benchmarks.published.join_dask_kernels import Columns, Index, Integers, Reals, index
from whitewater.errors import ResourceError

# Rows of the large table in a task: their columns and those of their matches stay in the cache of a core.
SLICE_ROWS = 1 << 16
ROW_BYTES = 24
# Of a limit, what the buffers of all threads take where each row of a slice has one match.
BUFFER_SHARE = 1 / 32


@dataclass(frozen=True)
class Joined:
    """Rows of a join, in the order of the large table: the first in memory, then those in a file.

    ``lengths`` are the rows of each part of the file, which is three columns behind each other. ``held_bytes`` are
    those of all arrays that were in memory at once, the input included.
    """

    columns: Columns
    file: Path
    lengths: tuple[int, ...]
    held_bytes: int

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return ROW_BYTES * sum(self.lengths)

    def parts(self) -> Iterator[Columns]:
        """Yield the columns part by part."""
        yield self.columns
        with self.file.open("rb") as file:
            for rows in self.lengths:
                yield as_columns(np.frombuffer(file.read(ROW_BYTES * rows), np.uint8), rows)


@dataclass(frozen=True)
class Left:
    """The large table, cut into slices."""

    values: Reals
    keys: Integers

    def slices(self, rows: int) -> list[slice]:
        """Return the rows of each task, ``rows`` at most."""
        return [slice(start, start + rows) for start in range(0, len(self.keys), rows)]


def join(left: Left, right: tuple[Integers, Reals], *, pool: Executor) -> Columns:
    """Join tables, all in memory: return the left values, the keys and the right values of the result."""
    by_key, slices = index(*right), left.slices(SLICE_ROWS)
    counts = list(pool.map(lambda rows: by_key.count(left.keys[rows]), slices))
    return _join_in_memory(by_key, left, slices, counts, pool=pool)


def join_within(
    left: Left, right: tuple[Integers, Reals], *, pool: Executor, threads: int, limit: int, file: Path
) -> Joined:
    """Join tables while all arrays together, the tables included, take at most ``limit`` bytes of memory.

    What does not fit is written to a file. The arrays are counted before they are made: the index, a buffer for each
    thread that holds the largest slice of the result, and as much of the result as is left room for. Slices are the
    smaller the more threads there are for a limit.

    Raises
    ------
    ResourceError
        If the tables, the index and the buffers are more than the limit.
    """
    slice_rows = min(SLICE_ROWS, max(1, int(BUFFER_SHARE * limit) // (threads * ROW_BYTES)))
    by_key, slices = index(*right), left.slices(slice_rows)
    counts = list(pool.map(lambda rows: by_key.count(left.keys[rows]), slices))
    held = sum(array.nbytes for array in (left.values, left.keys, *right)) + by_key.nbytes
    held += threads * ROW_BYTES * max(counts, default=0)
    if held > limit:
        raise ResourceError(f"the join needs {held:,} bytes before its result, above the limit of {limit:,}. Raise it.")
    ends = list(accumulate(counts))
    kept = sum(held + ROW_BYTES * end <= limit for end in ends)
    columns = _join_in_memory(by_key, left, slices[:kept], counts[:kept], pool=pool)
    _join_to_file(by_key, left, slices[kept:], counts[kept:], pool=pool, file=file)
    return Joined(columns, file, tuple(counts[kept:]), held + ROW_BYTES * sum(counts[:kept]))


def as_columns(buffer: np.ndarray[tuple[int], np.dtype[np.uint8]], rows: int) -> Columns:
    """Return a buffer of bytes as the three columns of so many rows."""
    column = 8 * rows
    first, key, second = (buffer[place * column : (place + 1) * column] for place in range(3))
    return first.view(np.float64), key.view(np.int64), second.view(np.float64)


def _join_in_memory(
    by_key: Index, left: Left, slices: Sequence[slice], counts: Sequence[int], *, pool: Executor
) -> Columns:
    rows = sum(counts)
    columns = np.empty(rows), np.empty(rows, np.int64), np.empty(rows)

    def write(part: slice, end: int, count: int) -> None:
        rows = slice(end - count, end)
        by_key.join(left.values[part], left.keys[part], (columns[0][rows], columns[1][rows], columns[2][rows]))

    list(pool.map(write, slices, accumulate(counts), counts))
    return columns


def _join_to_file(
    by_key: Index, left: Left, slices: Sequence[slice], counts: Sequence[int], *, pool: Executor, file: Path
) -> None:
    buffers, largest = local(), ROW_BYTES * max(counts, default=0)

    def write(part: slice, end: int, count: int) -> None:
        if not hasattr(buffers, "bytes"):
            buffers.bytes = np.empty(largest, np.uint8)
        used = buffers.bytes[: ROW_BYTES * count]
        by_key.join(left.values[part], left.keys[part], as_columns(used, count))
        if os.pwrite(output.fileno(), used, ROW_BYTES * (end - count)) != len(used):
            raise ResourceError(f"{file} could not be written in full. Free space on its disk.")

    with closing(file.open("wb")) as output:
        list(pool.map(write, slices, accumulate(counts), counts))

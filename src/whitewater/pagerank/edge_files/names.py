"""The names of vertices, each once, collected from spans of text without a Python object for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.devices.kernel import int64, kernel, part, uint64
from whitewater.devices.protocol import Array
from whitewater.errors import IntegrityError
from whitewater.pagerank.edge_files.text_kernels import LENGTH

SCHEMA = pa.schema([("vertex", pa.int64()), ("name", pa.large_string())])
_EMPTY, _FULL, _TWO_NAMES = -1, -1, -2
# A probe begins at the high bits of a product, because the low bits of integers are often alike.
_SPREAD = uint64(0x9E3779B97F4A7C15)


class Names:
    """The names of ids: each id once, in the order in which they came."""

    def __init__(self) -> None:
        self._ids = np.empty(1 << 10, np.int64)
        self._ends = np.zeros((1 << 10) + 1, np.int64)
        self._text = np.empty(1 << 14, np.uint8)
        self._buckets = np.full(1 << 11, _EMPTY, np.int64)
        self._known = 0

    def add(self, data: Array, spans: Array, ids: Array) -> None:
        """Take the names that are not known yet: uint8 text, int64 spans (names,) of it, int64 ids (names,).

        Raises
        ------
        IntegrityError
            If an id has two names.
        """
        row = 0
        while row < len(spans):
            known = (self._ids, self._ends, self._text, self._buckets)
            self._known, row, problem = _collect((data, spans, ids), row, known, self._known)
            if problem == _TWO_NAMES:
                raise two_names(int(ids[row]))
            if problem == _FULL:
                self._grow(int(spans[row] & LENGTH))

    def table(self) -> pa.Table:
        """Return vertex and name, ascending by vertex."""
        size = int(self._ends[self._known])
        buffers = [None, pa.py_buffer(self._ends[: self._known + 1]), pa.py_buffer(self._text[:size])]
        names = pa.Array.from_buffers(pa.large_string(), self._known, buffers)
        ids = self._ids[: self._known]
        order = np.argsort(ids)
        return pa.Table.from_arrays([pa.array(ids[order]), names.take(pa.array(order))], schema=SCHEMA)

    def _grow(self, length: int) -> None:
        if self._known == len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
            self._ends = np.concatenate([self._ends, np.empty(len(self._ends) - 1, np.int64)])
            self._buckets = np.full(2 * len(self._buckets), _EMPTY, np.int64)
            _fill(self._ids, self._known, self._buckets)
        else:
            self._text = np.concatenate([self._text, np.empty(len(self._text) + length, np.uint8)])


def table_of(text: Array, spans: Array, ids: Array) -> pa.Table:
    """Return vertex and name, ascending by vertex, each once; see `Names.add`."""
    names = Names()
    names.add(text, spans, ids)
    return names.table()


def two_names(vertex: int) -> IntegrityError:
    """Return the error of two names that have one id."""
    return IntegrityError(
        f"vertex {vertex} has two names. A table of vertices must give each one name; where ids are hashes of names, "
        "two names have one by chance, once in 2**65 / n**2 graphs of n names: leave one out, or use integer ids."
    )


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one table, ascending by vertex, of tables of vertices, or of vertices and names, where each may be known.

    Raises
    ------
    IntegrityError
        If an id has two names.
    """
    table = pa.concat_tables(tables)
    ids = table["vertex"].to_numpy()
    order = np.argsort(ids, kind="stable")
    ascending = ids[order]
    again = np.flatnonzero(ascending[1:] == ascending[:-1])
    if "name" in table.column_names and len(again):
        names = table["name"]
        equal = pc.equal(names.take(pa.array(order[again])), names.take(pa.array(order[again + 1])))
        different = np.flatnonzero(~equal.to_numpy())
        if len(different):
            raise two_names(int(ascending[again[different[0]]]))
    return table.take(pa.array(np.delete(order, again + 1)))


class Merging:
    """One table of vertices out of many; what waits is merged when it is as large as what was merged before."""

    def __init__(self, tables: list[pa.Table]) -> None:
        self._waiting = tables
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Take the vertices of a table; see `merged`."""
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows > self._waiting[0].num_rows:
            self._waiting, self._rows = [merged(self._waiting)], 0

    def table(self) -> pa.Table | None:
        """Return the vertices, or None if there was no table."""
        return merged(self._waiting) if self._waiting else None


@kernel
def _collect(
    found: tuple[Array, Array, Array], row: int, table: tuple[Array, Array, Array, Array], known: int
) -> tuple[int, int, int]:
    """Add names from ``row`` on; return how many are known, the row reached, and what stopped there."""
    data, spans, ids = found
    kept, ends, text, buckets = table
    while row < len(spans):
        begin, length = spans[row] >> 32, spans[row] & LENGTH
        bucket = _bucket(ids[row], kept, buckets)
        if buckets[bucket] == _EMPTY:
            if known == len(kept) or ends[known] + length > len(text):
                return known, row, _FULL
            kept[known] = ids[row]
            for place in range(length):
                text[ends[known] + place] = data[begin + place]
            ends[known + 1] = ends[known] + length
            buckets[bucket] = known
            known += 1
        elif not _is_same(data[begin : begin + length], text[ends[buckets[bucket]] : ends[buckets[bucket] + 1]]):
            return known, row, _TWO_NAMES
        row += 1
    return known, row, 0


@kernel
def _fill(kept: Array, known: int, buckets: Array) -> None:
    for index in range(known):
        buckets[_bucket(kept[index], kept, buckets)] = index


@part
def _bucket(key: int, kept: Array, buckets: Array) -> int:
    """Return the bucket that holds an id, or the empty one that will."""
    bucket = int64((uint64(key) * _SPREAD) >> uint64(20)) & (len(buckets) - 1)
    while buckets[bucket] != _EMPTY and kept[buckets[bucket]] != key:
        bucket = (bucket + 1) & (len(buckets) - 1)
    return bucket


@part
def _is_same(left: Array, right: Array) -> bool:
    same: bool = len(left) == len(right)
    place = 0
    while same and place < len(left):
        same = left[place] == right[place]
        place += 1
    return same

"""Which rows become edges, by the rules for broken links and self-loops, and how many do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whitewater.devices.kernel import int64, kernel, uint64
from whitewater.devices.protocol import Array

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules

# What is counted in any case. The rows read are the edges and those dropped by each rule.
COUNTS = ("read", "edges", "broken", "dropped_broken", "self_loops", "dropped_self_loops")


@dataclass(frozen=True)
class Known:
    """The vertices that are known: int64 (vertices,), ascending, each once.

    The high bits of an id lead to a bucket of about one, where a binary search goes on. So ids that are hashes, or have
    gaps, are found in two steps to memory instead of the twenty-odd of a binary search.
    """

    ids: Array

    def places(self, ids: Array) -> Array:
        """Return where each id is, int64 (ids,), or -1."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        if self._span == len(self.ids) - 1:
            # Ids in a row, as those of Common Crawl, need no search, which would miss the cache at each step.
            places = ids.view(np.uint64) - self.ids[:1].view(np.uint64)
            return np.where(places < len(self.ids), places.view(np.int64), -1)
        found = np.empty(len(ids), np.int64)
        _find(self.ids, self._shift, self._starts, ids, found)
        return found

    def holds(self, ids: Array) -> Array:
        """Return which ids are known, bool (ids,)."""
        return self.places(ids) >= 0

    @property
    def _shift(self) -> int:
        """How many low bits of the distance to the first id do not count, for about as many buckets as ids."""
        return max(0, self._span.bit_length() - len(self.ids).bit_length())

    @property
    def _span(self) -> int:
        return int(self.ids[-1]) - int(self.ids[0])

    @cached_property
    def _starts(self) -> Array:
        """Where the ids of each bucket begin, and the last one's end: int64 (buckets + 1,)."""
        starts = np.zeros((self._span >> self._shift) + 2, np.int64)
        _count(self.ids, self._shift, starts)
        return np.cumsum(starts)


@dataclass(frozen=True)
class Aliases:
    """Ids that stand for another vertex: int64 (aliases,), ascending, and the vertex of each, int64 (aliases,)."""

    aliases: Known
    vertices: Array

    def resolved(self, ids: Array) -> Array:
        """Return the ids with each alias replaced by its vertex, int64 (ids,)."""
        places = self.aliases.places(ids)
        found = ids.copy()
        found[places >= 0] = self.vertices[places[places >= 0]]
        return found


@dataclass(frozen=True)
class Judged:
    """What the rules say of rows, bool (rows,): which are edges, which are broken, which are loops; and the counts."""

    kept: Array
    broken: Array
    loops: Array
    counts: Counter[str]


def judge(source: Array, target: Array, broken: Array | None, rules: EdgeRules) -> Judged:
    """Apply the rules to rows; a broken row that is dropped is no self-loop any more.

    Parameters
    ----------
    source, target
        int64 (rows,).
    broken
        bool (rows,): which have an end that is no known vertex; None: all ends are vertices.
    """
    unknown = np.zeros(len(source), bool) if broken is None else broken
    drop_broken, drop_loops = rules.broken == "drop", rules.self_loops == "drop"
    loops = (source == target) & ~unknown if drop_broken else source == target
    left_out = (unknown & drop_broken) | (loops & drop_loops)
    broken_rows, loop_rows = int(unknown.sum()), int(loops.sum())
    counts = {
        "read": len(source),
        "edges": len(source) - int(left_out.sum()),
        "broken": broken_rows,
        "dropped_broken": broken_rows * drop_broken,
        "self_loops": loop_rows,
        "dropped_self_loops": loop_rows * drop_loops,
    }
    return Judged(~left_out, unknown, loops, Counter(counts))


def total(counts: Counter[str]) -> dict[str, int]:
    """Return the counts as a mapping that has all of `COUNTS`."""
    return {**dict.fromkeys(COUNTS, 0), **counts}


@kernel
def _count(ids: Array, shift: int, starts: Array) -> None:
    for place in range(len(ids)):
        starts[int64((uint64(ids[place]) - uint64(ids[0])) >> uint64(shift)) + 1] += 1


@kernel
def _find(ids: Array, shift: int, starts: Array, wanted: Array, places: Array) -> None:
    """Fill in the place of each wanted id (int64), or -1."""
    for row in range(len(wanted)):
        key = wanted[row]
        places[row] = -1
        if key < ids[0] or key > ids[-1]:
            continue
        bucket = int64((uint64(key) - uint64(ids[0])) >> uint64(shift))
        low, high = starts[bucket], starts[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if ids[middle] < key:
                low = middle + 1
            else:
                high = middle
        if low < len(ids) and ids[low] == key:
            places[row] = low

"""Edges as keys of 64 bits.

Each end of an edge has a *code*, a number below 2**32 that is higher for a higher id. The *key* of an edge is the code
of its target times 2**32 plus that of its source, so that keys in ascending order are compressed sparse rows of
in-edges. Where the ids lie close together, the code of an id is its distance from the smallest one; otherwise the edges
are read once for their ids alone, and the code of an id is its place among these. A bit for each code marks those that
occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from whitewater.engines import Array
from whitewater.graphs.vertex_ids import places_of

Rule = Literal["drop", "sum", "maximum"]
# Keys, uint64 (edges,), in any order, and weights, float64 (edges,), or an empty array where there are none.
KeyedEdges = tuple[Array, Array]
# Bits of a code, and the codes that there are.
CODE_BITS = 32
CODES = 1 << CODE_BITS
WORD_BITS = 64


@dataclass(frozen=True)
class IdCodes:
    """``size`` codes: distances from ``minimum``, or, ``minimum`` being 0, places in ``ids``, int64, ascending."""

    minimum: int
    size: int
    ids: Array | None = None

    def empty_marks(self) -> Array:
        """Return words of 64 bits with a bit for each code, the lowest first, uint64; none is set."""
        return np.zeros(-(-self.size // WORD_BITS), np.uint64)

    def shifted_codes(self, ids: Array) -> Array:
        """Return the codes of ids, int64, plus `minimum`; what an id without a code gets is out of their range."""
        if self.ids is None:
            return ids
        import pandas as pd

        numbers, distinct = pd.factorize(ids)
        return places_of(distinct, self.ids)[numbers]

    def mark(self, ids: Array, marks: Array) -> None:
        """Mark the codes of ids, int64."""
        codes = (self.shifted_codes(ids) - self.minimum).view(np.uint64)
        np.bitwise_or.at(marks, codes >> np.uint64(6), np.uint64(1) << (codes & np.uint64(WORD_BITS - 1)))


@dataclass(frozen=True)
class CodeNumbers:
    """The number of each code is the count of ``marks``, uint64 (words,), before it.

    ``before``, uint32 (words,), counts those before each word.
    """

    marks: Array
    before: Array

    def of(self, codes: Array) -> Array:
        """Return the numbers of codes, unsigned integers, as int64."""
        word = codes >> 6
        bits = codes.astype(np.uint64) & np.uint64(WORD_BITS - 1)
        lower = (np.uint64(1) << bits) - np.uint64(1)
        numbers: Array = self.before[word].astype(np.int64) + np.bitwise_count(self.marks[word] & lower)
        return numbers


@dataclass(frozen=True)
class MergedEdges:
    """Edges in the order of their keys, each pair of ends once; arrays of the host.

    ``counts`` int64 (vertices of a range,): edges of each target; ``sources`` int32 or int64 (edges,), numbers;
    ``weights`` float64 (edges,) or none; ``loops`` self-loops; ``repeated`` the source and the target of the first edge
    that there was several times, if any.
    """

    counts: Array
    sources: Array
    weights: Array | None
    loops: int
    repeated: tuple[int, int] | None


@dataclass(frozen=True)
class NumberedEdges:
    """Vertices and the edges between their numbers.

    ``ids``, int64 (vertices,), ascend; ``entries`` are the edges before those with the same ends were merged;
    ``ranges`` yields ranges of targets, ascending, and the edges to each, as long as the workers are there.
    """

    ids: Array
    entries: int
    ranges: Iterator[tuple[range, MergedEdges]]


def code_numbers(marks: Array) -> CodeNumbers:
    """Return the numbers of the codes that are marked, uint64 (words,), and may not be more than 2**32."""
    counts = np.bitwise_count(marks).astype(np.int64)
    return CodeNumbers(marks, (np.cumsum(counts) - counts).astype(np.uint32))


def marked_codes(marks: Array) -> Array:
    """Return the codes that are marked, int64, ascending."""
    return np.flatnonzero(np.unpackbits(marks.view(np.uint8), bitorder="little"))

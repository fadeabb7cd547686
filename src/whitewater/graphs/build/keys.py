"""Edges as keys of 64 bits.

Each end of an edge has a *code*, a number below 2**32 that is higher for a higher id. The *key* of an edge is the code
of its target times 2**32 plus that of its source, so that keys in ascending order are compressed sparse rows of
in-edges. Where the ids lie close together, the code of an id is its distance from the smallest one, and a bit for each
code marks those that occur. Otherwise the code of an id is first its place among those of some edges, and such keys are
coded again when the ids of all edges are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.tables.arrow_arrays import empty

Rule = Literal["drop", "sum", "maximum"]
# Bits of a code, and the codes that there are.
CODE_BITS = 32
CODES = 1 << CODE_BITS
WORD_BITS = 64
_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)


@dataclass(frozen=True)
class IdSpan:
    """The ids from ``minimum`` on, ``size`` of them, whose codes are their distances from it."""

    minimum: int
    size: int

    @property
    def words(self) -> int:
        """Words of 64 bits that have a bit for each code."""
        return -(-self.size // WORD_BITS)


@dataclass(frozen=True)
class KeyedEdges:
    """Edges in any order: ``keys`` uint64 (edges,), and ``weights`` float64 (edges,) or none."""

    keys: Array
    weights: Array | None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class CodeNumbers:
    """The number of each code: the marks, uint64 (words,), before it. Both arrays are empty where it is the code.

    ``before``, uint32 (words,), are the marks before each word.
    """

    words: Array
    before: Array

    def of(self, codes: Array) -> Array:
        """Return the numbers of codes, unsigned integers, as int64."""
        if len(self.words) == 0:
            return codes.astype(np.int64)
        word = codes >> 6
        bits = codes.astype(np.uint64) & np.uint64(WORD_BITS - 1)
        lower = (np.uint64(1) << bits) - np.uint64(1)
        numbers: Array = self.before[word].astype(np.int64) + np.bitwise_count(self.words[word] & lower)
        return numbers


@dataclass(frozen=True)
class MergedEdges:
    """Edges in the order of their keys, each pair of ends once; arrays of the host.

    ``counts`` int64 (vertices of a range,): edges of each target; ``sources`` int32 or int64 (edges,), numbers;
    ``weights`` float64 (edges,) or none; ``loops`` self-loops; ``repeated`` the source and the
    target of the first edge that there was several times, if any.
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
    before = np.cumsum(np.bitwise_count(marks), dtype=np.int64)
    return CodeNumbers(marks, np.concatenate([[0], before[:-1]]).astype(np.uint32) if len(marks) else before)


def marked_codes(marks: Array) -> Array:
    """Return the codes that are marked, int64, ascending."""
    return np.flatnonzero(np.unpackbits(marks.view(np.uint8), bitorder="little"))


def gathered(pieces: Sequence[KeyedEdges]) -> tuple[Array, Array]:
    """Return the keys and the weights, if any, of all pieces in memory of their own."""
    weighted = bool(pieces) and pieces[0].weights is not None
    keys, weights = room(sum(len(piece) for piece in pieces), weighted=weighted)
    filled = 0
    for piece in pieces:
        keys[filled : filled + len(piece)] = piece.keys
        if piece.weights is not None:
            weights[filled : filled + len(piece)] = piece.weights
        filled += len(piece)
    return keys, weights


def room(edges: int, *, weighted: bool) -> tuple[Array, Array]:
    """Return memory for keys and, if there are any, for weights."""
    return empty(edges, _UINT64), empty(edges if weighted else 0, _FLOAT64)


def outside_span(span: IdSpan) -> IntegrityError:
    """Return the error of an id that is not in a span."""
    last = span.minimum + span.size - 1
    return IntegrityError(f"an id is not from {span.minimum} to {last}, as the statistics of its Parquet file say. "
                          "Run the step that writes the edges again.")  # fmt: skip

"""Edges of any order made to rows of in-edges: encoded, cut into buckets by target, sorted and merged.

Sorting: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5) of buckets that fit into the
cache of a core (Polychroniou, Ross: A comprehensive study of main-memory partitioning, SIGMOD 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from whitewater.engines import Array
from whitewater.graphs.build.kernels import (
    count_buckets,
    encode_offsets,
    merge_equal,
    scatter,
    sort_keys,
)
from whitewater.graphs.build.keys import (
    CODE_BITS,
    CODES,
    WORD_BITS,
    CodeNumbers,
    IdSpan,
    KeyedEdges,
    MergedEdges,
    Rule,
    gathered,
    outside_span,
    room,
)
from whitewater.tables.arrow_arrays import empty

_RULES = {"drop": 0, "sum": 1, "maximum": 2}
_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)


class SpanEncoder:
    """Encodes ``rows`` edges at most, whose ids are all in a span, as distances; ``symmetric`` adds their opposites.

    The opposite of a self-loop is none. ``marks``, uint64, has a bit for each code that occurs, the lowest bit first.
    """

    def __init__(self, span: IdSpan, *, symmetric: bool, weighted: bool, rows: int) -> None:
        self._span = span
        self._symmetric = symmetric
        self.marks = np.zeros(span.words, np.uint64)
        self._keys, self._weights = room(rows << symmetric, weighted=weighted)
        self._filled = 0

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Encode edges: ids int64 (edges,), and float64 (edges,) if they have weights.

        Raises IntegrityError if an id is not in the span.
        """
        span = self._span.minimum, self._span.size, self._symmetric
        output = self._keys, self._weights, self.marks
        self._filled = encode_offsets((source, target), _or_none(weight), span, output, self._filled)
        if self._filled < 0:
            raise outside_span(self._span)

    def edges(self) -> KeyedEdges:
        """Return all edges."""
        return _keyed(self._keys, self._weights, self._filled)


class WordEncoder:
    """Codes ids by their order among those of all edges that it is given, which it keeps; see `SpanEncoder`."""

    def __init__(self, *, symmetric: bool) -> None:
        self._symmetric = symmetric
        self._blocks: list[tuple[Array, Array, Array | None]] = []

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Keep edges; see `SpanEncoder.add`."""
        self._blocks.append((source, target, weight))

    def edges(self) -> tuple[KeyedEdges, Array]:
        """Return all edges, and the id of each code, int64, ascending."""
        import pandas as pd

        sources, targets, weights = zip(*self._blocks, strict=True)
        numbers, found = pd.factorize(np.concatenate([*sources, *targets]))
        order = np.argsort(found)
        codes = np.empty(len(found), np.uint64)
        codes[order] = np.arange(len(found))
        source, target = np.split(codes[numbers], 2)
        keys = target << np.uint64(CODE_BITS) | source
        weight = None if weights[0] is None else np.concatenate(weights)
        if self._symmetric:
            others = source != target
            keys = np.concatenate([keys, (source << np.uint64(CODE_BITS) | target)[others]])
            weight = None if weight is None else np.concatenate([weight, weight[others]])
        return KeyedEdges(keys, weight), found[order]


def bucket_edges(edges: KeyedEdges, shift: int, buckets: int) -> tuple[KeyedEdges, Array]:
    """Order edges by bucket, the code of the target shifted right by ``shift``, in one pass after counting.

    Returns them, and where each bucket ends, int64 (buckets,).
    """
    counts = np.zeros(buckets, np.int64)
    count_buckets(edges.keys, CODE_BITS + shift, counts)
    ends = np.cumsum(counts)
    keys, weights = room(len(edges), weighted=edges.weights is not None)
    scatter((edges.keys, _or_none(edges.weights)), CODE_BITS + shift, ends - counts, (keys, weights))
    return _keyed(keys, weights, len(edges)), ends


def merge_edges(
    buckets: Iterable[Sequence[KeyedEdges]], numbers: CodeNumbers, vertices: range, rule: Rule, index: str, *,
    weighted: bool, edges: int
) -> MergedEdges:  # fmt: skip
    """Sort edges by target, then source, bucket by bucket, and make one of those with the same ends.

    ``buckets`` are the pieces of each bucket, in ascending order, ``edges`` in all; ``numbers`` are those of the vertex
    of each code, and ``vertices`` those of the targets. By ``rule`` edges with the same ends get the sum of their
    weights (in ascending order), or else the maximum; edges without any count 1 each. ``index`` is the dtype of the
    sources, and ``weighted`` says whether the result has weights.
    """
    counts = np.zeros(len(vertices), np.int64)
    sources, merged = empty(edges, np.dtype(index)), empty(edges if weighted else 0, _FLOAT64)
    filled, loops, repeated = 0, 0, None
    for bucket in buckets:
        keys, weights = gathered(bucket)
        other_keys, other_weights = room(len(keys), weighted=len(weights) > 0)
        if sort_keys((keys, weights), (other_keys, other_weights)):
            keys, weights = other_keys, other_weights
        output = sources[filled:], merged[filled:]
        written, own_loops, first = merge_equal(
            (keys, weights), _RULES[rule], (numbers.words, numbers.before), (counts, vertices.start), output
        )
        filled, loops = filled + written, loops + own_loops
        if repeated is None and first >= 0:
            ends = np.array([keys[first] & np.uint64(CODES - 1), keys[first] >> np.uint64(CODE_BITS)])
            repeated = tuple(numbers.of(ends).tolist())
    return MergedEdges(counts, sources[:filled], merged[:filled] if weighted else None, loops, repeated)


def mark_ids(ids: Array, span: IdSpan, marks: Array) -> None:
    """Mark the codes of ids, int64, that are in the span, on the host."""
    codes = (ids - span.minimum).view(np.uint64)
    np.bitwise_or.at(marks, codes >> np.uint64(6), np.uint64(1) << (codes & np.uint64(WORD_BITS - 1)))


def union_of_ids(first: Array, second: Array) -> Array:
    """Return the ids, int64, that are in either of two ascending arrays without repetition, on the host."""
    # A stable sort merges runs that ascend.
    ids = np.sort(np.concatenate([first, second]), kind="stable")
    is_first = np.ones(len(ids), bool)
    is_first[1:] = ids[1:] != ids[:-1]
    return ids[is_first]


def _keyed(keys: Array, weights: Array, filled: int) -> KeyedEdges:
    return KeyedEdges(keys[:filled], weights[:filled] if len(weights) else None)


def _or_none(weights: Array | None) -> Array:
    # Read-only like those of a file, so that kernels are compiled once.
    return np.frombuffer(b"") if weights is None else weights

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
    encode_words,
    fill_slots,
    mark_offsets,
    merge_equal,
    recode,
    scatter,
    sort_keys,
    union,
)
from whitewater.graphs.build.keys import (
    CODE_BITS,
    CODES,
    WORD_BITS,
    BucketedEdges,
    CodeNumbers,
    EncodedEdges,
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
_SIGN = 1 << 63
_LEAST_SLOTS = 1 << 12


def edge_encoder(span: IdSpan | None, *, symmetric: bool, weighted: bool, rows: int) -> SpanEncoder | HashEncoder:
    """Return an empty encoder for ``rows`` edges at most; one task makes one and is done with it.

    With a span all ids are in it and the codes of all encoders agree; without one each has codes of its own.
    ``symmetric`` adds the opposite of each edge that is not a self-loop.
    """
    if span is None:
        return HashEncoder(symmetric=symmetric, weighted=weighted, rows=rows)
    return SpanEncoder(span, symmetric=symmetric, weighted=weighted, rows=rows)


class SpanEncoder:
    """Encodes ids as distances."""

    def __init__(self, span: IdSpan, *, symmetric: bool, weighted: bool, rows: int) -> None:
        self._span = span
        self._symmetric = symmetric
        self._marks = np.zeros(span.words, np.uint64)
        self._keys, self._weights = room(rows << symmetric, weighted=weighted)
        self._filled = 0

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Encode edges: ids int64 (edges,), and float64 (edges,) if they have weights.

        Raises IntegrityError if an id is not in the span.
        """
        span = self._span.minimum, self._span.size, self._symmetric
        output = self._keys, self._weights, self._marks
        self._filled = encode_offsets((source, target), _or_none(weight), span, output, self._filled)
        if self._filled < 0:
            raise outside_span(self._span)

    def result(self) -> EncodedEdges:
        """Return all edges."""
        return EncodedEdges(_keyed(self._keys, self._weights, self._filled), self._marks, None, None)


class HashEncoder:
    """Numbers ids as they are met."""

    def __init__(self, *, symmetric: bool, weighted: bool, rows: int) -> None:
        self._symmetric = symmetric
        self._keys, self._weights = room(rows << symmetric, weighted=weighted)
        self._ids = np.empty(_LEAST_SLOTS // 2, np.int64)
        self._slots = np.zeros(_LEAST_SLOTS, np.uint32)
        # Edges of the block that are done, keys written, ids known.
        self._progress = np.zeros(3, np.int64)

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Encode edges; see `SpanEncoder.add`."""
        self._progress[0] = 0
        while True:
            table = self._slots, self._ids, _shift_of(self._slots)
            output = self._keys, self._weights, self._progress
            encode_words((source, target), _or_none(weight), self._symmetric, table, output)
            if self._progress[0] == len(source):
                return
            self._grow()

    def result(self) -> EncodedEdges:
        """Return all edges."""
        ids, ranks = _ordered(self._ids[: self._progress[2]])
        return EncodedEdges(_keyed(self._keys, self._weights, int(self._progress[1])), None, ids, ranks)

    def _grow(self) -> None:
        known = int(self._progress[2])
        self._slots = np.zeros(4 * len(self._slots), np.uint32)
        self._ids = np.concatenate([self._ids[:known], np.empty(len(self._slots) // 2 - known, np.int64)])
        fill_slots(self._ids[:known], self._slots, _shift_of(self._slots))


def recode_edges(edges: KeyedEdges, table: Array) -> KeyedEdges:
    """Return edges with codes looked up in a table, uint32 (codes,)."""
    keys = empty(len(edges), _UINT64)
    recode(edges.keys, table, keys)
    return KeyedEdges(keys, edges.weights)


def bucket_edges(edges: KeyedEdges, shift: int, buckets: int) -> BucketedEdges:
    """Order edges by bucket, the code of the target shifted right by ``shift``, in one pass after counting."""
    counts = np.zeros(buckets, np.int64)
    count_buckets(edges.keys, CODE_BITS + shift, counts)
    ends = np.cumsum(counts)
    keys, weights = room(len(edges), weighted=edges.weights is not None)
    scatter((edges.keys, _or_none(edges.weights)), CODE_BITS + shift, ends - counts, (keys, weights))
    return BucketedEdges(_keyed(keys, weights, len(edges)), ends)


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
    mark_offsets(ids, span.minimum, marks)


def union_of_ids(first: Array, second: Array) -> Array:
    """Return the ids, int64, that are in either of two ascending arrays without repetition, on the host."""
    if min(len(first), len(second)) == 0:
        return first if len(first) else second
    out = np.empty(len(first) + len(second), np.int64)
    return out[: union(first, second, out)]


def _ordered(ids: Array) -> tuple[Array, Array]:
    """Return ids, which are all different, in ascending order, and the rank of each, uint32."""
    keys, places = ids.view(np.uint64) ^ np.uint64(_SIGN), np.arange(len(ids), dtype=np.uint32)
    other_keys, other_places = np.empty_like(keys), np.empty_like(places)
    if sort_keys((keys, places), (other_keys, other_places)):
        keys, places = other_keys, other_places
    ranks = np.empty(len(ids), np.uint32)
    ranks[places] = np.arange(len(ids), dtype=np.uint32)
    return (keys ^ np.uint64(_SIGN)).view(np.int64), ranks


def _keyed(keys: Array, weights: Array, filled: int) -> KeyedEdges:
    return KeyedEdges(keys[:filled], weights[:filled] if len(weights) else None)


def _or_none(weights: Array | None) -> Array:
    # Read-only like those of a file, so that kernels are compiled once.
    return np.frombuffer(b"") if weights is None else weights


def _shift_of(slots: Array) -> int:
    """Return how far a hash of 64 bits is shifted to be the place of a slot."""
    return WORD_BITS - (len(slots).bit_length() - 1)

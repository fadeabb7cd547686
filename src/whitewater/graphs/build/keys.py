"""Edges as keys of 64 bits, which are encoded, cut into buckets by target, sorted and merged.

Each end of an edge has a *code*, a number below 2**32 that is higher for a higher id. The *key* of an edge is the code
of its target times 2**32 plus that of its source, so that keys in ascending order are compressed sparse rows of
in-edges. Where the ids lie close together, the code of an id is its distance from the smallest one, and a bit for each
code marks those that occur. Otherwise the ids of some edges are first numbered as they are met, with a hash table, and
such keys are coded again when the ids of all edges are known.

Sorting: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5) of buckets that fit into the
cache of a core (Polychroniou, Ross: A comprehensive study of main-memory partitioning, SIGMOD 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, Protocol

import numpy as np

from whitewater.engines import Array
from whitewater.engines.device import Device
from whitewater.errors import IntegrityError
from whitewater.tables.arrow_kinds import empty

Rule = Literal["drop", "sum", "maximum"]
# Bits of a code, and the codes that there are.
CODE_BITS = 32
CODES = 1 << CODE_BITS
WORD_BITS = 64
_RULES = {"drop": 0, "sum": 1, "maximum": 2}
_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)
_SIGN = 1 << 63
_LEAST_SLOTS = 1 << 12
_GPU_THREADS = 256
# Codes that are packed at once: CuPy counts them in 32 bits.
_PACKED_CODES = 1 << 30


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
class EncodedEdges:
    """Edges, and what their codes stand for.

    ``marks``, uint64, has a bit for each code of the span that occurs, the lowest bit first. Without a span, ``ids``
    are the different ids, int64, ascending, and ``ranks``, uint32, the place in them of each code.
    """

    edges: KeyedEdges
    marks: Array | None
    ids: Array | None
    ranks: Array | None


@dataclass(frozen=True)
class BucketedEdges:
    """Edges ordered by bucket; those of bucket *b* are from ``ends[b - 1]``, or 0, to before ``ends[b]``, int64."""

    edges: KeyedEdges
    ends: Array


@dataclass(frozen=True)
class CodeNumbers:
    """The number of each code: the marks, uint64 (words,), before it. Both arrays are empty where it is the code.

    ``before``, uint32 (words,), are the marks before each word.
    """

    words: Array
    before: Array

    def of(self, codes: Array, xp: ModuleType) -> Array:
        """Return the numbers of codes, unsigned integers, as int64."""
        if len(self.words) == 0:
            same: Array = codes.astype(xp.int64)
            return same
        word = codes >> 6
        bits = codes.astype(xp.uint64) & xp.uint64(WORD_BITS - 1)
        lower = xp.left_shift(xp.uint64(1), bits) - xp.uint64(1)
        numbers: Array = self.before[word].astype(xp.int64) + xp.bitwise_count(self.words[word] & lower)
        return numbers


@dataclass(frozen=True)
class MergedEdges:
    """Edges in the order of their keys, each pair of ends once; arrays of the host.

    ``counts`` int64 (vertices of a range,): edges of each target; ``sources`` int32 or int64 (edges,), numbers;
    ``weights`` float64 (edges,) or none; ``loops`` self-loops; ``repeated`` the first key that there was several times.
    """

    counts: Array
    sources: Array
    weights: Array | None
    loops: int
    repeated: int | None


class EdgeEncoder(Protocol):
    """Encodes edges block by block; one task makes one and is done with it."""

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Encode edges: ids int64 (edges,), and float64 (edges,) if they have weights.

        Raises IntegrityError if an id is not in the span.
        """

    def result(self) -> EncodedEdges:
        """Return all edges that were added."""


def code_numbers(marks: Array) -> CodeNumbers:
    """Return the numbers of the codes that are marked, uint64 (words,), and may not be more than 2**32."""
    before = np.cumsum(np.bitwise_count(marks), dtype=np.int64)
    return CodeNumbers(marks, np.concatenate([[0], before[:-1]]).astype(np.uint32) if len(marks) else before)


def marked_codes(marks: Array) -> Array:
    """Return the codes that are marked, int64, ascending."""
    return np.flatnonzero(np.unpackbits(marks.view(np.uint8), bitorder="little"))


def mark_ids(ids: Array, span: IdSpan, marks: Array) -> None:
    """Mark the codes of ids, int64, that are in the span, on the host."""
    from whitewater.graphs.build.kernels import mark_offsets

    mark_offsets(ids, span.minimum, marks)


def union_of_ids(first: Array, second: Array) -> Array:
    """Return the ids, int64, that are in either of two ascending arrays without repetition, on the host."""
    from whitewater.graphs.build.kernels import union

    if min(len(first), len(second)) == 0:
        return first if len(first) else second
    out = np.empty(len(first) + len(second), np.int64)
    return out[: union(first, second, out)]


class CpuSpanEncoder:
    """Encodes ids as distances."""

    def __init__(self, span: IdSpan, *, symmetric: bool, weighted: bool, rows: int) -> None:
        self._span = span
        self._symmetric = symmetric
        self._marks = np.zeros(span.words, np.uint64)
        self._keys, self._weights = _room(rows << symmetric, weighted=weighted)
        self._filled = 0

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Encode edges; see `EdgeEncoder`."""
        from whitewater.graphs.build.kernels import encode_offsets

        span = self._span.minimum, self._span.size, self._symmetric
        output = self._keys, self._weights, self._marks
        self._filled = encode_offsets((source, target), _or_none(weight), span, output, self._filled)
        if self._filled < 0:
            raise _outside(self._span)

    def result(self) -> EncodedEdges:
        """Return all edges."""
        return EncodedEdges(_keyed(self._keys, self._weights, self._filled), self._marks, None, None)


class CpuHashEncoder:
    """Numbers ids as they are met."""

    def __init__(self, *, symmetric: bool, weighted: bool, rows: int) -> None:
        self._symmetric = symmetric
        self._keys, self._weights = _room(rows << symmetric, weighted=weighted)
        self._ids = np.empty(_LEAST_SLOTS // 2, np.int64)
        self._slots = np.zeros(_LEAST_SLOTS, np.uint32)
        # Edges of the block that are done, keys written, ids known.
        self._progress = np.zeros(3, np.int64)

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Encode edges; see `EdgeEncoder`."""
        from whitewater.graphs.build.kernels import encode_words

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
        from whitewater.graphs.build.kernels import fill_slots

        known = int(self._progress[2])
        self._slots = np.zeros(4 * len(self._slots), np.uint32)
        self._ids = np.concatenate([self._ids[:known], np.empty(len(self._slots) // 2 - known, np.int64)])
        fill_slots(self._ids[:known], self._slots, _shift_of(self._slots))


class GpuEncoder:
    """Encodes the ids of all blocks at once, as distances or as ranks."""

    def __init__(self, span: IdSpan | None, *, symmetric: bool) -> None:
        self._span = span
        self._symmetric = symmetric
        self._blocks: list[tuple[Array, Array, Array | None]] = []

    def add(self, source: Array, target: Array, weight: Array | None) -> None:
        """Keep edges; see `EdgeEncoder`."""
        if self._span is not None and len(source):
            for ids in (source, target):
                if int(ids.min()) < self._span.minimum or int(ids.max()) - self._span.minimum >= self._span.size:
                    raise _outside(self._span)
        self._blocks.append((source, target, weight))

    def result(self) -> EncodedEdges:
        """Return all edges."""
        import cupy

        source, target = (cupy.concatenate([block[end] for block in self._blocks]) for end in (0, 1))
        weighted = [block[2] for block in self._blocks if block[2] is not None]
        weights = cupy.concatenate(weighted) if weighted else None
        if self._span is None:
            ids, codes = cupy.unique(cupy.concatenate([source, target]), return_inverse=True)
            first, second, marks = codes[: len(source)], codes[len(source) :], None
        else:
            first, second, ids = source - self._span.minimum, target - self._span.minimum, None
            marks = _gpu_marked(self._span, first, second)
        return EncodedEdges(self._keyed(first, second, weights), marks, ids, None)

    def _keyed(self, first: Array, second: Array, weights: Array | None) -> KeyedEdges:
        import cupy

        keys = second << CODE_BITS | first
        if self._symmetric:
            different = cupy.flatnonzero(first != second)
            keys = cupy.concatenate([keys, (first << CODE_BITS | second)[different]])
            weights = weights if weights is None else cupy.concatenate([weights, weights[different]])
        return KeyedEdges(keys.view(np.uint64), weights)


def _gpu_marked(span: IdSpan, first: Array, second: Array) -> Array:
    import cupy

    marked = cupy.zeros(span.words * WORD_BITS, np.uint8)
    marked[first] = 1
    marked[second] = 1
    packed = [
        cupy.packbits(marked[start : start + _PACKED_CODES], bitorder="little")
        for start in range(0, len(marked), _PACKED_CODES)
    ]
    marks: Array = cupy.concatenate(packed).view(np.uint64)
    return marks


def edge_encoder(span: IdSpan | None, device: Device, *, symmetric: bool, weighted: bool, rows: int) -> EdgeEncoder:
    """Return an empty encoder for ``rows`` edges at most; one task makes one and is done with it.

    With a span all ids are in it and the codes of all encoders agree; without one each has codes of its own.
    ``symmetric`` adds the opposite of each edge that is no self-loop.
    """
    if device.name == "gpu":
        return GpuEncoder(span, symmetric=symmetric)
    if span is None:
        return CpuHashEncoder(symmetric=symmetric, weighted=weighted, rows=rows)
    return CpuSpanEncoder(span, symmetric=symmetric, weighted=weighted, rows=rows)


def recode_edges(edges: KeyedEdges, table: Array, device: Device) -> KeyedEdges:
    """Return edges with codes looked up in a table, uint32 (codes,)."""
    if device.name == "gpu":
        table = table.astype(np.uint64)
        source, target = edges.keys & np.uint64(CODES - 1), edges.keys >> np.uint64(CODE_BITS)
        found = table[target.view(np.int64)] << np.uint64(CODE_BITS) | table[source.view(np.int64)]
        return KeyedEdges(found, edges.weights)
    from whitewater.graphs.build.kernels import recode

    keys = empty(len(edges), _UINT64)
    recode(edges.keys, table, keys)
    return KeyedEdges(keys, edges.weights)


def bucket_edges(edges: KeyedEdges, device: Device, *, shift: int, buckets: int) -> BucketedEdges:
    """Order edges by bucket, the code of the target shifted right by ``shift``; on the device."""
    if device.name == "gpu":
        return _gpu_bucketed(edges, shift, buckets)
    from whitewater.graphs.build.kernels import count_buckets, scatter

    counts = np.zeros(buckets, np.int64)
    count_buckets(edges.keys, CODE_BITS + shift, counts)
    ends = np.cumsum(counts)
    keys, weights = _room(len(edges), weighted=edges.weights is not None)
    scatter((edges.keys, _or_none(edges.weights)), CODE_BITS + shift, ends - counts, (keys, weights))
    return BucketedEdges(_keyed(keys, weights, len(edges)), ends)


def _gpu_bucketed(edges: KeyedEdges, shift: int, buckets: int) -> BucketedEdges:
    import cupy

    bucket = (edges.keys >> np.uint64(CODE_BITS + shift)).astype(np.int64)
    order = cupy.argsort(bucket, kind="stable")
    ends = cupy.searchsorted(bucket[order], cupy.arange(buckets), side="right")
    return BucketedEdges(KeyedEdges(edges.keys[order], _taken(edges.weights, order)), ends)


def merge_edges(
    buckets: Iterable[Sequence[KeyedEdges]], numbers: CodeNumbers, vertices: range, device: Device, *, rule: Rule,
    index: str, weighted: bool, edges: int
) -> MergedEdges:  # fmt: skip
    """Sort edges by target, then source, and make one of those with the same ends.

    ``buckets`` are the pieces of each bucket, in ascending order, on the host, ``edges`` in all; ``numbers`` are
    those of the vertex of each code, on the host, and ``vertices`` those of the targets. By ``rule`` edges with the
    same ends get the sum of their weights (in ascending order), or else the maximum; edges without any count 1
    each. ``index`` is the dtype of the sources, and ``weighted`` says whether the result has weights.
    """
    if device.name == "gpu":
        pieces = [piece for bucket in buckets for piece in bucket]
        return _gpu_merged_edges(pieces, numbers, vertices, rule, index, weighted=weighted)
    from whitewater.graphs.build.kernels import merge_equal, sort_keys

    counts = np.zeros(len(vertices), np.int64)
    sources, merged = empty(edges, np.dtype(index)), empty(edges if weighted else 0, _FLOAT64)
    filled, loops, repeated = 0, 0, None
    for bucket in buckets:
        keys, weights = _gathered(bucket)
        other_keys, other_weights = _room(len(keys), weighted=len(weights) > 0)
        if sort_keys((keys, weights), (other_keys, other_weights)):
            keys, weights = other_keys, other_weights
        output = sources[filled:], merged[filled:]
        written, own_loops, first = merge_equal(
            (keys, weights), _RULES[rule], (numbers.words, numbers.before), (counts, vertices.start), output
        )
        filled, loops = filled + written, loops + own_loops
        repeated = int(keys[first]) if repeated is None and first >= 0 else repeated
    return MergedEdges(counts, sources[:filled], merged[:filled] if weighted else None, loops, repeated)


def _gpu_merged_edges(
    pieces: Sequence[KeyedEdges], numbers: CodeNumbers, vertices: range, rule: Rule, index: str, *, weighted: bool
) -> MergedEdges:
    """Sort and merge the pieces of all buckets at once."""
    import cupy

    keys, weights = _gathered(pieces)
    keys, weights = _gpu_sorted(cupy.asarray(keys), cupy.asarray(weights))
    starts = cupy.flatnonzero(cupy.concatenate([cupy.ones(min(1, len(keys)), np.bool_), keys[1:] != keys[:-1]]))
    lengths = cupy.diff(starts, append=cupy.asarray([len(keys)]))
    merged = _gpu_weights_of_runs(weights, starts, lengths, rule) if weighted else None
    several = cupy.flatnonzero(lengths > 1)
    repeated = int(keys[starts[several[0]]]) if len(several) else None
    keys = keys[starts]
    codes = keys >> np.uint64(CODE_BITS), keys & np.uint64(CODES - 1)
    on_gpu = CodeNumbers(cupy.asarray(numbers.words), cupy.asarray(numbers.before))
    target, source = (on_gpu.of(each.view(np.int64), cupy) for each in codes)
    first = cupy.searchsorted(target, cupy.arange(vertices.start, vertices.stop + 1))
    loops = int((target == source).sum())
    return MergedEdges(
        cupy.asnumpy(first[1:] - first[:-1]),
        cupy.asnumpy(source.astype(index)),
        None if merged is None else cupy.asnumpy(merged),
        loops,
        repeated,
    )


def _gpu_sorted(keys: Array, weights: Array) -> tuple[Array, Array]:
    """Sort by key, and by weight where keys are equal."""
    import cupy

    if len(weights) == 0:
        return cupy.sort(keys), weights
    order = cupy.argsort(weights, kind="stable")
    order = order[cupy.argsort(keys[order], kind="stable")]
    return keys[order], weights[order]


def _gpu_weights_of_runs(weights: Array, starts: Array, lengths: Array, rule: Rule) -> Array:
    """Return the weight of each run of equal keys, whose weights ascend."""
    import cupy

    from whitewater.engines.gpu_kernels import gpu_sum_runs

    if len(weights) == 0:
        counted: Array = lengths.astype(np.float64)
        return counted
    if rule != "sum":
        largest: Array = weights[starts + lengths - 1]
        return largest
    sums: Array = cupy.zeros(len(starts), np.float64)
    gpu_sum_runs[-(-len(starts) // _GPU_THREADS), _GPU_THREADS](weights, starts, lengths, sums)
    return sums


def _gathered(pieces: Sequence[KeyedEdges]) -> tuple[Array, Array]:
    """Return the keys and the weights, if any, of all pieces in memory of their own."""
    weighted = bool(pieces) and pieces[0].weights is not None
    keys, weights = _room(sum(len(piece) for piece in pieces), weighted=weighted)
    filled = 0
    for piece in pieces:
        keys[filled : filled + len(piece)] = piece.keys
        if piece.weights is not None:
            weights[filled : filled + len(piece)] = piece.weights
        filled += len(piece)
    return keys, weights


def _ordered(ids: Array) -> tuple[Array, Array]:
    """Return ids, which are all different, in ascending order, and the rank of each, uint32."""
    from whitewater.graphs.build.kernels import sort_keys

    keys, places = ids.view(np.uint64) ^ np.uint64(_SIGN), np.arange(len(ids), dtype=np.uint32)
    other_keys, other_places = np.empty_like(keys), np.empty_like(places)
    if sort_keys((keys, places), (other_keys, other_places)):
        keys, places = other_keys, other_places
    ranks = np.empty(len(ids), np.uint32)
    ranks[places] = np.arange(len(ids), dtype=np.uint32)
    return (keys ^ np.uint64(_SIGN)).view(np.int64), ranks


def _room(edges: int, *, weighted: bool) -> tuple[Array, Array]:
    """Return memory for keys and, if there are any, for weights."""
    return empty(edges, _UINT64), empty(edges if weighted else 0, _FLOAT64)


def _keyed(keys: Array, weights: Array, filled: int) -> KeyedEdges:
    return KeyedEdges(keys[:filled], weights[:filled] if len(weights) else None)


def _or_none(weights: Array | None) -> Array:
    return np.empty(0) if weights is None else weights


def _taken(weights: Array | None, order: Array) -> Array | None:
    return None if weights is None else weights[order]


def _shift_of(slots: Array) -> int:
    """Return how far a hash of 64 bits is shifted to be the place of a slot."""
    return WORD_BITS - (len(slots).bit_length() - 1)


def _outside(span: IdSpan) -> IntegrityError:
    last = span.minimum + span.size - 1
    return IntegrityError(f"an id is not from {span.minimum} to {last}, as the statistics of its Parquet file say. "
                          "Run the step that writes the edges again.")  # fmt: skip

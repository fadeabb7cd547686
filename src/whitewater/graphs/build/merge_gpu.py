"""The operations of `whitewater.graphs.build.merge` on a GPU.

Numba's simulator puts its own `cuda` among the globals of a kernel, so that is where the kernel must find it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import config, cuda

from whitewater.engines import Array
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
)

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
THREADS = 256
# Codes that are packed at once: CuPy counts them in 32 bits.
_PACKED_CODES = 1 << 30


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
                    raise outside_span(self._span)
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
            marks = _marked(self._span, first, second)
        return EncodedEdges(self._keyed(first, second, weights), marks, ids, None)

    def _keyed(self, first: Array, second: Array, weights: Array | None) -> KeyedEdges:
        import cupy

        keys = second << CODE_BITS | first
        if self._symmetric:
            different = cupy.flatnonzero(first != second)
            keys = cupy.concatenate([keys, (first << CODE_BITS | second)[different]])
            weights = weights if weights is None else cupy.concatenate([weights, weights[different]])
        return KeyedEdges(keys.view(np.uint64), weights)


def _marked(span: IdSpan, first: Array, second: Array) -> Array:
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


def gpu_recode_edges(edges: KeyedEdges, table: Array) -> KeyedEdges:
    """Return edges with codes looked up in a table."""
    table = table.astype(np.uint64)
    source, target = edges.keys & np.uint64(CODES - 1), edges.keys >> np.uint64(CODE_BITS)
    found = table[target.view(np.int64)] << np.uint64(CODE_BITS) | table[source.view(np.int64)]
    return KeyedEdges(found, edges.weights)


def gpu_bucket_edges(edges: KeyedEdges, shift: int, buckets: int) -> BucketedEdges:
    """Order edges by bucket."""
    import cupy

    bucket = (edges.keys >> np.uint64(CODE_BITS + shift)).astype(np.int64)
    order = cupy.argsort(bucket, kind="stable")
    ends = cupy.searchsorted(bucket[order], cupy.arange(buckets), side="right")
    return BucketedEdges(KeyedEdges(edges.keys[order], None if edges.weights is None else edges.weights[order]), ends)


def gpu_merge_edges(
    pieces: Sequence[KeyedEdges], numbers: CodeNumbers, vertices: range, rule: Rule, index: str, *, weighted: bool
) -> MergedEdges:
    """Sort and merge the pieces of all buckets at once."""
    import cupy

    keys, weights = gathered(pieces)
    keys, weights = _sorted(cupy.asarray(keys), cupy.asarray(weights))
    starts = cupy.flatnonzero(cupy.concatenate([cupy.ones(min(1, len(keys)), np.bool_), keys[1:] != keys[:-1]]))
    lengths = cupy.diff(starts, append=cupy.asarray([len(keys)]))
    merged = _weights_of_runs(weights, starts, lengths, rule) if weighted else None
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


def _sorted(keys: Array, weights: Array) -> tuple[Array, Array]:
    """Sort by key, and by weight where keys are equal."""
    import cupy

    if len(weights) == 0:
        return cupy.sort(keys), weights
    order = cupy.argsort(weights, kind="stable")
    order = order[cupy.argsort(keys[order], kind="stable")]
    return keys[order], weights[order]


def _weights_of_runs(weights: Array, starts: Array, lengths: Array, rule: Rule) -> Array:
    """Return the weight of each run of equal keys, whose weights ascend."""
    import cupy

    if len(weights) == 0:
        counted: Array = lengths.astype(np.float64)
        return counted
    if rule != "sum":
        largest: Array = weights[starts + lengths - 1]
        return largest
    sums: Array = cupy.zeros(len(starts), np.float64)
    gpu_sum_runs[-(-len(starts) // THREADS), THREADS](weights, starts, lengths, sums)
    return sums


@cuda.jit
def gpu_sum_runs(values: Array, starts: Array, lengths: Array, sums: Array) -> None:
    """Add up, with a thread to each run, its values in their order: float64, int64 (runs,) twice, float64 (runs,)."""
    run = cuda.grid(1)
    if run < len(starts):
        total = 0.0
        for place in range(starts[run], starts[run] + lengths[run]):
            total += values[place]
        sums[run] = total

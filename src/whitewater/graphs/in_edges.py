"""Edges by their targets, and numbers pulled along them: the sparse product of PageRank.

To pull is to add up, for each target, ``weight * shares[source]`` over its in-edges, float64, without a transposed copy
and without atomic additions. The order of each sum is fixed: on the CPU four sums take the edges of a run in turn,
ascending by source, and are then added pairwise; what is left after the last whole four goes to the first of them. Runs
of a target are added with a correction, so that the error does not grow with its edges. The order does not depend on
threads, on ranges, or on whether edges are kept in memory, so neither do the bits of the result.

Kept edges number their sources anew: those with the most out-edges first, in groups by powers of two, each in the old
order, and no others (Faldu, Diamond, Grot: A Closer Look at Lightweight Graph Reordering, IISWC 2019). So the values
that are read most share cache lines, while the order of each sum stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from mmap import MADV_SEQUENTIAL, mmap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

# Edges that a thread is handed at once at least, and parts for each thread, so that one that is late holds up little.
_PART_EDGES = 1 << 18
_PARTS_A_THREAD = 8
# Groups by out-degree, from 2**-2 times the mean and less to 2**5 times and more.
_LEAST_GROUP, _LAST_GROUP = -2, 5


@dataclass(frozen=True)
class Edges:
    """In-edges of consecutive targets, on the host, memory-mapped perhaps."""

    # int64 (targets + 1,): the edges of target t are from ``offsets[t]`` to ``offsets[t + 1]``, less ``offsets[0]``
    offsets: npt.NDArray[np.int64]
    sources: Array  # int32 or int64 (edges,): numbers of vertices, ascending within a target
    weights: npt.NDArray[np.float64] | None = None  # float64 (edges,), or None where each is 1

    @property
    def targets(self) -> int:
        """The number of targets."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """About the bytes that the edges take on a GPU, with the segments of their rows."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.sources.nbytes + weights + 5 * self.offsets.nbytes

    def between(self, start: int, stop: int) -> Edges:
        """Return the edges of the targets from ``start`` to before ``stop``."""
        first, last = (int(self.offsets[place] - self.offsets[0]) for place in (start, stop))
        weights = None if self.weights is None else self.weights[first:last]
        return Edges(self.offsets[start : stop + 1], self.sources[first:last], weights)


class InEdges(Protocol):
    """Edges of a range of targets that are pulled along many times."""

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out``, float64 (targets,), with the sums of ``shares``, float64 (vertices,)."""


def kept_bytes(edges: int, vertices: int) -> int:
    """Return the bytes that kept edges take on the CPU, besides weights, while they are numbered anew."""
    return 4 * edges + 40 * vertices


class CpuInEdges:
    """Edges that Numba pulls along with several threads; see `whitewater.engines.device.Device.in_edges`."""

    def __init__(self, edges: Edges, *, out_degree: Array, threads: int, keep: bool) -> None:
        self._edges, self._threads = edges, threads
        self._order: Array | None = None
        self._cuts = _equal_parts(edges.offsets, threads)
        if keep:
            self._keep(out_degree)
        else:
            _read_in_order(edges.sources, edges.weights)

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out`` with the sums."""
        from whitewater.graphs.in_edge_kernels import add_up, take

        edges, values = self._edges, shares
        if self._order is not None:
            values = np.empty(len(self._order))
            cuts = np.linspace(0, len(values), self._threads + 1).astype(np.int64).tolist()
            _in_parallel(partial(take, shares, self._order, values), cuts, self._threads)
        adding = partial(add_up, (edges.offsets, edges.sources, edges.weights), values, out)
        _in_parallel(adding, self._cuts, self._threads)

    def _keep(self, out_degree: Array) -> None:
        from whitewater.graphs.in_edge_kernels import take

        order = _by_out_degree(out_degree)
        dtype = np.int32 if len(order) <= np.iinfo(np.int32).max else np.int64
        numbers = np.empty(len(out_degree), dtype)
        numbers[order] = np.arange(len(order), dtype=dtype)
        sources = np.empty(len(self._edges.sources), dtype)
        cuts = (self._edges.offsets[self._cuts] - self._edges.offsets[0]).tolist()
        _in_parallel(partial(take, numbers, self._edges.sources, sources), cuts, self._threads)
        self._order = order
        self._edges = Edges(self._edges.offsets, sources, self._edges.weights)


class GpuInEdges:
    """Edges in the memory of a GPU; see `whitewater.engines.device.Device.in_edges`.

    Rows are cut into segments, so that one with many edges is shared by many threads (after Bell and Garland:
    Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009). A team of threads adds
    up each segment, then a team adds up the segments of each row, in a fixed order.
    """

    def __init__(self, edges: Edges) -> None:
        import cupy

        from whitewater.graphs.in_edge_kernels_gpu import SEGMENT

        offsets = cupy.asarray(edges.offsets - edges.offsets[0])
        self._sources = cupy.asarray(edges.sources)
        self._weights = cupy.asarray(np.empty(0) if edges.weights is None else edges.weights)
        self._first = cupy.zeros(edges.targets + 1, np.int64)
        self._first[1:] = cupy.cumsum(-(-(offsets[1:] - offsets[:-1]) // SEGMENT))
        numbers = cupy.arange(int(self._first[-1]))
        rows = cupy.searchsorted(self._first, numbers, side="right") - 1
        starts = offsets[rows] + (numbers - self._first[rows]) * SEGMENT
        self._segments = cupy.stack([starts, cupy.minimum(starts + SEGMENT, offsets[rows + 1])], axis=1)
        self._sums = cupy.empty(len(numbers), np.float64)

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out`` with the sums."""
        from whitewater.graphs.in_edge_kernels_gpu import TEAM, THREADS, gpu_add_segments, gpu_add_up

        if len(self._sums):
            blocks = -(-len(self._sums) * TEAM // THREADS)
            gpu_add_up[blocks, THREADS](self._segments, self._sources, self._weights, shares, self._sums)
        if len(out):
            gpu_add_segments[-(-len(out) * TEAM // THREADS), THREADS](self._first, self._sums, out)


def _read_in_order(*arrays: Array | None) -> None:
    """Tell the system that mapped files are read from the beginning to the end, so that it reads ahead."""
    for array in arrays:
        mapped: Any = array
        while mapped is not None and not isinstance(mapped, mmap):
            mapped = getattr(mapped, "base", None)
        if mapped is not None:
            mapped.madvise(MADV_SEQUENTIAL)


def _by_out_degree(out_degree: Array) -> Array:
    """Return the vertices that have out-edges, those of high degree first, int64."""
    # NumPy sorts int8 by counting.
    groups = np.full(len(out_degree), _LAST_GROUP - _LEAST_GROUP + 1, np.int8)
    sources = np.flatnonzero(out_degree)
    if not len(sources):
        return sources
    degrees = out_degree[sources]
    levels = np.floor(np.log2(degrees / degrees.mean()))
    groups[sources] = _LAST_GROUP - np.clip(levels, _LEAST_GROUP, _LAST_GROUP).astype(np.int8)
    return np.argsort(groups, kind="stable")[: len(sources)]


def _equal_parts(offsets: npt.NDArray[np.int64], threads: int) -> list[int]:
    """Cut targets into parts of about as many edges each."""
    edges = int(offsets[-1] - offsets[0])
    parts = max(1, min(_PARTS_A_THREAD * threads, edges // _PART_EDGES))
    inner = np.searchsorted(offsets, offsets[0] + np.arange(1, parts) * edges // parts).tolist()
    return sorted({0, *inner, len(offsets) - 1})


def _in_parallel(function: Callable[[int, int], object], cuts: Sequence[int], threads: int) -> None:
    """Call a kernel for each part between two cuts; kernels let go of the interpreter's lock."""
    parts = list(pairwise(cuts))
    if threads == 1 or len(parts) < 2:
        for start, stop in parts:
            function(start, stop)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda part: function(*part), parts):
            pass

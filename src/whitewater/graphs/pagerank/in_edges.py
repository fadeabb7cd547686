"""Numbers pulled along edges: the sparse product of PageRank.

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
from functools import partial
from itertools import pairwise
from mmap import MADV_SEQUENTIAL, mmap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.graphs.edges import Edges

if TYPE_CHECKING:
    from collections.abc import Sequence

# Edges that a thread is handed at once at least, and parts for each thread, so that one that is late holds up little.
_PART_EDGES = 1 << 18
_PARTS_A_THREAD = 8
# Groups by out-degree, from 2**-2 times the mean and less to 2**5 times and more.
_LEAST_GROUP, _LAST_GROUP = -2, 5


class InEdges(Protocol):
    """Edges of a range of targets that are pulled along many times."""

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out``, float64 (targets,), with the sums of ``shares``, float64 (vertices,)."""


def kept_bytes(edges: int, vertices: int) -> int:
    """Return the bytes that kept edges take on the CPU, besides weights, while they are numbered anew."""
    return 4 * edges + 40 * vertices


def hold_in_edges(device: Device, edges: Edges, *, out_degree: Array, threads: int, keep: bool) -> InEdges:
    """Return in-edges that numbers are pulled along many times.

    ``out_degree``, int64 (vertices,) on the host, is that of all vertices. On the CPU ``keep`` says that there is
    memory for a copy of the edges, see `kept_bytes`; without it they are read where they are, in order, each time. A
    GPU keeps them always. The sums are the same.
    """
    if device.name == "gpu":
        from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges

        return GpuInEdges(edges)
    return CpuInEdges(edges, out_degree=out_degree, threads=threads, keep=keep)


class CpuInEdges:
    """Edges that Numba pulls along with several threads."""

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
        from whitewater.graphs.pagerank.in_edges_cpu import add_up, take

        edges, values = self._edges, shares
        if self._order is not None:
            values = np.empty(len(self._order))
            cuts = np.linspace(0, len(values), self._threads + 1).astype(np.int64).tolist()
            _in_parallel(partial(take, shares, self._order, values), cuts, self._threads)
        adding = partial(add_up, (edges.offsets, edges.sources, edges.weights), values, out)
        _in_parallel(adding, self._cuts, self._threads)

    def _keep(self, out_degree: Array) -> None:
        from whitewater.graphs.pagerank.in_edges_cpu import take

        order = _by_out_degree(out_degree)
        dtype = np.int32 if len(order) <= np.iinfo(np.int32).max else np.int64
        numbers = np.empty(len(out_degree), dtype)
        numbers[order] = np.arange(len(order), dtype=dtype)
        sources = np.empty(len(self._edges.sources), dtype)
        cuts = (self._edges.offsets[self._cuts] - self._edges.offsets[0]).tolist()
        _in_parallel(partial(take, numbers, self._edges.sources, sources), cuts, self._threads)
        self._order = order
        self._edges = Edges(self._edges.offsets, sources, self._edges.weights)


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

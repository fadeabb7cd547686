"""Shares pulled along edges on the CPU; see `whitewater.graphs.pagerank.in_edges`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part, uint64
from whitewater.graphs.graph_folder import Edges

# Edges of a target that are added up without compensation.
_RUN_EDGES = 128
# Minimum edges of a part, and parts per thread: several, so that a slow thread delays the others little.
_PART_EDGES = 1 << 18
_PARTS_PER_THREAD = 8
# Groups by out-degree: the lowest is 2**-2 times the mean and less, the highest 2**5 times and more.
_LOWEST, _HIGHEST = -2, 5


class CpuInEdges:
    """In-edges that Numba kernels pull shares along, with several threads."""

    def __init__(self, edges: Edges, *, out_degree: Array, threads: int, keep: bool) -> None:
        self._edges, self._threads = edges, threads
        self._order: Array | None = None
        self._cuts = _equal_parts(edges.offsets, threads)
        if keep:
            self._keep(out_degree)

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out`` with the sums."""
        edges, values = self._edges, shares
        if self._order is not None:
            values = np.empty(len(self._order))
            cuts = np.linspace(0, len(values), self._threads + 1).astype(np.int64).tolist()
            _in_parallel(partial(take, shares, self._order, values), cuts, self._threads)
        add_part = partial(add_up, (edges.offsets, edges.sources, edges.weights), values, out)
        _in_parallel(add_part, self._cuts, self._threads)

    def _keep(self, out_degree: Array) -> None:
        order = _by_out_degree(out_degree)
        dtype = np.int32 if len(order) <= np.iinfo(np.int32).max else np.int64
        numbers = np.empty(len(out_degree), dtype)
        numbers[order] = np.arange(len(order), dtype=dtype)
        sources = np.empty(len(self._edges.sources), dtype)
        cuts = (self._edges.offsets[self._cuts] - self._edges.offsets[0]).tolist()
        _in_parallel(partial(take, numbers, self._edges.sources, sources), cuts, self._threads)
        self._order = order
        self._edges = Edges(self._edges.offsets, sources, self._edges.weights)


def _by_out_degree(out_degree: Array) -> Array:
    """Return the numbers of the vertices that have out-edges, int64, groups of high degree first."""
    # NumPy sorts int8 with a radix sort, in linear time.
    groups = np.full(len(out_degree), _HIGHEST - _LOWEST + 1, np.int8)
    sources = np.flatnonzero(out_degree)
    if not len(sources):
        return sources
    degrees = out_degree[sources]
    levels = np.floor(np.log2(degrees / degrees.mean()))
    groups[sources] = _HIGHEST - np.clip(levels, _LOWEST, _HIGHEST).astype(np.int8)
    return np.argsort(groups, kind="stable")[: len(sources)]


def _equal_parts(offsets: npt.NDArray[np.int64], threads: int) -> list[int]:
    """Return where to cut the targets into parts with about the same number of edges."""
    edges = int(offsets[-1] - offsets[0])
    parts = max(1, min(_PARTS_PER_THREAD * threads, edges // _PART_EDGES))
    cuts = np.searchsorted(offsets, offsets[0] + np.arange(1, parts) * edges // parts).tolist()
    return sorted({0, *cuts, len(offsets) - 1})


def _in_parallel(function: Callable[[int, int], object], cuts: Sequence[int], threads: int) -> None:
    """Call a kernel for each part between two cuts, in threads: kernels release the GIL."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(function, cuts[:-1], cuts[1:]))


@kernel
def add_up(rows: tuple[Array, Array, Array | None], values: Array, sums: Array, start: int, stop: int) -> None:
    """Fill the sums from ``start`` to before ``stop``; ``rows`` are offsets, sources and weights of `Edges`.

    With millions of edges a sum rounds millions of times, and in the same direction if the values are equal. So the
    rounding error of adding each run is collected and added at the end (A. Neumaier, 1974, with Knuth's exact error of
    a sum, The Art of Computer Programming, volume 2, section 4.2.2).
    """
    offsets, sources, weights = rows
    # Unsigned indices: for a signed one Numba checks at every edge whether it is negative and counts from the end.
    run, base = uint64(_RUN_EDGES), offsets[0]
    for target in range(start, stop):
        edge, end = uint64(offsets[target] - base), uint64(offsets[target + 1] - base)
        total, compensation = 0.0, 0.0
        while end - edge > run:
            term = _sum_of_run(sources, weights, values, edge, edge + run)
            new_total = total + term
            recovered_total = new_total - term
            compensation += (total - recovered_total) + (term - (new_total - recovered_total))
            total = new_total
            edge += run
        sums[target] = total + (compensation + _sum_of_run(sources, weights, values, edge, end))


@part
def _sum_of_run(sources: Array, weights: Array | None, values: Array, edge: int, end: int) -> float:
    one, two, three, four = uint64(1), uint64(2), uint64(3), uint64(4)
    end_of_fours = edge + ((end - edge) & ~three)
    # An addition has the latency of four loads: four independent sums do not wait for each other.
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    while edge < end_of_fours:
        first += _term(sources, weights, values, edge)
        second += _term(sources, weights, values, edge + one)
        third += _term(sources, weights, values, edge + two)
        fourth += _term(sources, weights, values, edge + three)
        edge += four
    while edge < end:
        first += _term(sources, weights, values, edge)
        edge += one
    return (first + second) + (third + fourth)


@part
def _term(sources: Array, weights: Array | None, values: Array, edge: int) -> float:
    value: float = values[uint64(sources[edge])]
    # Numba resolves this branch when it compiles: there are two versions.
    if weights is None:
        return value
    weighted: float = weights[edge] * value
    return weighted


@kernel
def take(values: Array, indices: Array, out: Array, start: int, stop: int) -> None:
    """Fill ``out`` from ``start`` to before ``stop`` with the values at ``indices``."""
    for row in range(start, stop):
        out[row] = values[uint64(indices[row])]

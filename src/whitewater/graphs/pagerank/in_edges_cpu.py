"""Shares pulled along edges on the CPU; see `whitewater.graphs.pagerank.in_edges`."""

from __future__ import annotations

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


class CpuInEdges:
    """In-edges that Numba kernels pull shares along, with several threads."""

    def __init__(self, edges: Edges, *, threads: int) -> None:
        self._edges, self._threads = edges, threads
        self._cuts = _equal_parts(edges.offsets, threads)

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out`` with the sums."""
        rows = self._edges.offsets, self._edges.sources, self._edges.weights
        # Kernels release the GIL.
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(partial(add_up, rows, shares, out), self._cuts[:-1], self._cuts[1:]))


def _equal_parts(offsets: npt.NDArray[np.int64], threads: int) -> list[int]:
    """Return where to cut the targets into parts with about the same number of edges."""
    edges = int(offsets[-1] - offsets[0])
    parts = max(1, min(_PARTS_PER_THREAD * threads, edges // _PART_EDGES))
    cuts = np.searchsorted(offsets, offsets[0] + np.arange(1, parts) * edges // parts).tolist()
    return sorted({0, *cuts, len(offsets) - 1})


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

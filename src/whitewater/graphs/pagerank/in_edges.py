"""The sparse matrix-vector product of PageRank: for each target, the sum of ``weight * shares[source]`` in float64.

It needs no transposed copy and no atomic additions, and its bits do not depend on threads or ranges, because each sum
has a fixed order. On the CPU the error does not grow with the degree: runs of edges are added with compensation.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from whitewater.engines import Array, Device
from whitewater.engines.kernel import kernel, part, uint64
from whitewater.graphs.graph_folder import Edges

# Called with shares and sums, float64 (vertices,): sets sums[v] to the sum of w * shares[u] over the in-edges of v.
Pull = Callable[[Array, Array], None]


def edges_to_device(device: Device, edges: Edges) -> Edges:
    """Copy edges to a device; on the CPU they stay memory-mapped."""
    weights = None if edges.weights is None else device.to_device(edges.weights)
    return Edges(device.to_device(edges.offsets), device.to_device(edges.sources), weights)


def prepare_in_edges(device: Device, edges: Edges, *, threads: int) -> Pull:
    """Return the function that computes the product with in-edges, which are on the device.

    On the CPU each call reads the mapped files from start to end; the system caches what fits into memory.
    """
    if device.name == "gpu":
        from whitewater.graphs.pagerank import in_edges_gpu

        return in_edges_gpu.prepare_in_edges(edges)
    # Several ranges per thread, so that a slow thread delays the others little.
    rows, ranges = (edges.offsets, edges.sources, edges.weights), edges.ranges(at_most=8 * threads)

    def pull(shares: Array, out: Array) -> None:
        # Kernels release the GIL.
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(partial(add_up, rows, shares, out), *zip(*ranges, strict=True)))

    return pull


@kernel
def add_up(rows: tuple[Array, Array, Array | None], values: Array, sums: Array, start: int, stop: int) -> None:
    """Fill the sums from ``start`` to before ``stop``; ``rows`` are offsets, sources and weights of `Edges`.

    Millions of equal values would round in the same direction millions of times. So the rounding error of each run of
    128 edges is collected and added at the end (A. Neumaier, 1974, with Knuth's exact error of a sum, The Art of
    Computer Programming, volume 2, section 4.2.2).
    """
    offsets, sources, weights = rows
    # Unsigned, because Numba checks every signed index for being negative.
    run, base = uint64(128), offsets[0]
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
    # Four independent sums, because an addition takes as long as four loads.
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
    # Numba resolves this branch when it compiles, and makes two versions.
    if weights is None:
        return value
    return weights[edge] * value

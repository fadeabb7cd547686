"""The kernels of `whitewater.graphs.pagerank.in_edges` for the CPU."""

from __future__ import annotations

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part, uint64

# Edges of a target that are added up without a correction.
_RUN = 128


@kernel
def add_up(rows: tuple[Array, Array, Array | None], values: Array, sums: Array, start: int, stop: int) -> None:
    """Fill the sums from ``start`` to before ``stop``; ``rows`` are offsets, sources and weights of `Edges`.

    A target of millions of edges would round as often, each time the same way where values are equal: what is rounded
    off in adding one run of edges to those before it is added at the end (A. Neumaier, 1974, with Knuth's exact error
    of a sum, The Art of Computer Programming, volume 2, section 4.2.2).
    """
    offsets, sources, weights = rows
    # Unsigned places: of a signed one it would be asked for each edge whether it counts from the end.
    run, base = uint64(_RUN), offsets[0]
    for target in range(start, stop):
        edge, end = uint64(offsets[target] - base), uint64(offsets[target + 1] - base)
        total, lost = 0.0, 0.0
        while end - edge > run:
            added = _sum_of_run(sources, weights, values, edge, edge + run)
            following = total + added
            before = following - added
            lost += (total - before) + (added - (following - before))
            total = following
            edge += run
        sums[target] = total + (lost + _sum_of_run(sources, weights, values, edge, end))


@part
def _sum_of_run(sources: Array, weights: Array | None, values: Array, edge: int, end: int) -> float:
    one, two, three, four = uint64(1), uint64(2), uint64(3), uint64(4)
    whole = edge + ((end - edge) & ~three)
    # An addition takes as long as four loads: of four sums none waits for another.
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    while edge < whole:
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
    # Which of the two is known when this is compiled.
    if weights is None:
        return value
    weighted: float = weights[edge] * value
    return weighted


@kernel
def take(values: Array, places: Array, out: Array, start: int, stop: int) -> None:
    """Fill ``out`` from ``start`` to before ``stop`` with the values at ``places``."""
    for row in range(start, stop):
        out[row] = values[uint64(places[row])]

"""The kernels of `whitewater.devices.in_edges` for the CPU."""

from __future__ import annotations

from whitewater.devices.kernel import kernel, part, uint64
from whitewater.devices.protocol import Array


@kernel
def add_up(rows: tuple[Array, Array, Array | None], values: Array, sums: Array, start: int, stop: int) -> None:
    """Fill the sums from ``start`` to before ``stop``; ``rows`` are offsets, sources and weights of `Edges`."""
    offsets, sources, weights = rows
    # Unsigned places: of a signed one it would be asked for each edge whether it counts from the end.
    one, two, three, four = uint64(1), uint64(2), uint64(3), uint64(4)
    base = offsets[0]
    for target in range(start, stop):
        edge, end = uint64(offsets[target] - base), uint64(offsets[target + 1] - base)
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
        sums[target] = (first + second) + (third + fourth)


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

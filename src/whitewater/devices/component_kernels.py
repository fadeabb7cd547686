"""The kernels of `whitewater.devices.components` for the CPU."""

from __future__ import annotations

from whitewater.devices.kernel import kernel, part
from whitewater.devices.protocol import Array


@kernel
def unite(offsets: Array, sources: Array, first_target: int, parents: Array) -> None:
    """Unite the trees of the ends of each edge; ``parents``, int64 (vertices,), is changed."""
    for row in range(len(offsets) - 1):
        one = find_root(parents, first_target + row)
        for edge in range(offsets[row] - offsets[0], offsets[row + 1] - offsets[0]):
            other = find_root(parents, sources[edge])
            if other < one:
                parents[one] = other
                one = other
            else:
                parents[other] = one


@kernel
def flatten(parents: Array) -> None:
    """Replace the parent of each vertex by its root; a parent is never larger, so it is done before."""
    for vertex in range(len(parents)):
        parents[vertex] = parents[parents[vertex]]


@part
def find_root(parents: Array, vertex: int) -> int:
    """Return the root of a vertex; those on the way to it are put under their grandparents."""
    current = vertex
    while parents[current] != current:
        parents[current] = parents[parents[current]]
        current = parents[current]
    return current

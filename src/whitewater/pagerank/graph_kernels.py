"""Loops over the edges of a graph, compiled."""

from __future__ import annotations

from whitewater.devices.kernel import kernel
from whitewater.devices.protocol import Array


@kernel
def add_degrees(vertices: Array, degrees: Array) -> None:
    """Count each vertex number, integers (edges,), in ``degrees``, int64 (vertices,)."""
    for edge in range(len(vertices)):
        degrees[vertices[edge]] += 1


@kernel
def add_weights(vertices: Array, weights: Array, sums: Array) -> None:
    """Add the weight of each edge, float64 (edges,), to that of its vertex in ``sums``, in the order given."""
    for edge in range(len(vertices)):
        sums[vertices[edge]] += weights[edge]

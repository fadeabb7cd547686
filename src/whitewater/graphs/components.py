"""Weakly connected components: vertices that edges join, whichever way these point, found in one pass over the edges.

The label of a component is the smallest number of its vertices, so it depends on no order: a root is only ever put
under a smaller one (Tarjan: Efficiency of a Good But Not Linear Set Union Algorithm, JACM 1975; path halving).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part
from whitewater.graphs.graph_folder import Edges


def components(blocks: Iterable[tuple[int, Edges]], vertices: int) -> Array:
    """Return the smallest number in the weakly connected component of each vertex, int64 (vertices,).

    ``blocks`` are edges on the host, which are seen once, each with the number of its first target.
    """
    parents = np.arange(vertices)
    for first, edges in blocks:
        _unite(edges.offsets, edges.sources, first, parents)
    while not np.array_equal(parents, further := parents[parents]):
        parents = further
    return parents


@kernel
def _unite(offsets: Array, sources: Array, first_target: int, parents: Array) -> None:
    """Unite the trees of the ends of each edge; ``parents``, int64 (vertices,), is changed."""
    for row in range(len(offsets) - 1):
        one = _find_root(parents, first_target + row)
        for edge in range(offsets[row] - offsets[0], offsets[row + 1] - offsets[0]):
            other = _find_root(parents, sources[edge])
            if other < one:
                parents[one] = other
                one = other
            else:
                parents[other] = one


@part
def _find_root(parents: Array, vertex: int) -> int:
    """Return the root of a vertex; those on the way to it are put under their grandparents."""
    current = vertex
    while parents[current] != current:
        parents[current] = parents[parents[current]]
        current = parents[current]
    return current

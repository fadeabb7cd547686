"""Weakly connected components: vertices that edges join, whichever way these point, found in one pass over the edges.

The label of a component is the smallest number of its vertices, so it depends on no order: a root is only ever put
under a smaller one (Tarjan: Efficiency of a Good But Not Linear Set Union Algorithm, JACM 1975; path halving).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from whitewater.devices.in_edges import Edges
from whitewater.devices.protocol import Array


def cpu_components(blocks: Iterable[tuple[int, Edges]], vertices: int) -> Array:
    """Return the smallest number in the component of each vertex; see `Device.components` of the protocol."""
    from whitewater.devices.component_kernels import flatten, unite

    parents = np.arange(vertices)
    for first, edges in blocks:
        unite(edges.offsets, edges.sources, first, parents)
    flatten(parents)
    return parents


def gpu_components(blocks: Iterable[tuple[int, Edges]], vertices: int) -> Array:
    """Return the smallest number in the component of each vertex, with a thread to each edge."""
    import cupy

    from whitewater.devices.gpu_graph_kernels import THREADS, gpu_flatten, gpu_unite

    parents = cupy.arange(vertices)
    for first, edges in blocks:
        if len(edges.sources):
            offsets, sources = cupy.asarray(edges.offsets - edges.offsets[0]), cupy.asarray(edges.sources)
            gpu_unite[-(-len(sources) // THREADS), THREADS](offsets, sources, first, parents)
    roots = cupy.empty_like(parents)
    if vertices:
        gpu_flatten[-(-vertices // THREADS), THREADS](parents, roots)
    host: Array = cupy.asnumpy(roots)
    return host

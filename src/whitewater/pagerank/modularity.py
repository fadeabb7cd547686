"""Modularity of communities, directions of edges left aside.

With the sum *W* of all weights, ``inside[c]`` that of the edges within community *c*, and ``strength[c]`` the sum over
its vertices of the weights of their edges, a loop twice::

    Q = sum over c of inside[c] / W - resolution * (strength[c] / (2 W)) ** 2

Source: M. E. J. Newman: Modularity and community structure in networks, PNAS 103 (2006); resolution: J. Reichardt, S.
Bornholdt: Statistical mechanics of community detection, Phys. Rev. E 74 (2006).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from whitewater.devices.in_edges import Edges

# Edges that are looked at at once.
PIECE_EDGES = 1 << 20


def modularity(edges: Edges, communities: npt.NDArray[np.int64], *, resolution: float) -> float:
    """Return the modularity of communities, numbered from 0: at most 1; 0 of a graph without edges."""
    count = int(communities.max(initial=-1)) + 1
    inside, strength = np.zeros(count), np.zeros(count)
    for targets, sources, weights in _pieces(edges):
        ends, begins = communities[targets], communities[sources]
        same = ends == begins
        inside += np.bincount(ends[same], weights[same], minlength=count)
        strength += np.bincount(ends, weights, minlength=count) + np.bincount(begins, weights, minlength=count)
    total = strength.sum() / 2
    if total == 0:
        return 0.0
    return float(np.sum(inside / total - resolution * (strength / (2 * total)) ** 2))


def _pieces(edges: Edges) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Yield the targets, sources and weights of edges, a piece at a time."""
    for first in range(0, len(edges.sources), PIECE_EDGES):
        last = min(first + PIECE_EDGES, len(edges.sources))
        places = edges.offsets[0] + np.arange(first, last)
        targets = np.searchsorted(edges.offsets, places, side="right") - 1
        weights = np.ones(last - first) if edges.weights is None else edges.weights[first:last]
        yield targets, edges.sources[first:last].astype(np.int64), weights

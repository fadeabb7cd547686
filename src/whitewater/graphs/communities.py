"""Communities of a graph by modularity on the CPU, directions of edges left aside: Leiden and Louvain.

Sources: V. A. Traag, L. Waltman, N. J. van Eck: From Louvain to Leiden: guaranteeing well-connected communities,
Scientific Reports 9, 5233 (2019); V. D. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre: Fast unfolding of
communities in large networks, J. Stat. Mech. P10008 (2008). On the CPU a vertex goes to the best community, in both
phases; only the order of vertices is random, by the seed. All sums are float64 and done in one order, so that a seed
gives the same communities everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from whitewater.engines import Array
from whitewater.graphs.graph_folder import Edges

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Method = Literal["leiden", "louvain"]
# Leiden begins again from what it found, as its authors' implementation does.
_ROUNDS = {"leiden": 2, "louvain": 1}


def communities_bytes(edges: Edges) -> int:
    """Return about the most bytes that communities take on the CPU: edges in both directions, and vertices.

    There are three graphs at once: the given one, one that is merged, and what it is merged into.
    """
    return 3 * 2 * len(edges.sources) * (edges.sources.itemsize + 8) + 120 * edges.target_count


def find_communities(edges: Edges, *, method: Method, resolution: float, seed: int) -> Array:
    """Return the community of each vertex, int64 (vertices,), numbered anyhow.

    ``edges`` are those of all vertices; their directions do not count.
    """
    random = np.random.default_rng(seed)
    labels = np.arange(edges.target_count)
    if not len(edges.sources):
        return labels
    graph = _undirected(edges)
    for _ in range(_ROUNDS[method]):
        labels = _one_round(graph, labels, method=method, resolution=resolution, random=random)
    return labels


def _undirected(edges: Edges) -> csr_array:
    """Return each edge in the rows of both its ends, a loop with twice its weight; ends that have several add up."""
    from scipy.sparse import csr_array

    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    offsets = edges.offsets - edges.offsets[0]
    rows = csr_array((weights, edges.sources, offsets), shape=(edges.target_count, edges.target_count))
    return rows + rows.T


def _one_round(
    graph: csr_array, labels: Array, *, method: Method, resolution: float, random: np.random.Generator
) -> Array:
    """Move vertices, then what they were merged into, until nothing is merged any more."""
    from whitewater.graphs.communities_cpu import move_vertices, refine

    strength = graph.sum(axis=1)
    share = resolution / strength.sum()
    member = np.arange(len(labels))
    while True:
        rows, vertices = (graph.indptr, graph.indices, graph.data), graph.shape[0]
        moved = labels.copy()
        move_vertices(rows, strength, share, random.permutation(vertices), moved)
        labels = parts = _numbered(moved)
        if method == "leiden":
            refined = np.arange(vertices)
            refine(rows, (labels, strength), share, random.permutation(vertices), refined)
            parts = _numbered(refined)
        if parts.max() + 1 == vertices:
            parts = labels
        member = parts[member]
        if parts.max() + 1 == vertices:
            return member
        # All vertices of a part have the same label.
        labels, graph = labels[np.unique(parts, return_index=True)[1]], _merged(graph, parts)
        strength = graph.sum(axis=1)


def _merged(graph: csr_array, parts: Array) -> csr_array:
    """Return the graph of the parts."""
    from scipy.sparse import csr_array

    from whitewater.graphs.communities_cpu import merge

    members = np.argsort(parts, kind="stable")
    count = int(parts.max()) + 1
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=count))])
    # SciPy's product with a matrix of members is a line, and takes as much memory as another graph.
    offsets, neighbors, weights = rows = np.zeros(count + 1, np.int64), *map(np.empty_like, (graph.indices, graph.data))
    entries = merge((graph.indptr, graph.indices, graph.data), (members, starts), parts, rows)
    for array in (neighbors, weights):
        array.resize(entries, refcheck=False)
    return csr_array((weights, neighbors, offsets), shape=(count, count))


def _numbered(labels: Array) -> Array:
    """Return labels numbered from 0, in their order."""
    return np.unique(labels, return_inverse=True)[1]

"""Communities of a graph by modularity, directions of edges left aside: our own Leiden and Louvain, or cuGraph's.

Sources: V. A. Traag, L. Waltman, N. J. van Eck: From Louvain to Leiden: guaranteeing well-connected communities,
Scientific Reports 9, 5233 (2019); V. D. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre: Fast unfolding of
communities in large networks, J. Stat. Mech. P10008 (2008). On the CPU a vertex goes to the best community, in both
phases; only the order of vertices is random, by the seed. All sums are float64 and done in one order, so that a seed
gives the same communities everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array
from whitewater.errors import ResourceError
from whitewater.graphs.in_edges import Edges
from whitewater.graphs.library_gpu import MOST_EDGES, gpu_free_memory, library_bytes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Method = Literal["leiden", "louvain"]
# Leiden begins again from what it found, as its authors' implementation does.
_ROUNDS = {"leiden": 2, "louvain": 1}


def communities_bytes(edges: Edges) -> int:
    """Return about the most bytes that communities take on the CPU: edges in both directions, and vertices.

    There are three graphs at once: the given one, one that is merged, and what it is merged into.
    """
    return 3 * 2 * len(edges.sources) * (edges.sources.itemsize + 8) + 120 * edges.targets


def cpu_communities(edges: Edges, *, method: Method, resolution: float, seed: int) -> Array:
    """Return the community of each vertex; see `whitewater.engines.device.Device.communities`."""
    random = np.random.default_rng(seed)
    labels = np.arange(edges.targets)
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
    rows = csr_array((weights, edges.sources, offsets), shape=(edges.targets, edges.targets))
    return rows + rows.T


def _one_round(
    graph: csr_array, labels: Array, *, method: Method, resolution: float, random: np.random.Generator
) -> Array:
    """Move vertices, then what they were merged into, until nothing is merged any more."""
    from whitewater.graphs.community_kernels import move_vertices, refine

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
        labels, graph = _labels_of_parts(parts, labels), _merged(graph, parts)
        strength = graph.sum(axis=1)


def _merged(graph: csr_array, parts: Array) -> csr_array:
    """Return the graph of the parts."""
    from scipy.sparse import csr_array

    from whitewater.graphs.community_kernels import merge

    members = np.argsort(parts, kind="stable")
    count = int(parts.max()) + 1
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=count))])
    # SciPy's product with a matrix of members is a line, and takes as much memory as another graph.
    offsets, neighbours, weights = (
        np.zeros(count + 1, np.int64),
        np.empty_like(graph.indices),
        np.empty_like(graph.data),
    )
    entries = merge((graph.indptr, graph.indices, graph.data), (members, starts), parts, (offsets, neighbours, weights))
    neighbours.resize(entries, refcheck=False)
    weights.resize(entries, refcheck=False)
    return csr_array((weights, neighbours, offsets), shape=(count, count))


def _labels_of_parts(parts: Array, labels: Array) -> Array:
    """Return the label of each part, whose vertices have all the same."""
    of_parts = np.empty(int(parts.max()) + 1, np.int64)
    of_parts[parts] = labels
    return of_parts


def _numbered(labels: Array) -> Array:
    """Return labels numbered from 0, in their order."""
    present = np.zeros(len(labels), np.int64)
    present[labels] = 1
    numbers: Array = (np.cumsum(present) - 1)[labels]
    return numbers


def gpu_communities(edges: Edges, *, method: Method, resolution: float, seed: int) -> Array:
    """Return the communities that cuGraph finds; its Louvain has no seed.

    Raises ResourceError if the graph, as cuGraph holds it, does not fit into the GPU's memory.
    """
    import cugraph
    import cupy

    # Both directions of each edge.
    needed, free = 2 * library_bytes(edges), gpu_free_memory()
    if needed > free or 2 * len(edges.sources) > MOST_EDGES:
        raise ResourceError(
            f"communities of {len(edges.sources):,} edges need about {needed / 1e9:.1f} GB of GPU memory, but "
            f"{free / 1e9:.1f} GB are free, and cuGraph takes {MOST_EDGES // 2:,} edges at most. Set "
            "communities.method to none, or device=cpu."
        )
    labels: npt.NDArray[np.int64] = np.arange(edges.targets)
    if not len(edges.sources):
        return labels
    graph = _gpu_undirected(edges)
    if method == "leiden":
        found, _ = cugraph.leiden(graph, resolution=resolution, random_state=seed)
    else:
        found, _ = cugraph.louvain(graph, resolution=resolution)
    # A vertex without edges is in no edge list, and is a community of its own.
    labels += edges.targets
    labels[cupy.asnumpy(found["vertex"].values)] = cupy.asnumpy(found["partition"].values)
    return labels


def _gpu_undirected(edges: Edges) -> Any:
    """Return cuGraph's graph with each pair of ends once, the weights of both directions added up."""
    import cudf
    import cugraph
    import cupy

    offsets, sources = cupy.asarray(edges.offsets - edges.offsets[0]), cupy.asarray(edges.sources)
    targets = cupy.searchsorted(offsets, cupy.arange(len(sources)), side="right") - 1
    targets = targets.astype(edges.sources.dtype)
    weights = cupy.ones(len(sources), np.float64) if edges.weights is None else cupy.asarray(edges.weights)
    table = cudf.DataFrame(
        {"one": cupy.minimum(sources, targets), "other": cupy.maximum(sources, targets), "weight": weights}
    )
    pairs = table.groupby(["one", "other"], sort=True).agg({"weight": "sum"}).reset_index()
    graph = cugraph.Graph(directed=False)
    graph.from_cudf_edgelist(pairs, source="one", destination="other", weight="weight")
    return graph

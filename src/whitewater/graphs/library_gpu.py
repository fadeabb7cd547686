"""cuGraph on one GPU: initial ranks for PageRank, and components, communities and their modularity.

cuGraph gets compressed rows through `pylibcugraph.SGGraph`, without an edge list. `cugraph.Graph.from_cudf_adjlist`
would do the same, but ignores ``store_transposed``, and PageRank on such a graph cannot be personalized (26.10). These
functions have not run on a GPU yet: their calls are checked against the signatures of RAPIDS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array
from whitewater.engines.gpu import GpuDevice
from whitewater.graphs.graph_folder import Edges

if TYPE_CHECKING:
    from cupyx.scipy.sparse import csr_matrix

    from whitewater.graphs.config import Pagerank

# Copies of the edges at once: cuGraph expands the rows to an edge list, sorts it, and compresses it again.
COPIES = 4
# The most edges that CuPy's sparse matrices and cuGraph can index with int32.
MAXIMUM_EDGES = 2_147_483_100
# cuGraph's own defaults; the functions of pylibcugraph have none.
LEVELS, THRESHOLD, THETA = 100, 1e-7, 1.0
Method = Literal["leiden", "louvain"]


def cugraph_bytes(edges: Edges, *, symmetric: bool = False) -> int:
    """Return about how many bytes cuGraph takes to store edges, if ``symmetric`` both ways, and run an algorithm."""
    return (1 + symmetric) * len(edges.sources) * COPIES * (2 * edges.sources.itemsize + 8) + 8 * 8 * edges.target_count


def fits_cugraph(edges: Edges, free: int, *, symmetric: bool = False) -> bool:
    """Return whether cuGraph can work on edges with ``free`` bytes of GPU memory."""
    return cugraph_bytes(edges, symmetric=symmetric) <= free and (1 + symmetric) * len(edges.sources) <= MAXIMUM_EDGES


def cugraph_ranks(edges: Edges, restart: Array | None, settings: Pagerank) -> Array:
    """Return cuGraph's PageRank, float64 (vertices,), on the device.

    ``edges`` are those of all vertices, at least one, on the device; ``restart``, float64 (vertices,) on the host, is
    the personalization, if any. Convergence and rounding are cuGraph's: power iteration starts from these ranks.
    """
    import cupy
    import pylibcugraph

    # A row of ours is a target, one of cuGraph's a source.
    graph = _graph(_rows(edges).transpose().tocsr(), symmetric=False)
    count = edges.target_count
    values = cupy.full(count, 1 / count) if restart is None else cupy.asarray(restart)
    restart_vertices = cupy.flatnonzero(values)
    vertices, unordered_ranks, _ = pylibcugraph.personalized_pagerank(
        resource_handle=pylibcugraph.ResourceHandle(),
        graph=graph,
        precomputed_vertex_out_weight_vertices=None,
        precomputed_vertex_out_weight_sums=None,
        initial_guess_vertices=None,
        initial_guess_values=None,
        personalization_vertices=restart_vertices.astype("int32"),
        personalization_values=values[restart_vertices],
        alpha=settings.damping,
        epsilon=settings.tolerance,
        max_iterations=settings.maximum_iterations,
        do_expensive_check=False,
        fail_on_nonconvergence=False,
    )
    ranks: Array = cupy.zeros(count, "float64")
    ranks[vertices] = unordered_ranks
    ranks /= ranks.sum()
    return ranks


def cugraph_groups(
    edges: Edges, *, method: Method, resolution: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], float]:
    """Return the component and the community of each vertex, int64 (vertices,) on the host, and the modularity.

    ``edges`` are those of all vertices, on the host. They are taken as undirected: the weights of both directions are
    added up. cuGraph's Louvain has no seed.
    """
    import pylibcugraph

    if not len(edges.sources):
        return np.arange(edges.target_count), np.arange(edges.target_count), 0.0
    handle = pylibcugraph.ResourceHandle()
    rows = _rows(edges)
    graph = _graph(rows + rows.transpose(), symmetric=True)
    components = pylibcugraph.weakly_connected_components(
        resource_handle=handle, graph=graph, offsets=None, indices=None, weights=None, labels=None,
        do_expensive_check=False,
    )  # fmt: skip
    if method == "leiden":
        *communities, modularity = pylibcugraph.leiden(
            resource_handle=handle, random_state=seed, graph=graph, max_level=LEVELS, resolution=resolution,
            theta=THETA, do_expensive_check=False,
        )  # fmt: skip
    else:
        *communities, modularity = pylibcugraph.louvain(
            resource_handle=handle, graph=graph, max_level=LEVELS, threshold=THRESHOLD, resolution=resolution,
            do_expensive_check=False,
        )  # fmt: skip
    return _in_order(*components), _in_order(*communities), modularity


def _rows(edges: Edges) -> csr_matrix:
    """Return the edges as a sparse matrix of CuPy, one row per target."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    sources = cupy.asarray(edges.sources)
    weights = cupy.ones(len(sources), "float64") if edges.weights is None else cupy.asarray(edges.weights)
    offsets = cupy.asarray(edges.offsets)
    return csr_matrix((weights, sources, offsets - offsets[0]), (edges.target_count, edges.target_count))


def _graph(rows: csr_matrix, *, symmetric: bool) -> Any:
    """Return cuGraph's graph of a sparse matrix with one row per source."""
    import pylibcugraph

    return pylibcugraph.SGGraph(
        resource_handle=pylibcugraph.ResourceHandle(),
        graph_properties=pylibcugraph.GraphProperties(is_symmetric=symmetric, is_multigraph=False),
        src_or_offset_array=rows.indptr,
        dst_or_index_array=rows.indices,
        weight_array=rows.data,
        store_transposed=not symmetric,
        renumber=False,
        do_expensive_check=False,
        input_array_format="CSR",
    )


def _in_order(vertices: Array, labels: Array) -> npt.NDArray[np.int64]:
    """Return labels on the host in the order of the vertices."""
    device = GpuDevice()
    ordered = np.empty(len(labels), np.int64)
    ordered[device.to_host(vertices)] = device.to_host(labels)
    return ordered

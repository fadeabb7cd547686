"""cuGraph on one GPU: a start for PageRank, and components, communities and their modularity.

cuGraph is given compressed rows through `pylibcugraph.SGGraph`, without a list of edges. Its `Graph.from_cudf_adjlist`
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

# cuGraph copies the rows into a list of edges, sorts that, and compresses it again.
COPIES = 4
# Edges that CuPy's sparse matrices and cuGraph number with int32.
MOST_EDGES = 2_147_483_100
# cuGraph's own defaults, which its Python functions do not have.
LEVELS, THRESHOLD, THETA = 100, 1e-7, 1.0
Method = Literal["leiden", "louvain"]


def library_bytes(edges: Edges, *, both: bool = False) -> int:
    """Return about the bytes that cuGraph takes for edges, in ``both`` directions, and an algorithm on them."""
    return (1 + both) * len(edges.sources) * COPIES * (2 * edges.sources.itemsize + 8) + 8 * 8 * edges.targets


def library_fits(edges: Edges, free: int, *, both: bool = False) -> bool:
    """Tell whether cuGraph can hold edges in so many free bytes of a GPU."""
    return library_bytes(edges, both=both) <= free and (1 + both) * len(edges.sources) <= MOST_EDGES


def gpu_library_ranks(edges: Edges, restart: Array | None, settings: Pagerank) -> Array:
    """Return cuGraph's PageRank, float64 (vertices,), on the device.

    ``edges`` are those of all vertices, at least one, on the device; ``restart``, float64 (vertices,) on the host, is
    the personalization, if any. Tolerance and rounding are cuGraph's: the ranks are a start for power iteration.
    """
    import cupy
    import pylibcugraph

    # Our rows are those of targets.
    graph = _graph(_rows(edges).transpose().tocsr(), symmetric=False)
    p = cupy.full(edges.targets, 1 / edges.targets) if restart is None else cupy.asarray(restart)
    chosen = cupy.flatnonzero(p)
    vertices, found, _ = pylibcugraph.personalized_pagerank(
        resource_handle=pylibcugraph.ResourceHandle(),
        graph=graph,
        precomputed_vertex_out_weight_vertices=None,
        precomputed_vertex_out_weight_sums=None,
        initial_guess_vertices=None,
        initial_guess_values=None,
        personalization_vertices=chosen.astype("int32"),
        personalization_values=p[chosen],
        alpha=settings.damping,
        epsilon=settings.tolerance,
        max_iterations=settings.maximum_iterations,
        do_expensive_check=False,
        fail_on_nonconvergence=False,
    )
    ranks: Array = cupy.zeros(edges.targets, "float64")
    ranks[vertices] = found
    ranks /= ranks.sum()
    return ranks


def gpu_groups(
    edges: Edges, *, method: Method, resolution: float, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], float]:
    """Return the component and the community of each vertex, int64 (vertices,) on the host, and the modularity.

    ``edges`` are those of all vertices, on the host. Directions are left aside, and the weights of both are added up.
    cuGraph's Louvain has no seed.
    """
    import pylibcugraph

    if not len(edges.sources):
        return np.arange(edges.targets), np.arange(edges.targets), 0.0
    handle = pylibcugraph.ResourceHandle()
    rows = _rows(edges)
    graph = _graph(rows + rows.transpose(), symmetric=True)
    joined = pylibcugraph.weakly_connected_components(
        resource_handle=handle, graph=graph, offsets=None, indices=None, weights=None, labels=None,
        do_expensive_check=False,
    )  # fmt: skip
    if method == "leiden":
        *found, modularity = pylibcugraph.leiden(
            resource_handle=handle, random_state=seed, graph=graph, max_level=LEVELS, resolution=resolution,
            theta=THETA, do_expensive_check=False,
        )  # fmt: skip
    else:
        *found, modularity = pylibcugraph.louvain(
            resource_handle=handle, graph=graph, max_level=LEVELS, threshold=THRESHOLD, resolution=resolution,
            do_expensive_check=False,
        )  # fmt: skip
    return _in_order(*joined), _in_order(*found), modularity


def _rows(edges: Edges) -> csr_matrix:
    """Return CuPy's sparse matrix of the edges, a row a target."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    sources = cupy.asarray(edges.sources)
    weights = cupy.ones(len(sources), "float64") if edges.weights is None else cupy.asarray(edges.weights)
    offsets = cupy.asarray(edges.offsets)
    return csr_matrix((weights, sources, offsets - offsets[0]), (edges.targets, edges.targets))


def _graph(rows: csr_matrix, *, symmetric: bool) -> Any:
    """Return cuGraph's graph of the rows of sources."""
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
    found = np.empty(len(labels), np.int64)
    found[device.to_host(vertices)] = device.to_host(labels)
    return found

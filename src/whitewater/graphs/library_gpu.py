"""cuGraph on one GPU or on all GPUs of the workers: initial ranks for PageRank, components and communities.

On one GPU, `pylibcugraph.SGGraph` takes the compressed rows as they are. `cugraph.Graph.from_cudf_adjlist` would, too,
but it ignores ``store_transposed``, and PageRank on such a graph cannot be personalized (26.10). On several GPUs,
`cugraph.dask` takes an edge list, and this process needs a GPU as well, for Dask's empty frame with the schema. None of
this has run on a GPU yet: tests check the calls against the signatures of RAPIDS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.engines.gpu import GpuDevice
from whitewater.engines.workers import Workers
from whitewater.graphs.communities import Groups, Labels, Method, number_by_size
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import Edges, GraphFolder
from whitewater.tables.with_dask import backend_module

if TYPE_CHECKING:
    from cupyx.scipy.sparse import csr_matrix

# Copies of the edges at once: cuGraph expands the rows to an edge list, sorts it, and compresses it again.
COPIES = 4
# Maximum number of edges that CuPy's sparse matrices and cuGraph can index with int32.
MAXIMUM_EDGES = 2_147_483_100


def cugraph_bytes(edges: Edges, *, symmetric: bool = False) -> int:
    """Estimate the bytes that cuGraph takes for an algorithm; ``symmetric`` stores each edge in both directions."""
    return (1 + symmetric) * len(edges.sources) * COPIES * (2 * edges.sources.itemsize + 8) + 8 * 8 * edges.target_count


def fits_cugraph(edges: Edges, free: int, *, symmetric: bool = False) -> bool:
    """Return whether ``free`` bytes of GPU memory, and cuGraph's int32 indices, suffice for the edges."""
    return cugraph_bytes(edges, symmetric=symmetric) <= free and (1 + symmetric) * len(edges.sources) <= MAXIMUM_EDGES


def cugraph_ranks(edges: Edges, restart: Array | None, settings: Pagerank) -> Array:
    """Return cuGraph's PageRank, float64 (vertices,), on the device, from which power iteration starts.

    ``edges`` are those of all vertices, at least one, on the device; ``restart``, float64 (vertices,) on the host, is
    the personalization, if any.
    """
    import cupy
    import pylibcugraph

    # Our rows are targets, cuGraph's are sources.
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


def cugraph_groups(edges: Edges, *, method: Method, resolution: float, seed: int) -> Groups:
    """Return the components and communities of ``edges``, those of all vertices, on the host.

    Edges count as undirected: the weights of both directions are added up. cuGraph's Louvain has no seed.
    """
    import pylibcugraph

    if not len(edges.sources):
        return Groups(np.arange(edges.target_count), np.arange(edges.target_count), 0.0)
    handle = pylibcugraph.ResourceHandle()
    rows = _rows(edges)
    graph = _graph(rows + rows.transpose(), symmetric=True)
    components = pylibcugraph.weakly_connected_components(
        resource_handle=handle, graph=graph, offsets=None, indices=None, weights=None, labels=None,
        do_expensive_check=False,
    )  # fmt: skip
    # The numbers are cuGraph's defaults, which pylibcugraph does not have.
    own = {"leiden": {"random_state": seed, "theta": 1.0}, "louvain": {"threshold": 1e-7}}[method]
    *communities, modularity = getattr(pylibcugraph, method)(
        resource_handle=handle, graph=graph, max_level=100, resolution=resolution, do_expensive_check=False, **own
    )
    device = GpuDevice()
    groups = [_order_labels(*map(device.to_host, pair), count=edges.target_count) for pair in (components, communities)]
    return Groups(groups[0], groups[1], modularity)


def _rows(edges: Edges) -> csr_matrix:
    """Return the edges as a sparse CuPy matrix with one row per target."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    sources = cupy.asarray(edges.sources)
    weights = cupy.ones(len(sources), "float64") if edges.weights is None else cupy.asarray(edges.weights)
    offsets = cupy.asarray(edges.offsets)
    return csr_matrix((weights, sources, offsets - offsets[0]), (edges.target_count, edges.target_count))


def _graph(rows: csr_matrix, *, symmetric: bool) -> Any:
    """Build cuGraph's graph from a sparse matrix with one row per source."""
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


def ranks_beyond_one_gpu(
    folder: GraphFolder, workers: Workers, device: Device, restart: npt.NDArray[np.float64] | None,
    *, settings: Pagerank, weighted: bool,
) -> npt.NDArray[np.float64] | None:  # fmt: skip
    """Compute cuGraph's PageRank on all GPUs: float64 (vertices,), sum 1. Return None if the graph fits on one GPU."""
    if fits_cugraph(folder.in_edges(weighted=weighted), workers.room_for_a_task(device, tasks=1)):
        return None
    import cugraph.dask

    personalization = None
    if restart is not None:
        vertices = np.flatnonzero(restart)
        personalization = backend_module(device.frames).DataFrame({"vertex": vertices, "values": restart[vertices]})
    with _distributed_graph(folder, device, weighted=weighted, directed=True) as graph:
        frame, _ = cugraph.dask.pagerank(
            graph,
            alpha=settings.damping,
            personalization=personalization,
            max_iter=settings.maximum_iterations,
            tol=settings.tolerance,
            fail_on_nonconvergence=False,
        )
        table = frame.compute()
    # cuGraph leaves out vertices without edges: they start with their share of the restart.
    ranks = np.full(folder.vertices, 1 / folder.vertices) if restart is None else restart.copy()
    ranks[device.to_host(table["vertex"].values)] = device.to_host(table["pagerank"].values)
    return ranks / ranks.sum()


def groups_beyond_one_gpu(
    folder: GraphFolder, workers: Workers, device: Device, *, method: Method, resolution: float, seed: int
) -> Groups | None:
    """Compute the groups on all GPUs as `cugraph_groups` does, or return None if the graph fits on one GPU."""
    if fits_cugraph(folder.in_edges(), workers.room_for_a_task(device, tasks=1), symmetric=True):
        return None
    import cugraph.dask

    with _distributed_graph(folder, device, weighted=folder.weighted, directed=False) as graph:
        components = cugraph.dask.weakly_connected_components(graph).compute()
        own = {"random_state": seed} if method == "leiden" else {}
        frame, modularity = getattr(cugraph.dask, method)(graph, resolution=resolution, **own)
        communities = frame.compute()
    groups = [
        _order_labels(*(device.to_host(table[name].values) for name in ("vertex", column)), count=folder.vertices)
        for table, column in ((components, "labels"), (communities, "partition"))
    ]
    return Groups(groups[0], groups[1], modularity)


def _order_labels(vertices: Labels, labels: Labels, *, count: int) -> Labels:
    """Return the group of each of ``count`` vertices, numbered by size; a vertex without edges is its own group."""
    ordered: Labels = np.arange(count) + labels.max(initial=0) + 1
    ordered[vertices] = labels
    return number_by_size(ordered)


@contextmanager
def _distributed_graph(folder: GraphFolder, device: Device, *, weighted: bool, directed: bool) -> Iterator[Any]:
    """Build cuGraph's graph with its edges spread over all workers; destroy the communication afterwards."""
    import cugraph
    from cugraph.dask.comms.comms import destroy, initialize

    initialize(p2p=False)
    try:
        read = partial(_edge_table, folder=folder, weighted=weighted, directed=directed, device=device)
        table = dd.from_map(read, folder.in_edges().ranges(), meta=read((0, 0)))
        if not directed:
            # Two edges in opposite directions become one.
            pairs = table.groupby(["source", "target"])
            table = pairs.agg({"weight": "sum"}, split_out=table.npartitions).reset_index()
        graph = cugraph.Graph(directed=directed)
        graph.from_dask_cudf_edgelist(
            table, source="source", destination="target", weight="weight", store_transposed=directed
        )
        yield graph
    finally:
        destroy()


def _edge_table(bounds: tuple[int, int], *, folder: GraphFolder, weighted: bool, directed: bool, device: Device) -> Any:
    """Return the in-edges of a range of vertices as a frame: source and target, int64, and weight, float64.

    The source of an undirected edge is its smaller end; an undirected self-loop gets twice its weight.
    """
    edges, xp = folder.in_edges(weighted=weighted).between(*bounds), device.xp
    source = device.to_device(edges.sources).astype("int64")
    offsets = device.to_device(edges.offsets - edges.offsets[0])
    target = xp.searchsorted(offsets, xp.arange(len(source)), side="right") - 1 + bounds[0]
    weight = xp.ones(len(source), "float64") if edges.weights is None else device.to_device(edges.weights)
    if not directed:
        weight = xp.where(source == target, 2 * weight, weight)
        source, target = xp.minimum(source, target), xp.maximum(source, target)
    return backend_module(device.frames).DataFrame({"source": source, "target": target, "weight": weight})

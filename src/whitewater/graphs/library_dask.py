"""cuGraph on the GPUs of several workers, for a graph that is too large for one: `cugraph.dask`.

It has not run on GPUs yet: its calls are checked against the signatures of RAPIDS, and the handling of their results
against stand-ins. This process needs a GPU, too: Dask takes the schema of the frames from an empty one made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import numpy as np
import numpy.typing as npt

from whitewater.engines import Device
from whitewater.graphs.graph_folder import GraphFolder
from whitewater.graphs.library_gpu import Method, fits_cugraph
from whitewater.tables.with_dask import backend_module

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.graphs.config import Pagerank

Labels = npt.NDArray[np.int64]


def groups_beyond_one_gpu(
    folder: GraphFolder, workers: Workers, device: Device, **options: Any
) -> tuple[Labels, Labels, float] | None:
    """Return the result of `groups_of_all_gpus`, or None if the graph fits into one GPU."""
    if fits_cugraph(folder.in_edges(), workers.room_for_a_task(device, tasks=1), symmetric=True):
        return None
    return groups_of_all_gpus(folder, device, **options)


def ranks_of_all_gpus(
    folder: GraphFolder, restart: npt.NDArray[np.float64] | None, settings: Pagerank, device: Device, *, weighted: bool
) -> npt.NDArray[np.float64]:
    """Return cuGraph's PageRank, float64 (vertices,), sum 1, to start from; ``restart`` is the personalization."""
    import cugraph.dask

    personalization = None
    if restart is not None:
        vertices = np.flatnonzero(restart)
        personalization = backend_module(device.frames).DataFrame({"vertex": vertices, "values": restart[vertices]})
    with _graph(folder, device, weighted=weighted, directed=True) as graph:
        frame, _ = cugraph.dask.pagerank(
            graph,
            alpha=settings.damping,
            personalization=personalization,
            max_iter=settings.maximum_iterations,
            tol=settings.tolerance,
            fail_on_nonconvergence=False,
        )
        table = frame.compute()
    # cuGraph has no vertices without edges: they start with their share of the restart.
    ranks = np.full(folder.vertices, 1 / folder.vertices) if restart is None else restart.copy()
    ranks[device.to_host(table["vertex"].values)] = device.to_host(table["pagerank"].values)
    normalized: npt.NDArray[np.float64] = ranks / ranks.sum()
    return normalized


def groups_of_all_gpus(
    folder: GraphFolder, device: Device, *, method: Method, resolution: float, seed: int
) -> tuple[Labels, Labels, float]:
    """Return components, communities and modularity as `whitewater.graphs.library_gpu.cugraph_groups` does."""
    import cugraph.dask

    with _graph(folder, device, weighted=folder.weighted, directed=False) as graph:
        components = cugraph.dask.weakly_connected_components(graph).compute()
        if method == "leiden":
            frame, modularity = cugraph.dask.leiden(graph, resolution=resolution, random_state=seed)
        else:
            frame, modularity = cugraph.dask.louvain(graph, resolution=resolution)
        communities = frame.compute()
    labels = [
        _in_order(*(device.to_host(table[name].values) for name in ("vertex", column)), count=folder.vertices)
        for table, column in ((components, "labels"), (communities, "partition"))
    ]
    return labels[0], labels[1], modularity


def _in_order(vertices: Labels, labels: Labels, *, count: int) -> Labels:
    """Return the labels of ``count`` vertices in their order; a vertex without edges gets a label of its own."""
    ordered: Labels = np.arange(count) + labels.max(initial=0) + 1
    ordered[vertices] = labels
    return ordered


@contextmanager
def _graph(folder: GraphFolder, device: Device, *, weighted: bool, directed: bool) -> Iterator[Any]:
    """Yield cuGraph's graph with the edges spread over all workers."""
    import cugraph
    from cugraph.dask.comms.comms import destroy, initialize

    initialize(p2p=False)
    try:
        read = partial(_edge_table, folder=folder, weighted=weighted, directed=directed, device=device)
        table = dd.from_map(read, folder.ranges(), meta=read((0, 0)))
        if not directed:
            # An edge may exist in both directions: the weights are added up.
            grouped = table.groupby(["source", "target"])
            table = grouped.agg({"weight": "sum"}, split_out=table.npartitions).reset_index()
        graph = cugraph.Graph(directed=directed)
        graph.from_dask_cudf_edgelist(
            table, source="source", destination="target", weight="weight", store_transposed=directed
        )
        yield graph
    finally:
        destroy()


def _edge_table(bounds: tuple[int, int], *, folder: GraphFolder, weighted: bool, directed: bool, device: Device) -> Any:
    """Return the in-edges of a range of vertices as a frame: source and target, int64, and weight, float64.

    The source of an undirected edge is its smaller end. A self-loop gets twice its weight, because both its ends count.
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

"""cuGraph's communities, where the graph fits into the memory of a GPU."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines.device import Array
from whitewater.engines.gpu import GpuDevice
from whitewater.errors import ResourceError
from whitewater.graphs.edges import Edges
from whitewater.graphs.library_gpu import MOST_EDGES, library_bytes


def gpu_communities(edges: Edges, *, method: Literal["leiden", "louvain"], resolution: float, seed: int) -> Array:
    """Return the communities that cuGraph finds; its Louvain has no seed.

    Raises ResourceError if the graph, as cuGraph holds it, does not fit into the GPU's memory.
    """
    import cugraph
    import cupy

    # Both directions of each edge.
    needed, free = 2 * library_bytes(edges), GpuDevice().free_memory()
    if needed > free or 2 * len(edges.sources) > MOST_EDGES:
        raise ResourceError(
            f"communities of {len(edges.sources):,} edges need about {needed / 1e9:.1f} GB of GPU memory, but "
            f"{free / 1e9:.1f} GB are free, and cuGraph takes {MOST_EDGES // 2:,} edges at most. Set "
            "communities.method to none, or device=cpu."
        )
    labels: npt.NDArray[np.int64] = np.arange(edges.targets)
    if not len(edges.sources):
        return labels
    graph = _undirected_graph(edges)
    if method == "leiden":
        found, _ = cugraph.leiden(graph, resolution=resolution, random_state=seed)
    else:
        found, _ = cugraph.louvain(graph, resolution=resolution)
    # A vertex without edges is in no edge list, and is a community of its own.
    labels += edges.targets
    labels[cupy.asnumpy(found["vertex"].values)] = cupy.asnumpy(found["partition"].values)
    return labels


def _undirected_graph(edges: Edges) -> Any:
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

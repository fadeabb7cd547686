"""cuGraph's PageRank, where the graph fits into the memory of a GPU."""

from __future__ import annotations

import logging
from typing import Any

from whitewater.engines import Array
from whitewater.engines.gpu import GpuDevice
from whitewater.graphs.edges import Edges

logger = logging.getLogger(__name__)
# Of an edge list cuGraph makes compressed rows by sorting: it holds the list, a sorted copy, the rows and work space.
COPIES = 4
# Edges of a list that cuGraph takes on one GPU.
MOST_EDGES = 2_147_483_100


def gpu_library_ranks(
    edges: Edges, *, damping: float, restart: Array | None, tolerance: float, iterations: int
) -> Array | None:
    """Return cuGraph's PageRank, float64 (vertices,), on the device, or None where the graph does not fit.

    ``edges`` are those of all vertices, at least one; ``restart``, float64 (vertices,) on the host, is the
    personalization, if any. It is a result of the library's own tolerance and rounding, for a start.
    """
    # Our own edges come after it, when RMM's pool has back what the library took.
    needed, free = library_bytes(edges), GpuDevice().free_memory()
    if needed > free or len(edges.sources) > MOST_EDGES:
        logger.info(
            "cuGraph takes %s edges at most, and would need about %.2f GB of GPU memory; %.2f GB are free",
            f"{MOST_EDGES:,}",
            needed / 1e9,
            free / 1e9,
        )
        return None
    import cudf
    import cugraph
    import cupy

    graph = _directed_graph(edges)
    personalization = None
    if restart is not None:
        weights = cupy.asarray(restart)
        chosen = cupy.flatnonzero(weights)
        personalization = cudf.DataFrame({"vertex": chosen.astype(edges.sources.dtype), "values": weights[chosen]})
    found, _ = cugraph.pagerank(
        graph,
        alpha=damping,
        personalization=personalization,
        max_iter=iterations,
        tol=tolerance,
        fail_on_nonconvergence=False,
    )
    ranks: Array = cupy.zeros(edges.targets, "float64")
    ranks[found["vertex"].values] = found["pagerank"].values
    ranks /= ranks.sum()
    return ranks


def library_bytes(edges: Edges) -> int:
    """Return about the bytes of device memory that cuGraph takes for a graph and an algorithm on it."""
    return len(edges.sources) * COPIES * (2 * edges.sources.itemsize + 8) + 8 * 8 * edges.targets


def _directed_graph(edges: Edges) -> Any:
    import cudf
    import cugraph
    import cupy

    offsets = cupy.asarray(edges.offsets - edges.offsets[0])
    places = cupy.arange(len(edges.sources))
    targets = (cupy.searchsorted(offsets, places, side="right") - 1).astype(edges.sources.dtype)
    weights = cupy.ones(len(places), "float64") if edges.weights is None else cupy.asarray(edges.weights)
    table = cudf.DataFrame({"source": cupy.asarray(edges.sources), "target": targets, "weight": weights})
    graph = cugraph.Graph(directed=True)
    graph.from_cudf_edgelist(
        table,
        source="source",
        destination="target",
        weight="weight",
        renumber=False,
        store_transposed=True,
        vertices=cudf.Series(cupy.arange(edges.targets, dtype=edges.sources.dtype)),
    )
    return graph

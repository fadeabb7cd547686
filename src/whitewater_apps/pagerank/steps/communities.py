"""Step `communities`: weakly connected components, communities by modularity, and the table of all vertices."""

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Device
from whitewater.engines.workers import Workers
from whitewater.errors import IntegrityError, ResourceError
from whitewater.graphs.communities import communities_bytes, components, find_communities
from whitewater.graphs.graph_folder import Edges, GraphFolder, open_graph
from whitewater.graphs.pagerank.solving import SMALL_EDGES
from whitewater.io.folder import Files
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.pagerank.config import Communities

logger = logging.getLogger(__name__)
Labels = npt.NDArray[np.int64]
SIZES_LISTED = 1000
RANKS = Files(remedy="Run the step rank again.")
# Vectors in memory at once, of 8 bytes per vertex: columns of the table, and temporary ones of `numbered_by_size`.
VECTORS = 12


@dataclass(frozen=True)
class Groups:
    """The component and the community of each vertex, int64 (vertices,), numbered by size; -1 if none were sought."""

    components: Labels
    communities: Labels
    modularity: float | None


def communities(run: Run[Communities], *, graph: Path, ranks: Path, vertices: Output, summary: Output) -> None:
    """Find components and communities; write a row for each vertex, and the sizes of the groups.

    Raises InputError if the graph or the ranks cannot be read; IntegrityError if the ranks are not those of the graph;
    and ResourceError if there is not enough memory.
    """
    folder = open_graph(graph)
    rank = _read_ranks(ranks, folder)
    with run.workers(small=folder.edges < SMALL_EDGES) as workers:
        needed = forecast(folder, run.settings, run.device, workers)
        groups = _find_on_workers(folder, run.settings, run.device, workers)
    content = _summary(groups, run.settings)
    _write_vertices(vertices, folder, rank, groups)
    write_json(summary, content)
    counts = {name: content[name]["count"] for name in ("components", "communities")}
    run.note(vertices=folder.vertices, edges=folder.edges, **counts, forecast_memory_bytes=needed)
    logger.info("%(components)d components, %(communities)d communities", counts)


def find_groups(folder: GraphFolder, *, settings: Communities, device: Device) -> Groups:
    """Find the components and communities of a graph on a device; only communities depend on the device.

    Raises ResourceError if cuGraph cannot hold the graph in the memory of the GPU.
    """
    edges = folder.in_edges()
    if settings.method == "none":
        return Groups(numbered_by_size(components(edges)), np.full(folder.vertices, -1), None)
    if device.name == "gpu":
        from whitewater.graphs.library_gpu import MAXIMUM_EDGES, cugraph_bytes, cugraph_groups, fits_cugraph

        needed, free = cugraph_bytes(edges, symmetric=True), device.free_memory()
        if not fits_cugraph(edges, free, symmetric=True):
            raise ResourceError(
                f"communities of {len(edges.sources):,} edges need about {needed / 1e9:.1f} GB of GPU memory, but "
                f"{free / 1e9:.1f} GB are free, and cuGraph takes {MAXIMUM_EDGES // 2:,} edges at most on one GPU. "
                "Use more GPUs, set communities.method to none, or device=cpu."
            )
        return _groups_by_size(*cugraph_groups(edges, **_options(settings)))
    labels = numbered_by_size(find_communities(edges, **_options(settings)))
    quality = modularity(edges, labels, resolution=settings.resolution)
    return Groups(numbered_by_size(components(edges)), labels, quality)


def _find_on_workers(folder: GraphFolder, settings: Communities, device: Device, workers: Workers) -> Groups:
    """Find groups on one worker, or on the GPUs of all workers if cuGraph cannot hold the graph on one."""
    if device.name == "gpu" and len(workers.threads) > 1 and settings.method != "none":
        from whitewater.graphs.library_gpu import groups_beyond_one_gpu

        if groups := groups_beyond_one_gpu(folder, workers, device, **_options(settings)):
            return _groups_by_size(*groups)
    find = partial(find_groups, settings=settings, device=device)
    return next(workers.map(find, [folder], label="components and communities"))


def _options(settings: Communities) -> dict[str, Any]:
    return settings.model_dump(include={"method", "resolution", "seed"})


def _groups_by_size(components: Labels, communities: Labels, modularity: float) -> Groups:
    return Groups(numbered_by_size(components), numbered_by_size(communities), modularity)


def numbered_by_size(labels: Labels) -> Labels:
    """Return labels renumbered by descending size of their group; groups of equal size by their first vertex."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.lexsort((first, -sizes))] = np.arange(len(first))
    return numbers[inverse]


def modularity(edges: Edges, communities: Labels, *, resolution: float) -> float:
    """Return the modularity of communities, numbered from 0: at most 1; 0 for no edges. Edges count as undirected.

    *W* is the sum of all weights, ``inside[c]`` the sum for edges within community *c*, and ``strength[c]`` the sum of
    the weighted degrees of its vertices, where a self-loop counts twice::

        Q = sum over c of inside[c] / W - resolution * (strength[c] / (2 W)) ** 2

    Source: M. E. J. Newman: Modularity and community structure in networks, PNAS 103 (2006); resolution: J. Reichardt,
    S. Bornholdt: Statistical mechanics of community detection, Phys. Rev. E 74 (2006).
    """
    count = int(communities.max(initial=-1)) + 1
    source, target = communities[edges.sources], np.repeat(communities, np.diff(edges.offsets))
    weights = np.ones(len(source)) if edges.weights is None else edges.weights
    within = source == target
    inside = np.bincount(target[within], weights[within], minlength=count)
    strength = np.bincount(target, weights, minlength=count) + np.bincount(source, weights, minlength=count)
    total = strength.sum() / 2
    return float(np.sum(inside / total - resolution * (strength / (2 * total)) ** 2)) if total else 0.0


def forecast(folder: GraphFolder, settings: Communities, device: Device, workers: Workers) -> int:
    """Refuse what will not fit into host memory; return about how many bytes it takes. GPU memory is checked later."""
    needed = VECTORS * 8 * folder.vertices
    groups, remedy = "components", "Use a machine with more memory."
    if settings.method != "none":
        needed += 0 if device.name == "gpu" else communities_bytes(folder.in_edges())
        groups, remedy = f"components and {settings.method} communities", "Set communities.method to none."
    what = f"{groups} of {folder.vertices:,} vertices and {folder.edges:,} edges"
    workers.forecast(Device(), a_task=needed, tasks=1, what=what, remedy=remedy)
    return needed


def _read_ranks(path: Path, folder: GraphFolder) -> npt.NDArray[np.float64]:
    table = RANKS.table(path, ["vertex", "rank"])
    if not np.array_equal(table["vertex"].to_numpy(), folder.ids):
        raise IntegrityError(f"{path} is of other vertices than {folder.path}. {RANKS.remedy}")
    return to_numpy(table["rank"])


def _write_vertices(path: Path, folder: GraphFolder, rank: npt.NDArray[np.float64], groups: Groups) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = folder.names()
    columns = {
        "vertex": to_arrow(folder.ids),
        **({} if names is None else {"name": names}),
        "rank": to_arrow(rank),
        "in_degree": to_arrow(np.diff(folder.indptr)),
        "out_degree": to_arrow(folder.out_degree),
        "component": to_arrow(groups.components),
        "community": to_arrow(groups.communities),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")


def _summary(groups: Groups, settings: Communities) -> dict[str, Any]:
    communities = groups.communities if settings.method != "none" else groups.communities[:0]
    return {
        "components": _sizes(groups.components),
        "communities": {
            **_sizes(communities),
            "method": settings.method,
            "modularity": groups.modularity,
            # Communities depend on the device; compare runs by the field named here.
            "quality": "modularity",
            "resolution": settings.resolution,
            "seed": settings.seed,
        },
    }


def _sizes(labels: Labels) -> dict[str, Any]:
    sizes = np.bincount(labels)
    return {
        "count": len(sizes),
        "largest": int(sizes.max(initial=0)),
        "sizes": sizes[:SIZES_LISTED].tolist(),
        "size_counts": np.stack(np.unique(sizes, return_counts=True), axis=1).tolist(),
    }


if __name__ == "__main__":
    main(communities)

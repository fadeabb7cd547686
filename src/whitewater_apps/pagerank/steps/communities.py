"""Step `communities`: weakly connected components, communities by modularity, and the table of the vertices."""

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
from whitewater.graphs.communities import communities_bytes, find_communities
from whitewater.graphs.components import components
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
LARGEST_SHOWN = 1000
RANKS = Files(remedy="Run the step pagerank again.")
# Columns of the table of vertices, and as many again while groups are numbered.
COLUMNS = 12
# Edges that are looked at at once for the modularity, at least.
PIECE_EDGES = 1 << 20


@dataclass(frozen=True)
class Groups:
    """The component and the community of each vertex, int64 (vertices,), numbered by size; -1: no community."""

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
        found = _find(folder, run.settings, run.device, workers)
    described = _summary(found, run.settings)
    _write_vertices(vertices, folder, rank, found)
    write_json(summary, described)
    counts = {name: described[name]["count"] for name in ("components", "communities")}
    run.note(vertices=folder.vertices, edges=folder.edges, **counts, forecast_memory_bytes=needed)
    logger.info("%(components)d components, %(communities)d communities", counts)


def find_groups(folder: GraphFolder, *, settings: Communities, device: Device) -> Groups:
    """Find the components and communities of a graph on a device; communities depend on it, components do not.

    Raises ResourceError where cuGraph cannot hold the graph in the memory of the GPU.
    """
    if settings.method == "none":
        return Groups(_components(folder), np.full(folder.vertices, -1), None)
    edges = folder.in_edges()
    if device.name == "gpu":
        from whitewater.graphs.library_gpu import gpu_groups

        _refuse_beyond(device.free_memory(), edges)
        return _numbered(*gpu_groups(edges, **_wanted(settings)))
    labels = numbered_by_size(find_communities(edges, **_wanted(settings)))
    return Groups(_components(folder), labels, modularity(edges, labels, resolution=settings.resolution))


def _components(folder: GraphFolder) -> Labels:
    edges = folder.in_edges()
    blocks = ((start, edges.between(start, stop)) for start, stop in folder.ranges())
    return numbered_by_size(components(blocks, folder.vertices))


def _find(folder: GraphFolder, settings: Communities, device: Device, workers: Workers) -> Groups:
    """Find groups at one worker; on the GPUs of all of them where cuGraph cannot hold the graph on one."""
    if device.name == "gpu" and len(workers.threads) > 1 and settings.method != "none":
        from whitewater.graphs.library_dask import groups_beyond_one_gpu

        if found := groups_beyond_one_gpu(folder, workers, device, **_wanted(settings)):
            return _numbered(*found)
    find = partial(find_groups, settings=settings, device=device)
    return next(workers.map(find, [folder], label="components and communities"))


def _wanted(settings: Communities) -> dict[str, Any]:
    return settings.model_dump(include={"method", "resolution", "seed"})


def _refuse_beyond(free: int, edges: Edges) -> None:
    from whitewater.graphs.library_gpu import MOST_EDGES, library_bytes, library_fits

    if not library_fits(edges, free, both=True):
        raise ResourceError(
            f"communities of {len(edges.sources):,} edges need about {library_bytes(edges, both=True) / 1e9:.1f} GB of "
            f"GPU memory, but {free / 1e9:.1f} GB are free, and cuGraph takes {MOST_EDGES // 2:,} edges at most on one "
            "GPU. Use more GPUs, set communities.method to none, or device=cpu."
        )


def _numbered(joined: Labels, labels: Labels, quality: float) -> Groups:
    return Groups(numbered_by_size(joined), numbered_by_size(labels), quality)


def numbered_by_size(labels: Labels) -> Labels:
    """Return groups numbered by descending size, those of a size by their first vertex."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(first), np.int64)
    numbers[np.lexsort((first, -sizes))] = np.arange(len(first))
    return numbers[inverse]


def modularity(edges: Edges, communities: Labels, *, resolution: float) -> float:
    """Return the modularity of communities, numbered from 0: at most 1; 0 of a graph without edges.

    Directions of edges are left aside.

    With the sum *W* of all weights, ``inside[c]`` that of the edges within community *c*, and ``strength[c]`` the sum
    over its vertices of the weights of their edges, a loop twice::

        Q = sum over c of inside[c] / W - resolution * (strength[c] / (2 W)) ** 2

    Source: M. E. J. Newman: Modularity and community structure in networks, PNAS 103 (2006); resolution: J. Reichardt,
    S. Bornholdt: Statistical mechanics of community detection, Phys. Rev. E 74 (2006).
    """
    count = int(communities.max(initial=-1)) + 1
    inside, strength = np.zeros(count), np.zeros(count)
    # Each piece costs as much as there are communities.
    size = max(PIECE_EDGES, count // 2)
    for first in range(0, len(edges.sources), size):
        begins = communities[edges.sources[first : first + size]]
        places = edges.offsets[0] + np.arange(first, first + len(begins))
        ends = communities[np.searchsorted(edges.offsets, places, side="right") - 1]
        weights = np.ones(len(begins)) if edges.weights is None else edges.weights[first : first + size]
        same = ends == begins
        inside += np.bincount(ends[same], weights[same], minlength=count)
        strength += np.bincount(ends, weights, minlength=count) + np.bincount(begins, weights, minlength=count)
    total = strength.sum() / 2
    return float(np.sum(inside / total - resolution * (strength / (2 * total)) ** 2)) if total else 0.0


def forecast(folder: GraphFolder, settings: Communities, device: Device, workers: Workers) -> int:
    """Refuse what will not fit on the host; return about how many bytes are needed. A GPU is asked by who uses it."""
    needed = COLUMNS * 8 * folder.vertices
    wanted, remedy = "components", "Use a machine with more memory."
    if settings.method != "none":
        needed += 0 if device.name == "gpu" else communities_bytes(folder.in_edges())
        wanted, remedy = f"components and {settings.method} communities", "Set communities.method to none."
    what = f"{wanted} of {folder.vertices:,} vertices and {folder.edges:,} edges"
    workers.forecast(Device(), a_task=needed, tasks=1, what=what, remedy=remedy)
    return needed


def _read_ranks(path: Path, folder: GraphFolder) -> npt.NDArray[np.float64]:
    table = RANKS.table(path, ["vertex", "rank"])
    if not np.array_equal(table["vertex"].to_numpy(), folder.ids):
        raise IntegrityError(f"{path} is of other vertices than {folder.path}. Run the step pagerank again.")
    return to_numpy(table["rank"])


def _write_vertices(path: Path, folder: GraphFolder, rank: npt.NDArray[np.float64], found: Groups) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = folder.names()
    columns = {
        "vertex": to_arrow(folder.ids),
        **({} if names is None else {"name": names}),
        "rank": to_arrow(rank),
        "in_degree": to_arrow(np.diff(folder.indptr)),
        "out_degree": to_arrow(folder.out_degree),
        "component": to_arrow(found.components),
        "community": to_arrow(found.communities),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")


def _summary(found: Groups, settings: Communities) -> dict[str, Any]:
    of_communities = found.communities if settings.method != "none" else found.communities[:0]
    return {
        "components": _sizes(found.components),
        "communities": {
            **_sizes(of_communities),
            "method": settings.method,
            "modularity": found.modularity,
            # Which communities are found depends on the device; by this they may be compared.
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
        "sizes": sizes[:LARGEST_SHOWN].tolist(),
        "size_counts": np.stack(np.unique(sizes, return_counts=True), axis=1).tolist(),
    }


if __name__ == "__main__":
    main(communities)

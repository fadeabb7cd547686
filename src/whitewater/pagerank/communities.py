"""Step `communities`: weakly connected components, communities by modularity, and the table of the vertices."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater import memory
from whitewater.arrow_arrays import to_arrow
from whitewater.config.pagerank import Communities
from whitewater.devices import Device
from whitewater.devices.communities import communities_bytes
from whitewater.devices.in_edges import Edges
from whitewater.errors import InputError, IntegrityError
from whitewater.pagerank.graph_folder import GraphFolder, open_graph
from whitewater.pagerank.modularity import modularity
from whitewater.pagerank.solving import SMALL_EDGES
from whitewater.step import Output, Run
from whitewater.store import write_json

logger = logging.getLogger(__name__)
Labels = npt.NDArray[np.int64]
LARGEST_SHOWN = 1000
# Columns of the table of vertices, and as many again while groups are numbered.
COLUMNS = 12


@dataclass(frozen=True)
class Groups:
    """The component and the community of each vertex, int64 (vertices,), numbered by size; -1: no community."""

    components: Labels
    communities: Labels
    modularity: float | None


@dataclass(frozen=True)
class Search:
    """What a worker is told: in which graph to look for groups, and how."""

    graph: Path
    settings: Communities
    device: Device


def communities(run: Run[Communities], *, graph: Path, ranks: Path, vertices: Output, summary: Output) -> None:
    """Find components and communities; write a row for each vertex, and the sizes of the groups.

    Raises
    ------
    InputError
        If the graph or the ranks cannot be read.
    IntegrityError
        If the ranks are not those of the graph.
    ResourceError
        If there is not enough memory.
    """
    folder = open_graph(graph)
    rank = _read_ranks(ranks, folder)
    needed = _forecast(folder, run.settings)
    found = _on_worker(run, Search(graph.resolve(), run.settings, run.device), small=folder.edges < SMALL_EDGES)
    described = _described(found, run.settings)
    _write_vertices(vertices, folder, rank, found)
    write_json(summary, described)
    counts = {name: described[name]["count"] for name in ("components", "communities")}
    run.note(vertices=folder.vertices, edges=folder.edges, **counts, forecast_memory_bytes=needed)
    logger.info("%(components)d components, %(communities)d communities", counts)


def find_groups(search: Search) -> Groups:
    """Find the components and communities of a graph on a device."""
    folder, settings, device = open_graph(search.graph), search.settings, search.device
    components = numbered_by_size(device.components(_blocks(folder), folder.vertices))
    if settings.method == "none":
        return Groups(components, np.full(folder.vertices, -1), None)
    edges = _edges(folder)
    labels = numbered_by_size(
        device.communities(edges, method=settings.method, resolution=settings.resolution, seed=settings.seed)
    )
    return Groups(components, labels, modularity(edges, labels, resolution=settings.resolution))


def numbered_by_size(labels: Labels) -> Labels:
    """Return groups numbered by descending size, those of a size by their first vertex."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return numbers[inverse]


def _on_worker(run: Run[Communities], search: Search, *, small: bool) -> Groups:
    if small:
        return find_groups(search)
    with run.cluster() as client:
        return next(run.map(find_groups, [search], client=client, label="components and communities"))


def _edges(folder: GraphFolder) -> Edges:
    return Edges(folder.indptr, folder.sources, folder.weights)


def _blocks(folder: GraphFolder) -> Iterator[tuple[int, Edges]]:
    edges = _edges(folder)
    return ((start, edges.between(start, stop)) for start, stop in folder.ranges())


def _forecast(folder: GraphFolder, settings: Communities) -> int:
    """Refuse what will not fit; return about how many bytes are needed."""
    needed = COLUMNS * 8 * folder.vertices
    wanted, remedy = "components", "Use a machine with more memory."
    if settings.method != "none":
        needed += communities_bytes(_edges(folder))
        wanted, remedy = f"components and {settings.method} communities", "Set communities.method to none."
    what = f"{wanted} of {folder.vertices:,} vertices and {folder.edges:,} edges"
    memory.forecast(needed, what=what, remedy=remedy)
    return needed


def _read_ranks(path: Path, folder: GraphFolder) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["vertex", "rank"])
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}. Run the step pagerank again.") from error
    if not np.array_equal(table["vertex"].to_numpy(), folder.ids):
        raise IntegrityError(f"{path} is of other vertices than {folder.path}. Run the step pagerank again.")
    rank: npt.NDArray[np.float64] = table["rank"].to_numpy()
    return rank


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


def _described(found: Groups, settings: Communities) -> dict[str, Any]:
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
    of_size, numbers = np.unique(sizes, return_counts=True)
    return {
        "count": len(sizes),
        "largest": int(sizes.max(initial=0)),
        "sizes": sizes[:LARGEST_SHOWN].tolist(),
        "size_counts": [list(each) for each in zip(of_size.tolist(), numbers.tolist(), strict=True)],
    }

"""Step `communities`: weakly connected components, communities by modularity, and the table of all vertices."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Device
from whitewater.engines.workers import Workers
from whitewater.errors import IntegrityError, ResourceError
from whitewater.graphs import communities as on_cpu
from whitewater.graphs.communities import Groups, Labels
from whitewater.graphs.graph_folder import GraphFolder, open_graph
from whitewater.graphs.pagerank.solving import SMALL_EDGES
from whitewater.io.folder import Files
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.pagerank.config import Communities

logger = logging.getLogger(__name__)
RANKS = Files(remedy="Run the step rank again.")
# Vectors in memory at once, 8 bytes per vertex: the columns of the table, and temporary ones.
VECTORS = 12


def communities(run: Run[Communities], *, graph: Path, ranks: Path, vertices: Output, summary: Output) -> None:
    """Find components and communities; write a row per vertex, and the sizes of the groups.

    Raises InputError if the graph or the ranks cannot be read; IntegrityError if the ranks are of another graph; and
    ResourceError if there is not enough memory.
    """
    folder = open_graph(graph)
    table = RANKS.table(ranks, ["vertex", "rank"])
    if not np.array_equal(table["vertex"].to_numpy(), folder.ids):
        raise IntegrityError(f"{ranks} is of other vertices than {folder.path}. {RANKS.remedy}")
    with run.workers(small=folder.edges < SMALL_EDGES) as workers:
        needed = forecast(folder, run.settings, run.device, workers)
        groups = None
        if run.device.name == "gpu" and len(workers.threads) > 1 and run.settings.method != "none":
            from whitewater.graphs.library_gpu import groups_beyond_one_gpu

            groups = groups_beyond_one_gpu(folder, workers, run.device, **run.settings.model_dump())
        if groups is None:
            find = partial(find_groups, settings=run.settings, device=run.device)
            groups = next(workers.map(find, [folder], label="components and communities"))
    names = folder.names()
    columns = {
        "vertex": to_arrow(folder.ids),
        **({} if names is None else {"name": names}),
        "rank": to_arrow(to_numpy(table["rank"])),
        "in_degree": to_arrow(np.diff(folder.indptr)),
        "out_degree": to_arrow(folder.out_degree),
        "component": to_arrow(groups.components),
        "community": to_arrow(groups.communities),
    }
    pq.write_table(pa.table(columns), vertices, compression="zstd")
    sizes = _sizes(groups.communities if run.settings.method != "none" else groups.communities[:0])
    # Communities depend on the device: tools compare runs by the field that `quality` names.
    method = {**run.settings.model_dump(), "modularity": groups.modularity, "quality": "modularity"}
    content = {"components": _sizes(groups.components), "communities": {**sizes, **method}}
    write_json(summary, content)
    counts = {name: content[name]["count"] for name in ("components", "communities")}
    run.note(vertices=folder.vertices, edges=folder.edges, **counts, forecast_memory_bytes=needed)
    logger.info("%(components)d components, %(communities)d communities", counts)


def find_groups(folder: GraphFolder, *, settings: Communities, device: Device) -> Groups:
    """Find the components and communities of a graph. Raises ResourceError if GPU memory is too small."""
    edges = folder.in_edges()
    if settings.method == "none":
        return Groups(on_cpu.components(edges), np.full(folder.vertices, -1), None)
    if device.name == "gpu":
        from whitewater.graphs.library_gpu import MAXIMUM_EDGES, cugraph_bytes, cugraph_groups, fits_cugraph

        needed, free = cugraph_bytes(edges, symmetric=True), device.free_memory()
        if not fits_cugraph(edges, free, symmetric=True):
            raise ResourceError(
                f"communities of {len(edges.sources):,} edges need about {needed / 1e9:.1f} GB of GPU memory, but "
                f"{free / 1e9:.1f} GB are free, and cuGraph takes {MAXIMUM_EDGES // 2:,} edges at most on one GPU. "
                "Use more GPUs, set communities.method to none, or device=cpu."
            )
        return cugraph_groups(edges, **settings.model_dump())
    return on_cpu.find_groups(edges, **settings.model_dump())


def forecast(folder: GraphFolder, settings: Communities, device: Device, workers: Workers) -> int:
    """Return the bytes of host memory needed. Raises ResourceError if they are not available."""
    needed = VECTORS * 8 * folder.vertices
    groups, remedy = "components", "Use a machine with more memory."
    if settings.method != "none":
        needed += 0 if device.name == "gpu" else on_cpu.communities_bytes(folder.in_edges())
        groups, remedy = f"components and {settings.method} communities", "Set communities.method to none."
    what = f"{groups} of {folder.vertices:,} vertices and {folder.edges:,} edges"
    workers.forecast(Device(), a_task=needed, tasks=1, what=what, remedy=remedy)
    return needed


def _sizes(labels: Labels) -> dict[str, Any]:
    sizes = np.bincount(labels)
    return {
        "count": len(sizes),
        "largest": int(sizes.max(initial=0)),
        "sizes": sizes[:1000].tolist(),
        "size_counts": np.stack(np.unique(sizes, return_counts=True), axis=1).tolist(),
    }


if __name__ == "__main__":
    main(communities)

"""Builds in-edges with Dask DataFrame on pandas or cuDF: number the ids of all ends, then sort the edges by number.

The edges stay in the workers' memory; Dask and cuDF spill if they are configured to.
"""

from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow.parquet as pq
from dask.delayed import delayed

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.errors import ResourceError
from whitewater.graphs.edges_folder import FORMAT, EdgesFolder, check_types, edge_schema
from whitewater.graphs.graph_folder import MergedEdges, NumberedEdges, Rule, index_type
from whitewater.graphs.vertex_ids import Ids
from whitewater.io.folder import RowGroup
from whitewater.step import Run
from whitewater.tables.with_dask import backend_module, read_parquet

Frame = Any  # a DataFrame of pandas or cuDF
# The key of an edge is the number of its target times 2**31 plus that of its source: int64, like Dask's divisions.
VERTEX_BITS = 31
MOST_VERTICES = 1 << VERTEX_BITS
# Of the edges: as read, as keys, shuffled, and sorted.
COPIES = 4


def number_edges(folder: EdgesFolder, known: Ids, *, rule: Rule, run: Run[Any], workers: Workers) -> NumberedEdges:
    """Give vertices numbers, and merge edges with the same ends; see `whitewater.graphs.build.with_kernels`.

    Raises ResourceError if the workers have too little memory, or there are more than 2**31 vertices.
    """
    rows = folder.edges if folder.directed else 2 * folder.edges
    if not rows:
        return NumberedEdges(known, 0, iter(()))
    needed = COPIES * rows * (16 if folder.weighted else 8) // len(workers.threads)
    workers.forecast(run.device, a_task=0, tasks=0, shared=needed, what=f"sorting {rows:,} edges in memory",
                     remedy="Use more workers, or engine: local on a CPU, which sorts on disk.")  # fmt: skip
    read = partial(read_group, weighted=folder.weighted, both=not folder.directed, backend=run.device.frames)
    edges = workers.persist(dd.from_map(read, folder.row_groups()))
    ids, in_edges = _vertices(edges, known, workers)
    if len(ids) > MOST_VERTICES:
        raise ResourceError(f"there are {len(ids):,} vertices, but engine dask numbers {MOST_VERTICES:,} at most. "
                            "Leave some out, or set engine to local.")  # fmt: skip
    number = partial(_keys, device=run.device)
    keys = edges.map_partitions(number, delayed(workers.place(ids)), meta=number(edges._meta, ids[:0]))
    # Bounds of ranges of targets with about as many edges as suit the device.
    ends = np.cumsum(in_edges, out=in_edges)
    inner = np.searchsorted(ends, np.arange(run.device.partition_rows, ends[-1], run.device.partition_rows))
    first = sorted({0, *inner.tolist(), len(ends)})
    ordered = keys.set_index("key", divisions=[vertex << VERTEX_BITS for vertex in first], shuffle_method="tasks")
    merge = delayed(partial(_merge, rule=rule, index=index_type(len(ids)), device=run.device))
    parts = zip(ordered.to_delayed(), pairwise(first), strict=True)
    merged = workers.compute(*(merge(part, range(*vertices)) for part, vertices in parts))
    return NumberedEdges(ids, int(ends[-1]), iter(merged))


def read_group(group: RowGroup, *, weighted: bool, both: bool, backend: str) -> Frame:
    """Return the edges of a row group, with their opposites if ``both``: source and target, int64, and weight, float64.

    Raises InputError as `edge_blocks` does.
    """
    schema = edge_schema(weighted=weighted)
    with FORMAT.explain_errors(group.path):
        check_types(pq.read_schema(group.path), schema)
        try:
            edges = read_parquet(group.path, schema.names, row_groups=[group.number], backend=backend)
        except RuntimeError as error:  # libcudf has one error for everything
            raise ValueError(f"row group {group.number}: {error}") from error
        if edges.isna().any().any():
            raise ValueError("an edge has a null")
    if not both:
        return edges
    opposite = edges[edges["source"] != edges["target"]].rename(columns={"source": "target", "target": "source"})
    return backend_module(backend).concat([edges, opposite[schema.names]], ignore_index=True)


def _vertices(edges: dd.DataFrame, known: Ids, workers: Workers) -> tuple[Ids, Array]:
    """Return the ids of all vertices, int64, ascending, and the number of in-edges of each before merging, int64."""
    sources, targets = (edges[[end]].rename(columns={end: "id"}) for end in ("source", "target"))
    ends = dd.concat([sources.assign(in_edges=0), targets.assign(in_edges=1)])
    [counts] = ends.groupby("id")["in_edges"].sum(split_out=1).to_delayed()
    on_host = delayed(lambda sums: (sums.index.to_numpy(), sums.to_numpy()))
    [(end_ids, end_counts)] = workers.compute(on_host(counts))
    ids = np.union1d(end_ids, known)
    in_edges = np.zeros(len(ids), np.int64)
    in_edges[np.searchsorted(ids, end_ids)] = end_counts
    return ids, in_edges


def _keys(edges: Frame, ids: Ids, *, device: Device) -> Frame:
    """Replace the ends of edges by their key."""
    device_ids = device.to_device(ids)
    source, target = (device.xp.searchsorted(device_ids, edges[end].values) for end in ("source", "target"))
    return edges.assign(key=target << VERTEX_BITS | source).drop(columns=["source", "target"])


def _merge(edges: Frame, vertices: range, *, rule: Rule, index: str, device: Device) -> MergedEdges:
    """Merge the edges of a frame, indexed by key, to targets in ``vertices``."""
    columns = ["key", *edges.columns]
    edges = edges.reset_index().sort_values(columns)
    return merge_sorted(
        *(edges[name].values for name in columns), vertices=vertices, rule=rule, index=index, device=device
    )


def merge_sorted(
    keys: Array, weights: Array | None = None, *, vertices: range, rule: Rule, index: str, device: Device
) -> MergedEdges:
    """Merge edges with the same key; keys, int64 (edges,), ascend, as do the weights, float64, of equal keys."""
    xp, to_host = device.xp, device.to_host
    is_first = xp.ones(len(keys), bool)
    is_first[1:] = keys[1:] != keys[:-1]
    starts = xp.flatnonzero(is_first)
    lengths = xp.diff(starts, append=xp.asarray([len(keys)]))
    first_repeated = to_host(keys[starts[lengths > 1][:1]]).tolist()
    if weights is not None:
        weights = to_host(_weights_of_runs(weights, starts, lengths, rule, xp))
    elif rule == "sum":
        weights = to_host(lengths.astype("float64"))
    target, source = keys[starts] >> VERTEX_BITS, keys[starts] & (MOST_VERTICES - 1)
    counts, loops = xp.bincount(target - vertices.start, minlength=len(vertices)), int((target == source).sum())
    repeated = next(((key & (MOST_VERTICES - 1), key >> VERTEX_BITS) for key in first_repeated), None)
    return MergedEdges(vertices, to_host(counts), to_host(source.astype(index)), weights, loops, repeated)


def _weights_of_runs(weights: Array, starts: Array, lengths: Array, rule: Rule, xp: ModuleType) -> Array:
    """Return the weight of each run of equal keys: the sum in ascending order, or the maximum, which is last."""
    if rule != "sum":
        return weights[starts + lengths - 1]
    sums: Array = weights[starts]
    longer = xp.flatnonzero(lengths > 1)
    position = 1
    while len(longer):
        sums[longer] += weights[starts[longer] + position]
        position += 1
        longer = longer[lengths[longer] > position]
    return sums

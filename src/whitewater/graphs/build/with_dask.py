"""In-edges by Dask DataFrame, on pandas or cuDF: number the ids of all ends, then sort the edges by their numbers.

The edges stay with the workers, in memory; Dask and cuDF spill what does not fit, where they are set to.
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
# The key of an edge is the number of its target times 2**31 plus that of its source: int64, as Dask's divisions are.
VERTEX_BITS = 31
MOST_VERTICES = 1 << VERTEX_BITS
# The edges are there as they were read, as keys, shuffled and sorted.
COPIES = 4


def number_edges(folder: EdgesFolder, known: Ids, *, rule: Rule, run: Run[Any], workers: Workers) -> NumberedEdges:
    """Give vertices numbers, and merge edges with the same ends; see `whitewater.graphs.build.with_kernels`.

    The edges stay in the memory of the workers. Raises ResourceError if they have too little, or there are more than
    2**31 vertices.
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
    keyed = edges.map_partitions(number, delayed(workers.place(ids)), meta=number(edges._meta, ids[:0]))
    # Where ranges of targets of about as many edges as the device likes begin, and where the last one ends.
    ends = np.cumsum(in_edges, out=in_edges)
    inner = np.searchsorted(ends, np.arange(run.device.partition_rows, ends[-1], run.device.partition_rows))
    first = sorted({0, *inner.tolist(), len(ends)})
    ordered = keyed.set_index("key", divisions=[vertex << VERTEX_BITS for vertex in first], shuffle_method="tasks")
    merge = delayed(partial(_merge, rule=rule, index=index_type(len(ids)), device=run.device))
    parts = zip(ordered.to_delayed(), pairwise(first), strict=True)
    merged = workers.compute(*(merge(part, range(*vertices)) for part, vertices in parts))
    return NumberedEdges(ids, int(ends[-1]), iter(merged))


def read_group(group: RowGroup, *, weighted: bool, both: bool, backend: str) -> Frame:
    """Return the edges of a row group: source and target, int64, weight, float64, if there is one; and their opposites.

    Raises InputError as `edge_blocks` does.
    """
    schema = edge_schema(weighted=weighted)
    with FORMAT.explained(group.path):
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
    """Return the ids of all vertices, int64, ascending, and the edges that lead to each, int64, before merging."""
    sources, targets = (edges[[end]].rename(columns={end: "id"}) for end in ("source", "target"))
    ends = dd.concat([sources.assign(in_edges=0), targets.assign(in_edges=1)])
    [counts] = ends.groupby("id")["in_edges"].sum(split_out=1).to_delayed()
    on_host = delayed(lambda sums: (sums.index.to_numpy(), sums.to_numpy()))
    [(found, in_edges)] = workers.compute(on_host(counts))
    ids = np.union1d(found, known)
    of_all = np.zeros(len(ids), np.int64)
    of_all[np.searchsorted(ids, found)] = in_edges
    return ids, of_all


def _keys(edges: Frame, ids: Ids, *, device: Device) -> Frame:
    """Return the keys of edges, and their weights, if there are any."""
    known = device.to_device(ids)
    source, target = (device.xp.searchsorted(known, edges[end].values) for end in ("source", "target"))
    return edges.assign(key=target << VERTEX_BITS | source).drop(columns=["source", "target"])


def _merge(edges: Frame, vertices: range, *, rule: Rule, index: str, device: Device) -> MergedEdges:
    """Make one of the edges with the same key, which is the frame's index; their targets are in ``vertices``."""
    columns = ["key", *edges.columns]
    edges = edges.reset_index().sort_values(columns)
    return merge_sorted(
        *(edges[name].values for name in columns), vertices=vertices, rule=rule, index=index, device=device
    )


def merge_sorted(
    keys: Array, weights: Array | None = None, *, vertices: range, rule: Rule, index: str, device: Device
) -> MergedEdges:
    """Make one of the edges with the same key, int64 (edges,), which ascend, as do the weights, float64, of each."""
    xp, to_host = device.xp, device.to_host
    is_first = xp.ones(len(keys), bool)
    is_first[1:] = keys[1:] != keys[:-1]
    starts = xp.flatnonzero(is_first)
    lengths = xp.diff(starts, append=xp.asarray([len(keys)]))
    several = to_host(keys[starts[lengths > 1][:1]]).tolist()
    if weights is not None:
        weights = to_host(_weights_of_runs(weights, starts, lengths, rule, xp))
    elif rule == "sum":
        weights = to_host(lengths.astype("float64"))
    target, source = keys[starts] >> VERTEX_BITS, keys[starts] & (MOST_VERTICES - 1)
    counts, loops = xp.bincount(target - vertices.start, minlength=len(vertices)), int((target == source).sum())
    repeated = (several[0] & (MOST_VERTICES - 1), several[0] >> VERTEX_BITS) if several else None
    return MergedEdges(vertices, to_host(counts), to_host(source.astype(index)), weights, loops, repeated)


def _weights_of_runs(weights: Array, starts: Array, lengths: Array, rule: Rule, xp: ModuleType) -> Array:
    """Return the weight of each run of equal keys, whose weights ascend: the sum in this order, or the last one."""
    if rule != "sum":
        return weights[starts + lengths - 1]
    sums: Array = weights[starts]
    longer = xp.flatnonzero(lengths > 1)
    place = 1
    while len(longer):
        sums[longer] += weights[starts[longer] + place]
        place += 1
        longer = longer[lengths[longer] > place]
    return sums

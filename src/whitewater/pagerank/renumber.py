"""Step `renumber`: from edges to compressed sparse rows, whatever the ids, in memory or through files.

The vertices are numbered in ascending order of their ids. Nothing in the folder depends on the order of the edges, on
how files and row groups cut them, or on workers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whitewater import memory
from whitewater.devices.edge_keys import MergedEdges
from whitewater.errors import ConfigError, InputError
from whitewater.pagerank.edge_plan import EdgePlan, check_range, plan_edges
from whitewater.pagerank.edge_tasks import TargetRange, merge
from whitewater.pagerank.edges_folder import open_edges
from whitewater.pagerank.graph_folder import GraphFolder, GraphWriter, index_of
from whitewater.pagerank.numbering import Numbered, Work, number_vertices, opened
from whitewater.pagerank.vertex_ids import Ids, places_of
from whitewater.store import write_json

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.config.pagerank import Renumber
    from whitewater.step import Output, Run

logger = logging.getLogger(__name__)


def renumber(run: Run[Renumber], *, edges: Path, graph: Output, summary: Output) -> None:
    """Write the graph of a folder of edges, and count what each rule did, as section ``pagerank.renumber`` says.

    ``summary`` holds the counts of the folder of edges, and: ``rows`` of edges; ``reversed``, edges added for the other
    direction; ``duplicates``, edges that were merged with others; ``edges``, which are rows and reversed less
    duplicates; ``self_loops`` among these; ``vertices``; ``dangling`` ones, without out-edges; ``isolated`` ones,
    without any; ``minimum_id`` and ``maximum_id``.

    Raises ConfigError if edges with weights have the same ends, and `renumber.duplicates` is drop; InputError if there
    are neither edges nor vertices; and ResourceError if there is not enough memory for the vertices, or for the edges
    of a few targets, or the vertices are more than 2**32.
    """
    folder = open_edges(edges)
    table = folder.vertices()
    known = None if table is None else table["vertex"].to_numpy()
    if not folder.edges and (known is None or not len(known)):
        raise InputError(f"{edges}: no vertices: there are no edges and no table of vertices. Check the source.")
    plan = plan_edges(
        folder, known, memory_gb=run.settings.memory_gb, threads=run.threads, slice_rows=run.device.slice_rows
    )
    with opened(run, plan, graph) as work:
        # The forecast is of what comes on top of the libraries and the workers.
        run.note(memory_before_bytes=memory.peak(), edges_on_disk=plan.spills)
        numbered = number_vertices(work, known)
        with GraphWriter(graph, ids=numbered.ids, weighted=work.weighted) as writer:
            loops = _write(work, numbered, writer)
            written = writer.finish(names=_names(table, numbered.ids) if folder.named else None)
    entries = sum(int(piece.ends[-1]) for piece in numbered.pieces)
    counts = {"rows": plan.rows, "reversed": entries - plan.rows, "duplicates": entries - written.edges}
    counted = {**folder.counts, **counts, **_described(written, writer, numbered.ids), "self_loops": loops}
    write_json(summary, counted)
    run.note(**counted)
    logger.info("%d vertices, %d edges; %d duplicates", written.vertices, written.edges, counts["duplicates"])


def _write(work: Work, numbered: Numbered, writer: GraphWriter) -> int:
    """Merge the edges of ranges of targets, and write them in ascending order; return the number of self-loops."""
    rule, index, loops = work.run.settings.duplicates, index_of(len(numbered.ids)), 0
    ranges = _target_ranges(numbered, work.plan)
    check_range(work.plan, edges=max((each.edges for each in ranges), default=0))
    for wave in _waves(ranges, work.plan):
        merged: MergedEdges
        results = work.map(merge, wave, ordered=True, pieces=numbered.pieces, numbers=numbered.numbers, rule=rule,
                           index=index, weighted=work.weighted)  # fmt: skip
        for task, merged in zip(wave, results, strict=True):
            if merged.repeated is not None and work.plan.weighted and rule == "drop":
                raise _ambiguous(*numbered.ends_of(merged.repeated))
            writer.append(task.vertices.start, merged.counts, merged.sources, merged.weights)
            loops += merged.loops
    return loops


def _target_ranges(numbered: Numbered, plan: EdgePlan) -> list[TargetRange]:
    """Cut the buckets into ranges of about `EdgePlan.range_edges` edges, and leave out empty ones."""
    sizes = np.zeros(numbered.buckets.count, np.int64)
    for piece in numbered.pieces:
        sizes += np.diff(piece.ends, prepend=0)
    before = np.cumsum(sizes) - sizes
    cuts = [0, *(np.flatnonzero(np.diff(before // plan.range_edges)) + 1).tolist(), len(sizes)]
    ranges = [
        TargetRange(range(start, stop), range(first, last), int(sizes[start:stop].sum()))
        for (start, stop), (first, last) in zip(pairwise(cuts), pairwise(numbered.first_numbers(cuts)), strict=True)
    ]
    return [each for each in ranges if each.edges]


def _waves(ranges: Sequence[TargetRange], plan: EdgePlan) -> Iterator[Sequence[TargetRange]]:
    """Yield ranges whose results may wait in memory together."""
    size = 2 * plan.threads if plan.spills else max(1, len(ranges))
    return (ranges[start : start + size] for start in range(0, len(ranges), size))


def _ambiguous(source: int, target: int) -> ConfigError:
    return ConfigError(
        f"pagerank.renumber.duplicates is 'drop', but edges have weights, and there are several from {source} to "
        f"{target}: set it to sum or maximum."
    )


def _names(table: pa.Table | None, ids: Ids) -> pa.Array | pa.ChunkedArray | None:
    """Return the name of each id, null where the table has none."""
    import pyarrow as pa

    if table is None or table.num_rows == len(ids):
        return table and table["name"]
    rows = places_of(ids, table["vertex"].to_numpy())
    return table["name"].take(pa.array(rows, mask=rows < 0))


def _described(written: GraphFolder, writer: GraphWriter, ids: Ids) -> dict[str, int]:
    dangling = writer.out_degree == 0
    return {
        "edges": written.edges,
        "vertices": written.vertices,
        "dangling": int(dangling.sum()),
        "isolated": int((dangling & (writer.in_degree == 0)).sum()),
        "minimum_id": int(ids[0]),
        "maximum_id": int(ids[-1]),
    }

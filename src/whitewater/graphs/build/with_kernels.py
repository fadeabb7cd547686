"""In-edges by kernels of the CPU: edges as keys, cut into buckets by target and sorted, in memory or through files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.engines import Array, Device
from whitewater.errors import ResourceError
from whitewater.graphs.build.keys import (
    CODES,
    CodeNumbers,
    IdCodes,
    MergedEdges,
    NumberedEdges,
    Rule,
    code_numbers,
    marked_codes,
)
from whitewater.graphs.build.plan import Buckets, EdgePlan, check_memory, check_range, plan_edges
from whitewater.graphs.build.tasks import Piece, TargetRange, distinct_ids, encode, merge, union_of_ids
from whitewater.graphs.graph_folder import index_type
from whitewater.graphs.vertex_ids import Ids

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.graphs.edges_folder import EdgesFolder
    from whitewater.step import Run


def number_edges(
    folder: EdgesFolder, known: Ids, *, rule: Rule, memory_gb: float, run: Run[Any], workers: Workers, spool: Path
) -> NumberedEdges:
    """Give vertices numbers, and merge edges with the same ends; see `whitewater.graphs.build.engines.number_edges`."""
    threads = sum(workers.threads)
    room = workers.room_for_a_task(Device(), tasks=threads)
    plan = plan_edges(folder, known, memory_gb=memory_gb, threads=threads, task_bytes=room)
    run.note(edges_on_disk=plan.spills)
    codes = plan.span or _codes_of_ids(plan, known, workers)
    vertices = min(codes.size, 2 * plan.rows + len(known))
    run.note(memory_forecast_bytes=check_memory(plan, codes, vertices=vertices))
    buckets, marks, pieces = plan.buckets(codes.size), codes.empty_marks(), list[Piece]()
    codes.mark(known, marks)
    shared = {"plan": plan, "codes": codes, "buckets": buckets, "spool": spool if plan.spills else None}
    for encoded, marked in workers.map(encode, range(len(plan.tasks)), label="encode", shared=shared):
        marks |= marked
        pieces += encoded
    ids = marked_codes(marks) + codes.minimum if codes.ids is None else codes.ids
    numbers = code_numbers(marks)
    ranges = _target_ranges(pieces, buckets, numbers, len(ids), plan)
    check_range(plan, edges=max((each.edges for each in ranges), default=0))
    shared = {"pieces": pieces, "numbers": numbers, "rule": rule, "index": index_type(len(ids)),
              "weighted": plan.weighted or rule == "sum"}  # fmt: skip
    return NumberedEdges(ids, sum(int(piece.ends[-1]) for piece in pieces), _merged(ranges, plan, workers, shared))


def _codes_of_ids(plan: EdgePlan, known: Ids, workers: Workers) -> IdCodes:
    """Read the ids of all edges; the code of each is its place among these and those that are known."""
    check_memory(plan, IdCodes(0, len(known)), vertices=len(known))
    found = workers.map(distinct_ids, range(len(plan.tasks)), label="ids", shared={"plan": plan})
    ids: Array = reduce(union_of_ids, found, known)
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    return IdCodes(0, len(ids), ids)


def _target_ranges(
    pieces: Sequence[Piece], buckets: Buckets, numbers: CodeNumbers, vertices: int, plan: EdgePlan
) -> list[TargetRange]:
    """Cut the buckets into ranges of about `EdgePlan.range_edges` edges, and leave out empty ones."""
    sizes = sum((np.diff(piece.ends, prepend=0) for piece in pieces), np.zeros(buckets.count, np.int64))
    before = np.cumsum(sizes) - sizes
    inner = np.flatnonzero(np.diff(before // plan.range_edges)) + 1
    cuts = [0, *inner.tolist(), len(sizes)]
    firsts = [0, *numbers.of(inner << buckets.shift).tolist(), vertices]
    ranges = [
        TargetRange(range(start, stop), range(first, last), int(sizes[start:stop].sum()))
        for (start, stop), (first, last) in zip(pairwise(cuts), pairwise(firsts), strict=True)
    ]
    return [each for each in ranges if each.edges]


def _merged(
    ranges: Sequence[TargetRange], plan: EdgePlan, workers: Workers, shared: dict[str, Any]
) -> Iterator[tuple[range, MergedEdges]]:
    """Merge the edges of ranges of targets, in ascending order; where memory is short, few results wait in it."""
    size = 2 * plan.threads if plan.spills else max(1, len(ranges))
    for start in range(0, len(ranges), size):
        tasks = ranges[start : start + size]
        results = workers.map(merge, tasks, label="merge", ordered=True, shared=shared)
        for task, merged in zip(tasks, results, strict=True):
            yield task.vertices, merged

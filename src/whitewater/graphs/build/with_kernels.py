"""In-edges by kernels of the CPU: edges as keys, cut into buckets by target and sorted, in memory or through files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from whitewater.engines import Device
from whitewater.errors import ResourceError
from whitewater.graphs.build.keys import (
    CODES,
    CodeNumbers,
    IdSpan,
    MergedEdges,
    NumberedEdges,
    Rule,
    code_numbers,
    marked_codes,
)
from whitewater.graphs.build.merge import mark_ids, union_of_ids
from whitewater.graphs.build.plan import Buckets, EdgePlan, check_memory, check_range, plan_edges
from whitewater.graphs.build.tasks import Piece, TargetRange, Words, encode, encode_words, merge, number, read
from whitewater.graphs.graph_folder import index_of
from whitewater.graphs.vertex_ids import Ids

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.graphs.edges_folder import EdgesFolder
    from whitewater.step import Run

Result = TypeVar("Result")


@dataclass(frozen=True)
class Work:
    """The run, the plan, the workers, and a folder if edges go to disk."""

    run: Run[Any]
    plan: EdgePlan
    workers: Workers
    spool: Path | None

    def map(
        self, function: Callable[..., Result], tasks: Sequence[Any], *, ordered: bool = False, **shared: Any
    ) -> Iterator[Result]:
        """Apply a function to each task, see `whitewater.engines.workers.Workers.map`."""
        return self.workers.map(function, tasks, label=function.__name__, ordered=ordered, shared=shared)


@dataclass(frozen=True)
class Numbered:
    """Edges by bucket of their target's code, the ids of the vertices, ascending, and the number of each code."""

    pieces: list[Piece]
    buckets: Buckets
    ids: Ids
    numbers: CodeNumbers

    def first_numbers(self, buckets: list[int]) -> list[int]:
        """Return the number of the first vertex that is in or behind each bucket."""
        codes = np.array(buckets, np.int64) << self.buckets.shift
        numbers = self.numbers.of(np.minimum(codes, self.buckets.codes - 1))
        found: list[int] = np.where(codes < self.buckets.codes, numbers, len(self.ids)).tolist()
        return found


def number_edges(
    folder: EdgesFolder, known: Ids, *, rule: Rule, memory_gb: float, run: Run[Any], workers: Workers, spool: Path
) -> NumberedEdges:
    """Give vertices numbers, and merge edges with the same ends; see `whitewater.graphs.build.engines.number_edges`."""
    threads = sum(workers.threads)
    plan = plan_edges(
        folder,
        known,
        memory_gb=memory_gb,
        threads=threads,
        task_bytes=workers.room_for_a_task(Device(), tasks=threads),
        slice_rows=Device().slice_rows,
    )
    run.note(edges_on_disk=plan.spills)
    work = Work(run, plan, workers, spool if plan.spills else None)
    numbered = _by_words(work, known) if plan.span is None else _by_marks(work, plan.span, known)
    entries = sum(int(piece.ends[-1]) for piece in numbered.pieces)
    return NumberedEdges(numbered.ids, entries, _merged(work, numbered, rule))


def _by_marks(work: Work, span: IdSpan, known: Ids) -> Numbered:
    """Encode ids as distances; the marks of those that occur, or are known, give the numbers."""
    vertices = min(span.size, 2 * work.plan.rows + len(known))
    work.run.note(memory_forecast_bytes=check_memory(work.plan, vertices=vertices))
    buckets = work.plan.buckets(span.size)
    marks = np.zeros(span.words, np.uint64)
    mark_ids(known, span, marks)
    pieces: list[Piece] = []
    tasks = range(len(work.plan.tasks))
    for encoded, marked in work.map(encode, tasks, plan=work.plan, span=span, buckets=buckets, spool=work.spool):
        marks |= marked
        pieces += encoded
    return Numbered(pieces, buckets, marked_codes(marks) + np.int64(span.minimum), code_numbers(marks))


def _by_words(work: Work, known: Ids) -> Numbered:
    """Encode the ids of each piece on their own; the union of all, and of those that are known, gives the numbers."""
    check_memory(work.plan, vertices=len(known))
    words: list[Words] = []

    def found() -> Iterator[Ids]:
        yield known
        for encoded in work.map(encode_words, range(len(work.plan.tasks)), plan=work.plan, spool=work.spool):
            words.extend(encoded)
            yield from (read(each.ids) for each in encoded)

    ids = _union(found())
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    work.run.note(memory_forecast_bytes=check_memory(work.plan, vertices=len(ids)))
    buckets = work.plan.buckets(len(ids))
    pieces = list(work.map(number, range(len(words)), words=words, ids=ids, buckets=buckets, spool=work.spool))
    return Numbered(pieces, buckets, ids, CodeNumbers(np.empty(0, np.uint64), np.empty(0, np.uint32)))


def _union(arrays: Iterable[Ids]) -> Ids:
    """Return the union of many arrays of ids; each is merged with others of about its size, so that few are large."""
    parts: list[Ids] = []
    for ids in arrays:
        one = ids
        while parts and len(parts[-1]) < 2 * len(one):
            one = union_of_ids(parts.pop(), one)
        parts.append(one)
    return reduce(union_of_ids, reversed(parts), np.empty(0, np.int64))


def _merged(work: Work, numbered: Numbered, rule: Rule) -> Iterator[tuple[range, MergedEdges]]:
    """Merge the edges of ranges of targets, in ascending order."""
    ranges = _target_ranges(numbered, work.plan)
    check_range(work.plan, edges=max((each.edges for each in ranges), default=0))
    for wave in _waves(ranges, work.plan):
        results = work.map(merge, wave, ordered=True, pieces=numbered.pieces, numbers=numbered.numbers, rule=rule,
                           index=index_of(len(numbered.ids)), weighted=work.plan.weighted or rule == "sum")  # fmt: skip
        for task, merged in zip(wave, results, strict=True):
            yield task.vertices, merged


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

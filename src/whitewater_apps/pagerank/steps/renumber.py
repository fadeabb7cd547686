"""Step `renumber`: from edges to compressed sparse rows, whatever the ids, in memory or through files.

The vertices are numbered in ascending order of their ids. Nothing in the folder depends on the order of the edges, on
how files and row groups cut them, or on workers.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from whitewater.engines import memory
from whitewater.errors import ConfigError, InputError, ResourceError
from whitewater.graphs.build.keys import CODES, CodeNumbers, IdSpan, MergedEdges, code_numbers, marked_codes
from whitewater.graphs.build.merge_cpu import mark_ids, union_of_ids
from whitewater.graphs.build.plan import Buckets, EdgePlan, check_memory, check_range, plan_edges
from whitewater.graphs.build.tasks import Piece, TargetRange, Words, encode, merge, number, read
from whitewater.graphs.edges_folder import open_edges
from whitewater.graphs.graph_folder import GraphFolder, GraphWriter, index_of
from whitewater.graphs.vertex_ids import Ids, places_of
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Renumber

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.engines.workers import Workers

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
# Edges below which processes take longer to start than the work.
SMALL = 2 << 20


@dataclass(frozen=True)
class Work:
    """The run, the plan, the workers, and a folder if edges go to disk."""

    run: Run[Renumber]
    plan: EdgePlan
    workers: "Workers"
    spool: Path | None

    @property
    def weighted(self) -> bool:
        """Whether the graph has weights."""
        return self.plan.weighted or self.run.settings.duplicates == "sum"

    def map(
        self, function: Callable[..., Result], tasks: Sequence[Any], *, ordered: bool = False, **shared: Any
    ) -> Iterator[Result]:
        """Apply a function to each task, see `whitewater.engines.workers.Workers.map`."""
        shared["device"], label = self.run.device, function.__name__
        return self.workers.map(function, tasks, label=label, ordered=ordered, shared=shared)

    def check_memory(self, *, vertices: int) -> int:
        """Refuse what does not fit, see `whitewater.graphs.build.plan.check_memory`."""
        return check_memory(self.plan, vertices=vertices, tasks_here=self.run.device.name == "cpu")


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
        numbers = self.numbers.of(np.minimum(codes, self.buckets.codes - 1), np)
        found: list[int] = np.where(codes < self.buckets.codes, numbers, len(self.ids)).tolist()
        return found

    def ends_of(self, key: int) -> tuple[int, int]:
        """Return the ids of the source and the target of an edge."""
        codes = np.array([key & (CODES - 1), key // CODES], np.int64)
        source, target = self.ids[self.numbers.of(codes, np)].tolist()
        return source, target


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
    known = np.empty(0, np.int64) if table is None else table["vertex"].to_numpy()
    if not folder.edges and not len(known):
        raise InputError(f"{edges}: no vertices: there are no edges and no table of vertices. Check the source.")
    graph.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(prefix="under-way-", dir=graph) as spool,
        run.workers(small=folder.edges << (not folder.directed) < SMALL) as workers,
    ):
        threads = sum(workers.threads)
        plan = plan_edges(
            folder,
            known,
            memory_gb=run.settings.memory_gb,
            threads=threads,
            task_bytes=workers.room_for_a_task(run.device, tasks=threads),
            slice_rows=run.device.slice_rows,
        )
        work = Work(run, plan, workers, Path(spool) if plan.spills else None)
        # The forecast is of what comes on top of the libraries and the workers.
        run.note(memory_before_bytes=memory.peak(), edges_on_disk=plan.spills)
        numbered = _number_vertices(work, known)
        with GraphWriter(graph, ids=numbered.ids, weighted=work.weighted) as writer:
            loops = _write(work, numbered, writer)
            written = writer.finish(names=_names(table, numbered.ids) if folder.named else None)
    entries = sum(int(piece.ends[-1]) for piece in numbered.pieces)
    counts = {"rows": plan.rows, "reversed": entries - plan.rows, "duplicates": entries - written.edges}
    counted = {**folder.counts, **counts, **_described(written, writer, numbered.ids), "self_loops": loops}
    write_json(summary, counted)
    run.note(**counted)
    logger.info("%d vertices, %d edges; %d duplicates", written.vertices, written.edges, counts["duplicates"])


def _number_vertices(work: Work, known: Ids) -> Numbered:
    """Encode the edges, and number their ends and the vertices that are known, ascending."""
    span = work.plan.span
    return _by_words(work, known) if span is None else _by_marks(work, span, known)


def _by_marks(work: Work, span: IdSpan, known: Ids) -> Numbered:
    """Encode ids as distances; the marks of those that occur give the numbers."""
    vertices = min(span.size, 2 * work.plan.rows + len(known))
    work.run.note(memory_forecast_bytes=work.check_memory(vertices=vertices))
    buckets = work.plan.buckets(span.size)
    marks = np.zeros(span.words, np.uint64)
    mark_ids(known, span, marks)
    pieces: list[Piece] = []
    for encoded in work.map(encode, range(len(work.plan.tasks)), plan=work.plan, buckets=buckets, spool=work.spool):
        if encoded.marks is not None:
            marks |= encoded.marks
        pieces += encoded.pieces
    return Numbered(pieces, buckets, marked_codes(marks) + np.int64(span.minimum), code_numbers(marks))


def _by_words(work: Work, known: Ids) -> Numbered:
    """Encode the ids of each piece on their own; the union of all ids gives the numbers."""
    work.check_memory(vertices=len(known))
    words: list[Words] = []

    def found() -> Iterator[Ids]:
        yield known
        for encoded in work.map(encode, range(len(work.plan.tasks)), plan=work.plan, buckets=None, spool=work.spool):
            words.extend(encoded.words)
            yield from (read(each.ids) for each in encoded.words)

    ids = _union(found())
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    work.run.note(memory_forecast_bytes=work.check_memory(vertices=len(ids)))
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


def _names(table: "pa.Table | None", ids: Ids) -> "pa.Array | pa.ChunkedArray | None":
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


if __name__ == "__main__":
    main(renumber)

"""The numbers of vertices, in ascending order of their ids, and the edges in buckets by target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from whitewater.devices.edge_keys import (
    CODES,
    CodeNumbers,
    IdSpan,
    code_numbers,
    mark_ids,
    marked_codes,
    union_of_ids,
)
from whitewater.errors import ResourceError
from whitewater.pagerank.edge_plan import Buckets, EdgePlan, check_memory
from whitewater.pagerank.edge_tasks import Piece, Words, encode, number, read
from whitewater.pagerank.vertex_ids import Ids

if TYPE_CHECKING:
    from whitewater.config.pagerank import Renumber
    from whitewater.step import Run
    from whitewater.workers import Workers

Result = TypeVar("Result")
# Edges below which processes take longer to start than the work.
SMALL = 2 << 20


@dataclass(frozen=True)
class Work:
    """The run, the plan, the workers, and a folder if edges go to disk."""

    run: Run[Renumber]
    plan: EdgePlan
    client: Workers
    spool: Path | None

    @property
    def weighted(self) -> bool:
        """Whether the graph has weights."""
        return self.plan.weighted or self.run.settings.duplicates == "sum"

    def map(
        self, function: Callable[..., Result], tasks: Sequence[Any], *, ordered: bool = False, **shared: Any
    ) -> Iterator[Result]:
        """Apply a function to each task, see `whitewater.step.Run.map`."""
        shared["device"], label = self.run.device, function.__name__
        return self.run.map(function, tasks, client=self.client, label=label, ordered=ordered, shared=shared)


@contextmanager
def opened(run: Run[Renumber], plan: EdgePlan, folder: Path) -> Iterator[Work]:
    """Open workers, and a place in a folder for edges that do not stay in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(prefix="under-way-", dir=folder) as spool,
        run.cluster(small=plan.entries < SMALL) as client,
    ):
        yield Work(run, plan, client, Path(spool) if plan.spills else None)


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


def number_vertices(work: Work, known: Ids | None) -> Numbered:
    """Encode the edges, and number their ends and the vertices that are known, int64, ascending.

    Raises ResourceError if the vertices do not fit into memory, or are more than can be numbered.
    """
    span = work.plan.span
    return _by_words(work, known) if span is None else _by_marks(work, span, known)


def _by_marks(work: Work, span: IdSpan, known: Ids | None) -> Numbered:
    """Encode ids as distances; the marks of those that occur give the numbers."""
    vertices = min(span.size, 2 * work.plan.rows + (0 if known is None else len(known)))
    work.run.note(memory_forecast_bytes=check_memory(work.plan, vertices=vertices))
    buckets = work.plan.buckets(span.size)
    marks = np.zeros(span.words, np.uint64)
    if known is not None:
        mark_ids(known, span, marks)
    pieces: list[Piece] = []
    for encoded in work.map(encode, range(len(work.plan.tasks)), plan=work.plan, buckets=buckets, spool=work.spool):
        if encoded.marks is not None:
            marks |= encoded.marks
        pieces += encoded.pieces
    return Numbered(pieces, buckets, marked_codes(marks) + np.int64(span.minimum), code_numbers(marks))


def _by_words(work: Work, known: Ids | None) -> Numbered:
    """Encode the ids of each piece on their own; the union of all ids gives the numbers."""
    check_memory(work.plan, vertices=0 if known is None else len(known))
    words: list[Words] = []

    def found() -> Iterator[Ids]:
        yield from [] if known is None else [known]
        for encoded in work.map(encode, range(len(work.plan.tasks)), plan=work.plan, buckets=None, spool=work.spool):
            words.extend(encoded.words)
            yield from (read(each.ids) for each in encoded.words)

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

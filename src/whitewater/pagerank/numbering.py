"""The numbers of vertices, in ascending order of their ids, and the edges in buckets by target."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
from whitewater.pagerank.edge_tasks import Encoded, Piece, Words, encode, number

if TYPE_CHECKING:
    from whitewater.config.pagerank import Renumber
    from whitewater.step import Run

Ids = npt.NDArray[np.int64]
# Edges below which workers take longer to start than the work.
SMALL = 2 << 20


@dataclass(frozen=True)
class Work:
    """The run, the plan, a function that maps tasks as `whitewater.step.Run.map` does, and a folder if edges spill."""

    run: Run[Renumber]
    plan: EdgePlan
    map: Callable[..., Iterable[Any]]
    spool: Path | None

    @property
    def weighted(self) -> bool:
        """Whether the graph has weights."""
        return self.plan.weighted or self.run.settings.duplicates == "sum"


@contextmanager
def opened(run: Run[Renumber], plan: EdgePlan, spool: Path) -> Iterator[Work]:
    """Open workers, where there is work for them, and a folder for edges that do not stay in memory."""
    with _spooled(spool if plan.spills else None) as folder:
        if plan.entries < SMALL:
            yield Work(run, plan, _in_this_thread, folder)
            return
        with run.cluster() as client:
            yield Work(run, plan, partial(run.map, client=client), folder)


@contextmanager
def _spooled(folder: Path | None) -> Iterator[Path | None]:
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _in_this_thread(
    function: Callable[..., Any], tasks: Iterable[Any], *, label: str, shared: dict[str, Any], ordered: bool = False
) -> Iterator[Any]:
    return (function(task, **shared) for task in tasks)


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
    for encoded in _encoded(work, buckets):
        if encoded.marks is not None:
            marks |= encoded.marks
        pieces += encoded.pieces
    return Numbered(pieces, buckets, marked_codes(marks) + np.int64(span.minimum), code_numbers(marks))


def _by_words(work: Work, known: Ids | None) -> Numbered:
    """Encode the ids of each piece on their own; the union of all ids gives the numbers."""
    check_memory(work.plan, vertices=0 if known is None else len(known))
    words: list[Words] = []
    union = _Union()
    if known is not None:
        union.add(known)
    for encoded in _encoded(work, None):
        for each in encoded.words:
            union.add(each.ids[:])
        words += encoded.words
    ids = union.result()
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    work.run.note(memory_forecast_bytes=check_memory(work.plan, vertices=len(ids)))
    buckets = work.plan.buckets(len(ids))
    shared = {"words": words, "ids": ids, "buckets": buckets, "spool": work.spool, "device": work.run.device}
    pieces = list(work.map(number, range(len(words)), label="number", shared=shared))
    return Numbered(pieces, buckets, ids, CodeNumbers(np.empty(0, np.uint64), np.empty(0, np.uint32)))


def _encoded(work: Work, buckets: Buckets | None) -> Iterable[Encoded]:
    """Yield what each task of `encode` makes, as they complete."""
    shared = {"plan": work.plan, "buckets": buckets, "spool": work.spool, "device": work.run.device}
    return work.map(encode, range(len(work.plan.tasks)), label="encode", shared=shared)


class _Union:
    """The union of many arrays of ids: arrays are merged with others of about their size, so that few are large."""

    def __init__(self) -> None:
        self._parts: list[Ids] = []

    def add(self, ids: Ids) -> None:
        while self._parts and len(self._parts[-1]) < 2 * len(ids):
            ids = union_of_ids(self._parts.pop(), ids)
        self._parts.append(ids)

    def result(self) -> Ids:
        ids = np.empty(0, np.int64)
        while self._parts:
            ids = union_of_ids(self._parts.pop(), ids)
        return ids

"""How the edges will be worked on, from what the files say of themselves: codes, pieces, buckets, and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.engines import memory
from whitewater.graphs.build.keys import CODES, IdSpan

if TYPE_CHECKING:
    from whitewater.graphs.edges_folder import EdgesFolder
    from whitewater.graphs.vertex_ids import Ids
    from whitewater.io.folder import RowGroup

# Tasks for each thread, so that none waits long for the last one.
TASKS_A_THREAD = 4
# Edges of a bucket: its keys, twice, fit into the cache of a core.
BUCKET_EDGES = 32 << 10
# More buckets at once would be written to slower than they are sorted.
MOST_BUCKETS = 1 << 10
# Ids are coded as distances where these are at most so many times the ends of edges, or few anyway.
SPARSEST, FEW_CODES = 8, 1 << 22
# Bytes that an edge takes while it is encoded, besides its key, where codes are not distances; that an edge takes in a
# task, at most; and a vertex for the arrays of the graph.
HASHED_BYTES, WORK_BYTES, VERTEX_BYTES = 112, 200, 48
SMALLEST_PIECE = 1 << 16
# Slices of the device that are encoded, and merged, at once: what a GPU's memory holds a few times.
PIECE_SLICES = 16


@dataclass(frozen=True)
class EdgePlan:
    """What the work on the edges depends on."""

    rows: int
    weighted: bool
    symmetric: bool  # a row stands for both directions
    span: IdSpan | None  # the ids, if they lie close enough together for codes that are distances
    tasks: tuple[tuple[RowGroup, ...], ...]  # row groups that are encoded together
    budget: int  # bytes for edges under way
    threads: int  # tasks that run at once
    most: int  # edges that a task works on at once

    @property
    def entries(self) -> int:
        """Edges, with the opposite ones that are added, at most."""
        return self.rows << self.symmetric

    @property
    def edge_bytes(self) -> int:
        """Bytes of a key, and its weight."""
        return 16 if self.weighted else 8

    @property
    def merged_bytes(self) -> int:
        """Bytes of an edge while it is merged: its key, and weight, twice, and the result."""
        return 3 * self.edge_bytes

    @property
    def in_memory_bytes(self) -> int:
        """Bytes of the edges under way if all are in memory: the keys, and what they are made from or become."""
        return 2 * self.entries * self.edge_bytes

    @property
    def spills(self) -> bool:
        """Whether edges under way go to disk."""
        return self.in_memory_bytes > self.budget

    @property
    def piece_rows(self) -> int:
        """Rows that are encoded and bucketed at once."""
        if not self.spills:
            return self.most
        row_bytes = (2 * self.edge_bytes << self.symmetric) + (0 if self.span else HASHED_BYTES)
        return min(self.most, max(SMALLEST_PIECE, self.budget // (self.threads * row_bytes)))

    @property
    def range_edges(self) -> int:
        """Edges that are merged in a task."""
        in_memory = -(-self.entries // (TASKS_A_THREAD * self.threads))
        # As many results wait to be written.
        spilled = self.budget // (2 * self.threads * self.merged_bytes)
        return min(self.most, max(SMALLEST_PIECE, spilled if self.spills else in_memory))

    def buckets(self, codes: int) -> Buckets:
        """Return the buckets of so many codes."""
        # Two at least: a key of 64 bits cannot be shifted by as many.
        wanted = max(2, min(MOST_BUCKETS, -(-self.entries // BUCKET_EDGES)))
        if self.spills:
            wanted = max(wanted, min(CODES, 4 * self.entries // self.range_edges))
        return Buckets(max(0, (codes - 1).bit_length() - (wanted - 1).bit_length()), codes)


@dataclass(frozen=True)
class Buckets:
    """Ranges of codes of targets: bucket *b* has those from ``b << shift`` on."""

    shift: int
    codes: int

    @property
    def count(self) -> int:
        """The number of buckets."""
        return ((self.codes - 1) >> self.shift) + 1


def plan_edges(
    folder: EdgesFolder, vertices: Ids, *, memory_gb: float, threads: int, task_bytes: int, slice_rows: int
) -> EdgePlan:
    """Plan the work on a folder of edges and the ids of its vertices, ascending, as far as they are known.

    ``memory_gb``, in GB, are for edges under way on the host, 0: half of what is available; ``threads`` tasks run at
    once, each of which may take ``task_bytes``, and the device likes ``slice_rows``.
    """
    groups = folder.row_groups()
    budget = int(memory_gb * 1e9) if memory_gb else memory.available() // 2
    entries = folder.edges * (1 if folder.directed else 2)
    # Row groups are of one size, but for the last one of a file.
    size = max(1, -(-len(groups) // (TASKS_A_THREAD * threads)))
    return EdgePlan(
        rows=folder.edges,
        weighted=folder.weighted,
        symmetric=not folder.directed,
        span=_span(groups, vertices, ends=2 * entries + len(vertices)),
        tasks=tuple(tuple(groups[start : start + size]) for start in range(0, len(groups), size)),
        budget=budget,
        threads=threads,
        most=max(SMALLEST_PIECE, min(PIECE_SLICES * slice_rows, task_bytes // WORK_BYTES)),
    )


def check_memory(plan: EdgePlan, *, vertices: int) -> int:
    """Log how much memory of the host the work will need, refuse it if that is not there, and return it in bytes.

    Raises ResourceError if there is not enough memory; the message says what can be done.
    """
    edges = min(plan.budget, plan.in_memory_bytes)
    marks = 0 if plan.span is None else plan.span.words * (8 * (plan.threads + 1) + 4)
    hashed = 0 if plan.span else plan.threads * min(plan.piece_rows, plan.rows) * HASHED_BYTES
    needed = edges + marks + hashed + vertices * (VERTEX_BYTES + (8 if plan.weighted else 0))
    memory.forecast(
        needed,
        what=f"a graph of {vertices:,} vertices at most and {plan.entries:,} edges",
        remedy="Lower renumber.memory_gb, so that edges go to disk; the vertices must fit into memory.",
    )
    return needed


def check_range(plan: EdgePlan, *, edges: int) -> None:
    """Refuse to merge so many edges at once, of targets whose codes are close, where they do not fit into memory.

    Raises ResourceError if there is not enough memory.
    """
    if plan.spills:
        memory.forecast(
            edges * plan.merged_bytes,
            what=f"merging {edges:,} edges of a few targets",
            remedy="Use a machine with more memory, or leave out the vertex that most edges lead to.",
        )


def _span(groups: Sequence[RowGroup], vertices: Ids, *, ends: int) -> IdSpan | None:
    """Return the span of all ids, or None where a file does not tell it, or a bit for each of its ids is too much."""
    bounds = [bounds for path in {group.path: None for group in groups} for bounds in _bounds(path)]
    if len(vertices):
        bounds.append((int(vertices[0]), int(vertices[-1])))
    known = [each for each in bounds if each is not None]
    if len(known) < len(bounds) or not known:
        return None
    minimum = min(low for low, _ in known)
    size = max(high for _, high in known) - minimum + 1
    return IdSpan(minimum, size) if size <= min(CODES, max(FEW_CODES, SPARSEST * ends)) else None


def _bounds(path: Path) -> Iterator[tuple[int, int] | None]:
    """Yield the least and the greatest id of each column of ids, as the footer tells them."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema in ("source", "target") and group.num_rows:
                yield _bounds_of(column)


def _bounds_of(chunk: Any) -> tuple[int, int] | None:
    found = chunk.statistics
    return (int(found.min), int(found.max)) if found is not None and found.has_min_max else None

"""How the edges will be worked on, from what the files say of themselves: codes, pieces, buckets, and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from whitewater.engines import memory
from whitewater.graphs.build.keys import CODES, IdCodes

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
# Bytes that an edge takes while its ids are looked up, where codes are not distances; that an edge takes in a task, at
# most; and a vertex for the arrays of the graph.
HASHED_BYTES, WORK_BYTES, VERTEX_BYTES = 112, 200, 48
# Edges that are encoded, or merged, at once: at least, and at most.
SMALLEST_PIECE, LARGEST_PIECE = 1 << 16, 1 << 21


@dataclass(frozen=True)
class EdgePlan:
    """What the work on the edges depends on."""

    rows: int
    weighted: bool
    symmetric: bool  # a row stands for both directions
    span: IdCodes | None  # the codes, if the ids lie close enough together for distances
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


def plan_edges(folder: EdgesFolder, vertices: Ids, *, memory_gb: float, threads: int, task_bytes: int) -> EdgePlan:
    """Plan the work on a folder of edges and the ids of its vertices, ascending, as far as they are known.

    ``memory_gb``, in GB, are for edges under way on the host, 0: half of what is available; ``threads`` tasks run at
    once, each of which may take ``task_bytes``.
    """
    groups = folder.row_groups()
    # Row groups are of one size, but for the last one of a file.
    size = max(1, -(-len(groups) // (TASKS_A_THREAD * threads)))
    return EdgePlan(
        rows=folder.edges,
        weighted=folder.weighted,
        symmetric=not folder.directed,
        span=_span(groups, vertices, ends=2 * (folder.edges << (not folder.directed)) + len(vertices)),
        tasks=tuple(tuple(groups[start : start + size]) for start in range(0, len(groups), size)),
        budget=int(memory_gb * 1e9) if memory_gb else memory.available() // 2,
        threads=threads,
        most=max(SMALLEST_PIECE, min(LARGEST_PIECE, task_bytes // WORK_BYTES)),
    )


def check_memory(plan: EdgePlan, codes: IdCodes, *, vertices: int) -> int:
    """Log how much memory of the host the work will need, refuse it if that is not there, and return it in bytes.

    Raises ResourceError if there is not enough memory; the message says what can be done.
    """
    edges = min(plan.budget, plan.in_memory_bytes)
    marks = codes.size // 64 * (8 * (plan.threads + 1) + 4)
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


def _span(groups: Sequence[RowGroup], vertices: Ids, *, ends: int) -> IdCodes | None:
    """Return codes that are distances, or None where a file does not tell its ids, or a bit for each is too much."""
    chunks = [chunk for path in {group.path: None for group in groups} for chunk in _statistics(path)]
    if any(chunk is None or not chunk.has_min_max for chunk in chunks) or not (chunks or len(vertices)):
        return None
    minimum = min([*vertices[:1].tolist(), *(chunk.min for chunk in chunks)])
    size = max([*vertices[-1:].tolist(), *(chunk.max for chunk in chunks)]) - minimum + 1
    return IdCodes(minimum, size) if size <= min(CODES, max(FEW_CODES, SPARSEST * ends)) else None


def _statistics(path: Path) -> Iterator[Any]:
    """Yield the statistics of each chunk of ids, as the footer has them, if it does."""
    footer = pq.read_metadata(path)
    for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
        columns = (group.column(place) for place in range(group.num_columns if group.num_rows else 0))
        yield from (each.statistics for each in columns if each.path_in_schema != "weight")

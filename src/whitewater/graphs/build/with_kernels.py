"""In-edges by kernels of the CPU: edges as keys, cut into buckets by target and sorted, in memory or through files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from whitewater.engines import memory
from whitewater.errors import ResourceError
from whitewater.graphs.build.numbered_edges import MergedEdges, NumberedEdges, Rule
from whitewater.graphs.build.tasks import (
    CODE_BITS,
    IdCodes,
    Piece,
    TargetRange,
    distinct_ids,
    encode,
    merge,
    union_of_ids,
)
from whitewater.graphs.graph_folder import index_type

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.graphs.edges_folder import EdgesFolder
    from whitewater.graphs.vertex_ids import Ids
    from whitewater.io.folder import RowGroup
    from whitewater.step import Run

CODES = 1 << CODE_BITS
# Tasks for each thread, so that none waits long for the last one.
TASKS_A_THREAD = 4
# Edges of a bucket: its keys, twice, fit into the cache of a core.
BUCKET_EDGES = 32 << 10
# More buckets at once would be written to slower than they are sorted.
MOST_BUCKETS = 1 << 10
# Ids are coded as distances where these are at most so many times the ends of edges, or few anyway.
SPARSEST, FEW_CODES = 8, 1 << 22
# Bytes that an edge takes while its ids are looked up, where codes are not distances; that an edge takes while it is
# encoded, at most; and a vertex for the arrays of the graph.
HASHED_BYTES, WORK_BYTES, VERTEX_BYTES = 112, 200, 48
# Edges that are encoded, or merged, at once: at least, and at most.
SMALLEST_PIECE, LARGEST_PIECE = 1 << 16, 1 << 21


@dataclass(frozen=True)
class Sizes:
    """How much is worked on at once: of ``entries`` edges, in ``budget`` bytes, by so many threads."""

    entries: int  # with the opposite ones that are added, at most
    weighted: bool
    budget: int
    threads: int

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
        return min(LARGEST_PIECE, max(SMALLEST_PIECE, self.budget // (self.threads * WORK_BYTES)))

    @property
    def range_edges(self) -> int:
        """Edges that are merged in a task."""
        shared = -(-self.entries // (TASKS_A_THREAD * self.threads))
        # As many results wait to be written.
        fitting = self.budget // (2 * self.threads * self.merged_bytes)
        return min(LARGEST_PIECE, max(SMALLEST_PIECE, min(shared, fitting)))

    def bucket_bits(self, codes: int) -> tuple[int, int]:
        """Return the bits of a target's code that its bucket has in common, and those that number the buckets."""
        # Two at least: a key of 64 bits cannot be shifted by as many.
        wanted = max(2, min(MOST_BUCKETS, -(-self.entries // BUCKET_EDGES)))
        if self.spills:
            wanted = max(wanted, min(CODES, 4 * self.entries // self.range_edges))
        bits = (codes - 1).bit_length()
        width = min(bits, (wanted - 1).bit_length())
        return bits - width, width


def number_edges(
    folder: EdgesFolder, known: Ids, *, rule: Rule, memory_gb: float, run: Run[Any], workers: Workers, spool: Path
) -> NumberedEdges:
    """Give vertices numbers, and merge edges with the same ends; see `whitewater.graphs.build.engines.number_edges`."""
    groups, threads = folder.row_groups(), sum(workers.threads)
    budget = int(memory_gb * 1e9) if memory_gb else memory.available() // 2
    sizes = Sizes(folder.edges << (not folder.directed), folder.weighted, budget, threads)
    run.note(edges_on_disk=sizes.spills)
    tasks = tasks_of(groups, threads=threads)
    codes = distances(groups, known, ends=2 * sizes.entries + len(known))
    hashed = 0 if codes else threads * min(sizes.piece_rows, folder.edges) * HASHED_BYTES
    codes = codes or _places(tasks, known, sizes, workers, hashed=hashed)
    vertices = min(codes.size, 2 * folder.edges + len(known))
    run.note(memory_forecast_bytes=_check_memory(sizes, codes, hashed=hashed, vertices=vertices))
    bucket_bits = sizes.bucket_bits(codes.size)
    shared = {"codes": codes, "bucket_bits": bucket_bits, "rows": sizes.piece_rows, "weighted": folder.weighted,
              "symmetric": not folder.directed, "spool": spool if sizes.spills else None}  # fmt: skip
    marks, pieces = codes.empty_marks(), list[Piece]()
    for encoded, marked in workers.map(encode, list(enumerate(tasks)), label="encode", shared=shared):
        marks |= marked
        pieces += encoded
    ids, numbers = codes.number(marks, known)
    ranges = _target_ranges(pieces, codes, bucket_bits, ids, range_edges=sizes.range_edges)
    if sizes.spills:
        most = max((each.edges for each in ranges), default=0)
        memory.forecast(
            most * sizes.merged_bytes,
            what=f"merging {most:,} edges of a few targets",
            remedy="Use a machine with more memory, or leave out the vertex that most edges lead to.",
        )
    shared = {"pieces": pieces, "numbers": numbers, "rule": rule, "index": index_type(len(ids)),
              "weighted": folder.weighted or rule == "sum"}  # fmt: skip
    # Where memory is short, few results wait in it.
    merged = _merged(ranges, workers, shared, at_once=2 * threads if sizes.spills else max(1, len(ranges)))
    return NumberedEdges(ids, sum(int(piece.ends[-1]) for piece in pieces), merged)


def tasks_of(groups: Sequence[RowGroup], *, threads: int) -> list[Sequence[RowGroup]]:
    """Return row groups that are encoded together; they are of one size, but for the last one of a file."""
    size = max(1, -(-len(groups) // (TASKS_A_THREAD * threads)))
    return [groups[start : start + size] for start in range(0, len(groups), size)]


def distances(groups: Sequence[RowGroup], known: Ids, *, ends: int) -> IdCodes | None:
    """Return codes that are distances, or None where a file does not tell its ids, or a bit for each is too much."""
    chunks = [chunk for path in {group.path: None for group in groups} for chunk in _statistics(path)]
    if any(chunk is None or not chunk.has_min_max for chunk in chunks) or not (chunks or len(known)):
        return None
    minimum = min([*known[:1].tolist(), *(chunk.min for chunk in chunks)])
    size = max([*known[-1:].tolist(), *(chunk.max for chunk in chunks)]) - minimum + 1
    return IdCodes(minimum, size) if size <= min(CODES, max(FEW_CODES, SPARSEST * ends)) else None


def _statistics(path: Path) -> Iterator[Any]:
    """Yield the statistics of each chunk of ids, as the footer has them, if it does."""
    footer = pq.read_metadata(path)
    for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
        columns = (group.column(place) for place in range(group.num_columns if group.num_rows else 0))
        yield from (each.statistics for each in columns if each.path_in_schema != "weight")


def _places(tasks: Sequence[Sequence[RowGroup]], known: Ids, sizes: Sizes, workers: Workers, *, hashed: int) -> IdCodes:
    """Read the ids of all edges; the code of each is its place among these and those that are known."""
    _check_memory(sizes, IdCodes(0, len(known)), hashed=hashed, vertices=len(known))
    found = workers.map(distinct_ids, tasks, label="ids", shared={"rows": sizes.piece_rows})
    ids: Ids = reduce(union_of_ids, found, known)
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    return IdCodes(0, len(ids), ids)


def _check_memory(sizes: Sizes, codes: IdCodes, *, hashed: int, vertices: int) -> int:
    """Refuse the work if it takes more memory of the host than there is; return how much it takes, in bytes."""
    marks = codes.size // 64 * (8 * (sizes.threads + 1) + 4)
    edges = min(sizes.budget, sizes.in_memory_bytes)
    needed = edges + marks + hashed + vertices * (VERTEX_BYTES + (8 if sizes.weighted else 0))
    memory.forecast(
        needed,
        what=f"a graph of {vertices:,} vertices at most and {sizes.entries:,} edges",
        remedy="Lower renumber.memory_gb, so that edges go to disk; the vertices must fit into memory.",
    )
    return needed


def _target_ranges(
    pieces: Sequence[Piece], codes: IdCodes, bucket_bits: tuple[int, int], ids: Ids, *, range_edges: int
) -> list[TargetRange]:
    """Cut the buckets into ranges of about ``range_edges`` edges, and leave out empty ones."""
    shift, width = bucket_bits
    counts = sum((np.diff(piece.ends, prepend=0) for piece in pieces), np.zeros(1 << width, np.int64))
    counts = counts[: ((codes.size - 1) >> shift) + 1]
    before = np.cumsum(counts) - counts
    inner = np.flatnonzero(np.diff(before // range_edges)) + 1
    cuts = [0, *inner.tolist(), len(counts)]
    # Where codes are places, each is the number of its id.
    firsts = inner << shift
    if codes.ids is None:
        firsts = np.searchsorted(ids, firsts + codes.minimum)
    ranges = [
        TargetRange(range(start, stop), range(first, last), int(counts[start:stop].sum()))
        for (start, stop), (first, last) in zip(pairwise(cuts), pairwise([0, *firsts.tolist(), len(ids)]), strict=True)
    ]
    return [each for each in ranges if each.edges]


def _merged(
    ranges: Sequence[TargetRange], workers: Workers, shared: dict[str, Any], *, at_once: int
) -> Iterator[tuple[range, MergedEdges]]:
    """Merge the edges of ranges of targets, in ascending order, so many at once."""
    for start in range(0, len(ranges), at_once):
        tasks = ranges[start : start + at_once]
        results = workers.map(merge, tasks, label="merge", ordered=True, shared=shared)
        for task, merged in zip(tasks, results, strict=True):
            yield task.vertices, merged

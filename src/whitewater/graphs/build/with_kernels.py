"""Builds in-edges on the CPU: edges become keys, which are put into buckets by target and sorted, in memory or on disk.

Each id has a *code* below 2**32, in the order of the ids. If the ids lie close together, the code is the distance from
the smallest id; otherwise the edges are read once for their ids alone, and the code is the position among the ids. One
bit per code marks the codes that occur. The *key* of an edge is the code of its target times 2**32 plus the code of its
source, so that sorted keys are compressed sparse rows of in-edges.

Sorting: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5) of buckets that fit into the
cache of a core (Polychroniou, Ross: A comprehensive study of main-memory partitioning, SIGMOD 2014).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whitewater import lazy_pandas as pd
from whitewater.engines import Array, memory
from whitewater.engines.workers import Workers
from whitewater.errors import IntegrityError, ResourceError
from whitewater.graphs.build.kernels import KeyedEdges, Numbers, encode_block, merge_equal, sort_digit, sort_keys
from whitewater.graphs.edges_folder import FORMAT, Batch, EdgesFolder, edge_blocks
from whitewater.graphs.graph_folder import MergedEdges, NumberedEdges, Rule, index_type
from whitewater.graphs.vertex_ids import Ids, find_positions
from whitewater.io.folder import RowGroup
from whitewater.step import Run
from whitewater.tables.arrow_arrays import empty

CODE_BITS = 32
CODES = 1 << CODE_BITS
# So that no thread waits long for the last task.
TASKS_A_THREAD = 4
# Edges of a bucket: two copies of its keys fit into the cache of a core.
BUCKET_EDGES = 32 << 10
# Writing to more buckets at once would take longer than sorting them.
MOST_BUCKETS = 1 << 10
# Codes are distances if there are at most SPARSEST distances per end of an edge, or at most FEW_CODES.
SPARSEST, FEW_CODES = 8, 1 << 22
# Bytes of an edge while its ids are looked up as positions; of an edge while it is encoded; and of a vertex.
HASHED_BYTES, WORK_BYTES, VERTEX_BYTES = 112, 200, 48
# Bounds on the edges that are encoded or merged at once.
SMALLEST_PIECE, LARGEST_PIECE = 1 << 16, 1 << 21
_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)
# Read-only like the arrays of a file, so that kernels are compiled once.
_NO_WEIGHTS = np.frombuffer(b"")


class Sizes:
    """Sizes of the work on ``entries`` edges, including opposite ones, in ``budget`` bytes."""

    def __init__(self, entries: int, weighted: bool, budget: int, threads: int) -> None:
        self.entries, self.weighted, self.budget, self.threads = entries, weighted, budget, threads
        edge_bytes = 16 if weighted else 8
        # Bytes of an edge while it is merged: two copies of its key and weight, and the result.
        self.merged_bytes = 3 * edge_bytes
        # All keys, and the arrays that they are made from or become. If this is above the budget, keys go to disk.
        self.in_memory_bytes = 2 * entries * edge_bytes
        self.spills = self.in_memory_bytes > budget
        # Rows that are encoded at once.
        self.piece_rows = min(max(budget // (threads * WORK_BYTES), SMALLEST_PIECE), LARGEST_PIECE)
        # Edges that a task merges; as many results wait to be written.
        edges = min(-(-entries // (TASKS_A_THREAD * threads)), budget // (2 * threads * self.merged_bytes))
        self.range_edges = min(max(edges, SMALLEST_PIECE), LARGEST_PIECE)

    def bucket_bits(self, codes: int) -> tuple[int, int]:
        """Return the number of low bits of a target's code within a bucket, and of high bits that number buckets."""
        # At least two buckets, because a key of 64 bits cannot be shifted by 64.
        buckets = max(2, min(MOST_BUCKETS, -(-self.entries // BUCKET_EDGES)))
        if self.spills:
            buckets = max(buckets, min(CODES, 4 * self.entries // self.range_edges))
        bits = (codes - 1).bit_length()
        width = min(bits, (buckets - 1).bit_length())
        return bits - width, width


@dataclass(frozen=True)
class IdCodes:
    """``size`` codes: distances from ``minimum``, or positions in ``ids``, int64, ascending, with ``minimum`` 0."""

    minimum: int
    size: int
    ids: Array | None = None

    def empty_marks(self) -> Array:
        """Return a cleared bit for each code, lowest first, in uint64 words."""
        return np.zeros(-(-self.size // 64), np.uint64)

    def shifted_codes(self, ids: Array) -> Array:
        """Return the codes of ids, int64, plus `minimum`; an id without a code gets a number out of range."""
        if self.ids is None:
            return ids
        numbers, distinct = pd.factorize(ids)
        return find_positions(distinct, self.ids)[numbers]

    def number(self, marks: Array, known: Ids) -> tuple[Ids, Numbers]:
        """Return the marked and known ids, int64, ascending, and the `Numbers` of the kernels."""
        is_vertex = np.unpackbits(marks.view(np.uint8), bitorder="little")
        is_vertex[self.shifted_codes(known) - self.minimum] = 1
        words = np.packbits(is_vertex, bitorder="little").view(np.uint64)
        counts = np.bitwise_count(words).astype(np.int64)
        ids = np.flatnonzero(is_vertex) + self.minimum if self.ids is None else self.ids
        return ids, (words, (np.cumsum(counts) - counts).astype(np.uint32))


class Piece(NamedTuple):
    """Edges ordered by bucket, in memory or in files; bucket *b* is ``ends[b]`` to before ``ends[b + 1]``."""

    keys: Array | Path
    weights: Array | Path
    ends: Array  # int64 (buckets + 1,)

    def buckets(self, numbers: range) -> Iterator[KeyedEdges]:
        """Yield the edges of each bucket. Raises InputError if a file is cut off."""
        keys, weights = (_map_array(array) if isinstance(array, Path) else array for array in self[:2])
        for start, stop in pairwise(self.ends[numbers.start : numbers.stop + 1].tolist()):
            yield keys[start:stop], weights[start:stop]


class TargetRange(NamedTuple):
    """A range of buckets, the numbers of its targets, and the edges in it."""

    buckets: range
    vertices: range
    edges: int


def number_edges(
    folder: EdgesFolder, known: Ids, *, rule: Rule, memory_gb: float, run: Run[Any], workers: Workers, spool: Path
) -> NumberedEdges:
    """Give vertices numbers in ascending order of their ids, and merge edges with the same ends.

    By ``rule``, merged edges get the sum of their weights, added in ascending order, or the maximum; without weights
    each edge counts 1. `whitewater.graphs.build.with_dask` gives equal bits. If edges have no direction, the opposite
    of each edge is added, except of self-loops. ``known`` are ids of vertices that may have no edges, int64, ascending.
    Edges take ``memory_gb`` of host memory, or if 0 half of what is available; more edges go to files in ``spool``.

    Raises ResourceError for too little memory for the vertices or the edges of a few targets, or above 2**32 vertices.
    """
    groups, threads = folder.row_groups(), sum(workers.threads)
    budget = int(memory_gb * 1e9) if memory_gb else memory.available() // 2
    sizes = Sizes(folder.edges << (not folder.directed), folder.weighted, budget, threads)
    run.note(edges_on_disk=sizes.spills)
    tasks = split_tasks(groups, threads=threads)
    codes = code_by_distance(groups, known, ends=2 * sizes.entries + len(known)) or _code_by_position(
        tasks, known, sizes, workers
    )
    forecast = _check_memory(sizes, codes, vertices=min(codes.size, 2 * folder.edges + len(known)))
    run.note(memory_forecast_bytes=forecast)
    bucket_bits = sizes.bucket_bits(codes.size)
    shared = {"codes": codes, "bucket_bits": bucket_bits, "rows": sizes.piece_rows, "weighted": folder.weighted,
              "symmetric": not folder.directed, "spool": spool if sizes.spills else None}  # fmt: skip
    marks, pieces = codes.empty_marks(), list[Piece]()
    for task_pieces, task_marks in workers.map(encode, list(enumerate(tasks)), label="encode", shared=shared):
        marks |= task_marks
        pieces += task_pieces
    ids, numbers = codes.number(marks, known)
    ranges = _target_ranges(pieces, codes, bucket_bits, ids, range_edges=sizes.range_edges)
    at_once = max(1, len(ranges))
    if sizes.spills:
        # Bounds the results that wait in memory.
        at_once, most = 2 * threads, max((range_.edges for range_ in ranges), default=0)
        memory.forecast(
            most * sizes.merged_bytes,
            what=f"merging {most:,} edges of a few targets",
            remedy="Use a machine with more memory, or leave out the vertex with the most in-edges.",
        )
    shared = {"pieces": pieces, "numbers": numbers, "rule": rule, "index": index_type(len(ids)),
              "weighted": folder.weighted or rule == "sum"}  # fmt: skip
    merge_ranges = partial(workers.map, merge, label="merge", ordered=True, shared=shared)
    parts = (ranges[start : start + at_once] for start in range(0, len(ranges), at_once))
    entries = sum(int(piece.ends[-1]) for piece in pieces)
    return NumberedEdges(ids, entries, chain.from_iterable(map(merge_ranges, parts)))


def split_tasks(groups: Sequence[RowGroup], *, threads: int) -> list[Sequence[RowGroup]]:
    """Split row groups, which have about one size, into tasks."""
    size = max(1, -(-len(groups) // (TASKS_A_THREAD * threads)))
    return [groups[start : start + size] for start in range(0, len(groups), size)]


def code_by_distance(groups: Sequence[RowGroup], known: Ids, *, ends: int) -> IdCodes | None:
    """Return distances as codes, or None if a file has no statistics of its ids, or there are too many distances."""
    footers = {path: FORMAT.footer(path) for path in {group.path for group in groups}}
    chunks = [footers[path].row_group(number).column(end).statistics for path, number, _ in groups for end in range(2)]
    if any(chunk is None or not chunk.has_min_max for chunk in chunks) or not (chunks or len(known)):
        return None
    minimum = min([*known[:1].tolist(), *(chunk.min for chunk in chunks)])
    size = max([*known[-1:].tolist(), *(chunk.max for chunk in chunks)]) - minimum + 1
    return IdCodes(minimum, size) if size <= min(CODES, max(FEW_CODES, SPARSEST * ends)) else None


def _code_by_position(tasks: Sequence[Sequence[RowGroup]], known: Ids, sizes: Sizes, workers: Workers) -> IdCodes:
    """Read the ids of all edges; return the positions among these and the known ids as codes."""
    _check_memory(sizes, IdCodes(0, len(known), known), vertices=len(known))
    task_ids = workers.map(distinct_ids, tasks, label="ids", shared={"rows": sizes.piece_rows})
    ids: Ids = reduce(union_of_ids, task_ids, known)
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    return IdCodes(0, len(ids), ids)


def _check_memory(sizes: Sizes, codes: IdCodes, *, vertices: int) -> int:
    """Refuse the work if the host has too little memory; return the memory that it takes, in bytes."""
    hashed = 0 if codes.ids is None else sizes.threads * min(sizes.piece_rows, sizes.entries) * HASHED_BYTES
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
    """Cut the buckets into ranges of about ``range_edges`` edges, without empty ranges."""
    shift, width = bucket_bits
    used = ((codes.size - 1) >> shift) + 1
    ends = sum((piece.ends for piece in pieces), np.zeros((1 << width) + 1, np.int64))
    cuts = np.flatnonzero(np.diff(ends[:used] // range_edges, prepend=-1))
    # A position among the ids is the number of a vertex.
    firsts = cuts << shift if codes.ids is not None else np.searchsorted(ids, (cuts << shift) + codes.minimum)
    buckets, vertices = [*cuts.tolist(), used], [*firsts.tolist(), len(ids)]
    ranges = zip(pairwise(buckets), pairwise(vertices), np.diff(ends[buckets]).tolist(), strict=True)
    return [TargetRange(range(*own), range(*targets), edges) for own, targets, edges in ranges if edges]


def distinct_ids(groups: Sequence[RowGroup], *, rows: int) -> Ids:
    """Return the unique ids of the ends of edges, int64, ascending."""
    blocks = (block for group in groups for block in edge_blocks(group, weighted=False, rows=rows))
    return union_of_ids(*(union_of_ids(block.source, block.target) for block in blocks))


def union_of_ids(*arrays: Ids) -> Ids:
    """Return the unique ids of arrays, int64, ascending."""
    # Many times faster than `numpy.unique`.
    return np.sort(pd.unique(np.concatenate(arrays)))


def encode(
    task: tuple[int, Sequence[RowGroup]], *, codes: IdCodes, bucket_bits: tuple[int, int], rows: int, weighted: bool,
    symmetric: bool, spool: Path | None
) -> tuple[list[Piece], Array]:  # fmt: skip
    """Encode row groups, ``rows`` edges at a time, into pieces, in ``spool`` if given; return the marks, too."""
    number, groups = task
    pieces, marks = list[Piece](), codes.empty_marks()
    for block in (block for group in groups for block in edge_blocks(group, weighted=weighted, rows=rows)):
        keys, weights, ends = bucket_edges(encode_edges(block, codes, marks, symmetric=symmetric), bucket_bits)
        piece = Piece(keys, weights, ends)
        if spool is not None:
            files = [spool / f"{name}-{number}-{len(pieces)}.npy" for name in ("keys", "weights")]
            np.save(files[0], keys)
            np.save(files[1], weights)
            piece = Piece(files[0], files[1], ends)
        pieces.append(piece)
    return pieces, marks


def encode_edges(block: Batch, codes: IdCodes, marks: Array, *, symmetric: bool) -> KeyedEdges:
    """Return the keys of edges, and set ``marks``; ``symmetric`` adds opposite edges, except of self-loops.

    Raises IntegrityError if an id has no code.
    """
    keys, weights = _empty_edges(len(block.source) << symmetric, weighted=block.weight is not None)
    edges = encode_block(
        (codes.shifted_codes(block.source), codes.shifted_codes(block.target)),
        _NO_WEIGHTS if block.weight is None else block.weight,
        (codes.minimum, codes.size, symmetric),
        (keys, weights, marks),
    )
    if edges < 0:
        raise IntegrityError(
            "an edge has an id that its Parquet file does not have by its statistics, or had not when it was first "
            "read. Run the step that writes the edges again."
        )
    return keys[:edges], weights[:edges]


def bucket_edges(edges: KeyedEdges, bucket_bits: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Order edges by bucket; return the fields of `Piece`."""
    ordered = _empty_edges(len(edges[0]), weighted=len(edges[1]) > 0)
    shift, width = bucket_bits
    return (*ordered, np.append(0, sort_digit(edges, CODE_BITS + shift, width, ordered)))


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: Numbers, rule: Rule, index: str,
          weighted: bool) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range by target and source, bucket by bucket, and merge edges with the same ends.

    ``index`` is the dtype of the sources; ``weighted`` says whether the result has weights.
    """
    vertices = task.vertices
    counts = np.zeros(len(vertices), np.int64)
    sources, merged = empty(task.edges, np.dtype(index)), empty(task.edges if weighted else 0, _FLOAT64)
    filled, loops, repeated = 0, 0, -1
    for bucket in zip(*(piece.buckets(task.buckets) for piece in pieces), strict=True):
        keys, weights = (
            np.concatenate(arrays, out=empty(sum(map(len, arrays)), arrays[0].dtype))
            for arrays in zip(*bucket, strict=True)
        )
        other = _empty_edges(len(keys), weighted=len(weights) > 0)
        written, own_loops, first = merge_equal(
            other if sort_keys((keys, weights), other) else (keys, weights), rule == "maximum", numbers,
            (counts, vertices.start), (sources[filled:], merged[filled:]),
        )  # fmt: skip
        if repeated < 0 <= first:
            repeated = filled + first
        filled, loops = filled + written, loops + own_loops
    target = vertices.start + int(np.searchsorted(np.cumsum(counts), repeated, side="right"))
    ends = None if repeated < 0 else (int(sources[repeated]), target)
    return MergedEdges(vertices, counts, sources[:filled], merged[:filled] if weighted else None, loops, ends)


def _empty_edges(edges: int, *, weighted: bool) -> KeyedEdges:
    return empty(edges, _UINT64), empty(edges if weighted else 0, _FLOAT64)


def _map_array(path: Path) -> Array:
    with FORMAT.explain_errors(path):
        # Slicing a plain array is ten times as fast as slicing a `numpy.memmap`.
        return np.asarray(np.load(path, mmap_mode="r"))

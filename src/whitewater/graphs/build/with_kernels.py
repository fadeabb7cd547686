"""In-edges by kernels of the CPU: edges as keys, cut into buckets by target and sorted, in memory or through files.

Each end of an edge has a *code*, a number below 2**32 that is higher for a higher id. The *key* of an edge is the code
of its target times 2**32 plus that of its source, so that keys in ascending order are compressed sparse rows of
in-edges. Where the ids lie close together, the code of an id is its distance from the smallest one; otherwise the edges
are read once for their ids alone, and the code of an id is its place among these. A bit for each code marks those that
occur.

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
from whitewater.graphs.vertex_ids import Ids, places_of
from whitewater.io.folder import RowGroup
from whitewater.step import Run
from whitewater.tables.arrow_arrays import empty

CODE_BITS = 32
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
_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)
# Read-only as the arrays of a file are, so that kernels are compiled once.
_NO_WEIGHTS = np.frombuffer(b"")


class Sizes:
    """How much is worked on at once: of ``entries`` edges, opposite ones included, in ``budget`` bytes."""

    def __init__(self, entries: int, weighted: bool, budget: int, threads: int) -> None:
        self.entries, self.weighted, self.budget, self.threads = entries, weighted, budget, threads
        edge_bytes = 16 if weighted else 8
        # Bytes of an edge while it is merged: its key, and weight, twice, and the result.
        self.merged_bytes = 3 * edge_bytes
        # Of all edges under way: the keys, and what they are made from or become. If it is too much, they go to disk.
        self.in_memory_bytes = 2 * entries * edge_bytes
        self.spills = self.in_memory_bytes > budget
        # Rows that are encoded and bucketed at once.
        self.piece_rows = min(max(budget // (threads * WORK_BYTES), SMALLEST_PIECE), LARGEST_PIECE)
        # Edges that are merged in a task; as many results wait to be written.
        wanted = min(-(-entries // (TASKS_A_THREAD * threads)), budget // (2 * threads * self.merged_bytes))
        self.range_edges = min(max(wanted, SMALLEST_PIECE), LARGEST_PIECE)

    def bucket_bits(self, codes: int) -> tuple[int, int]:
        """Return the bits of a target's code that its bucket has in common, and those that number the buckets."""
        # Two at least: a key of 64 bits cannot be shifted by as many.
        wanted = max(2, min(MOST_BUCKETS, -(-self.entries // BUCKET_EDGES)))
        if self.spills:
            wanted = max(wanted, min(CODES, 4 * self.entries // self.range_edges))
        bits = (codes - 1).bit_length()
        width = min(bits, (wanted - 1).bit_length())
        return bits - width, width


@dataclass(frozen=True)
class IdCodes:
    """``size`` codes: distances from ``minimum``, or, ``minimum`` being 0, places in ``ids``, int64, ascending."""

    minimum: int
    size: int
    ids: Array | None = None

    def empty_marks(self) -> Array:
        """Return words of 64 bits with a bit for each code, the lowest first, uint64; none is set."""
        return np.zeros(-(-self.size // 64), np.uint64)

    def shifted_codes(self, ids: Array) -> Array:
        """Return the codes of ids, int64, plus `minimum`; what an id without a code gets is out of their range."""
        if self.ids is None:
            return ids
        numbers, distinct = pd.factorize(ids)
        return places_of(distinct, self.ids)[numbers]

    def number(self, marks: Array, known: Ids) -> tuple[Ids, Numbers]:
        """Return the ids that are marked or known, int64, ascending, and the numbers of their codes."""
        is_vertex = np.unpackbits(marks.view(np.uint8), bitorder="little")
        is_vertex[self.shifted_codes(known) - self.minimum] = 1
        words = np.packbits(is_vertex, bitorder="little").view(np.uint64)
        counts = np.bitwise_count(words).astype(np.int64)
        ids = np.flatnonzero(is_vertex) + self.minimum if self.ids is None else self.ids
        return ids, (words, (np.cumsum(counts) - counts).astype(np.uint32))


class Piece(NamedTuple):
    """Edges ordered by bucket, in memory or, where that is too small, in files.

    Those of bucket *b* are from ``ends[b]`` to before ``ends[b + 1]``, int64 (buckets + 1,).
    """

    keys: Array | Path
    weights: Array | Path
    ends: Array

    def buckets(self, numbers: range) -> Iterator[KeyedEdges]:
        """Yield the edges of each of some buckets. Raises InputError if a file is cut off."""
        keys, weights = (_mapped(each) if isinstance(each, Path) else each for each in self[:2])
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

    By ``rule`` edges with the same ends get the sum of their weights, added up in ascending order, or else the
    maximum; edges without any count 1 each. `whitewater.graphs.build.with_dask` gives equal bits.

    Where edges have no direction, the opposite of each that is not a self-loop is added. ``known`` are ids of vertices
    that may have no edges, int64, ascending. ``memory_gb`` is the host's memory for edges under way, 0: half of what is
    available; what is more goes through files in the folder ``spool``.

    Raises ResourceError if there is not enough memory for the vertices, or for the edges of a few targets, or the
    vertices are more than 2**32.
    """
    groups, threads = folder.row_groups(), sum(workers.threads)
    budget = int(memory_gb * 1e9) if memory_gb else memory.available() // 2
    sizes = Sizes(folder.edges << (not folder.directed), folder.weighted, budget, threads)
    run.note(edges_on_disk=sizes.spills)
    tasks = tasks_of(groups, threads=threads)
    codes = distances(groups, known, ends=2 * sizes.entries + len(known)) or _places(tasks, known, sizes, workers)
    forecast = _check_memory(sizes, codes, vertices=min(codes.size, 2 * folder.edges + len(known)))
    run.note(memory_forecast_bytes=forecast)
    bucket_bits = sizes.bucket_bits(codes.size)
    shared = {"codes": codes, "bucket_bits": bucket_bits, "rows": sizes.piece_rows, "weighted": folder.weighted,
              "symmetric": not folder.directed, "spool": spool if sizes.spills else None}  # fmt: skip
    marks, pieces = codes.empty_marks(), list[Piece]()
    for encoded, marked in workers.map(encode, list(enumerate(tasks)), label="encode", shared=shared):
        marks |= marked
        pieces += encoded
    ids, numbers = codes.number(marks, known)
    ranges = _target_ranges(pieces, codes, bucket_bits, ids, range_edges=sizes.range_edges)
    at_once = max(1, len(ranges))
    if sizes.spills:
        # Few results wait in memory.
        at_once, most = 2 * threads, max((each.edges for each in ranges), default=0)
        memory.forecast(
            most * sizes.merged_bytes,
            what=f"merging {most:,} edges of a few targets",
            remedy="Use a machine with more memory, or leave out the vertex that most edges lead to.",
        )
    shared = {"pieces": pieces, "numbers": numbers, "rule": rule, "index": index_type(len(ids)),
              "weighted": folder.weighted or rule == "sum"}  # fmt: skip
    merge_some = partial(workers.map, merge, label="merge", ordered=True, shared=shared)
    parts = (ranges[start : start + at_once] for start in range(0, len(ranges), at_once))
    return NumberedEdges(ids, sum(int(piece.ends[-1]) for piece in pieces), chain.from_iterable(map(merge_some, parts)))


def tasks_of(groups: Sequence[RowGroup], *, threads: int) -> list[Sequence[RowGroup]]:
    """Return row groups that are encoded together; they are of one size, but for the last one of a file."""
    size = max(1, -(-len(groups) // (TASKS_A_THREAD * threads)))
    return [groups[start : start + size] for start in range(0, len(groups), size)]


def distances(groups: Sequence[RowGroup], known: Ids, *, ends: int) -> IdCodes | None:
    """Return codes that are distances, or None where a file does not tell its ids, or a bit for each is too much."""
    footers = {path: FORMAT.footer(path) for path in {group.path for group in groups}}
    chunks = [footers[path].row_group(number).column(end).statistics for path, number, _ in groups for end in range(2)]
    if any(chunk is None or not chunk.has_min_max for chunk in chunks) or not (chunks or len(known)):
        return None
    minimum = min([*known[:1].tolist(), *(chunk.min for chunk in chunks)])
    size = max([*known[-1:].tolist(), *(chunk.max for chunk in chunks)]) - minimum + 1
    return IdCodes(minimum, size) if size <= min(CODES, max(FEW_CODES, SPARSEST * ends)) else None


def _places(tasks: Sequence[Sequence[RowGroup]], known: Ids, sizes: Sizes, workers: Workers) -> IdCodes:
    """Read the ids of all edges; the code of each is its place among these and those that are known."""
    _check_memory(sizes, IdCodes(0, len(known), known), vertices=len(known))
    found = workers.map(distinct_ids, tasks, label="ids", shared={"rows": sizes.piece_rows})
    ids: Ids = reduce(union_of_ids, found, known)
    if len(ids) > CODES:
        raise ResourceError(f"there are {len(ids):,} vertices, but at most {CODES:,} can be numbered. Leave some out.")
    return IdCodes(0, len(ids), ids)


def _check_memory(sizes: Sizes, codes: IdCodes, *, vertices: int) -> int:
    """Refuse the work if it takes more memory of the host than there is; return how much it takes, in bytes."""
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
    """Cut the buckets into ranges of about ``range_edges`` edges, and leave out empty ones."""
    shift, width = bucket_bits
    used = ((codes.size - 1) >> shift) + 1
    ends = sum((piece.ends for piece in pieces), np.zeros((1 << width) + 1, np.int64))
    cuts = np.flatnonzero(np.diff(ends[:used] // range_edges, prepend=-1))
    # Where codes are places, each is the number of its id.
    firsts = cuts << shift if codes.ids is not None else np.searchsorted(ids, (cuts << shift) + codes.minimum)
    buckets, vertices = [*cuts.tolist(), used], [*firsts.tolist(), len(ids)]
    ranges = zip(pairwise(buckets), pairwise(vertices), np.diff(ends[buckets]).tolist(), strict=True)
    return [TargetRange(range(*some), range(*targets), edges) for some, targets, edges in ranges if edges]


def distinct_ids(groups: Sequence[RowGroup], *, rows: int) -> Ids:
    """Return the ids of the ends of edges, int64, ascending, each once."""
    blocks = (block for group in groups for block in edge_blocks(group, weighted=False, rows=rows))
    return union_of_ids(*(union_of_ids(block.source, block.target) for block in blocks))


def union_of_ids(*arrays: Ids) -> Ids:
    """Return the ids, int64, that are in any of some arrays, ascending, each once."""
    # Many times faster than `numpy.unique`.
    return np.sort(pd.unique(np.concatenate(arrays)))


def encode(
    task: tuple[int, Sequence[RowGroup]], *, codes: IdCodes, bucket_bits: tuple[int, int], rows: int, weighted: bool,
    symmetric: bool, spool: Path | None
) -> tuple[list[Piece], Array]:  # fmt: skip
    """Encode the edges of row groups, ``rows`` at once, ordered by bucket; return the marks of their codes, too.

    Pieces go to files in ``spool``, if that is given; ``bucket_bits`` are as `Sizes` has them.
    """
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
    """Return the keys of edges; ``symmetric`` adds the opposite of each that is not a self-loop.

    The codes that occur are marked, see `IdCodes.empty_marks`. Raises IntegrityError if an id has no code.
    """
    keys, weights = _room(len(block.source) << symmetric, weighted=block.weight is not None)
    edges = encode_block(
        (codes.shifted_codes(block.source), codes.shifted_codes(block.target)),
        _NO_WEIGHTS if block.weight is None else block.weight,
        (codes.minimum, codes.size, symmetric),
        (keys, weights, marks),
    )
    if edges < 0:
        raise IntegrityError(
            "an edge has an id that its Parquet file does not have by its statistics, or had not when it was read "
            "before. Run the step that writes the edges again."
        )
    return keys[:edges], weights[:edges]


def bucket_edges(edges: KeyedEdges, bucket_bits: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Order edges by bucket; return keys, weights, and where buckets begin and the last one ends, see `Piece`."""
    ordered = _room(len(edges[0]), weighted=len(edges[1]) > 0)
    shift, width = bucket_bits
    return (*ordered, np.append(0, sort_digit(edges, CODE_BITS + shift, width, ordered)))


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: Numbers, rule: Rule, index: str,
          weighted: bool) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range by target, then source, bucket by bucket, and make one of those with the same ends.

    ``numbers`` are those of the codes, ``index`` is the dtype of the sources, and ``weighted`` says whether the result
    has weights; for ``rule`` see `number_edges`.
    """
    vertices = task.vertices
    counts = np.zeros(len(vertices), np.int64)
    sources, merged = empty(task.edges, np.dtype(index)), empty(task.edges if weighted else 0, _FLOAT64)
    filled, loops, repeated = 0, 0, -1
    for of_pieces in zip(*(piece.buckets(task.buckets) for piece in pieces), strict=True):
        keys, weights = (
            np.concatenate(arrays, out=empty(sum(map(len, arrays)), arrays[0].dtype))
            for arrays in zip(*of_pieces, strict=True)
        )
        other = _room(len(keys), weighted=len(weights) > 0)
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


def _room(edges: int, *, weighted: bool) -> KeyedEdges:
    return empty(edges, _UINT64), empty(edges if weighted else 0, _FLOAT64)


def _mapped(path: Path) -> Array:
    with FORMAT.explained(path):
        # Slices of a plain array are made ten times as fast as those of a `numpy.memmap`.
        return np.asarray(np.load(path, mmap_mode="r"))

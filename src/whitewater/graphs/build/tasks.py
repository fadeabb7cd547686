"""What workers do with edges of any order: encode them, cut into buckets by target; then sort and merge each bucket.

Each end of an edge has a *code*, a number below 2**32 that is higher for a higher id. The *key* of an edge is the code
of its target times 2**32 plus that of its source, so that keys in ascending order are compressed sparse rows of
in-edges. Where the ids lie close together, the code of an id is its distance from the smallest one; otherwise the edges
are read once for their ids alone, and the code of an id is its place among these. A bit for each code marks those that
occur.

Sorting: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5) of buckets that fit into the
cache of a core (Polychroniou, Ross: A comprehensive study of main-memory partitioning, SIGMOD 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.graphs.build.kernels import KeyedEdges, Numbers, encode_block, merge_equal, sort_digit, sort_keys
from whitewater.graphs.build.numbered_edges import MergedEdges, Rule
from whitewater.graphs.edges_folder import Block, edge_blocks
from whitewater.graphs.vertex_ids import Ids, places_of
from whitewater.io.folder import RowGroup
from whitewater.tables.arrow_arrays import empty

CODE_BITS = 32
_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)
# Read-only as the arrays of a file are, so that kernels are compiled once.
_NO_WEIGHTS = np.frombuffer(b"")


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
        import pandas as pd

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


@dataclass(frozen=True)
class Piece:
    """Edges ordered by bucket, in memory or, where that is too small, in files.

    Those of bucket *b* are from ``ends[b - 1]``, or 0, to before ``ends[b]``, int64 (buckets,).
    """

    keys: npt.NDArray[Any] | Path
    weights: npt.NDArray[Any] | Path
    ends: Array

    def buckets(self, numbers: range) -> Iterator[KeyedEdges]:
        """Yield the edges of each of some buckets. Raises IntegrityError if a file is cut off."""
        keys, weights = _open(self.keys), _open(self.weights)
        for number in numbers:
            rows = slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))
            yield keys[rows], weights[rows]


@dataclass(frozen=True)
class TargetRange:
    """A range of buckets, the numbers of its targets, and the edges in it."""

    buckets: range
    vertices: range
    edges: int


def distinct_ids(groups: Sequence[RowGroup], *, rows: int) -> Ids:
    """Return the ids of the ends of edges, int64, ascending, each once."""
    blocks = (block for group in groups for block in edge_blocks(group, weighted=False, rows=rows))
    return union_of_ids(*(union_of_ids(source, target) for source, target, _ in blocks))


def union_of_ids(*arrays: Ids) -> Ids:
    """Return the ids, int64, that are in any of some arrays, ascending, each once."""
    import pandas as pd

    # Many times faster than `numpy.unique`.
    return np.sort(pd.unique(np.concatenate(arrays)))


def encode(
    task: tuple[int, Sequence[RowGroup]], *, codes: IdCodes, bucket_bits: tuple[int, int], rows: int, weighted: bool,
    symmetric: bool, spool: Path | None
) -> tuple[list[Piece], Array]:  # fmt: skip
    """Encode the edges of row groups, ``rows`` at once, ordered by bucket; return the marks of their codes, too.

    ``bucket_bits`` are the bits of a target's code that its bucket has in common, and those that number the buckets.
    Pieces go to files in ``spool``, if that is given.
    """
    number, groups = task
    pieces, marks = list[Piece](), codes.empty_marks()
    for group in groups:
        for block in edge_blocks(group, weighted=weighted, rows=rows):
            edges, ends = bucket_edges(encode_edges(block, codes, marks, symmetric=symmetric), bucket_bits)
            files = (f"{name}-{number}-{len(pieces)}.npy" for name in ("keys", "weights"))
            keys, weights = (_save(array, spool, name) for array, name in zip(edges, files, strict=True))
            pieces.append(Piece(keys, weights, ends))
    return pieces, marks


def encode_edges(block: Block, codes: IdCodes, marks: Array, *, symmetric: bool) -> KeyedEdges:
    """Return the keys of edges; ``symmetric`` adds the opposite of each that is not a self-loop.

    The codes that occur are marked, see `IdCodes.empty_marks`. Raises IntegrityError if an id has no code.
    """
    source, target, weight = block
    keys, weights = _room(len(source) << symmetric, weighted=weight is not None)
    edges = encode_block(
        (codes.shifted_codes(source), codes.shifted_codes(target)),
        _NO_WEIGHTS if weight is None else weight,
        (codes.minimum, codes.size, symmetric),
        (keys, weights, marks),
    )
    if edges < 0:
        raise IntegrityError(
            "an edge has an id that its Parquet file does not have by its statistics, or had not when it was read "
            "before. Run the step that writes the edges again."
        )
    return keys[:edges], weights[:edges]


def bucket_edges(edges: KeyedEdges, bucket_bits: tuple[int, int]) -> tuple[KeyedEdges, Array]:
    """Order edges by bucket; return them, and where each bucket ends, int64 (buckets,)."""
    ordered = _room(len(edges[0]), weighted=len(edges[1]) > 0)
    shift, width = bucket_bits
    return ordered, sort_digit(edges, CODE_BITS + shift, width, ordered)


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: Numbers, rule: Rule, index: str,
          weighted: bool) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range by target, then source, bucket by bucket, and make one of those with the same ends.

    ``numbers`` are those of the codes. By ``rule`` edges with the same ends get the sum of their weights (in ascending
    order), or else the maximum; edges without any count 1 each. ``index`` is the dtype of the sources, and ``weighted``
    says whether the result has weights.
    """
    vertices = task.vertices
    counts = np.zeros(len(vertices), np.int64)
    sources, merged = empty(task.edges, np.dtype(index)), empty(task.edges if weighted else 0, _FLOAT64)
    filled, loops, repeated = 0, 0, -1
    for bucket_of_pieces in zip(*(piece.buckets(task.buckets) for piece in pieces), strict=True):
        all_keys, all_weights = zip(*bucket_of_pieces, strict=True)
        keys, weights = bucket = _room(sum(map(len, all_keys)), weighted=any(map(len, all_weights)))
        np.concatenate(all_keys, out=keys)
        np.concatenate(all_weights, out=weights)
        other = _room(len(keys), weighted=len(weights) > 0)
        written, own_loops, first = merge_equal(
            other if sort_keys(bucket, other) else bucket, rule == "maximum", numbers, (counts, vertices.start),
            (sources[filled:], merged[filled:]),
        )  # fmt: skip
        if repeated < 0 <= first:
            repeated = filled + first
        filled, loops = filled + written, loops + own_loops
    target = vertices.start + int(np.searchsorted(np.cumsum(counts), repeated, side="right"))
    ends = None if repeated < 0 else (int(sources[repeated]), target)
    return MergedEdges(counts, sources[:filled], merged[:filled] if weighted else None, loops, ends)


def _room(edges: int, *, weighted: bool) -> KeyedEdges:
    """Return memory for keys and, if there are any, for weights."""
    return empty(edges, _UINT64), empty(edges if weighted else 0, _FLOAT64)


def _save(array: Array, folder: Path | None, name: str) -> Array | Path:
    """Return an array, or the file that it was written to."""
    if folder is None:
        return array
    np.save(folder / name, array)
    return folder / name


def _open(array: Array | Path) -> Array:
    """Return an array, mapped if it is a file."""
    if not isinstance(array, Path):
        return array
    try:
        mapped: Array = np.load(array, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise IntegrityError(f"{array} is cut off: something changed it while the step ran. Run it again.") from error
    return mapped

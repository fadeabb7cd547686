"""What workers do with edges of any order: encode them, cut into buckets by target; then sort and merge each bucket.

Sorting: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5) of buckets that fit into the
cache of a core (Polychroniou, Ross: A comprehensive study of main-memory partitioning, SIGMOD 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import IntegrityError
from whitewater.graphs.build.edge_blocks import Block, edge_blocks
from whitewater.graphs.build.kernels import count_buckets, encode_block, merge_equal, scatter, sort_keys
from whitewater.graphs.build.keys import CODE_BITS, CODES, CodeNumbers, IdCodes, KeyedEdges, MergedEdges, Rule
from whitewater.tables.arrow_arrays import empty

if TYPE_CHECKING:
    from whitewater.engines import Array
    from whitewater.graphs.build.plan import Buckets, EdgePlan

_UINT64, _FLOAT64 = np.dtype(np.uint64), np.dtype(np.float64)
# Read-only as the arrays of a file are, so that kernels are compiled once.
_NO_WEIGHTS = np.frombuffer(b"")


@dataclass(frozen=True)
class Piece:
    """Edges ordered by bucket, in memory or, where that is too small, in files.

    Those of bucket *b* are from ``ends[b - 1]``, or 0, to before ``ends[b]``, int64 (buckets,).
    """

    keys: npt.NDArray[Any] | Path
    weights: npt.NDArray[Any] | Path
    ends: Array

    def buckets(self, numbers: range) -> Iterator[KeyedEdges]:
        """Yield the edges of each of some buckets."""
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


def distinct_ids(task: int, *, plan: EdgePlan) -> Array:
    """Return the ids of the ends of a task's edges, int64, ascending, each once."""
    blocks = _blocks(plan, task, weighted=False)
    return union_of_ids(*(union_of_ids(source, target) for source, target, _ in blocks))


def union_of_ids(*arrays: Array) -> Array:
    """Return the ids, int64, that are in any of some arrays, ascending, each once."""
    import pandas as pd

    # Many times faster than `numpy.unique`.
    return np.sort(pd.unique(np.concatenate(arrays)))


def encode(
    task: int, *, plan: EdgePlan, codes: IdCodes, buckets: Buckets, spool: Path | None
) -> tuple[list[Piece], Array]:
    """Encode the edges of a task, ordered by bucket; return the marks of their codes, too."""
    pieces, marks = list[Piece](), codes.empty_marks()
    for place, block in enumerate(_blocks(plan, task, weighted=plan.weighted)):
        edges, ends = bucket_edges(encode_edges(block, codes, marks, symmetric=plan.symmetric), buckets)
        files = [spool and spool / f"{name}-{task}-{place}.npy" for name in ("keys", "weights")]
        keys, weights = map(_save, edges, files)
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


def bucket_edges(edges: KeyedEdges, buckets: Buckets) -> tuple[KeyedEdges, Array]:
    """Order edges by bucket in one pass after counting; return them, and where each bucket ends, int64 (buckets,)."""
    shift, counts = CODE_BITS + buckets.shift, np.zeros(buckets.count, np.int64)
    count_buckets(edges[0], shift, counts)
    ends = np.cumsum(counts)
    ordered = _room(len(edges[0]), weighted=len(edges[1]) > 0)
    scatter(edges, shift, ends - counts, ordered)
    return ordered, ends


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: CodeNumbers, rule: Rule, index: str,
          weighted: bool) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range of targets, and make one of those with the same ends."""
    buckets = zip(*(piece.buckets(task.buckets) for piece in pieces), strict=True)
    return merge_edges(buckets, numbers, task.vertices, rule, index, weighted=weighted, edges=task.edges)


def merge_edges(
    buckets: Iterable[Sequence[KeyedEdges]], numbers: CodeNumbers, vertices: range, rule: Rule, index: str, *,
    weighted: bool, edges: int
) -> MergedEdges:  # fmt: skip
    """Sort edges by target, then source, bucket by bucket, and make one of those with the same ends.

    ``buckets`` are the pieces of each bucket, in ascending order, ``edges`` in all; ``numbers`` are those of the vertex
    of each code, and ``vertices`` those of the targets. By ``rule`` edges with the same ends get the sum of their
    weights (in ascending order), or else the maximum; edges without any count 1 each. ``index`` is the dtype of the
    sources, and ``weighted`` says whether the result has weights.
    """
    counts = np.zeros(len(vertices), np.int64)
    sources, merged = empty(edges, np.dtype(index)), empty(edges if weighted else 0, _FLOAT64)
    filled, loops, repeated = 0, 0, None
    for pieces in buckets:
        all_keys, all_weights = zip(*pieces, strict=True)
        keys, weights = bucket = _room(sum(map(len, all_keys)), weighted=any(map(len, all_weights)))
        np.concatenate(all_keys, out=keys)
        np.concatenate(all_weights, out=weights)
        other = _room(len(keys), weighted=len(weights) > 0)
        keys, weights = bucket = other if sort_keys(bucket, other) else bucket
        written, own_loops, first = merge_equal(
            bucket, rule == "maximum", (numbers.marks, numbers.before), (counts, vertices.start),
            (sources[filled:], merged[filled:]),
        )  # fmt: skip
        filled, loops = filled + written, loops + own_loops
        if repeated is None and first >= 0:
            ends = np.array([keys[first] & np.uint64(CODES - 1), keys[first] >> np.uint64(CODE_BITS)])
            repeated = tuple(numbers.of(ends).tolist())
    return MergedEdges(counts, sources[:filled], merged[:filled] if weighted else None, loops, repeated)


def _blocks(plan: EdgePlan, task: int, *, weighted: bool) -> Iterator[Block]:
    for group in plan.tasks[task]:
        yield from edge_blocks(group, weighted=weighted, rows=plan.piece_rows)


def _room(edges: int, *, weighted: bool) -> KeyedEdges:
    """Return memory for keys and, if there are any, for weights."""
    return empty(edges, _UINT64), empty(edges if weighted else 0, _FLOAT64)


def _save(array: Array, path: Path | None) -> Array | Path:
    """Return an array, or the file that it was written to."""
    if path is None:
        return array
    np.save(path, array)
    return path


def _open(array: Array | Path) -> Array:
    """Return an array, mapped if it is a file. Raises IntegrityError if the file is cut off."""
    if not isinstance(array, Path):
        return array
    try:
        mapped: Array = np.load(array, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise IntegrityError(f"{array} is cut off: something changed it while the step ran. Run it again.") from error
    return mapped

"""What workers do with edges: encode them, give them the numbers of vertices, and merge those of a range of targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from whitewater.engines import Device
from whitewater.errors import IntegrityError
from whitewater.graphs.build.edge_blocks import edge_blocks
from whitewater.graphs.build.keys import CODE_BITS, CODES, CodeNumbers, IdSpan, KeyedEdges, MergedEdges, Rule
from whitewater.graphs.build.merge import SpanEncoder, WordEncoder, bucket_edges, merge_edges

if TYPE_CHECKING:
    from whitewater.engines import Array
    from whitewater.graphs.build.plan import Buckets, EdgePlan
    from whitewater.io.folder import RowGroup


# An array of the host that waits for a later task, or a file of it where memory is too small.
Kept = npt.NDArray[Any] | Path
Encoder = TypeVar("Encoder", SpanEncoder, WordEncoder)


@dataclass(frozen=True)
class Words:
    """Edges whose codes are the places of their ends among their own ids, int64, ascending."""

    keys: Kept
    weights: Kept | None
    ids: Kept


@dataclass(frozen=True)
class Piece:
    """Edges ordered by bucket; those of bucket *b* are from ``ends[b - 1]``, or 0, to before ``ends[b]``, int64."""

    keys: Kept
    weights: Kept | None
    ends: Array

    def buckets(self, numbers: range) -> Iterator[KeyedEdges]:
        """Yield the edges of each of some buckets."""
        keys, weights = read(self.keys, mapped=True), read(self.weights, mapped=True)
        for number in numbers:
            rows = slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))
            yield KeyedEdges(keys[rows], None if weights is None else weights[rows])


@dataclass(frozen=True)
class TargetRange:
    """A range of buckets, the numbers of its targets, and the edges in it."""

    buckets: range
    vertices: range
    edges: int


def encode(
    task: int, *, plan: EdgePlan, span: IdSpan, buckets: Buckets, spool: Path | None
) -> tuple[list[Piece], Array]:
    """Encode the row groups of a task as distances, ordered by bucket; return the marks of their codes, too."""
    pieces, marks = list[Piece](), np.zeros(span.words, np.uint64)

    def encoder(rows: int) -> SpanEncoder:
        return SpanEncoder(span, symmetric=plan.symmetric, weighted=plan.weighted, rows=rows)

    for place, filled in enumerate(_filled(plan.tasks[task], plan, encoder)):
        marks |= filled.marks
        pieces.append(_piece(filled.edges(), buckets, spool and spool / f"encoded-{task}-{place}"))
    return pieces, marks


def encode_words(task: int, *, plan: EdgePlan, spool: Path | None) -> list[Words]:
    """Encode the row groups of a task with codes of their own."""
    words = []
    filled = _filled(plan.tasks[task], plan, lambda _: WordEncoder(symmetric=plan.symmetric))
    for place, (edges, ids) in enumerate(each.edges() for each in filled):
        arrays, stem = {"keys": edges.keys, "weights": edges.weights, "ids": ids}, f"encoded-{task}-{place}"
        words.append(
            Words(**{name: _array_or_file(array, spool and spool / stem, name) for name, array in arrays.items()})
        )
    return words


def number(task: int, *, words: Sequence[Words], ids: Array, buckets: Buckets, spool: Path | None) -> Piece:
    """Give edges the numbers of their ids among all ``ids``, int64, ascending, and order them by bucket."""
    own = words[task]
    table = np.searchsorted(ids, read(own.ids)).astype(np.uint64)
    keys, lower = read(own.keys), np.uint64(CODES - 1)
    keys = table[keys >> np.uint64(CODE_BITS)] << np.uint64(CODE_BITS) | table[keys & lower]
    return _piece(KeyedEdges(keys, read(own.weights)), buckets, spool and spool / f"numbered-{task}")


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: CodeNumbers, rule: Rule, index: str,
          weighted: bool) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range of targets, and make one of those with the same ends."""
    buckets = zip(*(piece.buckets(task.buckets) for piece in pieces), strict=True)
    return merge_edges(buckets, numbers, task.vertices, rule, index, weighted=weighted, edges=task.edges)


def _filled(groups: Sequence[RowGroup], plan: EdgePlan, empty: Callable[[int], Encoder]) -> Iterator[Encoder]:
    """Yield encoders that are given the edges of row groups, `EdgePlan.piece_rows` at most each."""
    left = sum(group.rows for group in groups)
    room = 0
    encoder = None
    most = min(Device().slice_rows, plan.piece_rows)
    blocks = (edge_blocks(group, weighted=plan.weighted, rows=most) for group in groups)
    for block in chain.from_iterable(blocks):
        rows = len(block[0])
        if encoder is None or rows > room:
            if encoder is not None:
                yield encoder
            room = min(left, plan.piece_rows)
            encoder = empty(room)
        encoder.add(*block)
        room -= rows
        left -= rows
    if encoder is not None:
        yield encoder


def _piece(edges: KeyedEdges, buckets: Buckets, stem: Path | None) -> Piece:
    ordered, ends = bucket_edges(edges, buckets.shift, buckets.count)
    return Piece(_array_or_file(ordered.keys, stem, "keys"), _array_or_file(ordered.weights, stem, "weights"), ends)


def _array_or_file(array: Array | None, stem: Path | None, name: str) -> Any:
    """Return an array, or the file that it was written to."""
    if array is None or stem is None:
        return array
    path = stem.with_name(f"{stem.name}-{name}.npy")
    np.save(path, array)
    return path


def read(kept: Kept | None, *, mapped: bool = False) -> Any:
    """Return an array that was kept, if any. Raises IntegrityError if its file is cut off."""
    if not isinstance(kept, Path):
        return kept
    try:
        return np.load(kept, mmap_mode="r" if mapped else None)
    except (ValueError, EOFError) as error:
        raise IntegrityError(f"{kept} is cut off: something changed it while the step ran. Run it again.") from error

"""What workers do with edges: encode them, give them the numbers of vertices, and merge those of a range of targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from whitewater.engines import Device
from whitewater.errors import IntegrityError
from whitewater.graphs.build.edge_blocks import edge_blocks
from whitewater.graphs.build.keys import CodeNumbers, EncodedEdges, KeyedEdges, MergedEdges, Rule
from whitewater.graphs.build.merge import bucket_edges, edge_encoder, merge_edges, recode_edges

if TYPE_CHECKING:
    from whitewater.engines import Array
    from whitewater.graphs.build.plan import Buckets, EdgePlan
    from whitewater.io.folder import RowGroup


# An array of the host that waits for a later task, or a file of it where memory is too small.
Kept = npt.NDArray[Any] | Path


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
class Encoded:
    """What a task of `encode` makes: pieces and the marks of their codes, or edges with codes of their own."""

    pieces: list[Piece]
    marks: Array | None
    words: list[Words]


@dataclass(frozen=True)
class TargetRange:
    """A range of buckets, the numbers of its targets, and the edges in it."""

    buckets: range
    vertices: range
    edges: int


def encode(task: int, *, plan: EdgePlan, buckets: Buckets | None, spool: Path | None) -> Encoded:
    """Encode the row groups of a task, and order them by bucket if codes are distances."""
    encoded = Encoded([], None if plan.span is None else np.zeros(plan.span.words, np.uint64), [])
    for place, edges in enumerate(_encoded(plan.tasks[task], plan)):
        stem = spool and spool / f"encoded-{task}-{place}"
        if buckets is None:
            encoded.words.append(_words(edges, stem))
        else:
            cast("Array", encoded.marks)[:] |= cast("Array", edges.marks)
            encoded.pieces.append(_piece(edges.edges, buckets, stem))
    return encoded


def number(task: int, *, words: Sequence[Words], ids: Array, buckets: Buckets, spool: Path | None) -> Piece:
    """Give edges the numbers of their ids among all ``ids``, int64, ascending, and order them by bucket."""
    own = words[task]
    table = np.searchsorted(ids, read(own.ids)).astype(np.uint32)
    edges = recode_edges(KeyedEdges(read(own.keys), read(own.weights)), table)
    return _piece(edges, buckets, spool and spool / f"numbered-{task}")


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: CodeNumbers, rule: Rule, index: str,
          weighted: bool) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range of targets, and make one of those with the same ends."""
    buckets = zip(*(piece.buckets(task.buckets) for piece in pieces), strict=True)
    return merge_edges(buckets, numbers, task.vertices, rule, index, weighted=weighted, edges=task.edges)


def _encoded(groups: Sequence[RowGroup], plan: EdgePlan) -> Iterator[EncodedEdges]:
    """Yield the edges of row groups, encoded, `EdgePlan.piece_rows` of them at a time."""
    left = sum(group.rows for group in groups)
    room = 0
    encoder = None
    most = min(Device().slice_rows, plan.piece_rows)
    blocks = (edge_blocks(group, weighted=plan.weighted, rows=most) for group in groups)
    for source, target, weight in chain.from_iterable(blocks):
        rows = len(source)
        if encoder is None or rows > room:
            if encoder is not None:
                yield encoder.result()
            room = min(left, plan.piece_rows)
            encoder = edge_encoder(plan.span, symmetric=plan.symmetric, weighted=plan.weighted, rows=room)
        encoder.add(source, target, weight)
        room -= rows
        left -= rows
    if encoder is not None:
        yield encoder.result()


def _words(encoded: EncodedEdges, stem: Path | None) -> Words:
    keys, weights = encoded.edges.keys, encoded.edges.weights
    arrays = {"keys": keys, "weights": weights, "ids": encoded.ids}
    return Words(**{name: _array_or_file(array, stem, name) for name, array in arrays.items()})


def _piece(edges: KeyedEdges, buckets: Buckets, stem: Path | None) -> Piece:
    ordered = bucket_edges(edges, buckets.shift, buckets.count)
    keys, weights = ordered.edges.keys, ordered.edges.weights
    return Piece(_array_or_file(keys, stem, "keys"), _array_or_file(weights, stem, "weights"), ordered.ends)


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

"""What workers do with edges: encode them, give them the numbers of vertices, and merge those of a range of targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from whitewater.devices.edge_keys import (
    CodeNumbers,
    EncodedEdges,
    KeyedEdges,
    MergedEdges,
    Rule,
    bucket_edges,
    edge_encoder,
    merge_edges,
    recode_edges,
)
from whitewater.errors import IntegrityError

if TYPE_CHECKING:
    from whitewater.devices import Array, Device
    from whitewater.devices.protocol import Block, Kind
    from whitewater.folder import RowGroup
    from whitewater.pagerank.edge_plan import Buckets, EdgePlan


@dataclass(frozen=True)
class Spooled:
    """An array that waits for a later task in a raw little-endian file, where memory is too small for it."""

    path: Path
    dtype: str
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: slice) -> Array:
        """Read some values. Raises IntegrityError if the file ends before them."""
        start, stop, _ = rows.indices(self.size)
        dtype = np.dtype(self.dtype)
        values = np.fromfile(self.path, dtype, stop - start, offset=start * dtype.itemsize)
        if len(values) != stop - start:
            raise IntegrityError(f"{self.path} ends early: something changed it while the step ran. Run it again.")
        return values


@dataclass(frozen=True)
class Words:
    """Edges whose codes number their own ids: those, int64, ascending, and the rank of each code, if it is another."""

    keys: Array | Spooled
    weights: Array | Spooled | None
    ids: Array | Spooled
    ranks: Array | Spooled | None


@dataclass(frozen=True)
class Piece:
    """Edges ordered by bucket; those of bucket *b* are from ``ends[b - 1]``, or 0, to before ``ends[b]``, int64."""

    keys: Array | Spooled
    weights: Array | Spooled | None
    ends: Array

    def bucket(self, number: int) -> KeyedEdges:
        """Return the edges of a bucket."""
        start, stop = int(self.ends[number - 1]) if number else 0, int(self.ends[number])
        return KeyedEdges(self.keys[start:stop], None if self.weights is None else self.weights[start:stop])


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


def encode(task: int, *, plan: EdgePlan, buckets: Buckets | None, spool: Path | None, device: Device) -> Encoded:
    """Encode the row groups of a task, and order them by bucket if codes are distances."""
    encoded = Encoded([], None if plan.span is None else np.zeros(plan.span.words, np.uint64), [])
    for place, edges in enumerate(_encoded(plan.tasks[task], plan, device)):
        stem = spool and spool / f"encoded-{task}-{place}"
        if buckets is None:
            encoded.words.append(_words(edges, stem, device))
        else:
            cast("Array", encoded.marks)[:] |= device.to_host(cast("Array", edges.marks))
            encoded.pieces.append(_piece(edges.edges, buckets, stem, device))
    return encoded


def number(task: int, *, words: Sequence[Words], ids: Array, buckets: Buckets, spool: Path | None,
           device: Device) -> Piece:  # fmt: skip
    """Give edges the numbers of their ids among all ``ids``, int64, ascending, and order them by bucket."""
    own = words[task]
    table = np.searchsorted(ids, own.ids[:]).astype(np.uint32)
    if own.ranks is not None:
        table = table[own.ranks[:]]
    weights = None if own.weights is None else device.from_host(own.weights[:])
    edges = KeyedEdges(device.from_host(own.keys[:]), weights)
    return _piece(
        recode_edges(edges, device.from_host(table), device), buckets, spool and spool / f"numbered-{task}", device
    )


def merge(task: TargetRange, *, pieces: Sequence[Piece], numbers: CodeNumbers, rule: Rule, index: str, weighted: bool,
          device: Device) -> MergedEdges:  # fmt: skip
    """Sort the edges of a range of targets, and make one of those with the same ends."""
    buckets = ([piece.bucket(bucket) for piece in pieces] for bucket in task.buckets)
    return merge_edges(
        buckets, numbers, task.vertices, device, rule=rule, index=index, weighted=weighted, edges=task.edges
    )


def _encoded(groups: Sequence[RowGroup], plan: EdgePlan, device: Device) -> Iterator[EncodedEdges]:
    """Yield the edges of row groups, encoded, `EdgePlan.piece_rows` of them at a time."""
    left = sum(group.rows for group in groups)
    room = 0
    encoder = None
    for block in _blocks(groups, plan, device):
        rows = len(block["source"])
        if encoder is None or rows > room:
            if encoder is not None:
                yield encoder.result()
            room = min(left, plan.piece_rows)
            encoder = edge_encoder(plan.span, device, symmetric=plan.symmetric, weighted=plan.weighted, rows=room)
        encoder.add(block["source"], block["target"], block.get("weight"))
        room -= rows
        left -= rows
    if encoder is not None:
        yield encoder.result()


def _blocks(groups: Sequence[RowGroup], plan: EdgePlan, device: Device) -> Iterator[Block]:
    columns: dict[str, Kind] = {"source": "id", "target": "id"}
    if plan.weighted:
        columns["weight"] = "float64"
    rows = min(device.slice_rows, plan.piece_rows)
    for group in groups:
        for block in device.row_group_blocks(group.path, group.number, columns, block_rows=rows):
            yield cast("Block", block)


def _words(encoded: EncodedEdges, stem: Path | None, device: Device) -> Words:
    edges = encoded.edges
    return Words(
        _kept(edges.keys, stem, ".keys", device),
        None if edges.weights is None else _kept(edges.weights, stem, ".weights", device),
        _kept(cast("Array", encoded.ids), stem, ".ids", device),
        None if encoded.ranks is None else _kept(encoded.ranks, stem, ".ranks", device),
    )


def _piece(edges: KeyedEdges, buckets: Buckets, stem: Path | None, device: Device) -> Piece:
    ordered = bucket_edges(edges, device, shift=buckets.shift, buckets=buckets.count)
    return Piece(
        _kept(ordered.edges.keys, stem, ".keys", device),
        None if ordered.edges.weights is None else _kept(ordered.edges.weights, stem, ".weights", device),
        device.to_host(ordered.ends),
    )


def _kept(array: Array, stem: Path | None, suffix: str, device: Device) -> Array | Spooled:
    return keep(device.to_host(array), stem and stem.with_name(stem.name + suffix))


def keep(array: Array, path: Path | None) -> Array | Spooled:
    """Keep an array of the host, in a file if a path is given."""
    if path is None:
        return array
    array.tofile(path)
    return Spooled(path, array.dtype.str, len(array))

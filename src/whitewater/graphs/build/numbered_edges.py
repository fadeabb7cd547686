"""What comes of edges once their vertices are numbered, by either engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from whitewater.engines import Array

Rule = Literal["drop", "sum", "maximum"]


@dataclass(frozen=True)
class MergedEdges:
    """Edges to ``vertices`` in the order of target and source, each pair of ends once; arrays of the host.

    ``counts`` int64 (vertices,): edges of each target; ``sources`` int32 or int64 (edges,), numbers;
    ``weights`` float64 (edges,) or none; ``loops`` self-loops; ``repeated`` the source and the target of the first edge
    that there was several times, if any.
    """

    vertices: range
    counts: Array
    sources: Array
    weights: Array | None
    loops: int
    repeated: tuple[int, int] | None


@dataclass(frozen=True)
class NumberedEdges:
    """Vertices and the edges between their numbers.

    ``ids``, int64 (vertices,), ascend; ``entries`` are the edges before those with the same ends were merged;
    ``ranges`` yields the edges to ranges of vertices, ascending, as long as the workers are there.
    """

    ids: Array
    entries: int
    ranges: Iterator[MergedEdges]

"""Edges by their targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.engines.device import Array


@dataclass(frozen=True)
class Edges:
    """In-edges of consecutive targets, on the host, memory-mapped perhaps."""

    # int64 (targets + 1,): the edges of target t are from ``offsets[t]`` to ``offsets[t + 1]``, less ``offsets[0]``
    offsets: npt.NDArray[np.int64]
    sources: Array  # int32 or int64 (edges,): numbers of vertices, ascending within a target
    weights: npt.NDArray[np.float64] | None = None  # float64 (edges,), or None where each is 1

    @property
    def targets(self) -> int:
        """The number of targets."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """About the bytes that the edges take on a GPU, with the segments of their rows."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.sources.nbytes + weights + 5 * self.offsets.nbytes

    def between(self, start: int, stop: int) -> Edges:
        """Return the edges of the targets from ``start`` to before ``stop``."""
        first, last = (int(self.offsets[place] - self.offsets[0]) for place in (start, stop))
        weights = None if self.weights is None else self.weights[first:last]
        return Edges(self.offsets[start : stop + 1], self.sources[first:last], weights)

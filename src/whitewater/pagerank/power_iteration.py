"""Power iteration: a recurrence of PageRank followed to its fixed point, in float64."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

from whitewater.devices import Array
from whitewater.pagerank.recurrences import Recurrence

logger = logging.getLogger(__name__)
# Fills the second array with the sums, for each vertex, of the first, one number a vertex, over its in-edges.
Pull = Callable[[Array, Array], None]
PROGRESS_SECONDS = 5.0


@dataclass(frozen=True)
class Iteration:
    """An iteration: by how much it changed the ranks, in L1, and the rank of dangling vertices before it."""

    iteration: int
    l1_change: float
    error_bound: float
    dangling_rank: float


@dataclass(frozen=True)
class Vectors:
    """Numbers of all vertices on one device, worked on in slices that it likes.

    ``strength``, float64 (vertices,), is the sum of the weights of the out-edges, infinite where there are none, so
    that dangling vertices have no share to give. ``restart`` is that of the recurrence.
    """

    strength: Array
    restart: Array
    xp: ModuleType
    slice_rows: int

    def slices(self) -> Iterator[slice]:
        """Yield the slices; sums are of the sums of slices, so that they depend on no worker."""
        for start in range(0, len(self.strength), self.slice_rows):
            yield slice(start, min(start + self.slice_rows, len(self.strength)))

    def share_out(self, ranks: Array, shares: Array) -> float:
        """Fill ``shares`` with what each vertex gives to an edge of weight 1; return the rank of dangling vertices."""
        dangling = []
        for part in self.slices():
            strength = self.strength[part]
            self.xp.divide(ranks[part], strength, out=shares[part])
            # A product costs a fifth of a choice, which a processor guesses wrong half the time.
            dangling.append((ranks[part] * self.xp.isinf(strength)).sum())
        return math.fsum(map(float, dangling))

    def advance(self, sums: Array, ranks: Array, *, damping: float, restart_rank: float) -> float:
        """Make of ``sums``, what was pulled along the edges, the ranks after ``ranks``; return the L1 change."""
        changes = []
        for part in self.slices():
            following = sums[part]
            following *= damping
            following += restart_rank * (self.restart[part] if len(self.restart) > 1 else self.restart)
            changes.append(self.xp.abs(following - ranks[part]).sum())
        return math.fsum(map(float, changes))


def power_iteration(
    pull: Pull, vectors: Vectors, recurrence: Recurrence, start: Array
) -> tuple[Array, list[Iteration]]:
    """Follow a recurrence from ``start`` until it is close enough to its fixed point, or its iterations are done.

    Returns
    -------
    tuple
        The ranks, float64 (vertices,), and what each iteration did.
    """
    ranks, shares, sums = start, vectors.xp.empty_like(start), vectors.xp.empty_like(start)
    log: list[Iteration] = []
    said = time.monotonic()
    while len(log) < recurrence.iterations and not is_reached(log, recurrence):
        dangling = vectors.share_out(ranks, shares)
        pull(shares, sums)
        change = vectors.advance(
            sums, ranks, damping=recurrence.damping, restart_rank=recurrence.restart_rank(dangling)
        )
        log.append(Iteration(len(log) + 1, change, recurrence.error_bound(change), dangling))
        ranks, sums = sums, ranks
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            logger.info("iteration %d: at most %.2g from the exact ranks", len(log), log[-1].error_bound)
    return ranks, log


def is_reached(log: list[Iteration], recurrence: Recurrence) -> bool:
    """Tell whether the last iteration came as close to the fixed point as is asked for."""
    return recurrence.tolerance is not None and bool(log) and log[-1].error_bound <= recurrence.tolerance

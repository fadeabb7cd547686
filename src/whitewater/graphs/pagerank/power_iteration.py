"""Power iteration: a recurrence of PageRank followed to its fixed point, in float64.

Each of the three definitions is a recurrence. With the weight ``w`` of an edge from *u* to *v*, the strength ``s[u]``,
the sum of the weights of the out-edges of *u*, damping *d*, and the personalization *p*, whose sum is 1::

    x'[v] = d * sum(w * x[u] / s[u] over in-edges of v) + (d * lost + 1 - d) * p[v]

``lost`` is the rank of dangling vertices, those without out-edges, which would leave the graph.

============ ======================================= ============ ================== ==========================
definition   lost                                    p            weights            iterations
============ ======================================= ============ ================== ==========================
networkx     sum of x over dangling vertices         as given, or the graph's, or 1  to the tolerance
                                                     uniform
graphalytics sum of x over dangling vertices         uniform      1                  as many as are asked for
gap          0: ranks sum up to less than 1          uniform      1                  to the tolerance
============ ======================================= ============ ================== ==========================

Sources: NetworkX, `networkx.algorithms.link_analysis.pagerank_alg.pagerank`, after Page, Brin, Motwani, Winograd: The
PageRank Citation Ranking, 1999; A. Iosup et al.: The LDBC Graphalytics Benchmark, arXiv:2011.15028, section 2.3; S.
Beamer, K. Asanović, D. Patterson: The GAP Benchmark Suite, arXiv:1508.03619.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

from whitewater.engines import Array
from whitewater.graphs.config import Pagerank

logger = logging.getLogger(__name__)
# Fills the second array with the sums, for each vertex, of the first, one number a vertex, over its in-edges.
Pull = Callable[[Array, Array], None]
PROGRESS_SECONDS = 5.0
# What the rounding of an iteration may change, in L1: ranks sum up to 1, and a few roundings of each are of 2**-53.
ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Iteration:
    """An iteration: by how much it changed the ranks, in L1, and the rank of dangling vertices before it.

    ``error_bound`` is the most that the ranks can be away from the fixed point, in L1: the recurrence is a contraction
    by *d*, whichever definition (Banach's fixed-point theorem), and each iteration rounds.
    """

    iteration: int
    l1_change: float
    error_bound: float
    dangling_rank: float


@dataclass(frozen=True)
class Vectors:
    """Numbers of all vertices on one device, worked on in slices that it likes.

    ``strength``, float64 (vertices,), is the sum of the weights of the out-edges, infinite where there are none, so
    that dangling vertices have no share to give. ``restart``, float64, is *p*: (vertices,), or (1,) if it is uniform.
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
    pull: Pull, vectors: Vectors, settings: Pagerank, start: Array | None = None
) -> tuple[Array, list[Iteration]]:
    """Follow a recurrence until it is close enough to its fixed point, or its iterations are done.

    It starts with the ranks ``start``, or with *p*.

    Returns
    -------
    tuple
        The ranks, float64 (vertices,), and what each iteration did.
    """
    fixed, damping = settings.definition == "graphalytics", settings.damping
    xp, size = vectors.xp, len(vectors.strength)
    ranks = xp.broadcast_to(vectors.restart, (size,)).copy() if start is None else start
    shares, sums = xp.empty_like(ranks), xp.empty_like(ranks)
    log: list[Iteration] = []
    said = time.monotonic()
    while len(log) < (settings.iterations if fixed else settings.maximum_iterations):
        dangling = vectors.share_out(ranks, shares)
        pull(shares, sums)
        lost = 0.0 if settings.definition == "gap" else dangling
        change = vectors.advance(sums, ranks, damping=damping, restart_rank=damping * lost + (1 - damping))
        log.append(Iteration(len(log) + 1, change, (damping * change + ROUNDING) / (1 - damping), dangling))
        ranks, sums = sums, ranks
        if not fixed and log[-1].error_bound <= settings.tolerance:
            break
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            bound = log[-1].error_bound
            # The bound shrinks by about the same factor in each iteration.
            share = len(log) / settings.iterations if fixed else math.log(bound) / math.log(settings.tolerance)
            extra = {"progress": max(0.0, min(share, 1.0))}
            logger.info("iteration %d: at most %.2g from the exact ranks", len(log), bound, extra=extra)
    return ranks, log

"""Power iteration: PageRank's recurrence, iterated to its fixed point in float64.

The three definitions are variants of one recurrence. ``w`` is the weight of an edge from *u* to *v*, ``s[u]`` (the
strength) the sum of the weights of the out-edges of *u*, *d* the damping, and *p* the personalization, with sum 1::

    x'[v] = d * sum(w * x[u] / s[u] over in-edges of v) + (d * lost + 1 - d) * p[v]

``lost`` is the rank of dangling vertices, those without out-edges. It restarts at *p*, or is dropped (gap).

============ ======================================= ============ ================== ==========================
definition   lost                                    p            weights            iterations
============ ======================================= ============ ================== ==========================
networkx     sum of x over dangling vertices         as given, or the graph's, or 1  to the tolerance
                                                     uniform
graphalytics sum of x over dangling vertices         uniform      1                  a given number
gap          0: ranks sum to less than 1             uniform      1                  to the tolerance
============ ======================================= ============ ================== ==========================

Sources: NetworkX, `networkx.algorithms.link_analysis.pagerank_alg.pagerank`, after Page, Brin, Motwani, Winograd: The
PageRank Citation Ranking, 1999; A. Iosup et al.: The LDBC Graphalytics Benchmark, arXiv:2011.15028, section 2.3; S.
Beamer, K. Asanović, D. Patterson: The GAP Benchmark Suite, arXiv:1508.03619.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from whitewater.engines import Array, Device
from whitewater.graphs.config import Pagerank

logger = logging.getLogger(__name__)
# Called with shares and sums, float64 (vertices,): sets sums[v] to the sum of w * shares[u] over the in-edges of v.
Pull = Callable[[Array, Array], None]
PROGRESS_SECONDS = 5.0
# Bound on the rounding error of one iteration, in L1: ranks sum to 1, and each takes a few roundings of 2**-53.
ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Iteration:
    """An iteration: by how much it changed the ranks, in L1, and the rank of dangling vertices before it.

    ``error_bound`` bounds the L1 distance of the ranks to the fixed point: by every definition the recurrence is a
    contraction by *d* (Banach's fixed-point theorem), and each iteration adds a rounding error.
    """

    iteration: int
    l1_change: float
    error_bound: float
    dangling_rank: float


def power_iteration(
    pull: Pull, settings: Pagerank, device: Device, *, strength: Array, restart: Array, start: Array | None = None
) -> tuple[Array, list[Iteration]]:
    """Iterate to the tolerance, or a number of times, as the definition says.

    Parameters
    ----------
    strength
        The sum of the weights of the out-edges, float64 (vertices,), infinite where there are none, so that dangling
        vertices give a share of 0; on the device, as all vectors.
    restart
        *p*, float64 (vertices,), or (1,) if it is uniform.
    start
        The initial ranks, else *p*; the array is overwritten.

    Returns
    -------
    tuple
        The ranks, float64 (vertices,), and a record of each iteration.
    """
    fixed_count, damping, xp, size = settings.definition == "graphalytics", settings.damping, device.xp, len(strength)
    # Of a size that suits the device. Totals are added up slice by slice, so that they do not depend on the workers.
    slices = [slice(first, first + device.slice_rows) for first in range(0, size, device.slice_rows)]
    ranks = xp.broadcast_to(restart, (size,)).copy() if start is None else start
    shares, sums = xp.empty_like(ranks), xp.empty_like(ranks)
    iterations: list[Iteration] = []
    logged_at = time.monotonic()
    while len(iterations) < (settings.iterations if fixed_count else settings.maximum_iterations):
        dangling_ranks, changes = [], []
        for part in slices:
            xp.divide(ranks[part], strength[part], out=shares[part])
            # Multiplying takes a fifth of the time of selecting, a branch that processors mispredict half the time.
            dangling_ranks.append((ranks[part] * xp.isinf(strength[part])).sum())
        dangling = math.fsum(map(float, dangling_ranks))
        pull(shares, sums)
        restart_rank = damping * (0.0 if settings.definition == "gap" else dangling) + (1 - damping)
        for part in slices:
            next_ranks = sums[part]
            next_ranks *= damping
            next_ranks += restart_rank * (restart[part] if len(restart) > 1 else restart)
            changes.append(xp.abs(next_ranks - ranks[part]).sum())
        change = math.fsum(map(float, changes))
        bound = (damping * change + ROUNDING) / (1 - damping)
        iterations.append(Iteration(len(iterations) + 1, change, bound, dangling))
        ranks, sums = sums, ranks
        if not fixed_count and bound <= settings.tolerance:
            break
        if time.monotonic() - logged_at > PROGRESS_SECONDS:
            logged_at = time.monotonic()
            # The bound shrinks by about the same factor in each iteration.
            done = math.log(bound) / math.log(settings.tolerance)
            progress = len(iterations) / settings.iterations if fixed_count else max(0.0, min(done, 1.0))
            extra = {"progress": progress}
            logger.info("iteration %d: at most %.2g from the exact ranks", len(iterations), bound, extra=extra)
    return ranks, iterations

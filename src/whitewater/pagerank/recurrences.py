"""The three definitions of PageRank, each as the recurrence that it is.

With the weight ``w`` of an edge from *u* to *v*, the strength ``s[u]``, the sum of the weights of the out-edges of *u*,
damping *d*, and the personalization *p*, whose sum is 1::

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.config.pagerank import Pagerank

# What the rounding of an iteration may change, in L1: ranks sum up to 1, and a few roundings of each are of 2**-53.
ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Recurrence:
    """A recurrence, and when it has been followed long enough.

    ``restart``, float64, is *p*: (vertices,), or (1,) where it is uniform. ``tolerance`` is the bound on the L1
    distance to the fixed point at which to stop, or None where all of ``iterations`` are done.
    """

    damping: float
    restart: npt.NDArray[np.float64]
    returns_lost: bool
    tolerance: float | None
    iterations: int

    def restart_rank(self, dangling_rank: float) -> float:
        """Return the rank that an iteration distributes as *p* says, when dangling vertices have so much."""
        return self.damping * dangling_rank * self.returns_lost + (1 - self.damping)

    def error_bound(self, l1_change: float) -> float:
        """Return the most that x' can be away from the fixed point, in L1, when x' is so far from x.

        The recurrence is a contraction by *d* in L1, whichever definition (Banach's fixed-point theorem), and each
        iteration rounds.
        """
        return (self.damping * l1_change + ROUNDING) / (1 - self.damping)


def recurrence_of(
    settings: Pagerank, vertices: int, personalization: npt.NDArray[np.float64] | None = None
) -> Recurrence:
    """Return the recurrence of a definition for a graph of so many vertices, at least 1."""
    uniform = np.array([1 / vertices])
    fixed = settings.definition == "graphalytics"
    return Recurrence(
        damping=settings.damping,
        restart=uniform if personalization is None else personalization,
        returns_lost=settings.definition != "gap",
        tolerance=None if fixed else settings.tolerance,
        iterations=settings.iterations if fixed else settings.maximum_iterations,
    )

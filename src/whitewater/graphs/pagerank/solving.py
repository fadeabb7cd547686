"""PageRank by power iteration in float64, on the CPU or on one GPU.

The three definitions are variants of one recurrence. ``w`` is the weight of an edge from *u* to *v*, ``s[u]`` (the
strength) the sum of the weights of the out-edges of *u*, *d* the damping, and *p* the personalization, with sum 1::

    x'[v] = d * sum(w * x[u] / s[u] over in-edges of v) + (d * dangling + 1 - d) * p[v]

============ ========================================= ================ ================== ==================
definition   dangling                                  p                weights            iterations
============ ========================================= ================ ================== ==================
networkx     sum of x over vertices without out-edges  given or uniform the graph's, or 1  to the tolerance
graphalytics sum of x over vertices without out-edges  uniform          1                  a fixed number
gap          0, so that ranks sum to less than 1       uniform          1                  to the tolerance
============ ========================================= ================ ================== ==================

Sources: NetworkX, `networkx.algorithms.link_analysis.pagerank_alg.pagerank`, after Page, Brin, Motwani, Winograd: The
PageRank Citation Ranking, 1999; A. Iosup et al.: The LDBC Graphalytics Benchmark, arXiv:2011.15028, section 2.3; S.
Beamer, K. Asanović, D. Patterson: The GAP Benchmark Suite, arXiv:1508.03619.
"""

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device, memory
from whitewater.errors import InputError
from whitewater.graphs.config import Pagerank
from whitewater.graphs.edges_folder import LARGEST_WEIGHT
from whitewater.graphs.graph_folder import Edges, GraphFolder
from whitewater.graphs.pagerank.in_edges import Pull, edges_to_device, prepare_in_edges
from whitewater.step import Run

logger = logging.getLogger(__name__)
PROGRESS_SECONDS = 5.0
# Bound on the rounding error of one iteration in L1: ranks sum to 1, and each is rounded a few times by 2**-53.
ROUNDING = 2.0**-50
# With fewer edges, starting workers would take longer than the iterations.
SMALL_EDGES = 1 << 20
# Vectors in memory at once: ranks, shares, sums, strengths, and the personalization or the result.
VECTORS = 5


@dataclass(frozen=True)
class Problem:
    """The task of a worker."""

    folder: GraphFolder
    settings: Pagerank
    personalization: npt.NDArray[np.float64] | None
    device: Device
    threads: int

    @property
    def weighted(self) -> bool:
        return self.folder.weighted and self.settings.weighted and self.settings.definition == "networkx"

    @property
    def edges(self) -> Edges:
        return self.folder.in_edges(weighted=self.weighted)

    @property
    def starts_from_cugraph(self) -> bool:
        """Whether iteration starts from cuGraph's ranks, if the graph fits into memory."""
        allowed = self.settings.cugraph and self.settings.definition == "networkx"
        return self.device.name == "gpu" and allowed and self.folder.edges >= SMALL_EDGES

    def strength(self) -> npt.NDArray[np.float64]:
        """Return the sum of the weights of each vertex's out-edges, infinite for dangling vertices.

        Raises InputError if a rank divided by a sum would overflow or lose digits.
        """
        sums = np.array(self.folder.out_weight if self.weighted else self.folder.out_degree, np.float64)
        invalid = np.flatnonzero((sums > LARGEST_WEIGHT) | ((sums > 0) & (sums < np.finfo(np.float64).tiny)))
        if len(invalid):
            raise InputError(
                f"{self.folder.path}: the weights of the out-edges of {len(invalid)} vertices, the first with id "
                f"{self.folder.ids[invalid[0]]}, add up to {sums[invalid[0]]:g}. Scale the weights, or set "
                "pagerank.rank.weighted to false."
            )
        sums[sums == 0] = np.inf
        return sums


@dataclass(frozen=True)
class Solution:
    """Ranks, float64 (vertices,) on the host, a record of each iteration, and whether cuGraph's ranks came first."""

    ranks: npt.NDArray[np.float64]
    log: list[dict[str, Any]]
    from_cugraph: bool = False


def solve(run: Run[Pagerank], folder: GraphFolder, personalization: npt.NDArray[np.float64] | None = None) -> Solution:
    """Run power iteration on one worker: in this process on the CPU without a cluster, or on a GPU.

    With several GPUs, cuGraph computes the initial ranks on all of them if the graph does not fit on one. Raises
    InputError if weights add up to what float64 cannot hold, and ResourceError if the graph does not fit on a GPU.
    """
    if not folder.vertices:
        return Solution(np.zeros(0), [])
    runs_here = run.device.name == "cpu" and not run.cluster_settings.attached
    with run.workers(small=runs_here or folder.edges < SMALL_EDGES) as workers:
        problem = Problem(folder, run.settings, personalization, run.device, min(workers.threads))
        start = None
        if problem.starts_from_cugraph and len(workers.threads) > 1:
            from whitewater.graphs.library_gpu import ranks_beyond_one_gpu

            start = ranks_beyond_one_gpu(
                folder, workers, run.device, personalization, settings=run.settings, weighted=problem.weighted
            )
        return next(workers.map(solve_on_one_worker, [problem], label="power iteration", shared={"start": start}))


def solve_on_one_worker(problem: Problem, start: npt.NDArray[np.float64] | None = None) -> Solution:
    """Run power iteration in this process on one device; ``start`` are the initial ranks, if given."""
    device, edges = problem.device, problem.edges
    if device.name == "gpu":
        memory.forecast(edges.nbytes + VECTORS * 8 * problem.folder.vertices, device=device,
                        what=f"PageRank of {len(edges.sources):,} edges",
                        remedy="Use a GPU with more memory, or set device=cpu.")  # fmt: skip
    edges = edges_to_device(device, edges)
    ranks = device.to_device(start) if start is not None else _cugraph_ranks(problem, edges)
    from_cugraph = ranks is not None
    pull = prepare_in_edges(device, edges, threads=problem.threads)
    restart = np.array([1 / problem.folder.vertices]) if problem.personalization is None else problem.personalization
    ranks, log = power_iteration(
        pull, problem.settings, device, start=ranks,
        strength=device.to_device(problem.strength()), restart=device.to_device(restart),
    )  # fmt: skip
    return Solution(device.to_host(ranks), log, from_cugraph)


def _cugraph_ranks(problem: Problem, edges: Edges) -> Array | None:
    """Compute cuGraph's ranks on the device, or return None if they are not used or the graph does not fit."""
    if not problem.starts_from_cugraph:
        return None
    from whitewater.graphs.library_gpu import cugraph_bytes, cugraph_ranks, fits_cugraph

    free = problem.device.free_memory()
    if not fits_cugraph(edges, free):
        logger.info("cuGraph would need about %.2f GB of GPU memory", cugraph_bytes(edges) / 1e9)
        return None
    return cugraph_ranks(edges, problem.personalization, problem.settings)


def power_iteration(
    pull: Pull, settings: Pagerank, device: Device, *, strength: Array, restart: Array, start: Array | None = None
) -> tuple[Array, list[dict[str, Any]]]:
    """Iterate to the tolerance or a fixed number of times; return the ranks, float64 (vertices,), and a log.

    All vectors are on the device: ``strength`` is that of `Problem.strength`; ``restart`` is *p*, float64 (vertices,),
    or (1,) if uniform; ``start`` are the initial ranks, *p* by default, and is overwritten.

    The log has for each iteration the L1 change of the ranks, a bound on their L1 distance to the fixed point, and the
    rank of dangling vertices before it. The bound holds because the recurrence is a contraction by *d* (Banach's
    fixed-point theorem), and each iteration adds a rounding error.
    """
    fixed_count, damping, xp, size = settings.definition == "graphalytics", settings.damping, device.xp, len(strength)
    # Slices suit the device's memory. Their totals are added in order, so that they do not depend on the workers.
    slices = [slice(first, first + device.slice_rows) for first in range(0, size, device.slice_rows)]
    ranks = xp.broadcast_to(restart, (size,)).copy() if start is None else start
    shares, sums = xp.empty_like(ranks), xp.empty_like(ranks)
    log: list[dict[str, Any]] = []
    logged_at = time.monotonic()
    while len(log) < (settings.iterations if fixed_count else settings.maximum_iterations):
        dangling_ranks, changes = [], []
        for part in slices:
            xp.divide(ranks[part], strength[part], out=shares[part])
            # Multiplying takes a fifth of the time of selecting, whose branches are mispredicted half the time.
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
        log.append({"iteration": len(log) + 1, "l1_change": change, "error_bound": bound, "dangling_rank": dangling})
        ranks, sums = sums, ranks
        if not fixed_count and bound <= settings.tolerance:
            break
        if time.monotonic() - logged_at > PROGRESS_SECONDS:
            logged_at = time.monotonic()
            # The bound shrinks by about the same factor in each iteration.
            estimate = max(0.0, min(math.log(bound) / math.log(settings.tolerance), 1.0))
            extra = {"progress": len(log) / settings.iterations if fixed_count else estimate}
            logger.info("iteration %d: at most %.2g from the exact ranks", len(log), bound, extra=extra)
    return ranks, log

"""Where power iteration runs: in one process, on the CPU or on one GPU, where cuGraph may give the initial ranks."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.errors import InputError, ResourceError
from whitewater.graphs.config import Pagerank
from whitewater.graphs.edges_folder import LARGEST_WEIGHT
from whitewater.graphs.graph_folder import Edges, GraphFolder
from whitewater.graphs.pagerank.in_edges import edges_to_device, prepare_in_edges
from whitewater.graphs.pagerank.power_iteration import Iteration, power_iteration
from whitewater.step import Run

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers

logger = logging.getLogger(__name__)
# With fewer edges, workers would take longer to start than the iterations take.
SMALL_EDGES = 1 << 20
# Vectors in memory at once: ranks, shares, sums, strengths, and the rows of a personalization or of the result.
VECTORS = 5


@dataclass(frozen=True)
class Problem:
    """What a worker is given: a graph, what to compute, and the device and the number of threads to use."""

    folder: GraphFolder
    settings: Pagerank
    personalization: npt.NDArray[np.float64] | None
    device: Device
    threads: int

    @property
    def weighted(self) -> bool:
        """Whether edge weights are used."""
        return self.folder.weighted and self.settings.weighted and self.settings.definition == "networkx"

    @property
    def edges(self) -> Edges:
        """The edges, memory-mapped."""
        return self.folder.in_edges(weighted=self.weighted)

    @property
    def starts_from_cugraph(self) -> bool:
        """Whether iteration starts from cuGraph's ranks, if they fit into memory."""
        allowed = self.settings.library and self.settings.definition == "networkx"
        return self.device.name == "gpu" and allowed and self.folder.edges >= SMALL_EDGES

    def strength(self) -> npt.NDArray[np.float64]:
        """Return the sum of the weights of each vertex's out-edges, infinite where there are none.

        Raises InputError if a sum is so small that a rank divided by it would be infinite, or so large that the share
        would lose digits.
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
    """The ranks, float64 (vertices,) on the host, the iterations, and whether these started from cuGraph's ranks."""

    ranks: npt.NDArray[np.float64]
    iterations: list[Iteration]
    from_cugraph: bool = False


def solve(run: Run[Pagerank], problem: Problem) -> Solution:
    """Run power iteration: on the CPU in this process, unless a cluster is attached, or on one GPU.

    If there are several GPUs and cuGraph cannot hold the graph on one, it computes the initial ranks on all of them.

    Raises InputError if weights add up to what float64 cannot hold, and ResourceError if the graph does not fit into
    the memory of a GPU.
    """
    runs_here = problem.device.name == "cpu" and not run.cluster_settings.attached
    with run.workers(small=runs_here or problem.folder.edges < SMALL_EDGES) as workers:
        problem = replace(problem, threads=min(workers.threads))
        start = None
        if problem.starts_from_cugraph and len(workers.threads) > 1:
            start = ranks_beyond_one_gpu(problem, workers)
        return next(workers.map(solve_on_one_worker, [problem], label="power iteration", shared={"start": start}))


def solve_on_one_worker(problem: Problem, start: npt.NDArray[np.float64] | None = None) -> Solution:
    """Run power iteration in this process, all vectors on one device, from the ranks ``start`` if they are given."""
    device, edges = problem.device, _load(problem)
    ranks = device.to_device(start) if start is not None else _cugraph_ranks(problem, edges)
    from_cugraph = ranks is not None
    in_edges = prepare_in_edges(device, edges, threads=problem.threads)
    restart = np.array([1 / problem.folder.vertices]) if problem.personalization is None else problem.personalization
    ranks, iterations = power_iteration(
        in_edges.pull, problem.settings, device, start=ranks,
        strength=device.to_device(problem.strength()), restart=device.to_device(restart),
    )  # fmt: skip
    return Solution(device.to_host(ranks), iterations, from_cugraph)


def _load(problem: Problem) -> Edges:
    """Return the edges on the device; on the CPU they stay memory-mapped."""
    edges, device = problem.edges, problem.device
    if device.name == "cpu":
        return edges
    free, needed = device.free_memory(), edges.nbytes + VECTORS * 8 * problem.folder.vertices
    if needed > free:
        raise ResourceError(
            f"{problem.folder.path}: {len(edges.sources):,} edges and the ranks need about {needed / 1e9:.1f} GB of "
            f"GPU memory, but {free / 1e9:.1f} GB are free. Use a GPU with more memory, or set device=cpu."
        )
    return edges_to_device(device, edges)


def ranks_beyond_one_gpu(problem: Problem, workers: Workers) -> npt.NDArray[np.float64] | None:
    """Return cuGraph's ranks, computed on all GPUs, or None if the graph fits into one."""
    from whitewater.graphs.library_gpu import fits_cugraph, ranks_of_all_gpus

    if fits_cugraph(problem.edges, workers.room_for_a_task(problem.device, tasks=1)):
        return None
    return ranks_of_all_gpus(
        problem.folder, problem.personalization, problem.settings, problem.device, weighted=problem.weighted
    )


def _cugraph_ranks(problem: Problem, edges: Edges) -> Array | None:
    """Return cuGraph's ranks, on the device, or None if they are not to be the start or the graph does not fit."""
    if not problem.starts_from_cugraph:
        return None
    from whitewater.graphs.library_gpu import cugraph_bytes, cugraph_ranks, fits_cugraph

    free = problem.device.free_memory()
    if not fits_cugraph(edges, free):
        logger.info("cuGraph would need about %.2f GB of GPU memory", cugraph_bytes(edges) / 1e9)
        return None
    return cugraph_ranks(edges, problem.personalization, problem.settings)

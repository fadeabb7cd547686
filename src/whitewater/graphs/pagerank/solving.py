"""Where power iteration runs: in one process beside the edges, on the CPU or on one GPU, with a start by cuGraph."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device, memory
from whitewater.errors import InputError, ResourceError
from whitewater.graphs.config import Pagerank
from whitewater.graphs.edges_folder import LARGEST_WEIGHT
from whitewater.graphs.graph_folder import Edges, GraphFolder
from whitewater.graphs.pagerank.in_edges import edges_on, hold_in_edges, kept_bytes
from whitewater.graphs.pagerank.power_iteration import Iteration, Vectors, power_iteration
from whitewater.step import Run

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers

logger = logging.getLogger(__name__)
# Below, workers would take longer to start than the iteration takes.
SMALL_EDGES = 1 << 20
# Ranks, shares, sums, strengths and the rows of a personalization or of the result.
VECTORS = 5


@dataclass(frozen=True)
class Problem:
    """What a worker is told: a graph, what to compute, and on which device with how many threads."""

    folder: GraphFolder
    settings: Pagerank
    personalization: npt.NDArray[np.float64] | None
    device: Device
    threads: int

    @property
    def weighted(self) -> bool:
        """Whether the weights of edges count."""
        return self.folder.weighted and self.settings.weighted and self.settings.definition == "networkx"

    @property
    def edges(self) -> Edges:
        """The edges, memory-mapped."""
        return self.folder.in_edges(weighted=self.weighted)

    @property
    def begins_with_library(self) -> bool:
        """Whether cuGraph's ranks are the start."""
        wanted = self.settings.library and self.settings.definition == "networkx"
        return self.device.name == "gpu" and wanted and self.folder.edges >= SMALL_EDGES

    def vectors(self, device: Device) -> Vectors:
        """Return what power iteration works with, on a device."""
        p = np.array([1 / self.folder.vertices]) if self.personalization is None else self.personalization
        return Vectors(device.to_device(self.strength()), device.to_device(p), device.xp, device.slice_rows)

    def strength(self) -> npt.NDArray[np.float64]:
        """Return the sum of the weights of each vertex's out-edges, infinite where there are none.

        Raises InputError if one is so small that a rank divided by it would be infinite, or so large that it would lose
        digits.
        """
        sums = np.array(self.folder.out_weight if self.weighted else self.folder.out_degree, np.float64)
        wrong = np.flatnonzero((sums > LARGEST_WEIGHT) | ((sums > 0) & (sums < np.finfo(np.float64).tiny)))
        if len(wrong):
            raise InputError(
                f"{self.folder.path}: the weights of the out-edges of {len(wrong)} vertices, the first with id "
                f"{self.folder.ids[wrong[0]]}, add up to {sums[wrong[0]]:g}. Scale the weights, or set "
                "pagerank.rank.weighted to false."
            )
        sums[sums == 0] = np.inf
        return sums


@dataclass(frozen=True)
class Solution:
    """The ranks, on the host, how they were found, and whether those of a library were the start."""

    ranks: npt.NDArray[np.float64]
    log: list[Iteration]
    by_library: bool = False


def solve(run: Run[Pagerank], problem: Problem) -> Solution:
    """Follow the recurrence of a problem: on the CPU in this process, unless a cluster is attached, or on one GPU.

    Where there are several GPUs and the graph is too large for cuGraph on one, cuGraph finds the start on all of them.

    Raises InputError if weights add up to what float64 cannot hold, and ResourceError if the graph does not fit into
    the memory of a GPU.
    """
    here = problem.device.name == "cpu" and not run.cluster_settings.attached
    with run.workers(small=here or problem.folder.edges < SMALL_EDGES) as workers:
        problem = replace(problem, threads=min(workers.threads))
        start = None
        if problem.begins_with_library and len(workers.threads) > 1:
            start = ranks_beyond_one_gpu(problem, workers)
        return next(workers.map(solve_alone, [problem], label="power iteration", shared={"start": start}))


def solve_alone(problem: Problem, start: npt.NDArray[np.float64] | None = None) -> Solution:
    """Follow the recurrence of a problem in this process, all vectors on its device, from ``start``, if it is given."""
    device, edges = problem.device, _load(problem)
    ranks = device.to_device(start) if start is not None else _library_ranks(problem, edges)
    by_library = ranks is not None
    # Other processes of this machine may keep edges, too.
    keep = kept_bytes(problem.folder.edges, problem.folder.vertices) < memory.available() // 2
    in_edges = hold_in_edges(device, edges, out_degree=problem.folder.out_degree, threads=problem.threads, keep=keep)
    ranks, log = power_iteration(in_edges.pull, problem.vectors(device), problem.settings, ranks)
    return Solution(device.to_host(ranks), log, by_library)


def _load(problem: Problem) -> Edges:
    """Return the edges on the device; on the CPU they stay memory-mapped."""
    edges, device = problem.edges, problem.device
    if device.name == "cpu":
        return problem.edges
    free, needed = device.free_memory(), edges.nbytes + VECTORS * 8 * problem.folder.vertices
    if needed > free:
        raise ResourceError(
            f"{problem.folder.path}: {len(edges.sources):,} edges and the ranks need about {needed / 1e9:.1f} GB of "
            f"GPU memory, but {free / 1e9:.1f} GB are free. Use a GPU with more memory, or set device=cpu."
        )
    return edges_on(device, edges)


def ranks_beyond_one_gpu(problem: Problem, workers: Workers) -> npt.NDArray[np.float64] | None:
    """Return cuGraph's ranks on all GPUs, or None where the graph fits into one."""
    from whitewater.graphs.library_dask import ranks_of_all_gpus
    from whitewater.graphs.library_gpu import library_fits

    if library_fits(problem.edges, workers.room_for_a_task(problem.device, tasks=1)):
        return None
    return ranks_of_all_gpus(
        problem.folder, problem.personalization, problem.settings, problem.device, weighted=problem.weighted
    )


def _library_ranks(problem: Problem, edges: Edges) -> Array | None:
    """Return cuGraph's ranks, on the device, or None where they are not asked for or do not fit."""
    if not problem.begins_with_library:
        return None
    from whitewater.graphs.library_gpu import gpu_library_ranks, library_bytes, library_fits

    free = problem.device.free_memory()
    if not library_fits(edges, free):
        logger.info("cuGraph would need about %.2f GB of GPU memory", library_bytes(edges) / 1e9)
        return None
    return gpu_library_ranks(edges, problem.personalization, problem.settings)

"""Where power iteration runs: beside the edges in one process, or with the edges spread over several workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device, memory, resolve
from whitewater.engines.workers import Workers
from whitewater.errors import InputError, ResourceError
from whitewater.graphs.config import Pagerank
from whitewater.graphs.edges import Edges
from whitewater.graphs.edges_folder import LARGEST_WEIGHT
from whitewater.graphs.graph_folder import GraphFolder, open_graph
from whitewater.graphs.pagerank.in_edges import InEdges, hold_in_edges, kept_bytes
from whitewater.graphs.pagerank.power_iteration import Iteration, Vectors, power_iteration
from whitewater.step import Run

# Below, workers would take longer to start than the iteration takes.
SMALL_EDGES = 1 << 20
# Ranks, shares, sums, strengths and the rows of a personalization or of the result.
VECTORS = 5


@dataclass(frozen=True)
class Problem:
    """What a worker is told: a graph, what to compute, and on which device with how many threads."""

    graph: Path
    settings: Pagerank
    personalization: npt.NDArray[np.float64] | None
    device: Device
    threads: int

    @cached_property
    def folder(self) -> GraphFolder:
        """The graph."""
        return open_graph(self.graph)

    @property
    def weighted(self) -> bool:
        """Whether the weights of edges count."""
        return self.folder.weighted and self.settings.weighted and self.settings.definition == "networkx"

    @property
    def edges(self) -> Edges:
        """The edges, memory-mapped."""
        return Edges(self.folder.indptr, self.folder.sources, self.folder.weights if self.weighted else None)

    def vectors(self, device: Device) -> Vectors:
        """Return what power iteration works with, on a device."""
        p = np.array([1 / self.folder.vertices]) if self.personalization is None else self.personalization
        return Vectors(device.to_device(self.strength()), device.to_device(p), device.xp, device.slice_rows)

    def strength(self) -> npt.NDArray[np.float64]:
        """Return the sum of the weights of each vertex's out-edges, infinite where there are none.

        Raises InputError if one is so small that a rank divided by it would be infinite, or so large that it would lose
        digits.
        """
        found = np.array(self.folder.out_weight if self.weighted else self.folder.out_degree, np.float64)
        wrong = np.flatnonzero((found > LARGEST_WEIGHT) | ((found > 0) & (found < np.finfo(np.float64).tiny)))
        if len(wrong):
            raise InputError(
                f"{self.graph}: the weights of the out-edges of {len(wrong)} vertices, the first with id "
                f"{self.folder.ids[wrong[0]]}, add up to {found[wrong[0]]:g}. Scale the weights, or set "
                "pagerank.rank.weighted to false."
            )
        found[found == 0] = np.inf
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open folder, whose arrays each process maps itself."""
        return {name: value for name, value in self.__dict__.items() if name != "folder"}


@dataclass(frozen=True)
class Solution:
    """The ranks, on the host, how they were found, and whether those of a library were the start."""

    ranks: npt.NDArray[np.float64]
    log: list[Iteration]
    by_library: bool = False


def solve(run: Run[Pagerank], problem: Problem) -> Solution:
    """Follow the recurrence of a problem; its result is the same wherever that is.

    Raises InputError if weights add up to what float64 cannot hold, and ResourceError if the graph does not fit into
    the memory of a GPU.
    """
    with run.workers(small=problem.folder.edges < SMALL_EDGES) as workers:
        problem = replace(problem, threads=min(workers.threads))
        if len(workers.threads) > 1:
            return _solve_together(problem, workers)
        return next(workers.map(solve_alone, [problem], label="power iteration"))


def solve_alone(problem: Problem) -> Solution:
    """Follow the recurrence of a problem in this process, all vectors on its device."""
    start = _library_ranks(problem)
    in_edges = _hold(problem, problem.edges)
    ranks, log = power_iteration(in_edges.pull, problem.vectors(problem.device), problem.settings, start)
    return Solution(problem.device.to_host(ranks), log, start is not None)


def _library_ranks(problem: Problem) -> Array | None:
    settings = problem.settings
    wanted = settings.library and settings.definition == "networkx"
    if problem.device.name != "gpu" or not wanted or problem.folder.edges < SMALL_EDGES:
        return None
    from whitewater.graphs.library_gpu import gpu_library_ranks

    return gpu_library_ranks(
        problem.edges,
        damping=settings.damping,
        restart=problem.personalization,
        tolerance=settings.tolerance,
        iterations=settings.maximum_iterations,
    )


def _hold(problem: Problem, edges: Edges) -> InEdges:
    """Load edges in the device's layout. Keep them in memory if they fit; otherwise stream them from disk."""
    vertices = problem.folder.vertices
    free = problem.device.free_memory()
    needed = edges.nbytes + VECTORS * 8 * vertices
    if problem.device.name == "gpu" and needed > free:
        raise ResourceError(
            f"{problem.graph}: {len(edges.sources):,} edges and the ranks need about {needed / 1e9:.1f} GB of GPU "
            f"memory, but {free / 1e9:.1f} GB are free. Use more GPUs, or set device=cpu."
        )
    # Other workers of this machine may keep the other edges.
    keep = kept_bytes(problem.folder.edges, vertices) < memory.available() // 2
    return hold_in_edges(
        problem.device, edges, out_degree=problem.folder.out_degree, threads=problem.threads, keep=keep
    )


class HeldEdges:
    """The in-edges of a range of vertices, held by the worker that pulls along them; elsewhere they are read again."""

    def __init__(self, problem: Problem, start: int, stop: int) -> None:
        self._problem, self._start, self._stop = problem, start, stop

    @cached_property
    def _edges(self) -> Edges:
        return self._problem.edges.between(self._start, self._stop)

    @cached_property
    def _in_edges(self) -> InEdges:
        return _hold(self._problem, self._edges)

    def pull(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sums of the range; both arrays are on the host."""
        device = self._problem.device
        sums = device.xp.empty(self._stop - self._start)
        self._in_edges.pull(device.to_device(shares), sums)
        return device.to_host(sums)

    def __reduce__(self) -> tuple[type[HeldEdges], tuple[Problem, int, int]]:
        return HeldEdges, (self._problem, self._start, self._stop)

    def __sizeof__(self) -> int:
        """Return the bytes of the edges, by which the scheduler knows what it would cost to move them."""
        return self._edges.nbytes


def _solve_together(problem: Problem, workers: Workers) -> Solution:
    """Follow the recurrence with the vectors in this process and a range of the edges at each worker."""
    ranges = problem.folder.ranges(at_most=len(workers.threads))
    held = workers.hold(HeldEdges, [(problem, *each) for each in ranges])

    def pull(shares: Array, sums: Array) -> None:
        found = workers.map(HeldEdges.pull, held, label="ranges of edges", ordered=True, shared={"shares": shares})
        for (first, last), part in zip(ranges, found, strict=True):
            sums[first:last] = part

    return Solution(*power_iteration(pull, problem.vectors(resolve("cpu")), problem.settings))

"""Our kernels on graphs, simulated: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.contract.simulated_graph OUTPUT``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.contract.simulated_gpu import write_simulated
from whitewater.engines import Device
from whitewater.engines.gpu import GpuDevice
from whitewater.graphs.edges import Edges
from whitewater.graphs.pagerank.in_edges import edges_on, hold_in_edges

VERTICES = 60
# More than the edges of two segments, so that a row is put together from three.
LONG_ROW = 2 * 1024 + 5
CASES = {"unweighted": False, "weighted": True}


def example(*, weighted: bool) -> Edges:
    """Return edges with rows that are empty, short, and longer than a segment; sources repeat in the long one."""
    random = np.random.default_rng(1)
    counts = random.integers(0, 4, VERTICES)
    # The last 20 vertices have no edges, and those before them only among each other in two halves.
    counts[40:] = 0
    counts[5] = LONG_ROW
    halves = np.repeat(np.arange(VERTICES) // 20, counts)
    sources = (20 * halves + random.integers(0, 20, len(halves))).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Edges(offsets, sources, random.uniform(0.1, 2, len(sources)) if weighted else None)


def pulled(device: Device, edges: Edges) -> dict[str, npt.NDArray[np.float64]]:
    """Return what a device makes of edges: sums along them, in two ranges too."""
    shares = device.to_device(np.random.default_rng(2).random(VERTICES))
    out_degree = np.bincount(edges.sources, minlength=VERTICES)
    found = {}
    for name, (start, stop) in {"all": (0, VERTICES), "first": (0, 6), "rest": (6, VERTICES), "none": (3, 3)}.items():
        held = hold_in_edges(
            device, edges_on(device, edges.between(start, stop)), out_degree=out_degree, threads=1, keep=True
        )
        sums = device.xp.full(stop - start, np.nan)
        held.pull(shares, sums)
        found[name] = device.to_host(sums)
    return found


def found(device: Device) -> dict[str, npt.NDArray[Any]]:
    """Return what a device makes of all examples, by the name of the example and of the result."""
    cases = {name: pulled(device, example(weighted=weighted)) for name, weighted in CASES.items()}
    return {f"{name}_{kind}": values for name, case in cases.items() for kind, values in case.items()}


if __name__ == "__main__":
    write_simulated(lambda: found(GpuDevice()), Path(sys.argv[1]))

"""Our kernels on graphs, simulated: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.contract.simulated_graph OUTPUT``."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from tests.contract.simulated_gpu import leave_arguments_in_place, numpy_as_cupy
from whitewater.devices import Device
from whitewater.devices.gpu import GpuDevice
from whitewater.devices.in_edges import Edges

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


def pulled_and_joined(device: Device, edges: Edges) -> dict[str, npt.NDArray[np.float64]]:
    """Return what a device makes of edges: sums along them, in two ranges too, and components."""
    shares = device.from_host(np.random.default_rng(2).random(VERTICES))
    out_degree = np.bincount(edges.sources, minlength=VERTICES)
    found = {}
    for name, (start, stop) in {"all": (0, VERTICES), "first": (0, 6), "rest": (6, VERTICES), "none": (3, 3)}.items():
        held = device.in_edges(edges.between(start, stop), out_degree=out_degree, threads=1, keep=True)
        sums = device.xp.full(stop - start, np.nan)
        held.pull(shares, sums)
        found[name] = device.to_host(sums)
    cuts = [(0, 6), (6, 6), (6, 50), (50, VERTICES)]
    blocks = ((start, edges.between(start, stop)) for start, stop in cuts)
    return {**found, "components": device.components(blocks, VERTICES), "alone": device.components(iter(()), 3)}


if __name__ == "__main__":
    sys.modules["cupy"] = numpy_as_cupy()
    leave_arguments_in_place()
    results = {
        f"{name}_{kind}": values
        for name, weighted in CASES.items()
        for kind, values in pulled_and_joined(GpuDevice(), example(weighted=weighted)).items()
    }
    np.savez(sys.argv[1], allow_pickle=False, **results)

"""Our kernels on Numba's simulator of a GPU: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.contract.simulated OUTPUT``.

The simulator has no CuPy; arrays that demand what CuPy's demand stand for it: the kernels and the code around them run,
line by line.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.contract.device_array import recording, unwrap
from tests.contract.signatures import faults
from tests.contract.strict_device import cupy_of_devices
from tests.helpers.genotype_folders import packed_codes
from whitewater.engines import Device
from whitewater.engines.gpu import GpuDevice
from whitewater.genotypes.codes import count_genotypes, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage import correlated_variants
from whitewater.graphs.graph_folder import Edges
from whitewater.graphs.pagerank.in_edges import edges_to_device, prepare_in_edges
from whitewater.io.store import write_json

VARIANTS, SAMPLES, WINDOW = 12, 67, 8
VERTICES = 60
# More than the edges of two segments, so that a row is put together from three.
LONG_ROW = 2 * 1024 + 5
WEIGHTED = {"unweighted": False, "weighted": True}


def genotypes() -> dict[str, Genotypes]:
    """Return linked genotypes by ploidy, packed and not, with missing calls, and variants without one or constant."""
    random = np.random.default_rng(3)
    cases = {}
    for name, ploidy, samples in (("haploid", 1, 30), ("packed", 2, SAMPLES), ("triploid", 3, 30)):
        dosages = np.where(
            random.random((VARIANTS, samples)) < 0.7,
            random.integers(0, ploidy + 1, samples),
            random.integers(-1, ploidy + 1, (VARIANTS, samples)),
        ).astype(np.int8)
        dosages[1], dosages[2], dosages[3:6] = -1, 1, np.abs(dosages[3:6])
        cases[name] = Genotypes(packed_codes(dosages) if name == "packed" else dosages, samples, ploidy)
    return cases


def looked_up_counted_and_compared(device: Device, case: Genotypes) -> dict[str, npt.NDArray[Any]]:
    """Return what a device makes of genotypes: expanded, counted, and pairs that are correlated."""
    on_device = replace(case, codes=device.to_device(case.codes))
    table = np.random.default_rng(4).normal(size=(VARIANTS, case.ploidy + 2)).astype(np.float32)
    chosen = np.random.default_rng(5).random(case.samples) < 0.6
    stops = np.minimum(np.arange(VARIANTS) + WINDOW, VARIANTS).astype(np.int32)
    into = device.xp.empty((VARIANTS, case.columns), np.float32)
    nothing = on_device.slice(0, 0)
    return {
        "expanded": device.to_host(expand_genotypes(device, on_device, device.to_device(table))),
        "into": device.to_host(expand_genotypes(device, on_device, device.to_device(table), into)),
        "counted": device.to_host(count_genotypes(device, on_device)),
        "chosen": device.to_host(count_genotypes(device, on_device, device.to_device(chosen))),
        "correlated": correlated_variants(device, on_device, stops, 0.4),
        "none_expanded": device.to_host(expand_genotypes(device, nothing, device.to_device(table[:0]))),
        "none_counted": device.to_host(count_genotypes(device, nothing)),
        "none_correlated": correlated_variants(device, nothing, stops[:0], 0.4),
    }


def take_strict_arrays() -> None:
    """Make kernels of the simulator take arrays of the strict device, where they are, as others take CuPy's.

    Arrays of the host, of which Numba would take copies, are refused.
    """
    from numba.cuda.simulator import kernel
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    call = kernel.FakeCUDAKernel.__call__

    def with_strict_arrays(self: Any, *arguments: Any) -> Any:
        return call(self, *(arguments if self._device else map(unwrap, arguments)))

    kernel.FakeCUDAKernel.__call__ = with_strict_arrays
    kernel.wrap_arg = lambda array: SimpleNamespace(to_device=lambda _: FakeCUDAArray(array))


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
    found = {}
    for name, (start, stop) in {"all": (0, VERTICES), "first": (0, 6), "rest": (6, VERTICES), "none": (3, 3)}.items():
        pull = prepare_in_edges(device, edges_to_device(device, edges.between(start, stop)), threads=1)
        sums = device.xp.full(stop - start, np.nan)
        pull(shares, sums)
        found[name] = device.to_host(sums)
    return found


def of_graphs(device: Device) -> dict[str, npt.NDArray[np.float64]]:
    """Return what a device makes of all examples of edges, by the name of the example and of the result."""
    cases = {name: pulled(device, example(weighted=weighted)) for name, weighted in WEIGHTED.items()}
    return {f"{name}_{kind}": values for name, case in cases.items() for kind, values in case.items()}


def of_genotypes(device: Device) -> dict[str, npt.NDArray[Any]]:
    """Return what a device makes of all examples of genotypes, by the name of the example and of the result."""
    cases = {name: looked_up_counted_and_compared(device, case) for name, case in genotypes().items()}
    return {f"{name}_{kind}": values for name, case in cases.items() for kind, values in case.items()}


def main(output: Path) -> None:
    """Write what is found on the simulated GPU; beside it, as JSON, what was called, and what CuPy refuses of it."""
    sys.modules["cupy"] = cupy_of_devices()
    take_strict_arrays()
    # On a GPU integers wrap around without a word.
    np.seterr(over="ignore")
    with recording() as calls:
        found = of_genotypes(GpuDevice()) | of_graphs(GpuDevice())
    np.savez(output, allow_pickle=False, **found)
    write_json(output.with_suffix(".json"), {"called": sorted({call.name for call in calls}), "faults": faults(calls)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))

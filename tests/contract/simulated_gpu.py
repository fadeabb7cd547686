"""Our kernels on Numba's simulator of a GPU: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.contract.simulated_gpu OUTPUT``.

The simulator has no CuPy, so NumPy stands for it: the kernels and the code around them run, line by line.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt

GROUPS = (5, 3)
ROWS = 300


def keys_and_values() -> tuple[list[npt.NDArray[np.int32]], npt.NDArray[np.float64]]:
    """Return two arrays of keys, -1 among them, and values of every magnitude."""
    random = np.random.default_rng(1)
    keys = [random.integers(-1, groups, ROWS).astype(np.int32) for groups in GROUPS]
    values = np.exp(random.normal(-2, 3, ROWS))
    values[:20] = 0.0
    return keys, values


def numpy_as_cupy() -> ModuleType:
    """Return NumPy under the names of CuPy."""
    cupy = ModuleType("cupy")
    vars(cupy).update(vars(np))
    vars(cupy).update(asnumpy=np.array, __name__="cupy")
    return cupy


def accumulate(output: Path) -> None:
    """Accumulate statistics on the device `gpu`, in two parts, and write them."""
    from whitewater.devices.gpu import GpuDevice
    from whitewater.errors import IntegrityError

    device = GpuDevice()
    keys, values = keys_and_values()
    accumulator = device.group_accumulator(GROUPS)
    for part in (slice(0, 100), slice(100, 100), slice(100, ROWS)):
        accumulator.add([device.from_host(key[part]) for key in keys], device.from_host(values[part]))
    results = {
        f"{name}{place}": getattr(statistics, name)
        for place, statistics in enumerate(accumulator.result())
        for name in ("count", "total", "total_of_squares", "histogram")
    }
    refused = []
    for key, value in ((0, -1.0), (0, float("nan")), (0, float("inf")), (GROUPS[0], 1.0)):
        try:
            device.group_accumulator(GROUPS[:1]).add([np.array([key], np.int32)], np.array([value]))
        except IntegrityError:
            refused.append((key, value))
    np.savez(output, refused=np.array(refused), **results)


if __name__ == "__main__":
    sys.modules["cupy"] = numpy_as_cupy()
    accumulate(Path(sys.argv[1]))

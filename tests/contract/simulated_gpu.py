"""Our kernels on Numba's simulator of a GPU: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.contract.simulated_gpu OUTPUT``.

The simulator has no CuPy, so NumPy stands for it: the kernels and the code around them run, line by line.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.devices import Encoded, Kind
from whitewater.devices.gpu import GpuDevice
from whitewater.errors import IntegrityError

GROUPS = (5, 3)
ROWS = 300
FIELDS: dict[str, Kind] = {"pickup": "timestamp", "flag": "text", "fare": "float64", "passengers": "int8"}
LINES = (
    b"2019-03-01 00:00:01,Y,2.50,1\r\n"
    b"\n"
    b",,,\n"
    b"2019-03-01 00:00:01,torn\n"
    b'2019-03-01T00:00:01.5,"N",-1234567890123456789012.5e-3,300\n'
    b"2019-02-30 00:00:00,N,1,1\n"
    b"2019-03-02,Y,.5,12"
)


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
    # CuPy copies from the host, and to it.
    vars(cupy).update(asarray=np.array, asnumpy=np.array, __name__="cupy")
    return cupy


def parsed() -> dict[str, npt.NDArray[Any]]:
    """Parse lines on the device `gpu`; return the columns, text as words, and the lines handed back."""
    found = GpuDevice().parse_delimited(LINES, list(FIELDS), FIELDS)
    columns = {}
    for name, column in found.block.items():
        if isinstance(column, Encoded):
            columns[name] = np.array([*column.vocabulary, ""])[column.codes]
        else:
            columns[name] = column
    return {**columns, "malformed": np.array(found.malformed)}


def accumulated() -> dict[str, npt.NDArray[Any]]:
    """Accumulate statistics on the device `gpu`, in parts; return them, and the rows that were refused."""
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
    return {**results, "refused": np.array(refused)}


def leave_arguments_in_place() -> None:
    """Make the simulator take arrays where they are, as it takes CuPy's, rather than copies, which share no memory."""
    from numba.cuda.simulator import kernel
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    kernel.wrap_arg = lambda array: SimpleNamespace(to_device=lambda _: FakeCUDAArray(array))


if __name__ == "__main__":
    sys.modules["cupy"] = numpy_as_cupy()
    leave_arguments_in_place()
    # On a GPU integers wrap around without a word.
    np.seterr(over="ignore")
    np.savez(sys.argv[1], allow_pickle=False, **accumulated(), **parsed())

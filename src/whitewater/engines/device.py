"""What a step may ask of a device, and how the CPU answers."""

from __future__ import annotations

import platform
import socket
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from whitewater.engines import memory

if TYPE_CHECKING:
    from whitewater.engines.config import Cluster, Engine
    from whitewater.engines.workers import Workers

Array = npt.NDArray[Any]
"""An array of a device: NumPy's on the CPU and CuPy's on a GPU; static types are NumPy's."""


@dataclass(frozen=True)
class Device:
    """The CPU: NumPy, pyarrow, Numba and scikit-learn. `whitewater.engines.gpu.GpuDevice` does the same on a GPU.

    A device is stateless, hashable and picklable: libraries are imported on first use, in whichever process runs the
    task.

    Attributes
    ----------
    name
        For paths, the log and the manifest; no step branches on it.
    frames
        The library of data frames, which is Dask's option ``dataframe.backend`` while a step runs.
    partition_rows
        Rows of a partition of a table, about: results do not depend on it.
    slice_rows
        Rows that a step works on at once: those that fit the cache of a core, or that fill a GPU.
    """

    name: Literal["cpu", "gpu"] = "cpu"
    frames: Literal["pandas", "cudf"] = "pandas"
    partition_rows: int = 2**19
    # 128 Ki rows of a dozen columns stay in the cache of a core: array expressions are about 3 times faster.
    slice_rows: int = 2**17

    @property
    def xp(self) -> ModuleType:
        """The array namespace: numpy or cupy."""
        import numpy

        return numpy

    def to_host(self, array: Array) -> Array:
        """Return a NumPy array with the same values."""
        return array

    def to_device(self, array: Array) -> Array:
        """Return an array of this device with the same values."""
        return array

    def workers(
        self, settings: Cluster, *, threads: int, engine: Engine = "local", large: bool = False
    ) -> AbstractContextManager[Workers]:
        """Open the workers of one step; ``large`` asks for processes where kind is auto, on the CPU."""
        from whitewater.engines.cluster import cpu_workers

        return cpu_workers(settings, engine=engine, threads=threads, large=large)

    def synchronize(self) -> None:
        """Wait until all that was begun on the device is done; what the host computes is when its call returns."""

    def describe(self) -> dict[str, Any]:
        """Return the hardware and the versions of the packages that compute, for the manifest."""
        return {
            "name": self.name,
            "processor": platform.machine(),
            "versions": versions("numpy", "pyarrow", "numba", "scikit-learn", "umap-learn"),
        }

    def free_memory(self) -> int:
        """Return the bytes of the device's memory, the host's or a GPU's, that this process may still take."""
        return memory.available()

    def memory_place(self) -> str:
        """Return the name of that memory, by which workers can tell that they have it in common."""
        return socket.gethostname()

    def peak_memory(self) -> int | None:
        """Return the peak of the device's own memory in bytes, or None where it is the host's."""
        return None


def versions(*distributions: str) -> dict[str, str | None]:
    """Return the version of each distribution, or None where it is not installed."""
    found: dict[str, str | None] = dict.fromkeys(distributions)
    for name in distributions:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found

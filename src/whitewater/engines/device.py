"""The interface of devices, implemented for the CPU."""

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
    """The CPU: NumPy, pyarrow, Numba and scikit-learn. `whitewater.engines.gpu.GpuDevice` is the GPU.

    A device is stateless, hashable and picklable; each process imports the libraries on first use.
    """

    name: Literal["cpu", "gpu"] = "cpu"  # for paths, the log and the manifest; no step branches on it
    frames: Literal["pandas", "cudf"] = "pandas"  # data frame library: Dask's ``dataframe.backend`` while a step runs
    partition_rows: int = 2**19  # approximate rows per partition of a table; results do not depend on it
    # Rows that a step processes at once: what fits the cache of a core, or fills a GPU. 128 Ki rows of a dozen columns
    # stay in the cache, so array expressions are about 3 times faster.
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
        """Open the workers of one step; ``large`` selects processes on the CPU if the kind is auto."""
        from whitewater.engines.cluster import cpu_workers

        return cpu_workers(settings, engine=engine, threads=threads, large=large)

    def synchronize(self) -> None:
        """Wait until the device has finished all work; on the CPU, every call has when it returns."""

    def describe(self) -> dict[str, Any]:
        """Return the hardware and the versions of the numerical packages, for the manifest."""
        return {
            "name": self.name,
            "processor": platform.machine(),
            "versions": versions("numpy", "pyarrow", "numba", "scikit-learn", "umap-learn"),
        }

    def free_memory(self) -> int:
        """Return the bytes of the device's memory, the host's or a GPU's, that this process may still use."""
        return memory.available()

    def memory_place(self) -> str:
        """Return the name of that memory; workers that share it give the same name."""
        return socket.gethostname()

    def peak_memory(self) -> int | None:
        """Return the peak of the GPU's memory in bytes; None on the CPU."""
        return None


def versions(*distributions: str) -> dict[str, str | None]:
    """Return the version of each distribution, or None if it is not installed."""
    versions: dict[str, str | None] = dict.fromkeys(distributions)
    for name in distributions:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions

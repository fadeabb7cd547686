"""The GPU: CuPy, cuDF and cuML, one NVIDIA GPU for each Dask worker."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from whitewater.engines.device import Array, Device
from whitewater.engines.gpu_check import missing_gpu
from whitewater.errors import DeviceError
from whitewater.versions import versions

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.config import Cluster
    from whitewater.engines.workers import Workers

PACKAGES = ("cudf", "cupy", "cuml", "dask_cuda")
DISTRIBUTIONS = ("cudf-cu13", "cupy-cuda13x", "cuml-cu13", "dask-cuda", "rmm-cu13", "numba-cuda", "xgboost")
REMEDY = (
    "Run where `nvidia-smi` lists a GPU and the packages of envs/gpu.lock are installed (`whitewater doctor` "
    "checks both), or set device=cpu."
)


@dataclass(frozen=True)
class GpuDevice(Device):
    """Computes on the current GPU of the process; use `connect`, which makes sure that there is one."""

    @classmethod
    def connect(cls) -> GpuDevice:
        """Return the device, once its packages and a GPU were found.

        Raises
        ------
        DeviceError
            If a package is missing, or CuPy, which computes all array expressions, finds no GPU that it can use.
        """
        absent = [name for name in PACKAGES if find_spec(name) is None]
        problem = f"the packages {', '.join(absent)} are not installed" if absent else _problem_of_cupy()
        if problem:
            raise DeviceError(f"device gpu: {problem}. {missing_gpu() or _found()} {REMEDY}")
        return cls()

    @property
    def name(self) -> Literal["gpu"]:
        return "gpu"

    @property
    def xp(self) -> ModuleType:
        import cupy

        module: ModuleType = cupy
        return module

    @property
    def slice_rows(self) -> int:
        # Starting a kernel costs microseconds, so slices are as long as memory allows: 16 Mi float64 are 128 MiB.
        return 2**24

    def to_host(self, array: Array) -> Array:
        import cupy

        host: Array = cupy.asnumpy(array)
        return host

    def to_device(self, array: Array) -> Array:
        import cupy

        device_array: Array = cupy.asarray(array)
        return device_array

    def free_memory(self) -> int:
        import cupy

        free, _ = cupy.cuda.runtime.memGetInfo()
        return int(free)

    def workers(
        self, settings: Cluster, *, threads: int, engine: Engine = "dask", large: bool = False
    ) -> AbstractContextManager[Workers]:
        from whitewater.engines.gpu_cluster import gpu_cluster

        return gpu_cluster(settings)

    def synchronize(self) -> None:
        import cupy

        cupy.cuda.runtime.deviceSynchronize()

    def describe(self) -> dict[str, Any]:
        import cupy
        import pynvml

        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(0)
        pynvml.nvmlInit()
        driver = pynvml.nvmlSystemGetDriverVersion()
        pynvml.nvmlShutdown()
        return {
            "name": self.name,
            "processor": properties["name"].decode(),
            "count": runtime.getDeviceCount(),
            "memory_bytes": properties["totalGlobalMem"],
            "driver": driver,
            "driver_cuda": _cuda_version(runtime.driverGetVersion()),
            "cuda": _cuda_version(runtime.runtimeGetVersion()),
            "versions": versions(*DISTRIBUTIONS),
        }

    def count_memory(self) -> None:
        import cudf  # noqa: F401, whose import lets RMM, which counts, allocate for CuPy, too

        from whitewater.engines.gpu_cluster import count_allocations

        count_allocations()

    def peak_memory(self) -> int | None:
        from whitewater.engines.gpu_cluster import peak_allocated

        return peak_allocated()


def _problem_of_cupy() -> str | None:
    import cupy

    if cupy.cuda.is_available():
        return None
    built_for = _cuda_version(cupy.cuda.runtime.runtimeGetVersion())
    return f"CuPy, which is built for CUDA {built_for}, finds no GPU that it can use"


def _found() -> str:
    """Say what there is, where a driver lists a device and packages are incomplete or do not fit the driver."""
    packages = ", ".join(f"{name} {version or 'not installed'}" for name, version in versions(*DISTRIBUTIONS).items())
    return f"The NVIDIA driver lists a device; packages: {packages}."


def _cuda_version(number: int) -> str:
    """Return CUDA's version number, 1000 times the major plus 10 times the minor version, as text."""
    return f"{number // 1000}.{number % 1000 // 10}"

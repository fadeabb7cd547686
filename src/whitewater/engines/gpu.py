"""The GPU: CuPy, cuDF and cuML, on one NVIDIA GPU in each process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from whitewater.engines import gpu_memory
from whitewater.engines.choose import PROCESSES_ON_GPU
from whitewater.engines.cluster import cpu_workers
from whitewater.engines.device import Array, Device
from whitewater.engines.gpu_check import cuda_version, problem_of_gpu
from whitewater.errors import ConfigError, DeviceError
from whitewater.versions import versions

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.config import Cluster
    from whitewater.engines.workers import Workers

logger = logging.getLogger(__name__)
DISTRIBUTIONS = ("cudf-cu13", "cupy-cuda13x", "cuml-cu13", "dask-cuda", "rmm-cu13", "numba-cuda", "xgboost")
REMEDY = (
    "Run where `nvidia-smi` lists a GPU and the packages of envs/gpu.lock are installed (`whitewater doctor` "
    "checks both), or set device=cpu."
)


@dataclass(frozen=True)
class GpuDevice(Device):
    """Computes on the current GPU of the process; use `connect`, which makes sure that there is one."""

    name: Literal["cpu", "gpu"] = "gpu"
    frames: Literal["pandas", "cudf"] = "cudf"
    # A dozen columns of them are 1.5 GB, and a step needs about three times that.
    partition_rows: int = 2**24
    # Starting a kernel costs microseconds, so slices are as long as memory allows: 16 Mi float64 are 128 MiB.
    slice_rows: int = 2**24

    @classmethod
    def connect(cls, *, attached: bool = False) -> GpuDevice:
        """Return the device, once its packages and a GPU were found, and its memory is prepared.

        Where the tasks run on a cluster, ``attached``, its workers check and prepare theirs: this process leaves the
        GPU alone, and needs none.

        Raises DeviceError if a package is missing, or CuPy, which computes all array expressions, finds no GPU.
        """
        if not attached:
            if problem := problem_of_gpu():
                raise DeviceError(f"device gpu: {problem} {REMEDY}")
            gpu_memory.prepare_memory()
        return cls()

    @property
    def xp(self) -> ModuleType:
        import cupy

        module: ModuleType = cupy
        return module

    def to_host(self, array: Array) -> Array:
        import cupy

        host: Array = cupy.asnumpy(array)
        return host

    def to_device(self, array: Array) -> Array:
        import cupy

        device_array: Array = cupy.asarray(array)
        return device_array

    def free_memory(self) -> int:
        return gpu_memory.free_memory()

    @contextmanager
    def workers(
        self, settings: Cluster, *, threads: int, engine: Engine = "dask", large: bool = False
    ) -> Iterator[Workers]:
        if settings.attached:
            from whitewater.engines.gpu_cluster import gpu_cluster

            with gpu_cluster(settings) as cluster:
                yield cluster
            return
        if settings.kind == "processes":
            raise ConfigError(PROCESSES_ON_GPU)
        import cupy

        if (count := cupy.cuda.runtime.getDeviceCount()) > 1:
            more = "`whitewater cluster start --device gpu` starts workers on all"
            logger.info("one of the %d GPUs is used; %s", count, more)
        tasks = min(threads, settings.gpu_tasks)
        with cpu_workers(settings, engine="local", threads=tasks, large=False) as workers:
            yield workers

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
            "driver_cuda": cuda_version(runtime.driverGetVersion()),
            "cuda": cuda_version(runtime.runtimeGetVersion()),
            "versions": versions(*DISTRIBUTIONS),
        }

    def memory_place(self) -> str:
        import cupy

        runtime = cupy.cuda.runtime
        return f"GPU {runtime.deviceGetPCIBusId(runtime.getDevice())} of {super().memory_place()}"

    def peak_memory(self) -> int | None:
        return gpu_memory.peak_memory()

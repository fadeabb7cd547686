"""The GPU: CuPy, cuDF and cuML on one NVIDIA GPU per process, with a common pool of memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from whitewater.engines.cluster import attach, cpu_workers
from whitewater.engines.config import PROCESSES_ON_GPU, Cluster, Engine
from whitewater.engines.device import Array, Device, versions
from whitewater.engines.gpu_check import cuda_version, gpu_problem
from whitewater.engines.workers import DaskWorkers, Workers, workers_of
from whitewater.errors import ConfigError, DeviceError

if TYPE_CHECKING:
    from distributed import Client
    from rmm.mr import StatisticsResourceAdaptor

logger = logging.getLogger(__name__)
DISTRIBUTIONS = ("cudf-cu13", "cupy-cuda13x", "cuml-cu13", "dask-cuda", "rmm-cu13", "numba-cuda", "xgboost")
# Read when cuDF and numba.cuda are imported. cuDF moves columns to the host when the pool is exhausted. Numba does not
# wait for the stream of CuPy arrays, because both use the same stream.
ENVIRONMENT = {"CUDF_SPILL": "on", "NUMBA_CUDA_ARRAY_INTERFACE_SYNC": "0"}
_LOCK = Lock()
# Dask's default shuffle, p2p, moves every partition through Arrow tables on the host; this one stays on the GPU.
DASK_SETTINGS = {"dataframe.shuffle.method": "tasks"}
GPU_RESOURCE = "GPU"  # by which workers limit how many tasks use their GPU at once


@dataclass(frozen=True)
class GpuDevice(Device):
    """The current GPU of the process; `connect` makes sure that there is one."""

    name: Literal["cpu", "gpu"] = "gpu"
    frames: Literal["pandas", "cudf"] = "cudf"
    # A dozen columns take 1.5 GB, and a step needs about three times that.
    partition_rows: int = 2**24
    # Starting a kernel costs microseconds, so slices are as long as memory allows: 16 Mi float64 are 128 MiB.
    slice_rows: int = 2**24

    @classmethod
    def connect(cls, *, attached: bool = False) -> GpuDevice:
        """Return the device after checking its packages, finding a GPU and preparing the GPU's memory.

        If tasks run on an ``attached`` cluster, its workers do that, and this process needs no GPU. Raises DeviceError
        if a package is missing or CuPy finds no GPU.
        """
        if not attached:
            if problem := gpu_problem():
                raise DeviceError(
                    f"device gpu: {problem} Run where `nvidia-smi` lists a GPU and the packages of envs/gpu.lock are "
                    "installed (`whitewater doctor` checks both), or set device=cpu."
                )
            prepare_memory()
        return cls()

    @property
    def xp(self) -> ModuleType:
        import cupy

        return cupy

    def to_host(self, array: Array) -> Array:
        import cupy

        return cupy.asnumpy(array)

    def to_device(self, array: Array) -> Array:
        import cupy

        return cupy.asarray(array)

    def free_memory(self) -> int:
        """Return the free bytes of the GPU and of its pool, which never shrinks: its size is at least its peak."""
        import cupy

        free, _ = cupy.cuda.runtime.memGetInfo()
        if statistics := _statistics():
            free += statistics.allocation_counts.peak_bytes - statistics.allocation_counts.current_bytes
        return int(free)

    @contextmanager
    def workers(
        self, settings: Cluster, *, threads: int, engine: Engine = "dask", large: bool = False
    ) -> Iterator[Workers]:
        if settings.attached:
            with gpu_cluster(settings) as cluster:
                yield cluster
            return
        if settings.kind == "processes":
            raise ConfigError(PROCESSES_ON_GPU)
        import cupy

        if (count := cupy.cuda.runtime.getDeviceCount()) > 1:
            more = "`whitewater cluster start --device gpu` starts workers on all"
            logger.info("one of the %d GPUs is used; %s", count, more)
        with cpu_workers(settings, engine="local", threads=min(threads, settings.gpu_tasks), large=False) as workers:
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
        """Return the peak memory from RMM, for cuDF, CuPy and cuML, without the CUDA context; None before its use."""
        statistics = _statistics()
        return int(statistics.allocation_counts.peak_bytes) if statistics else None


@contextmanager
def gpu_cluster(settings: Cluster) -> Iterator[DaskWorkers]:
    """Connect to a cluster and prepare the memory of its GPUs. Raises DeviceError if a worker has no usable GPU."""
    import dask

    with dask.config.set(DASK_SETTINGS), attach(settings) as client:
        problems: dict[str, str | None] = client.run(gpu_problem)
        if without_gpu := [f"{address} ({problem})" for address, problem in problems.items() if problem]:
            raise DeviceError(
                f"device gpu, but the Dask workers {', '.join(without_gpu)} cannot compute on a GPU. Start them with "
                "`whitewater cluster start --device gpu` or `dask cuda worker`, or set device=cpu."
            )
        prepare_workers(client)
        has_resource = all(GPU_RESOURCE in worker["resources"] for worker in workers_of(client).values())
        yield DaskWorkers(client, resources={GPU_RESOURCE: 1} if has_resource else {})


def prepare_workers(client: Client) -> None:
    """Call `prepare_memory` on the workers of a cluster, also on those that start later."""
    from distributed import WorkerPlugin

    class PrepareMemory(WorkerPlugin):
        name = "whitewater-prepare-memory"
        idempotent = True

        def setup(self, worker: Any) -> None:
            prepare_memory()

    client.register_plugin(PrepareMemory())


def prepare_memory() -> None:
    """Let CuPy and cuDF allocate from RMM's asynchronous pool, with statistics. Only the first call does anything.

    Call it before the first allocation. It keeps a pool that ``dask cuda worker --rmm-async`` has set.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with _LOCK:
        if _statistics() is not None:
            return
        import cupy
        import rmm.mr
        from rmm.allocators.cupy import rmm_cupy_allocator

        resource = rmm.mr.get_current_device_resource()
        if isinstance(resource, rmm.mr.CudaMemoryResource):
            resource = rmm.mr.CudaAsyncMemoryResource()
        rmm.mr.set_current_device_resource(rmm.mr.StatisticsResourceAdaptor(resource))
        cupy.cuda.set_allocator(rmm_cupy_allocator)


def _statistics() -> StatisticsResourceAdaptor | None:
    """Return RMM's statistics. rmm.statistics looks at the topmost resource only, but cuDF adds its own on top."""
    import rmm.mr

    resource = rmm.mr.get_current_device_resource()
    while not isinstance(resource, rmm.mr.StatisticsResourceAdaptor):
        if not isinstance(resource, rmm.mr.UpstreamResourceAdaptor):
            return None
        resource = resource.get_upstream()
    return resource

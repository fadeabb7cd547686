"""Dask's workers for its own collections, which are made of a device's arrays and frames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from whitewater.engines import Device
from whitewater.engines.cluster import LOOPBACK, attach, local_cluster
from whitewater.engines.config import Cluster

if TYPE_CHECKING:
    from distributed import Client

COLLECTIONS = {"array.backend": "cupy", "dataframe.backend": "cudf"}


def frames_of(device: Device) -> ModuleType:
    """Return the library of data frames: pandas or cudf."""
    if device.name == "gpu":
        return gpu_frames()
    import pandas

    return pandas


def gpu_frames() -> ModuleType:
    """Return cudf."""
    import cudf  # noqa: TID251, whose own frames are measured beside ours

    library: ModuleType = cudf
    return library


def dask_client(
    device: Device, settings: Cluster, *, threads: int, memory_limit: int | None = None
) -> AbstractContextManager[Client]:
    """Open Dask workers; ``memory_limit`` is the bytes of results that one holds before it spills some.

    It spills to disk on the CPU, to the host on a GPU.
    """
    if device.name == "gpu":
        return gpu_dask_client(settings, memory_limit=memory_limit)
    return cpu_dask_client(settings, threads=threads, memory_limit=memory_limit)


@contextmanager
def cpu_dask_client(settings: Cluster, *, threads: int, memory_limit: int | None = None) -> Iterator[Client]:
    """Open a Dask cluster, on threads of this process where the settings ask for no processes.

    A worker that holds more than ``memory_limit`` bytes of results writes those used least lately to disk. Memory that
    is not a result does not count.
    """
    import dask
    import distributed  # noqa: F401, before its settings are changed: it sets its defaults when it is imported

    # Only what a worker holds is looked at, which is as much on every machine, not how large its process has become.
    spilling = {f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}
    with dask.config.set({**spilling, "distributed.worker.memory.target": 1.0}):
        if settings.attached:
            with attach(settings) as client:
                yield client
        else:
            processes = settings.kind == "processes"
            with local_cluster(settings, threads=threads, processes=processes, memory_limit=memory_limit) as client:
                yield client


@contextmanager
def gpu_dask_client(settings: Cluster, *, memory_limit: int | None) -> Iterator[Client]:
    """Open a worker process for each GPU; Dask's collections are made of CuPy's arrays and cuDF's frames there.

    cuDF spills to the host when CUDA's pool runs out, or at ``memory_limit`` bytes.
    """
    import dask

    from whitewater.engines.gpu import DASK_SETTINGS, gpu_cluster, prepare_workers

    with dask.config.set(COLLECTIONS):
        if settings.attached:
            with gpu_cluster(settings) as workers:
                yield workers.client
            return
        from dask_cuda import LocalCUDACluster  # noqa: TID251, as published
        from distributed import Client

        with (
            dask.config.set(DASK_SETTINGS),
            LocalCUDACluster(
                protocol="tcp",
                host=LOOPBACK,
                # With no address given, scheduler and workers would serve HTTP to all interfaces.
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
                rmm_async=True,
                rmm_maximum_pool_size=memory_limit,
                rmm_allocator_external_lib_list=["cupy"],
                enable_cudf_spill=True,
                pre_import="cudf",
            ) as cluster,
            Client(cluster) as client,
        ):
            prepare_workers(client)
            yield client

"""Dask workers on the GPUs of this machine, one process for each, and what they allocated there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dask
from distributed import WorkerPlugin

from whitewater.engines.cluster import LOOPBACK, attach
from whitewater.engines.workers import DaskWorkers
from whitewater.errors import ConfigError, DeviceError

if TYPE_CHECKING:
    from distributed import Client

    from whitewater.engines.config import Cluster

# Dask's default shuffle, p2p, turns every partition into Arrow tables on the host; this one leaves them on the GPU.
DASK_SETTINGS = {"dataframe.shuffle.method": "tasks"}


@contextmanager
def gpu_cluster(settings: Cluster, *, memory_limit: int | None = None) -> Iterator[DaskWorkers]:
    """Open one worker process for each visible GPU, or connect to a cluster whose workers have GPUs already.

    Memory comes from CUDA's asynchronous pool through RMM, for CuPy as for cuDF; cuDF spills to the host when it runs
    out, or at ``memory_limit`` bytes. Workers talk over TCP on the loopback interface, and no dashboard is opened.

    Raises ConfigError if the settings ask for threads, but a GPU needs a process of its own; and DeviceError if a
    worker of the cluster that the settings name has no GPU that it can use.
    """
    if settings.kind == "threads":
        raise ConfigError(
            "cluster.kind is 'threads', but each GPU needs a process of its own. Set cluster.kind to auto, or attach."
        )
    with dask.config.set(DASK_SETTINGS):
        if settings.kind == "attach":
            with attach(settings) as client:
                _refuse_workers_without_gpu(client)
                yield DaskWorkers(client)
            return
        from dask_cuda import LocalCUDACluster
        from distributed import Client

        with (
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
            client.register_plugin(CountAllocations())
            yield DaskWorkers(client)


class CountAllocations(WorkerPlugin):
    """Counts what a worker allocates, so that `peak_allocated` can tell; workers started later count, too."""

    name = "whitewater-count-allocations"

    def setup(self, worker: Any) -> None:
        """Start to count."""
        count_allocations()


def count_allocations() -> None:
    """Count from now on what this process holds on its GPU and RMM has allocated."""
    from rmm.statistics import enable_statistics

    enable_statistics()


def peak_allocated() -> int | None:
    """Return the most bytes that this process held on its GPU at once, or None where `CountAllocations` does not count.

    Counts what went through RMM: all arrays of cuDF and CuPy and the work space of cuML, not the CUDA context. The
    workers do the work, so it is they who know: ``client.call_on_each(peak_allocated)``.
    """
    import rmm.mr

    resource = rmm.mr.get_current_device_resource()
    # rmm.statistics looks at the topmost resource only, above which cuDF puts its own when it spills.
    while not isinstance(resource, rmm.mr.StatisticsResourceAdaptor):
        if not isinstance(resource, rmm.mr.UpstreamResourceAdaptor):
            return None
        resource = resource.get_upstream()
    return int(resource.allocation_counts.peak_bytes)


def _refuse_workers_without_gpu(client: Client) -> None:
    problems: dict[str, str | None] = client.run(_problem_of_worker)
    lacking = [f"{address} ({problem})" for address, problem in problems.items() if problem]
    if lacking:
        raise DeviceError(
            f"device gpu, but of the Dask workers, {', '.join(lacking)} cannot compute on a GPU. Start them with "
            "`dask cuda worker`, or set device=cpu."
        )


def _problem_of_worker() -> str | None:
    try:
        import cupy
    except ImportError as error:
        return str(error)
    return None if cupy.cuda.is_available() else "CuPy finds no GPU that it can use"

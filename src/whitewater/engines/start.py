"""The background process of ``whitewater cluster start``: a Dask cluster that outlives steps."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

from dask.system import CPU_COUNT
from pydantic import Field

from whitewater.config.base import Section
from whitewater.engines.cluster import LOOPBACK, loopback_options, security
from whitewater.engines.config import Cluster
from whitewater.engines.gpu_check import gpu_names
from whitewater.io.store import write_json
from whitewater.process import exit_fast, exit_status

if TYPE_CHECKING:
    from distributed import LocalCluster

WORKERS_SECONDS = 150.0


class ClusterRequest(Section):
    """Options of a cluster. Memory limits are per worker; 0 is no limit."""

    file: Path
    device: Literal["cpu", "gpu"] = "cpu"
    workers: int | None = Field(None, ge=1)
    threads_per_worker: int | None = Field(None, ge=1)
    memory_limit: str = "0"
    device_memory_limit: str = "0.8"
    gpu_tasks: int = Field(Cluster().gpu_tasks, ge=1)
    dashboard: bool = False
    host: str = LOOPBACK
    tls: dict[str, str] = Field({})  # the TLS files by their keys in `Cluster`


def serve(request: ClusterRequest) -> None:
    """Run a cluster until SIGTERM; write the file by which steps find it once all workers answer."""
    from distributed import Client

    terminated = Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    with open_cluster(request) as cluster, Client(cluster) as client:
        client.wait_for_workers(len(cluster.worker_spec), timeout=WORKERS_SECONDS)
        if request.device == "gpu":
            from whitewater.engines.gpu import prepare_workers

            prepare_workers(client)
        client.run(os.getpid)  # returns when all workers have answered
        scheduler = client.scheduler_info(n_workers=0)
        port = scheduler["services"]["dashboard"] if request.dashboard else None
        description = {
            "address": scheduler["address"],
            "device": request.device,
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": socket.gethostname(),
            "pid": os.getpid(),
            "group": os.getpgrp(),
            "dashboard": f"http://{LOOPBACK}:{port}/status" if port else None,
            "tls": request.tls,
        }
        write_json(request.file, description)
        try:
            terminated.wait()
        finally:
            request.file.unlink(missing_ok=True)


@contextmanager
def open_cluster(request: ClusterRequest) -> Iterator[LocalCluster]:
    """Start worker processes; by default one per core, divided by their threads, or one per visible GPU.

    CuPy and cuDF allocate GPU memory from CUDA's asynchronous pool through RMM. cuDF spills to the host when the pool
    is exhausted; Dask moves waiting results to the host at the device memory limit.
    """
    import dask

    options: dict[str, Any] = {
        "memory_limit": request.memory_limit,
        "host": request.host,
        "security": security(request.tls),
        # The dashboard has no password, so only this machine may reach it.
        **loopback_options(dashboard=request.dashboard),
    }
    # Workers inherit these settings.
    settings: dict[str, Any] = {"distributed.worker.profile.enabled": request.dashboard}
    if request.device == "cpu":
        from distributed import LocalCluster

        kind: Any = LocalCluster
        threads = request.threads_per_worker or 1
        options |= {"n_workers": request.workers or max(1, CPU_COUNT // threads), "threads_per_worker": threads}
    else:
        from dask_cuda import LocalCUDACluster

        from whitewater.engines.gpu import ENVIRONMENT

        kind = LocalCUDACluster
        os.environ.update(ENVIRONMENT)  # inherited by workers, which import cuDF
        settings["distributed.worker.resources"] = {"GPU": request.gpu_tasks}
        threads = request.threads_per_worker or max(1, CPU_COUNT // (request.workers or len(gpu_names())))
        options |= {
            "n_workers": request.workers,
            # A task on the GPU takes one unit of the resource; other tasks need a thread only.
            "threads_per_worker": threads,
            "device_memory_limit": request.device_memory_limit,
            "protocol": "tls" if request.tls else "tcp",
            "rmm_async": True,
            "rmm_allocator_external_lib_list": ["cupy"],
            "enable_cudf_spill": True,
            "pre_import": "cudf",
        }
    with dask.config.set(settings), kind(**options) as cluster:
        yield cluster


def _main() -> int:
    # The starting command kills its children when it ends, but not its grandchildren.
    if os.fork():
        os._exit(0)
    serve(ClusterRequest.model_validate_json(sys.argv[1]))
    return 0


if __name__ == "__main__":
    exit_fast(exit_status(_main))

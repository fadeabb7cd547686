"""Workers of a Dask cluster that have a GPU each, one process for each GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dask
from distributed import WorkerPlugin

from whitewater.engines.cluster import attach
from whitewater.engines.gpu_check import problem_of_gpu
from whitewater.engines.gpu_memory import prepare_memory
from whitewater.engines.workers import DaskWorkers, workers_of
from whitewater.errors import DeviceError

if TYPE_CHECKING:
    from whitewater.engines.config import Cluster

# Dask's default shuffle, p2p, turns every partition into Arrow tables on the host; this one leaves them on the GPU.
DASK_SETTINGS = {"dataframe.shuffle.method": "tasks"}
# Workers that advertise this resource say how many tasks may use their GPU at once.
GPU_RESOURCE = "GPU"


@contextmanager
def gpu_cluster(settings: Cluster) -> Iterator[DaskWorkers]:
    """Connect to a cluster whose workers have GPUs, and prepare their memory.

    Raises DeviceError if a worker cannot compute on a GPU, with the reason.
    """
    with dask.config.set(DASK_SETTINGS), attach(settings) as client:
        problems: dict[str, str | None] = client.run(problem_of_gpu)
        if lacking := [f"{address} ({problem})" for address, problem in problems.items() if problem]:
            raise DeviceError(
                f"device gpu, but of the Dask workers, {', '.join(lacking)} cannot compute on a GPU. Start them with "
                "`whitewater cluster start --device gpu` or `dask cuda worker`, or set device=cpu."
            )
        client.register_plugin(PrepareMemory())
        counts_tasks = all(GPU_RESOURCE in worker["resources"] for worker in workers_of(client).values())
        yield DaskWorkers(client, resources={GPU_RESOURCE: 1} if counts_tasks else {})


class PrepareMemory(WorkerPlugin):
    """Prepares the memory of a worker's GPU; of workers that start later, too."""

    name = "whitewater-prepare-memory"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Prepare it."""
        prepare_memory()

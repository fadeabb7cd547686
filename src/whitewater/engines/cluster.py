"""The workers of one step on the CPU. Everything listens on the loopback interface only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.engines.workers import DaskWorkers, Workers, thread_workers
from whitewater.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

    from whitewater.engines.choose import Engine
    from whitewater.engines.config import Cluster

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 20


@contextmanager
def cpu_workers(settings: Cluster, *, engine: Engine, threads: int, large: bool) -> Iterator[Workers]:
    """Open workers on the CPU: threads of this process, processes of their own, or a Dask cluster that runs already.

    Threads start at once and share memory, and the hot primitives release the interpreter lock; processes isolate a
    worker that dies, which Dask's nanny then replaces while its tasks run again. Dask takes most of a second to import
    and to start, so threads do without it unless it is the engine, or its performance report is asked for.
    """
    processes = settings.kind == "processes" or (settings.kind == "auto" and large)
    if settings.attached:
        with attach(settings) as client:
            yield DaskWorkers(client)
    elif processes or engine == "dask" or settings.performance_report:
        with local_cluster(settings, threads=threads, processes=processes) as client:
            yield DaskWorkers(client)
    else:
        with thread_workers(threads) as workers:
            yield workers


@contextmanager
def local_cluster(
    settings: Cluster, *, threads: int, processes: bool, memory_limit: int | None = None
) -> Iterator[Client]:
    """Start a Dask cluster: one worker process a thread, or one worker on threads of this process."""
    import dask
    from distributed import Client, LocalCluster

    with (
        # Dask looks at the stack of each thread every 10 ms, for its report; threads that share the interpreter's lock
        # with it are a tenth slower.
        dask.config.set({"distributed.worker.profile.enabled": settings.performance_report}),
        LocalCluster(
            n_workers=threads if processes else 1,
            threads_per_worker=1 if processes else threads,
            processes=processes,
            host=LOOPBACK if processes else None,
            # With no address given, scheduler and workers would serve HTTP to all interfaces, dashboard or not.
            dashboard_address=f"{LOOPBACK}:0",
            worker_dashboard_address=f"{LOOPBACK}:0",
            # The pages of the dashboard, which nobody looks at, take half a second to import.
            scheduler_kwargs={"dashboard": False},
            memory_limit=memory_limit,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def attach(settings: Cluster) -> Iterator[Client]:
    """Connect to the scheduler that the settings name, and leave it running afterwards.

    Raises InputError if no scheduler answers there, or it has no workers.
    """
    from distributed import Client

    if settings.scheduler_file and not Path(settings.scheduler_file).exists():
        raise InputError(f"cluster.scheduler_file {settings.scheduler_file} does not exist. Start the scheduler with "
                         f"`dask scheduler --host {LOOPBACK} --dashboard-address {LOOPBACK}:0 --scheduler-file "
                         f"{settings.scheduler_file}`; see docs/clusters.md.")  # fmt: skip
    where = settings.address or settings.scheduler_file
    try:
        client = Client(
            settings.address or None, scheduler_file=settings.scheduler_file or None, timeout=CONNECT_SECONDS
        )
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at {where} ({error}). Start one, or set cluster.kind to auto."
        ) from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(
                f"the Dask scheduler at {where} has no workers. Start some with `dask worker`; see docs/clusters.md."
            )
        client.get_versions(check=True)
        yield client

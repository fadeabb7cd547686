"""The workers of one step on the CPU. Everything listens on the loopback interface only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.engines.attached import WORKERLESS_SECONDS, refuse_other_code, watch_cluster
from whitewater.engines.config import TLS
from whitewater.engines.workers import DaskWorkers, Workers, thread_workers
from whitewater.errors import ConfigError, InputError

if TYPE_CHECKING:
    from distributed import Client, Security

    from whitewater.engines.choose import Engine
    from whitewater.engines.config import Cluster

logger = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 20


@contextmanager
def cpu_workers(settings: Cluster, *, engine: Engine, threads: int, large: bool) -> Iterator[Workers]:
    """Open workers on the CPU: threads of this process, processes of their own, or a Dask cluster that runs already.

    Threads start at once and share memory, and the hot primitives release the interpreter lock; processes isolate a
    worker that dies, which Dask's nanny then replaces while its tasks run again. Dask takes most of a second to import
    and to start, so threads do without it unless it is the engine, or its dashboard or performance report is wanted.
    """
    processes = settings.kind == "processes" or (settings.kind == "auto" and large)
    if settings.attached:
        with attach(settings) as client:
            yield DaskWorkers(client)
    elif processes or engine == "dask" or settings.performance_report or settings.dashboard:
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
        dask.config.set({"distributed.worker.profile.enabled": settings.performance_report or settings.dashboard}),
        LocalCluster(
            n_workers=threads if processes else 1,
            threads_per_worker=1 if processes else threads,
            processes=processes,
            host=LOOPBACK if processes else None,
            memory_limit=memory_limit,
            **serve_http_to_this_machine(dashboard=settings.dashboard),
        ) as cluster,
        Client(cluster) as client,
    ):
        if settings.dashboard:
            port = client.scheduler_info()["services"]["dashboard"]
            logger.info("Dask's dashboard is at http://%s:%d/status", LOOPBACK, port)
        yield client


def serve_http_to_this_machine(*, dashboard: bool) -> dict[str, Any]:
    """Return options of a cluster: without addresses, scheduler and workers would serve HTTP to all interfaces."""
    return {
        "dashboard_address": f"{LOOPBACK}:0",
        "worker_dashboard_address": f"{LOOPBACK}:0",
        # The pages of the dashboard take half a second to import.
        "scheduler_kwargs": {"dashboard": dashboard},
    }


@contextmanager
def attach(settings: Cluster) -> Iterator[Client]:
    """Connect to the cluster that the settings name, and leave it running afterwards.

    Raises ConfigError if the address or a file of TLS cannot be used; InputError if no scheduler answers, it has no
    workers, or one of them would not run the code that is here; and ResourceError if the cluster dies while it is used.
    """
    from distributed import Client

    where = _scheduler(settings)
    try:
        client = Client(
            settings.address or None,
            scheduler_file=settings.scheduler_file or None,
            timeout=CONNECT_SECONDS,
            security=security(settings.tls),
        )
    except ValueError as error:
        raise ConfigError(f"cluster.address = {settings.address!r}: {error}") from error
    except TypeError as error:  # a file names a tls:// address
        raise InputError(
            f"the cluster at {where} is reached over TLS: set cluster.{', cluster.'.join(TLS)}."
        ) from error
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at {where} ({type(error).__name__}: {error}). Start a cluster, `whitewater "
            "cluster start`, or empty cluster.address and cluster.scheduler_file; see docs/clusters.md."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKERLESS_SECONDS)  # those that died are replaced meanwhile
        except TimeoutError as error:
            raise InputError(
                f"the Dask scheduler at {where} has no workers. Start some with `dask worker`; see docs/clusters.md."
            ) from error
        refuse_other_code(client, where)
        with watch_cluster(client, where):
            yield client


def _scheduler(settings: Cluster) -> str:
    """Return the address or file that the settings name, once the files that they name were found."""
    for name, path in settings.tls.items():
        if not Path(path).exists():
            raise ConfigError(f"cluster.{name} = {path!r}: there is no such file.")
    if settings.scheduler_file and not Path(settings.scheduler_file).exists():
        raise InputError(
            f"cluster.scheduler_file {settings.scheduler_file} does not exist. Start a cluster, `whitewater cluster "
            f"start --file {settings.scheduler_file}`; see docs/clusters.md."
        )
    return settings.address or settings.scheduler_file


def security(tls: Mapping[str, str]) -> Security | None:
    """Return what admits those only who hold a certificate of the same authority, or None without files of TLS."""
    from distributed import Security

    if not tls:
        return None
    roles = ("client", "scheduler", "worker")
    return Security(
        tls_ca_file=tls["tls_ca_file"],
        require_encryption=True,
        **{f"tls_{role}_{part}": tls[f"tls_{part}"] for role in roles for part in ("cert", "key")},
    )

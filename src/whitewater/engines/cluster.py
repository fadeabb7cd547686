"""The workers of one step on the CPU, and connections to running clusters.

Clusters that a step starts listen on the loopback interface only.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import whitewater
from whitewater.engines.config import TLS, Cluster, Engine
from whitewater.engines.workers import DaskWorkers, Workers, thread_workers, workers_of
from whitewater.errors import ConfigError, InputError, ResourceError, WhitewaterError, shorten_list

if TYPE_CHECKING:
    from distributed import Client, Security

logger = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 20
# Must have the same versions on both sides, because they serialize tasks and data.
PACKAGES = ("python", "dask", "distributed", "cloudpickle", "numpy", "pandas")
RESTART = "Restart the workers (`whitewater cluster stop`, then `start`)"
# A cluster may have no workers for a while, until its nannies replace those that died.
WATCH_SECONDS, WORKERLESS_SECONDS = 1.0, 30.0


@contextmanager
def cpu_workers(settings: Cluster, *, engine: Engine, threads: int, large: bool) -> Iterator[Workers]:
    """Open workers on the CPU: threads of this process, worker processes, or a running Dask cluster.

    Threads share memory, and the hot primitives release the interpreter lock. A process that dies is replaced, and its
    tasks run again. Dask takes most of a second to start, so threads use it only if it is the engine, or for its
    dashboard or performance report.
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
    """Start a Dask cluster: one worker process per thread, or one worker with threads of this process."""
    import dask
    from distributed import Client, LocalCluster

    with (
        # Dask's profiler inspects the stack of each thread every 10 ms, which slows threads by a tenth.
        dask.config.set({"distributed.worker.profile.enabled": settings.performance_report or settings.dashboard}),
        LocalCluster(
            n_workers=threads if processes else 1,
            threads_per_worker=1 if processes else threads,
            processes=processes,
            host=LOOPBACK if processes else None,
            memory_limit=memory_limit,
            **loopback_options(dashboard=settings.dashboard),
        ) as cluster,
        Client(cluster) as client,
    ):
        if settings.dashboard:
            port = client.scheduler_info()["services"]["dashboard"]
            logger.info("Dask's dashboard is at http://%s:%d/status", LOOPBACK, port)
        yield client


def loopback_options(*, dashboard: bool) -> dict[str, Any]:
    """Return options of a cluster; by default, scheduler and workers would serve HTTP on all interfaces."""
    return {
        "dashboard_address": f"{LOOPBACK}:0",
        "worker_dashboard_address": f"{LOOPBACK}:0",
        # The pages of the dashboard take half a second to import.
        "scheduler_kwargs": {"dashboard": dashboard},
    }


@contextmanager
def attach(settings: Cluster) -> Iterator[Client]:
    """Connect to the cluster of the settings, and leave it running afterwards.

    Raises ConfigError if the address or a TLS file is invalid; InputError if no scheduler answers, it has no workers,
    or one of them would run other code than this process; and ResourceError if the cluster dies during use.
    """
    from distributed import Client

    for name, path in settings.tls.items():
        if not Path(path).exists():
            raise ConfigError(f"cluster.{name} = {path!r}: there is no such file.")
    if (file := settings.scheduler_file) and not Path(file).exists():
        raise InputError(
            f"cluster.scheduler_file {file} does not exist. Start a cluster, `whitewater cluster start --file {file}`; "
            "see docs/clusters.md."
        )
    where = settings.address or file
    try:
        tls = security(settings.tls)
        client = Client(settings.address or None, scheduler_file=file or None, timeout=CONNECT_SECONDS, security=tls)
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
            client.wait_for_workers(1, timeout=WORKERLESS_SECONDS)
        except TimeoutError as error:
            raise InputError(
                f"the Dask scheduler at {where} has no workers. Start some with `dask worker`; see docs/clusters.md."
            ) from error
        check_same_code(client, where)
        with watch_cluster(client, where):
            yield client


def security(tls: Mapping[str, str]) -> Security | None:
    """Return Dask's security settings for mutual TLS, or None without TLS files."""
    from distributed import Security

    if not tls:
        return None
    roles = ("client", "scheduler", "worker")
    return Security(
        tls_ca_file=tls["tls_ca_file"],
        require_encryption=True,
        **{f"tls_{role}_{part}": tls[f"tls_{part}"] for role in roles for part in ("cert", "key")},
    )


def check_same_code(client: Client, where: str) -> None:
    """Raise InputError if a worker has other code or packages than this process, or another working directory."""
    versions: Any = client.get_versions()
    here = versions["client"]["packages"]
    remote = {"the scheduler": versions["scheduler"], **versions["workers"]}
    differences = [
        f"{name} {process['packages'].get(name)} of {place} (here {here[name]})"
        for place, process in remote.items()
        for name in PACKAGES
        if process["packages"].get(name) != here[name]
    ]
    if differences:
        raise InputError(
            f"the cluster at {where} has other packages than this process: {shorten_list(differences)}. Start its "
            "scheduler and workers in the environment of this process."
        )
    for address, answer in client.run(worker_code, on_error="return").items():
        if isinstance(answer, OSError):  # the worker has died meanwhile
            continue
        version, folder, changed = (repr(answer), "", []) if isinstance(answer, Exception) else answer
        if isinstance(answer, ModuleNotFoundError):
            problem = f"cannot import whitewater ({answer}). Start it in the environment of this process."
        elif version != whitewater.__version__:
            problem = f"runs another version of whitewater ({version}). {RESTART}."
        elif changed:
            problem = f"started before {shorten_list(changed)} changed. {RESTART}."
        elif folder != str(Path.cwd()):
            problem = f"was started in {folder}, and would not find the files of {Path.cwd()}. Start it there."
        else:
            continue
        raise InputError(f"the worker {address} of the cluster at {where} {problem}")


def worker_code() -> tuple[str, str, list[str]]:
    """Return this worker's version, its folder, and the modules that changed on disk since it imported them."""
    modules = sys.modules.copy()  # a task may import modules meanwhile
    paths = {name: Path(file) for name, module in modules.items() if (file := getattr(module, "__file__", None))}
    changed = sorted(
        name for name, path in paths.items() if path.exists() and path.stat().st_mtime > whitewater.imported
    )
    return whitewater.__version__, str(Path.cwd()), changed


@contextmanager
def watch_cluster(client: Client, where: str) -> Iterator[None]:
    """Raise ResourceError if the cluster dies, instead of the error that its death causes."""
    ended, workerless = Event(), Event()
    Thread(target=_watch, args=(client, ended, workerless), daemon=True).start()
    try:
        yield
    except WhitewaterError:
        raise
    except Exception as error:
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            killed = error.allowed_failures + 1
            problem = f"a task ended {killed} workers of the cluster at {where}, most likely for lack of memory"
        elif workerless.is_set():
            problem = f"the cluster at {where} has lost all its workers"
        elif client.status != "running":
            problem = f"the cluster at {where} ended while the step used it"
        elif isinstance(error, CancelledError):
            problem = f"workers of the cluster at {where} ended, and what they held for the step is lost"
        else:
            raise
        remedy = "Look into the logs of the cluster, start it again (`whitewater cluster start`) and run this again."
        raise ResourceError(f"{problem}. {remedy}") from error
    finally:
        ended.set()


def _watch(client: Client, ended: Event, workerless: Event) -> None:
    """Close a client whose cluster has had no workers for a while; it would wait forever."""
    last_seen = time.monotonic()
    while not ended.wait(WATCH_SECONDS) and client.status == "running":
        try:
            workers = workers_of(client)
        except Exception:  # the scheduler is gone, which the client notices itself
            return
        if workers:
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > WORKERLESS_SECONDS:
            workerless.set()
            client.close()
            return

"""What a cluster that runs already may get wrong: workers that run other code, and workers that are gone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import whitewater
from whitewater.engines.workers import workers_of
from whitewater.errors import InputError, ResourceError, WhitewaterError, shorten_list

if TYPE_CHECKING:
    from distributed import Client

# Of these the versions must be equal: a task is sent as Python's and Dask's own, its arrays and tables as theirs.
PACKAGES = ("python", "dask", "distributed", "cloudpickle", "numpy", "pandas")
RESTART = "Restart the workers (`whitewater cluster stop`, then `start`)"
# A nanny replaces a worker that died; meanwhile there may be none.
WATCH_SECONDS, WORKERLESS_SECONDS = 1.0, 30.0


def refuse_other_code(client: Client, where: str) -> None:
    """Raise InputError if a worker would not run the code that is here, in this folder, with the same packages."""
    if different := _different_packages(client):
        raise InputError(
            f"the cluster at {where} has other packages than this process: {shorten_list(different)}. Start its "
            "scheduler and workers in the environment of this one."
        )
    for address, answer in client.run(code_of_worker, on_error="return").items():
        worker = f"the worker {address} of the cluster at {where}"
        if isinstance(answer, OSError):  # it died meanwhile, and does not run anything
            continue
        if isinstance(answer, ModuleNotFoundError):
            raise InputError(
                f"{worker} cannot import whitewater ({answer}). Start it in the environment of this process."
            )
        version, folder, changed = ("unknown", "", []) if isinstance(answer, Exception) else answer
        if version != whitewater.__version__:
            raise InputError(f"{worker} runs another version of whitewater. {RESTART}.")
        if changed:
            raise InputError(f"{worker} started before {shorten_list(changed)} changed. {RESTART}.")
        if folder != str(Path.cwd()):
            raise InputError(
                f"{worker} was started in {folder}, and would not find the files of {Path.cwd()}. Start it there."
            )


def code_of_worker() -> tuple[str, str, list[str]]:
    """Return the version of this process, a worker, its folder, and the modules that changed since it imported them."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    paths = {name: Path(file) for name, file in files.items() if file}
    changed = sorted(
        name for name, path in paths.items() if path.exists() and path.stat().st_mtime > whitewater.imported
    )
    return whitewater.__version__, str(Path.cwd()), changed


@contextmanager
def watch_cluster(client: Client, where: str) -> Iterator[None]:
    """Raise ResourceError if the cluster dies, whatever its death leaves behind where results are waited for."""
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
        raise ResourceError(
            f"{problem}. Look into the logs of the cluster, start it again (`whitewater cluster start`) and run this "
            "again."
        ) from error
    finally:
        ended.set()


def _watch(client: Client, ended: Event, workerless: Event) -> None:
    """Close a client whose cluster has had no workers for a while, or it would wait for ever."""
    seen = time.monotonic()
    while not ended.wait(WATCH_SECONDS) and client.status == "running":
        try:
            workers = workers_of(client)
        except Exception:  # the scheduler is gone, which the client finds out itself
            return
        if workers:
            seen = time.monotonic()
        elif time.monotonic() - seen > WORKERLESS_SECONDS:
            workerless.set()
            client.close()
            return


def _different_packages(client: Client) -> list[str]:
    """Return what differs, such as ``dask 2026.1.0 of tcp://10.0.0.2:4000 (here 2026.7.1)``."""
    versions: Any = client.get_versions()
    here = versions["client"]["packages"]
    others = {"the scheduler": versions["scheduler"], **versions["workers"]}
    return [
        f"{name} {found['packages'].get(name)} of {place} (here {here[name]})"
        for place, found in others.items()
        for name in PACKAGES
        if found["packages"].get(name) != here[name]
    ]

"""Clusters that run already: what they must run, how they may die, and what a step that is killed leaves there."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

import whitewater
from whitewater.engines import Device, cluster
from whitewater.engines.cluster import attach, cpu_workers, worker_code
from whitewater.engines.config import Cluster
from whitewater.engines.workers import DaskWorkers
from whitewater.errors import ConfigError, InputError, ResourceError

# Starts a cluster of two worker processes, and ends it when its input ends.
SERVE = """
import os, signal, sys
from distributed import LocalCluster
from distributed.core import Status
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                      worker_dashboard_address="127.0.0.1:0", resources={"GPU": 1}) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.readline()
        for nanny in cluster.workers.values():
            pid, nanny.status = nanny.pid, Status.failed  # so that it starts no other worker
            os.kill(pid, signal.SIGKILL)
        sys.stdin.read()
"""


class Served:
    """A cluster in another process, and the folder that its workers import from and work in."""

    def __init__(self, folder: Path, *, environment: dict[str, str] | None = None) -> None:
        script = folder / "serve.py"
        script.write_text(SERVE)
        (folder / "work").mkdir()
        (folder / "packages").mkdir()
        (folder / "packages" / "tasks_of_a_test.py").write_text(TASKS)
        paths = os.pathsep.join([str(folder / "packages"), *sys.path])
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder / "work",
            env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.folder = folder
        self.tasks: Any = None

    def end_workers(self) -> None:
        """Kill the workers, which are not replaced."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        for child in psutil.Process(self.process.pid).children(recursive=True):
            child.kill()
        self.process.kill()
        self.process.wait()


TASKS = """
import os, time

def slow(number, shared=None):
    time.sleep(0.2)
    return number

def die(number):
    os._exit(1)

def note(path, other):
    path.touch()
    time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serve(tmp_path_factory.mktemp("lasting"))


def serve(folder: Path) -> Iterator[Served]:
    found = Served(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder / "packages")
        patch.delitem(sys.modules, "tasks_of_a_test", raising=False)
        found.tasks = import_module("tasks_of_a_test")
        try:
            yield found
        finally:
            sys.modules.pop("tasks_of_a_test", None)
            found.end()


@pytest.fixture
def served(lasting: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """A cluster that all tests share."""
    monkeypatch.chdir(lasting.folder / "work")
    return lasting


@pytest.fixture
def mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A cluster of one test, which may end it."""
    monkeypatch.chdir(tmp_path)
    for found in serve(tmp_path):
        monkeypatch.chdir(tmp_path / "work")
        yield found


def test_an_address_alone_attaches_twice_and_tasks_take_what_workers_advertise(served: Served) -> None:
    for _ in range(2):
        with cpu_workers(Cluster(address=served.address), engine="dask", threads=1, large=False) as workers:
            assert sorted(workers.as_completed(served.tasks.slow, [7, 8], {"shared": {"a": 1}})) == [(0, 7), (1, 8)]
            assert list(workers.threads) == [2, 2]
    with attach(Cluster(address=served.address)) as client:
        assert list(DaskWorkers(client, resources={"GPU": 1}).threads) == [1, 1]
        assert len(DaskWorkers(client, resources={"GPU": 1}).call_on_each(os.getpid)) == 2


def test_the_memory_of_workers_of_one_machine_is_refused_together(
    served: Served,
) -> None:
    with attach(Cluster(address=served.address)) as client:
        workers = DaskWorkers(client)
        a_task = Device().free_memory() // 6
        workers.forecast(Device(), a_task=a_task // 2, tasks=9, what="a sum", remedy="")
        with pytest.raises(ResourceError, match=r"a sum needs about .* GB of memory, but .* Wait\."):
            workers.forecast(Device(), a_task=2 * a_task, tasks=9, what="a sum", remedy="Wait.")
        with pytest.raises(ResourceError, match="a sum"):
            workers.forecast(Device(), a_task=1, tasks=9, shared=4 * a_task, what="a sum", remedy="Wait.")


def test_workers_that_imported_what_changed_since_are_refused(mortal: Served) -> None:
    settings = Cluster(address=mortal.address)
    with attach(settings) as client:
        assert list(DaskWorkers(client).as_completed(mortal.tasks.slow, [1], {})) == [(0, 1)]
    later = time.time() + 5
    os.utime(mortal.folder / "packages" / "tasks_of_a_test.py", (later, later))
    with (
        pytest.raises(InputError, match=r"started before tasks_of_a_test changed\. Restart the workers"),
        attach(settings),
    ):
        pass


def test_a_worker_says_what_code_it_runs_while_a_task_imports_modules() -> None:
    """Python's collector runs in the middle of an iteration, and lets other threads go on: here, one that imports."""
    names = (f"module_of_a_test_{number}" for number in count())
    imported: list[str] = []

    def import_another(_: str, __: object) -> None:
        imported.append(next(names))
        sys.modules[imported[-1]] = ModuleType(imported[-1])

    usual = gc.get_threshold()
    gc.callbacks.append(import_another)
    gc.set_threshold(1)
    try:
        version, _, _ = worker_code()
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(import_another)
        for name in imported:
            del sys.modules[name]
    assert version == whitewater.__version__


def test_workers_that_were_started_in_another_folder_are_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(served.folder)
    with (
        pytest.raises(InputError, match=rf"was started in {served.folder}/work.* Start it there"),
        attach(Cluster(address=served.address)),
    ):
        pass


@pytest.mark.filterwarnings("ignore::distributed.versions.VersionMismatchWarning")
def test_workers_with_other_packages_are_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed.versions

    found = distributed.versions.get_versions()
    found["packages"]["dask"] = "1.0"
    monkeypatch.setattr("distributed.versions.get_versions", lambda **_: found)
    with (
        pytest.raises(InputError, match=r"other packages than this process: dask .* of the scheduler \(here 1\.0\)"),
        attach(Cluster(address=served.address)),
    ):
        pass


def run_until_first(cluster: Served, then: Callable[[], object]) -> None:
    """Run tasks on a cluster, and do something when the first is done."""
    with cpu_workers(Cluster(address=cluster.address), engine="dask", threads=1, large=False) as workers:
        for done, _ in enumerate(workers.as_completed(cluster.tasks.slow, range(100), {})):
            if not done:
                then()


def test_a_scheduler_that_dies_is_one_error(mortal: Served) -> None:
    with pytest.raises(ResourceError, match=rf"{mortal.address} ended while the step used it\. .*run this again"):
        run_until_first(mortal, mortal.process.kill)


@pytest.mark.slow
def test_workers_that_are_all_gone_are_one_error(mortal: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKERLESS_SECONDS", 1.0)
    with pytest.raises(ResourceError, match=rf"{mortal.address} has lost all its workers"):
        run_until_first(mortal, mortal.end_workers)


def run_all(settings: Cluster, function: Callable[[int], int | None]) -> list[tuple[int, int | None]]:
    with attach(settings) as client:
        return list(DaskWorkers(client).as_completed(function, [1], {}))


@pytest.mark.slow
def test_a_task_that_ends_its_workers_is_one_error_and_the_cluster_lives_on(mortal: Served) -> None:
    settings = Cluster(address=mortal.address)
    with pytest.raises(ResourceError, match=r"a task ended \d workers of the cluster .* lack of memory"):
        run_all(settings, mortal.tasks.die)
    assert run_all(settings, mortal.tasks.slow) == [(0, 1)]


STEP = """
import sys
from pathlib import Path
from tasks_of_a_test import note
from whitewater.engines.cluster import attach
from whitewater.engines.config import Cluster
from whitewater.engines.workers import DaskWorkers
with attach(Cluster(address=sys.argv[1])) as client:
    print("begun", flush=True)
    list(DaskWorkers(client).as_completed(note, [Path(f"{number:03}") for number in range(200)], {"other": [1]}))
"""


def test_a_step_that_is_killed_leaves_the_cluster_without_tasks(served: Served) -> None:
    step = subprocess.Popen(
        [sys.executable, "-c", STEP, served.address], stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    while step.poll() is None and not list(Path.cwd().glob("00*")):
        time.sleep(0.05)
    step.send_signal(signal.SIGKILL)
    step.wait()
    with attach(Cluster(address=served.address)) as client:
        assert list(DaskWorkers(client).as_completed(served.tasks.slow, [1], {})) == [(0, 1)]
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        assert not [task for task in left if task.startswith("note")]
    assert len(list(Path.cwd().glob("*"))) < 200


def test_missing_files_of_tls_are_named(tmp_path: Path) -> None:
    settings = Cluster(address="tls://127.0.0.1:1", tls_ca_file=str(tmp_path / "ca.pem"), tls_cert="b", tls_key="c")
    with pytest.raises(ConfigError, match=r"cluster\.tls_ca_file = .*ca\.pem.*no such file"), attach(settings):
        pass


def test_an_address_of_another_scheme_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.address = 'foo://x': unknown address scheme"):
        run_all(Cluster(address="foo://x"), abs)


def test_a_file_of_a_cluster_with_tls_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"address": "tls://127.0.0.1:1"}))
    with pytest.raises(InputError, match=r"is reached over TLS: set cluster\.tls_ca_file, cluster\.tls_cert"):
        run_all(Cluster(scheduler_file=str(tmp_path / "cluster.json")), abs)


def test_an_old_scheduler_file_is_an_error_that_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whitewater.engines.cluster.CONNECT_SECONDS", 1)
    (tmp_path / "cluster.json").write_text(json.dumps({"address": "tcp://127.0.0.1:1"}))
    with (
        pytest.raises(InputError, match=r"no Dask scheduler answers at .*cluster\.json.*`whitewater cluster start`"),
        attach(Cluster(scheduler_file=str(tmp_path / "cluster.json"))),
    ):
        pass

"""Workers of every kind: what becomes of tasks, what they are made of, where they listen, and how they refuse."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import LocalCluster

from tests.guarantees.running import eventually
from whitewater.engines.cluster import attach, cpu_workers
from whitewater.engines.config import Cluster, Engine
from whitewater.engines.workers import Workers
from whitewater.errors import InputError

KINDS: dict[str, dict[str, Any]] = {
    "threads": {"kind": "threads"},
    "Dask's threads": {"kind": "threads"},
    "processes": {"kind": "processes"},
}


def opened(kind: str, *, threads: int = 2, large: bool = False) -> AbstractContextManager[Workers]:
    engine: Engine = "dask" if kind == "Dask's threads" else "local"
    settings = Cluster.model_validate(KINDS.get(kind, {"kind": kind}))
    return cpu_workers(settings, engine=engine, threads=threads, large=large)


@pytest.fixture(scope="module", params=KINDS)
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    with opened(request.param) as found:
        yield found


def listening_addresses() -> set[str]:
    """Return where this process and its children listen, as the kernel says."""
    me = psutil.Process()
    return {
        connection.laddr.ip
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def test_results_come_with_the_places_of_their_tasks(workers: Workers) -> None:
    assert sorted(workers.as_completed(divmod_of, [7, 9, 8], {"divisor": 4})) == [(0, (1, 3)), (1, (2, 1)), (2, (2, 0))]


def divmod_of(number: int, *, divisor: int) -> tuple[int, int]:
    return divmod(number, divisor)


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, "text", None, 5])
def test_a_placed_value_is_itself_in_a_task_in_a_tuple_and_among_those_shared(workers: Workers, value: Any) -> None:
    placed = workers.place(value)
    assert list(workers.as_completed(told, [placed], {"other": value})) == [(0, repr((value, value)))]
    assert list(workers.as_completed(told, [(0, placed)], {"other": None})) == [(0, repr(((0, value), None)))]


def test_placed_mappings_with_the_same_key_are_not_mixed_up(workers: Workers) -> None:
    placed = workers.place({"a": 1}), workers.place({"a": 2})
    assert list(workers.as_completed(told, [placed], {"other": None})) == [(0, repr((({"a": 1}, {"a": 2}), None)))]


def told(value: Any, *, other: Any) -> str:
    return repr((value, other))


def test_what_workers_hold_is_made_once_and_used_where_it_is(workers: Workers) -> None:
    held = workers.keep_results(Held, [(number,) for number in range(len(workers.threads))])
    first = dict(workers.as_completed(Held.identity, held, {}))
    assert [number for number, _, _ in map(first.__getitem__, range(len(held)))] == list(range(len(held)))
    assert dict(workers.as_completed(Held.identity, held, {})) == first


class Held:
    def __init__(self, number: int) -> None:
        self.number = number

    def identity(self) -> tuple[int, int, int]:
        return self.number, os.getpid(), id(self)


def test_the_error_of_the_first_task_that_fails_is_raised_and_no_other_task_begins(
    workers: Workers, tmp_path: Path
) -> None:
    tasks = [tmp_path / f"{number:02}" for number in range(20)]
    with pytest.raises(InputError, match="01 is wrong"):
        list(workers.as_completed(begin, tasks, {}))
    list(workers.as_completed(divmod_of, [1], {"divisor": 1}))  # begins when those before it are done with or cancelled
    assert {"00", "01"} <= {path.name for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) < len(tasks)


def begin(path: Path) -> None:
    path.touch()
    if path.name == "01":
        raise InputError(f"{path} is wrong")
    time.sleep(0.1)


def test_workers_close_only_when_tasks_that_run_have_ended(tmp_path: Path) -> None:
    both_run = threading.Barrier(2, timeout=60)
    with pytest.raises(ZeroDivisionError), opened("threads", threads=2) as workers:
        list(workers.as_completed(partial(fail_or_write, path=tmp_path / "written", both_run=both_run), range(2), {}))
    assert (tmp_path / "written").exists()


def fail_or_write(number: int, *, path: Path, both_run: threading.Barrier) -> None:
    both_run.wait()
    if number == 0:
        raise ZeroDivisionError
    time.sleep(0.2)
    path.touch()


def test_an_interrupt_waits_for_no_task() -> None:
    begun, released, ended = threading.Event(), threading.Event(), threading.Event()

    def task(number: int) -> None:
        if number:
            begun.set()
            released.wait(10)
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        be_interrupted(task, begun)
    assert not ended.is_set()
    released.set()


def be_interrupted(task: Callable[[int], None], begun: threading.Event) -> None:
    """Raise what Ctrl-C does when the first of two tasks has ended and the second has begun."""
    with opened("threads", threads=1) as workers:
        results = workers.as_completed(task, [0, 1], {})
        next(results)
        begun.wait()
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["threads", "Dask's threads"])
def test_as_many_tasks_run_at_once_as_there_are_threads(kind: str) -> None:
    with opened(kind, threads=3) as workers:
        assert list(workers.threads) == [3]
        together = threading.Barrier(3, timeout=60)  # broken by fewer than three threads
        names = {name for _, name in workers.as_completed(Meeting(together), range(3), {})}
        assert len(names) == 3


class Meeting:
    """Waits for the other tasks; by reference, as a barrier cannot be copied."""

    barriers: tuple[threading.Barrier, ...] = ()

    def __init__(self, barrier: threading.Barrier) -> None:
        Meeting.barriers = (barrier,)

    def __call__(self, _: int) -> str:
        self.barriers[0].wait()
        return threading.current_thread().name


def test_threads_forget_the_results_that_were_taken() -> None:
    alive: weakref.WeakSet[Large] = weakref.WeakSet()
    with opened("threads", threads=1) as workers:
        for place, result in workers.as_completed(Large, range(50), {}):
            alive.add(result)
            assert len(alive) <= 2, place


class Large:
    def __init__(self, number: int) -> None:
        self.number = number


@pytest.mark.parametrize("kind", KINDS)
def test_workers_listen_on_loopback_only(kind: str) -> None:
    before = listening_addresses()
    with opened(kind) as workers:
        assert list(workers.as_completed(divmod_of, [3], {"divisor": 2})) == [(0, (1, 1))]
        assert listening_addresses() - before <= {"127.0.0.1"}


@pytest.mark.slow
def test_auto_takes_processes_for_large_work_only() -> None:
    for large, count in ((False, 1), (True, 2)):
        with opened("auto", large=large) as workers:
            assert len(workers.threads) == count
            assert len({*workers.call_on_each(os.getpid), os.getpid()}) == (3 if large else 1)


def test_attach_uses_a_running_cluster_and_leaves_it_running() -> None:
    with LocalCluster(
        n_workers=1, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as own:
        with attach(Cluster(kind="attach", address=own.scheduler_address)) as client:
            assert client.submit(sum, (1, 2)).result() == 3
        assert own.scheduler.workers


def test_attach_to_a_missing_scheduler_file_says_how_to_start_one(tmp_path: Path) -> None:
    settings = Cluster(kind="attach", scheduler_file=str(tmp_path / "none.json"))
    with (
        pytest.raises(InputError, match=r"does not exist\. Start a cluster, `whitewater cluster start"),
        attach(settings),
    ):
        pass


@pytest.mark.slow
def test_what_was_placed_outlives_the_only_worker_that_held_it() -> None:
    with opened("processes", threads=1) as workers:
        placed = workers.place({"divisor": 4})
        assert list(workers.map(quotient, [(7, placed)], label="before")) == [1]
        psutil.Process(*workers.call_on_each(os.getpid)).kill()
        assert list(workers.map(quotient, [(9, placed)], label="after")) == [2]


def quotient(task: tuple[int, dict[str, int]]) -> int:
    number, of = task
    return number // of["divisor"]


def written_again(workers: Any, paths: list[Path]) -> Iterator[Path]:
    """Write files on workers; when all results are here, kill a worker, and wait until the client is told of it."""
    results = workers.map(write_slowly, paths, label="written", ordered=True)
    next(results)
    eventually(lambda: all(path.exists() and path.read_text() == "whole" for path in paths), what="the files")
    time.sleep(0.5)  # until the results are here
    psutil.Process(workers.call_on_each(os.getpid)[0]).kill()
    states = workers.client.futures.values()
    eventually(lambda: any(state.status == "lost" for state in states), what="a result that is lost")
    return results


def write_slowly(path: Path) -> Path:
    is_again = path.exists()
    path.write_text("")
    time.sleep(3 if is_again else 1)
    if is_again and path.with_name("full").exists():
        raise OSError("the disk is full")
    path.write_text("whole")
    return path


@pytest.mark.slow
def test_a_task_that_runs_again_after_its_result_has_come_is_waited_for(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(4)]
    with opened("processes") as workers:
        assert sorted(written_again(workers, paths)) == paths[1:]
        assert [path.read_text() for path in paths[1:]] == ["whole"] * 3


@pytest.mark.slow
def test_a_task_that_fails_when_it_runs_again_fails(tmp_path: Path) -> None:
    (tmp_path / "full").touch()
    with opened("processes") as workers, pytest.raises(OSError, match="the disk is full"):
        list(written_again(workers, [tmp_path / str(number) for number in range(4)]))

"""Work is refused where the memory it runs in is too small, whatever other memories, or cores, there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from whitewater.engines import Device, memory
from whitewater.engines.workers import DaskWorkers, Workers, thread_workers
from whitewater.errors import ResourceError

GB = 10**9
CPU = Device()


@dataclass(frozen=True)
class Gpu(Device):
    """A GPU that has 100 GB free."""

    def free_memory(self) -> int:
        return 100 * GB

    def memory_place(self) -> str:
        return "GPU 0"


class Elsewhere(DaskWorkers):
    """Workers of which each is on one of some machines, and has 8 threads."""

    def __init__(self, *machines: tuple[str, int]) -> None:
        self.machines = machines

    @property
    def threads(self) -> Sequence[int]:
        return [8] * len(self.machines)

    def call_on_each(self, function: Callable[[], Any]) -> list[Any]:
        return list(self.machines)


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has 10 GB free."""
    monkeypatch.setattr(memory, "available", lambda: 10 * GB)


def ask(workers: Workers, device: Device, **needs: int) -> None:
    workers.forecast(device, **{"a_task": 0, "tasks": 1_000, **needs}, what="the work", remedy="Wait.")


def test_on_the_cpu_tasks_and_this_process_share_the_memory_of_the_host() -> None:
    with thread_workers(4) as workers:
        ask(workers, CPU, a_task=2 * GB, shared=GB, here=GB)
        with pytest.raises(ResourceError, match=r"the work needs about 11\.0 GB of memory, but 10\.0 GB .*Wait\."):
            ask(workers, CPU, a_task=2 * GB, shared=GB, here=2 * GB)
        assert workers.room_for_a_task(CPU, tasks=1_000) == 2.5 * GB


def test_no_more_tasks_are_counted_than_there_are() -> None:
    with thread_workers(64) as workers:
        ask(workers, CPU, a_task=3 * GB, tasks=3)
        with pytest.raises(ResourceError):
            ask(workers, CPU, a_task=3 * GB, tasks=4)
        assert workers.room_for_a_task(CPU, tasks=2) == 5 * GB


def test_on_a_gpu_tasks_take_its_memory_and_this_process_that_of_the_host() -> None:
    with thread_workers(4) as workers:
        ask(workers, Gpu(), a_task=20 * GB, shared=20 * GB, here=10 * GB)
        with pytest.raises(ResourceError, match=r"101\.0 GB of memory of GPU 0, but 100\.0 GB"):
            ask(workers, Gpu(), a_task=20 * GB, shared=21 * GB)
        with pytest.raises(ResourceError, match=r"11\.0 GB of memory, but 10\.0 GB"):
            ask(workers, Gpu(), here=11 * GB)


def test_workers_of_a_machine_have_its_memory_in_common() -> None:
    workers = Elsewhere(("a", 20 * GB), ("a", 19 * GB), ("b", 12 * GB))
    ask(workers, CPU, a_task=GB, shared=GB, here=10 * GB)
    with pytest.raises(ResourceError, match=r"20\.0 GB of memory of a, but 19\.0 GB"):
        ask(workers, CPU, a_task=GB, shared=2 * GB)
    assert workers.room_for_a_task(CPU, tasks=1_000) == 19 * GB // 16

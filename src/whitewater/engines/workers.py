"""Where the tasks of a step run: on threads of this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers(Protocol):
    """What a step may ask of its workers. Tasks must not change what they are given: threads share it."""

    @property
    def threads(self) -> Sequence[int]:
        """The number of threads of each worker."""

    @property
    def hosts(self) -> Sequence[str]:
        """The machine of each worker."""

    def place(self, value: Any) -> Any:
        """Bring a value to every worker, once; return what stands for it in a task, or in a tuple that is one."""

    def hold(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each of the arguments, at a worker of its own if there are as many.

        Results stay there; return what stands for them as tasks, which run where their result is.
        """

    def completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        """Apply a function to each task, in their order; yield place and result of each as it completes.

        ``shared`` are keyword arguments of all tasks, see `place`. The error of the first task that fails is raised;
        when it is, or no more results are asked for, tasks that have not begun are cancelled.
        """

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        """Call a function on every worker."""


@dataclass(frozen=True)
class Threads:
    """One worker: threads of this process, which start at once and share its memory."""

    pool: ThreadPoolExecutor
    count: int

    @property
    def threads(self) -> Sequence[int]:
        return [self.count]

    @property
    def hosts(self) -> Sequence[str]:
        return [socket.gethostname()]

    def place(self, value: Any) -> Any:
        return value

    def hold(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return list(self.pool.map(lambda each: function(*each), arguments))

    def completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        finished: SimpleQueue[int] = SimpleQueue()
        futures: dict[int, Future[Result]] = {}

        def announce(_: Future[Result], place: int) -> None:
            finished.put(place)

        try:
            for place, task in enumerate(tasks):
                futures[place] = self.pool.submit(function, task, **shared)
                futures[place].add_done_callback(partial(announce, place=place))
            while futures:
                place = finished.get()
                yield place, futures.pop(place).result()
        finally:
            for future in futures.values():
                future.cancel()

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        return [function()]


@contextmanager
def thread_workers(count: int) -> Iterator[Threads]:
    """Start threads; at the end wait for the tasks that run, so that none of them still writes, and begin no other.

    An interrupt by the user does not wait: what these tasks write is removed by the next run at the latest.
    """
    pool = ThreadPoolExecutor(count, thread_name_prefix="worker")
    wait = True
    try:
        yield Threads(pool, count)
    except KeyboardInterrupt:
        wait = False
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)


@dataclass(frozen=True)
class DaskWorkers:
    """The workers of a Dask cluster: threads, processes or GPUs, here or on other machines."""

    client: Client

    @property
    def threads(self) -> Sequence[int]:
        return list(self.client.nthreads().values())

    @property
    def hosts(self) -> Sequence[str]:
        return [worker["host"] for worker in self.client.scheduler_info()["workers"].values()]

    def place(self, value: Any) -> Any:
        # In a list, since Dask takes apart a value that is a list or a dictionary.
        return self.client.scatter([value], broadcast=True, hash=False)[0]

    def hold(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [
            self.client.submit(function, *each, workers=[worker], allow_other_workers=True, pure=False)
            for each, worker in zip(arguments, cycle(self.client.nthreads()), strict=False)
        ]

    def completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        from distributed import as_completed

        placed = {name: self.place(value) for name, value in shared.items()}
        futures = self.client.map(function, tasks, pure=False, retries=0, **placed)
        places = {future.key: place for place, future in enumerate(futures)}
        for future, result in as_completed(futures, with_results=True):
            place = places[future.key]
            future.release()
            yield place, result

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        return list(self.client.run(function).values())

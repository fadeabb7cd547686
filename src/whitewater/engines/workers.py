"""Where the tasks of a step run: on threads of this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from whitewater.engines import memory
from whitewater.engines.memory import HasMemory

if TYPE_CHECKING:
    from distributed import Client


class _Place(NamedTuple):
    """A memory: its bytes that are free, the workers that have it in common, and the tasks that they run at once."""

    free: int
    workers: int
    at_once: int


logger = logging.getLogger(__name__)
Task = TypeVar("Task")
Result = TypeVar("Result")
PROGRESS_SECONDS = 5.0
RECOMPUTED_BYTES = 10_000_000


class Workers:
    """One worker: threads of this process, which start at once and share its memory.

    `DaskWorkers` does the same on the workers of a cluster; steps ask for no more than what is here.
    """

    def __init__(self, pool: ThreadPoolExecutor, count: int) -> None:
        self.pool, self.count = pool, count

    @property
    def threads(self) -> Sequence[int]:
        """The number of tasks that each worker runs at once."""
        return [self.count]

    def place(self, value: Any) -> Any:
        """Bring a value to every worker, once; return what stands for it in a task, or in a tuple that is one."""
        return value

    def hold(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each of the arguments, at a worker of its own if there are as many.

        Results stay there; return what stands for them as tasks, which run where their result is.
        """
        return list(self.pool.map(lambda each: function(*each), arguments))

    def completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        """Apply a function to each task, in their order; yield place and result of each as it completes.

        ``shared`` are keyword arguments of all tasks, see `place`. The error of the first task that fails is raised;
        when it is, or no more results are asked for, tasks that have not begun are cancelled.
        """
        finished: SimpleQueue[Future[Result]] = SimpleQueue()
        places: dict[Future[Result], int] = {}
        try:
            for place, task in enumerate(tasks):
                future = self.pool.submit(function, task, **shared)
                places[future] = place
                future.add_done_callback(finished.put)
            while places:
                future = finished.get()
                yield places.pop(future), future.result()
                del future  # and its result, before the next is waited for
        finally:
            for future in places:
                future.cancel()

    def compute(self, *collections: Any) -> tuple[Any, ...]:
        """Compute Dask collections together, so that what they share is computed once; return their results here."""
        from dask.base import compute

        return compute(*collections, scheduler="threads", pool=self.pool)

    def persist(self, collection: Any) -> Any:
        """Compute a Dask collection and leave its partitions where they are; return the collection of these."""
        from dask.base import persist

        return persist(collection, scheduler="threads", pool=self.pool)[0]

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        """Call a function on every worker; return its results in the order of `threads`."""
        return [function()]

    def forecast(
        self, device: HasMemory, *, a_task: int, tasks: int, shared: int = 0, here: int = 0, what: str, remedy: str
    ) -> None:
        """Log how much memory the work will need, or raise ResourceError where there is less.

        A worker needs ``shared`` bytes, for what is placed on it or held there, and ``a_task`` bytes for each of the
        tasks that it runs at once, of which there are ``tasks`` in all. ``device`` is the one whose memory this is:
        that of the step, or `Device()` for the host's, which all workers of a machine have in common. What this
        process holds of its host's memory, ``here``, comes to that where they are one.
        """
        places = self._places(device)
        own, free = socket.gethostname(), memory.available()
        if here:
            places.setdefault(own, _Place(free, 0, 0))
        for name, place in places.items():
            needed = shared * place.workers + a_task * min(tasks, place.at_once) + (here if name == own else 0)
            memory.refuse_beyond(place.free, needed, of="" if name == own else name, what=what, remedy=remedy)

    def room_for_a_task(self, device: HasMemory, *, tasks: int) -> int:
        """Return the bytes of a device's memory that each of the tasks that run at once, of ``tasks``, may take."""
        return min(each.free // max(1, min(tasks, each.at_once)) for each in self._places(device).values())

    def _places(self, device: HasMemory) -> dict[str, _Place]:
        """Return the memories that the workers have, each once."""
        places: dict[str, _Place] = {}
        memories = self.call_on_each(lambda: (device.memory_place(), device.free_memory()))
        for tasks, (name, free) in zip(self.threads, memories, strict=True):
            known = places.get(name, _Place(free, 0, 0))
            places[name] = _Place(min(free, known.free), known.workers + 1, known.at_once + tasks)
        return places

    def map(
        self,
        function: Callable[..., Result],
        tasks: Sequence[Task],
        *,
        label: str,
        ordered: bool = False,
        shared: Mapping[str, Any] | None = None,
    ) -> Iterator[Result]:
        """Apply ``function`` to each task; yield the results, and log the progress under a label.

        Results come as they complete, or with ``ordered`` in the order of the tasks, so that sums of real numbers do
        not depend on which worker was faster. ``shared`` are keyword arguments of all tasks, placed once on each
        worker. The first task that fails stops the step with its error. A task must not change what it is given, which
        threads share; and where its worker is a process that dies it runs again elsewhere, so it must leave the same
        files when it runs twice.
        """
        results = self.completed(function, tasks, shared or {})
        started = said = time.monotonic()
        for done, (_, result) in enumerate(_in_order(results) if ordered else results, start=1):
            yield result
            if done < len(tasks) and time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                rate = done / (said - started)
                # The first tasks load and compile, too: nothing can be told from them alone.
                left = f", about {(len(tasks) - done) / rate:.0f} s to go" if done > 2 * sum(self.threads) else ""
                extra = {"progress": done / len(tasks)}
                logger.info("%s: %d of %d%s", label, done, len(tasks), left, extra=extra)


def _in_order(results: Iterator[tuple[int, Result]]) -> Iterator[tuple[int, Result]]:
    """Yield results in the order of their places; the tasks begin in that order, so few have to wait."""
    waiting: dict[int, Result] = {}
    following = 0
    for place, result in results:
        waiting[place] = result
        while following in waiting:
            yield following, waiting.pop(following)
            following += 1


@contextmanager
def thread_workers(count: int) -> Iterator[Workers]:
    """Start threads; at the end wait for the tasks that run, so that none of them still writes, and begin no other.

    An interrupt by the user does not wait: what these tasks write is removed by the next run at the latest.
    """
    pool = ThreadPoolExecutor(count, thread_name_prefix="worker")
    wait = True
    try:
        yield Workers(pool, count)
    except KeyboardInterrupt:
        wait = False
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)


class DaskWorkers(Workers):
    """The workers of a Dask cluster: threads, processes or GPUs, here or on other machines."""

    def __init__(self, client: Client, resources: Mapping[str, float] | None = None) -> None:
        # Resources, as Dask calls them, are what each task takes of what its worker advertises.
        self.client, self.resources = client, dict(resources or {})

    @property
    def threads(self) -> Sequence[int]:
        return [
            min([worker["nthreads"], *(int(worker["resources"][name] / each) for name, each in self.resources.items())])
            for worker in workers_of(self.client).values()
        ]

    def place(self, value: Any) -> Any:
        from dask.sizeof import sizeof

        # Where the only worker that held it died, a task runs again, but scattered data are lost. What a task is given
        # stays with the scheduler, though. Dask takes apart a value that is a list or a dictionary, but no function.
        if sizeof(value) < RECOMPUTED_BYTES:
            return self.client.submit(lambda: value, pure=False)
        return self.client.scatter([value], broadcast=True, hash=False)[0]

    def hold(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [
            self.client.submit(
                function, *each, workers=[worker], allow_other_workers=True, pure=False, resources=self.resources
            )
            for each, worker in zip(arguments, cycle(workers_of(self.client)), strict=False)
        ]

    def completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        from distributed import as_completed

        placed = {name: self.place(value) for name, value in shared.items()}
        futures = self.client.map(function, tasks, pure=False, retries=0, resources=self.resources, **placed)
        places = {future.key: place for place, future in enumerate(futures)}
        for future, result in as_completed(futures, with_results=True):
            if future.cancelled():  # whose result is an error that is not raised
                raise result
            place = places[future.key]
            future.release()
            yield place, result

    def compute(self, *collections: Any) -> tuple[Any, ...]:
        return tuple(self.client.gather(self.client.compute(collections, resources=self.resources)))

    def persist(self, collection: Any) -> Any:
        return self.client.persist(collection, resources=self.resources)

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        addresses = list(workers_of(self.client))
        found = self.client.run(function, workers=addresses)
        return [found[address] for address in addresses]


def workers_of(client: Client) -> Mapping[str, Any]:
    """Ask the scheduler for its workers, by address.

    `Client.scheduler_info` returns what the client also refreshes in the background without the workers.
    """
    scheduler: Any = client.scheduler
    return client.sync(scheduler.identity, n_workers=-1)["workers"]

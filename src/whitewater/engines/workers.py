"""Workers that run the tasks of a step: threads of this process, or the workers of a Dask cluster."""

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


class _Memory(NamedTuple):
    """The memory of a machine or a GPU."""

    free: int  # bytes
    workers: int  # that share it
    concurrent_tasks: int  # of these workers


logger = logging.getLogger(__name__)
Task = TypeVar("Task")
Result = TypeVar("Result")
PROGRESS_SECONDS = 5.0
RECOMPUTED_BYTES = 10_000_000


class Workers:
    """One worker: threads of this process. `DaskWorkers` has the same methods for the workers of a cluster."""

    def __init__(self, pool: ThreadPoolExecutor, count: int) -> None:
        self.pool, self.count = pool, count

    @property
    def threads(self) -> Sequence[int]:
        """The number of tasks that each worker runs at once."""
        return [self.count]

    def place(self, value: Any) -> Any:
        """Send a value to every worker once; return a handle to use as a task, or in a tuple that is a task."""
        return value

    def keep_results(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each tuple of arguments, spread over the workers; return handles to use as tasks.

        Results stay on the workers, and such a task runs where its result is.
        """
        return list(self.pool.map(lambda each: function(*each), arguments))

    def as_completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        """Apply a function to each task; yield position and result of each as it completes. `map` explains ``shared``.

        The first error is raised. Then, or when the caller stops early, tasks that have not begun are cancelled.
        """
        finished: SimpleQueue[Future[Result]] = SimpleQueue()
        positions: dict[Future[Result], int] = {}
        try:
            for position, task in enumerate(tasks):
                future = self.pool.submit(function, task, **shared)
                positions[future] = position
                future.add_done_callback(finished.put)
            while positions:
                future = finished.get()
                yield positions.pop(future), future.result()
                del future  # frees its result before the next wait
        finally:
            for future in positions:
                future.cancel()

    def compute(self, *collections: Any) -> tuple[Any, ...]:
        """Compute Dask collections together, so that shared parts are computed once; return the results here."""
        from dask.base import compute

        return compute(*collections, scheduler="threads", pool=self.pool)

    def persist(self, collection: Any) -> Any:
        """Compute a Dask collection and leave its partitions on the workers."""
        from dask.base import persist

        return persist(collection, scheduler="threads", pool=self.pool)[0]

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        """Call a function on every worker; return the results in the order of `threads`."""
        return [function()]

    def forecast(
        self, device: HasMemory, *, a_task: int, tasks: int, shared: int = 0, here: int = 0, what: str, remedy: str
    ) -> None:
        """Log how much memory the work will need, or raise ResourceError where there is less.

        A worker needs ``shared`` bytes for placed and held values, and ``a_task`` bytes for each of the ``tasks`` that
        it runs at once. ``device`` has this memory: the step's device, or `Device()` for the host, whose memory all
        workers of a machine share. This process itself needs ``here`` bytes of its host's memory.
        """
        memories = self._memories(device)
        own = socket.gethostname()
        if here:
            memories.setdefault(own, _Memory(memory.available(), 0, 0))
        for name, each in memories.items():
            needed = shared * each.workers + a_task * min(tasks, each.concurrent_tasks) + (here if name == own else 0)
            memory.check_fits(each.free, needed, of="" if name == own else name, what=what, remedy=remedy)

    def room_for_a_task(self, device: HasMemory, *, tasks: int) -> int:
        """Return the bytes of a device's memory for each of the ``tasks`` that run at once."""
        return min(each.free // max(1, min(tasks, each.concurrent_tasks)) for each in self._memories(device).values())

    def _memories(self, device: HasMemory) -> dict[str, _Memory]:
        """Return the memories of the workers by name."""
        memories: dict[str, _Memory] = {}
        of_workers = self.call_on_each(lambda: (device.memory_place(), device.free_memory()))
        for threads, (name, free) in zip(self.threads, of_workers, strict=True):
            each = memories.get(name, _Memory(free, 0, 0))
            memories[name] = _Memory(min(free, each.free), each.workers + 1, each.concurrent_tasks + threads)
        return memories

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

        Results come as they complete, or with ``ordered`` in the order of the tasks: then sums of floats do not depend
        on which worker is faster. ``shared`` are keyword arguments of all tasks, placed once on each worker. The first
        error of a task stops the step. A task must not change its arguments, which threads share, and must leave the
        same files when it runs twice, as it does when a worker dies.
        """
        results = self.as_completed(function, tasks, shared or {})
        start = last_log = time.monotonic()
        for done, (_, result) in enumerate(_in_order(results) if ordered else results, start=1):
            yield result
            if done < len(tasks) and time.monotonic() - last_log > PROGRESS_SECONDS:
                last_log = time.monotonic()
                rate = done / (last_log - start)
                # The first tasks also load and compile, so their time predicts nothing.
                left = f", about {(len(tasks) - done) / rate:.0f} s to go" if done > 2 * sum(self.threads) else ""
                extra = {"progress": done / len(tasks)}
                logger.info("%s: %d of %d%s", label, done, len(tasks), left, extra=extra)


def _in_order(results: Iterator[tuple[int, Result]]) -> Iterator[tuple[int, Result]]:
    """Yield results by position. Tasks begin in that order, so few results wait."""
    waiting: dict[int, Result] = {}
    following = 0
    for position, result in results:
        waiting[position] = result
        while following in waiting:
            yield following, waiting.pop(following)
            following += 1


@contextmanager
def thread_workers(count: int) -> Iterator[Workers]:
    """Start threads; at the end, cancel the tasks that have not begun, and wait for the others, which may write files.

    An interrupt by the user does not wait: the next run removes what these tasks write.
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
        # What each task takes of the resources (in the sense of Dask) of its worker.
        self.client, self.resources = client, dict(resources or {})

    @property
    def threads(self) -> Sequence[int]:
        return [
            min([worker["nthreads"], *(int(worker["resources"][name] / each) for name, each in self.resources.items())])
            for worker in workers_of(self.client).values()
        ]

    def place(self, value: Any) -> Any:
        from dask.sizeof import sizeof

        # When the only worker with a value dies, scattered data are lost. A task, kept by the scheduler, runs again.
        # The value is in a function, because Dask would take a list or a dictionary apart.
        if sizeof(value) < RECOMPUTED_BYTES:
            return self.client.submit(lambda: value, pure=False)
        return self.client.scatter([value], broadcast=True, hash=False)[0]

    def keep_results(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        options: dict[str, Any] = {"allow_other_workers": True, "pure": False, "resources": self.resources}
        return [
            self.client.submit(function, *each, workers=[worker], **options)
            for each, worker in zip(arguments, cycle(workers_of(self.client)), strict=False)
        ]

    def as_completed(
        self, function: Callable[..., Result], tasks: Sequence[Task], shared: Mapping[str, Any]
    ) -> Iterator[tuple[int, Result]]:
        from distributed import as_completed

        placed = {name: self.place(value) for name, value in shared.items()}
        futures = self.client.map(function, tasks, pure=False, retries=0, resources=self.resources, **placed)
        positions = {future.key: position for position, future in enumerate(futures)}
        for future, result in as_completed(futures, with_results=True):
            if future.cancelled():  # then the result is an error
                raise result
            if not future.done():  # it runs again, because its worker has died since, and writes its files again
                future.result()
            position = positions[future.key]
            future.release()
            yield position, result

    def compute(self, *collections: Any) -> tuple[Any, ...]:
        return tuple(self.client.gather(self.client.compute(collections, resources=self.resources)))

    def persist(self, collection: Any) -> Any:
        return self.client.persist(collection, resources=self.resources)

    def call_on_each(self, function: Callable[[], Result]) -> list[Result]:
        addresses = list(workers_of(self.client))
        results = self.client.run(function, workers=addresses)
        return [results[address] for address in addresses]


def workers_of(client: Client) -> Mapping[str, Any]:
    """Ask the scheduler for its workers, by address; `Client.scheduler_info` may omit them."""
    scheduler: Any = client.scheduler
    return client.sync(scheduler.identity, n_workers=-1)["workers"]

"""Dask's workers that hold more than their limit: how they are opened, and what they have written to disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.process_tree import MeasurementError
from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import Work
from whitewater.engines.config import Cluster


@contextmanager
def limited_client(work: Work, limit: int) -> Iterator[Any]:
    """Open Dask's workers that hold at most ``limit`` bytes of results together, and write the rest to the row's disk.

    The memory of workers that run already is not ours to limit: instead of a cluster that is attached to, processes
    are started.
    """
    import dask

    cluster = Cluster(kind="processes") if work.cluster.kind == "attach" else work.cluster
    workers = work.threads if cluster.kind == "processes" else 1
    with (
        # Spilled data are on the same disk as those of the other variants.
        dask.config.set(temporary_directory=str(work.folder.resolve())),
        dask_client(work.device, cluster, threads=work.threads, memory_limit=limit // workers) as client,
    ):
        yield client


def spilled(client: Any) -> dict[str, float]:
    """Return the bytes that each worker keeps on disk instead of in its memory.

    Raises
    ------
    MeasurementError
        If none does: then the data fitted, and it was not this case that was measured.
    """
    found: dict[str, int] = client.run(spilled_bytes)
    if not sum(found.values()):
        raise MeasurementError(
            "No worker has spilled anything, although they may not hold all of the data. Report this as a bug."
        )
    return {f"spilled_bytes_of_worker_{number}": float(size) for number, size in enumerate(found.values())}


def spilled_bytes(dask_worker: Any) -> int:
    """Return the bytes of results of a worker that are on disk, as they were in memory."""
    total = getattr(dask_worker.data, "spilled_total", None)
    return int(total.memory) if total else 0

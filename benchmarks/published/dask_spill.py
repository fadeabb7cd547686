"""How much Dask's workers have written to disk because they held more than their limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def spilled_since_last(client: Any) -> Callable[[], dict[str, float]]:
    """Return what tells the bytes that were spilled since it was asked last, as phases of a call.

    It tells nothing where the workers do not count them, as those on a GPU do not.
    """

    # Inside a function, so that it is sent as code: the workers of an attached cluster have no benchmarks to import.
    def spilled_by_worker(dask_worker: Any) -> float | None:
        counts = getattr(dask_worker.data, "cumulative_metrics", None)
        return None if counts is None else float(counts.get(("disk-write", "bytes"), 0))

    total = 0.0

    def since_last() -> dict[str, float]:
        nonlocal total
        counted = [count for count in client.run(spilled_by_worker).values() if count is not None]
        before, total = total, sum(counted)
        return {"spilled_bytes": total - before} if counted else {}

    return since_last

"""`Workers.compute`: Dask collections on threads of the step, on Dask's threads and on its worker processes."""

from collections.abc import Iterator
from contextlib import contextmanager

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from whitewater.engines.cluster import local_cluster
from whitewater.engines.config import Cluster
from whitewater.engines.workers import DaskWorkers, Workers, thread_workers

FRAME = pd.DataFrame({"key": np.arange(100) % 7, "value": np.arange(100)})


@contextmanager
def opened(kind: str) -> Iterator[Workers]:
    if kind == "step":
        with thread_workers(2) as workers:
            yield workers
        return
    with local_cluster(Cluster(), threads=2, processes=kind == "processes") as client:
        yield DaskWorkers(client)


def refuse(frame: pd.DataFrame) -> pd.DataFrame:
    if (frame["value"] > 50).any():
        raise ValueError("more than 50")
    return frame


@pytest.mark.parametrize("kind", ["step", "threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_results_and_errors_of_tasks_come_back(kind: str) -> None:
    rows = dd.from_pandas(FRAME, npartitions=5)
    with opened(kind) as workers:
        by_key, total = workers.compute(rows.groupby("key")["value"].sum(), rows["value"].sum())
        assert by_key.sort_index().to_dict() == FRAME.groupby("key")["value"].sum().to_dict()
        assert total == 4950
        with pytest.raises(ValueError, match="more than 50"):
            workers.compute(rows.map_partitions(refuse, meta=FRAME.head(0)))

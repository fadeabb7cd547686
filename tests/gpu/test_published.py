"""The variants of the published rows that are written for GPUs answer there what the oracle answers on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client
from pydantic import JsonValue

from benchmarks.published import csv_sum, dask_cluster
from benchmarks.published.dask_cluster import COLLECTIONS
from tests.contract.published_rows import (
    ZARR,
    Answers,
    Name,
    answers_on,
    check_groups_far_apart,
    faults_of,
    on_gpus,
    oracles,
    prepare,
    tiny,
    work_of,
)
from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.engines.gpu import DASK_SETTINGS

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("hardware")]
IN_THIS_PROCESS: dict[str, Any] = {
    "n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None,
}  # fmt: skip


@dataclass(frozen=True)
class Both:
    """What the variants answer on the GPU, and what the oracles answer on the CPU."""

    gpu: Answers
    right: Mapping[tuple[str, str], JsonValue]


@contextmanager
def in_this_process() -> Iterator[None]:
    """Let Dask work with the GPU in this process: clusters, one for each variant, would take minutes to start.

    And they would not know of the constants that are changed so that the rows are tiny.
    """

    @contextmanager
    def one_client(*_: object, **__: object) -> Iterator[Client]:
        with dask.config.set(DASK_SETTINGS | COLLECTIONS), Client(**IN_THIS_PROCESS) as client:
            yield client

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_cluster, "gpu_dask_client", one_client)
        yield


@pytest.fixture(scope="module")
def folder(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published")
    with tiny():
        prepare(made)
    return made


@pytest.fixture(scope="module")
def both(gpu: Device, folder: Path) -> Both:
    with tiny():
        with in_this_process():
            answers = answers_on(gpu, folder)
        with Client(**IN_THIS_PROCESS) as client:
            cluster = Cluster(kind="attach", address=client.scheduler_info()["address"])
            return Both(answers, oracles(folder, cluster))


@pytest.mark.parametrize("name", [*on_gpus(), ZARR], ids=lambda name: "-".join(filter(None, name)))
def test_the_answer_on_the_gpu_is_the_oracles(both: Both, name: Name) -> None:
    assert faults_of(name, both.gpu, both.right) == []


def test_groups_that_no_row_has_are_those_of_the_cpu(gpu: Device) -> None:
    check_groups_far_apart(gpu)


def test_workers_of_dask_have_gpus_and_read_files_there(gpu: Device, folder: Path) -> None:
    variants = on_gpus()
    of_files = work_of("csv_sum", gpu, folder)
    with variants["csv_sum", "", "as_published"].prepare(of_files) as timed:
        found = timed.answer(timed.call())
    expected = sum(np.nansum(np.genfromtxt(path, delimiter=",", names=True)[csv_sum.COLUMN])
                   for path in csv_sum.FILES.paths(of_files))  # fmt: skip
    assert found == expected
    with variants["array_random", "", "as_published"].prepare(work_of("array_random", gpu, folder)) as timed:
        answer: Any = timed.answer(timed.call())
    assert answer["mean_within_5_standard_errors"] is True

"""Forecasts ask the memory that work runs in: tasks on one GPU are not refused for a host of many cores."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.apps.taxi.cleaned_trips import zones
from tests.helpers.graphs import random_graph
from whitewater.config.base import Section
from whitewater.engines import Device, memory
from whitewater.engines.workers import Workers, thread_workers
from whitewater.errors import ResourceError
from whitewater.features import fit
from whitewater.features.dataset import Dataset
from whitewater.features.operator import as_node
from whitewater.features.operators import Normalize
from whitewater.features.plan import bind
from whitewater.genotypes import kinship
from whitewater.genotypes.config import Pca, Relatedness
from whitewater.genotypes.genotypes import GenotypeFolder
from whitewater.genotypes.pca import components
from whitewater.genotypes.pca.passes import RawGenotypes
from whitewater.graphs.graph_folder import open_graph
from whitewater.step import Run
from whitewater_apps.pagerank.config import Communities
from whitewater_apps.pagerank.steps import communities
from whitewater_apps.taxi.config import Model
from whitewater_apps.taxi.data_sets import RowGroup
from whitewater_apps.taxi.steps import model
from whitewater_apps.taxi.tip_model import FeatureSet

CORES, GPU_TASKS = 64, 4
GENOTYPES = GenotypeFolder(Path("genotypes"), "two_bit", 2, variants=200_000, samples=100_000)


@dataclass(frozen=True)
class Gpu(Device):
    """An H200, asked for its memory and nothing else."""

    name: Literal["cpu", "gpu"] = "gpu"

    def free_memory(self) -> int:
        return 140 * 10**9

    def memory_place(self) -> str:
        return "GPU 0"


def run_on(device: Device, settings: Section) -> Run[Section]:
    return Run("application", "step", device, settings, CORES)


def taxi_model(device: Device, workers: Workers, _: Path) -> None:
    settings = Model()
    groups = [RowGroup(Path("trips"), number, number, 0, 10**6, frozenset(), "yellow") for number in range(200)]
    model.forecast(groups, FeatureSet(settings.features, ("Queens",), zones()), run_on(device, settings), workers)  # type: ignore[arg-type]


def genomics_kinship(device: Device, workers: Workers, _: Path) -> None:
    kinship.forecast(run_on(device, Relatedness()), GENOTYPES, workers, variants=20_000)  # type: ignore[arg-type]


def genomics_pca(device: Device, workers: Workers, _: Path) -> None:
    genotypes = RawGenotypes(GENOTYPES, device, device, workers)
    components.forecast(genotypes, Pca(components=20, solver="randomized"), samples=GENOTYPES.samples)


def pagerank_communities(device: Device, workers: Workers, folder: Path) -> None:
    path = folder / "graph"
    graph = open_graph(path) if path.exists() else random_graph(300, 0.5).write(path)
    communities.forecast(graph, Communities(), device, workers)


def recsys_fit(device: Device, workers: Workers, _: Path) -> None:
    rows: npt.NDArray[np.float32] = np.zeros(400_000, np.float32)
    dataset = Dataset(pa.table({f"I{number}": rows for number in range(70)}))
    plan = bind(as_node([*dataset.schema.names] >> Normalize()), dataset.schema)
    fit.forecast(plan, dataset, device, workers)


Ask = Callable[[Device, Workers, Path], None]
# What 64 cores ask of the host, and the most that one GPU of four tasks may ask of it, in bytes.
HOST_BYTES: dict[Ask, tuple[int, int]] = {
    taxi_model: (9_792_000_000, 200_000_000),
    genomics_kinship: (19_490_589_184, 500_000_000),
    genomics_pca: (13_697_767_296, 300_000_000),
    pagerank_communities: (2_339_856, 30_000),
    recsys_fit: (614_400_000, 1),
}


def host_bytes(ask: Ask, device: Device, threads: int, folder: Path) -> int:
    """Return the least memory of the host with which a forecast passes."""

    def passes(free: int) -> bool:
        patch.setattr(memory, "available", lambda: free)
        try:
            ask(device, workers, folder)
        except ResourceError:
            return False
        return True

    with pytest.MonkeyPatch.context() as patch, thread_workers(threads) as workers:
        return 1 + bisect_left(range(1, 1 << 50), True, key=passes)


@pytest.mark.parametrize("ask", HOST_BYTES, ids=lambda ask: ask.__name__)
def test_on_one_gpu_cores_of_the_host_do_not_count(ask: Ask, tmp_path: Path) -> None:
    on_cpu, on_gpu = HOST_BYTES[ask]
    assert host_bytes(ask, Device(), CORES, tmp_path) == on_cpu
    assert host_bytes(ask, Gpu(), GPU_TASKS, tmp_path) <= on_gpu


@pytest.mark.parametrize("ask", [taxi_model, genomics_kinship, genomics_pca, recsys_fit], ids=lambda ask: ask.__name__)
def test_what_does_not_fit_the_gpu_is_refused_however_large_the_host_is(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1 << 50)
    monkeypatch.setattr(Gpu, "free_memory", lambda _: 1 << 20)
    refused = pytest.raises(ResourceError, match=r"of memory of GPU 0, but 0\.0 GB are available")
    with thread_workers(GPU_TASKS) as workers, refused:
        ask(Gpu(), workers, tmp_path)

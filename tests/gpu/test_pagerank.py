"""The PageRank steps give the CPU's results on the GPU: graphs and components equal, ranks within their tolerance."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.gpu_proof.same import compare
from tests.contract import pagerank_steps
from tests.contract.pagerank_steps import LIBRARY, RULES
from tests.contract.site import Site
from tests.gpu.conftest import THREADS, Both, on_both
from tests.helpers.graphs import Graph
from whitewater.engines import Device, resolve
from whitewater.engines.gpu import GpuDevice, prepare_memory
from whitewater.graphs.build.with_dask import VERTEX_BITS, merge_sorted
from whitewater.graphs.communities import Method
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import GraphFolder, Rule, open_graph
from whitewater.graphs.library_gpu import cugraph_bytes, cugraph_groups
from whitewater.graphs.pagerank.in_edges import edges_to_device, prepare_in_edges
from whitewater.graphs.pagerank.solving import VECTORS, Problem, solve_on_one_worker
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu
VERTICES, EDGES = 150_000, 3_000_000


@pytest.fixture(scope="module")
def both(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return on_both(Site(gpu, threads=THREADS), pagerank_steps, tmp_path_factory.mktemp("pagerank"))


@pytest.fixture(scope="module")
def larger(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> GraphFolder:
    """A graph that keeps a GPU busy, an eighth of whose edges lead to one vertex; made only where there is a GPU."""
    random = np.random.default_rng(0)
    sources, targets = random.integers(0, VERTICES, (2, EDGES))
    targets[: EDGES // 8] = 5
    keys = np.unique(targets * VERTICES + sources)
    edges = np.stack([keys % VERTICES, keys // VERTICES], axis=1)
    return Graph(VERTICES, edges, random.random(len(keys)) + 0.1).write(tmp_path_factory.mktemp("larger") / "graph")


def test_graphs_byte_by_byte_ranks_components_and_degrees_are_the_same(both: Both) -> None:
    assert set(compare(both.gpu, both.cpu, RULES).values()) == {""}


@pytest.mark.parametrize("name", LIBRARY)
def test_ranks_begin_with_those_of_cugraph(both: Both, name: str) -> None:
    assert read_json(both.gpu / "ranks" / f"{name}.json")["start"] == "cugraph"


@pytest.mark.parametrize("name", LIBRARY)
def test_cugraphs_ranks_are_a_start_that_saves_iterations(hardware: Device, both: Both, name: str) -> None:
    one, other = (read_json(each / "ranks" / f"{name}.json")["iterations"] for each in (both.gpu, both.cpu))
    assert one < other / 2


@pytest.mark.parametrize("name", ["leiden", "louvain"])
def test_communities_are_as_good(hardware: Device, both: Both, name: str) -> None:
    cpu, gpu = (read_json(each / "groups" / f"{name}.json")["communities"] for each in (both.cpu, both.gpu))
    assert cpu["modularity"] > 0.2
    assert gpu["modularity"] > cpu["modularity"] - 0.02
    for each in (both.cpu, both.gpu):
        table = pd.read_parquet(each / "groups" / f"{name}.parquet")
        assert table.drop_duplicates(["community", "component"])["community"].is_unique


def test_sums_agree_where_there_are_many_blocks_of_threads(gpu: Device, larger: GraphFolder) -> None:
    edges = larger.in_edges()
    shares = np.random.default_rng(1).random(VERTICES)

    def sums_on(device: Device) -> Any:
        out = device.xp.empty(VERTICES)
        there = edges_to_device(device, edges)
        prepare_in_edges(device, there, threads=1)(device.to_device(shares), out)
        return device.to_host(out)

    np.testing.assert_allclose(sums_on(gpu), sums_on(resolve("cpu")), rtol=1e-12)


@pytest.mark.parametrize("rule", ["sum", "maximum"])
def test_many_edges_with_the_same_ends_are_merged_to_the_same_bits(gpu: Device, rule: Rule) -> None:
    random = np.random.default_rng(2)
    keys = random.integers(0, 2_000, EDGES) << VERTEX_BITS | random.integers(0, 50, EDGES)
    weights = random.random(EDGES)
    order = np.lexsort([weights, keys])
    cpu, found = (
        merge_sorted(
            device.to_device(keys[order]),
            device.to_device(weights[order]),
            vertices=range(2_000),
            rule=rule,
            index="int32",
            device=device,
        )
        for device in (resolve("cpu"), gpu)
    )
    for name, expected in cpu._asdict().items():
        np.testing.assert_array_equal(getattr(found, name), expected, err_msg=name)


@pytest.mark.parametrize("cugraph", [False, True])
def test_ranks_take_the_memory_that_is_forecast(hardware: Device, larger: GraphFolder, cugraph: bool) -> None:
    problem = Problem(larger, Pagerank(cugraph=cugraph), None, hardware, threads=1)
    needed = problem.edges.nbytes + VECTORS * 8 * VERTICES
    forecast = max(needed, cugraph_bytes(problem.edges)) if cugraph else needed
    assert forecast / 4 < _peak(solve_on_one_worker, problem) < 1.1 * forecast


@pytest.mark.parametrize("method", ["leiden", "louvain"])
def test_communities_take_no_more_memory_than_is_forecast(
    hardware: Device, larger: GraphFolder, method: Method
) -> None:
    edges = larger.in_edges()
    assert _peak(_groups, larger.path, method) < 1.1 * cugraph_bytes(edges, symmetric=True)


def _groups(path: Path, method: Method) -> None:
    graph = open_graph(path)
    cugraph_groups(graph.in_edges(), method=method, resolution=1.0, seed=0)


def _peak(function: Callable[..., object], *arguments: object) -> int:
    """Return the most bytes that a process of its own held on its GPU while it called a function."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=prepare_memory) as process:
        return process.submit(_called, function, arguments).result()


def _called(function: Callable[..., object], arguments: tuple[object, ...]) -> int:
    function(*arguments)
    peak = GpuDevice().peak_memory()
    assert peak is not None
    return peak

"""What is asked of cuGraph, and made of its answers, with stand-ins that answer as NetworkX does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from tests.contract.cugraph_of_networkx import joined, parts
from tests.contract.device_array import install, on_host, record, recording
from tests.contract.signatures import faults
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.helpers.graphs import Graph, random_graph, rank
from whitewater.engines import Array, Device
from whitewater.engines.gpu import GpuDevice
from whitewater.engines.workers import Workers
from whitewater.errors import ResourceError
from whitewater.graphs.communities import modularity, number_by_size
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import Edges
from whitewater.graphs.library_gpu import (
    cugraph_groups,
    cugraph_ranks,
    groups_beyond_one_gpu,
    ranks_beyond_one_gpu,
)
from whitewater.graphs.pagerank import solving
from whitewater_apps.pagerank.config import Communities
from whitewater_apps.pagerank.steps.communities import find_groups

VERTICES, ALONE = 60, 4
# Workers on GPUs without and with room for the graph.
LITTLE, MUCH = (
    cast(Workers, SimpleNamespace(room_for_a_task=lambda *_, room=room, **__: room)) for room in (10**4, 10**9)
)
SETTINGS = Pagerank(damping=0.8, tolerance=1e-12)


class DistributedGraph:
    """Stands for a graph of cuGraph with its edges spread over workers, which has the ends of edges only."""

    def __init__(self, *, directed: bool) -> None:
        record("cugraph.Graph", 0, ("directed",))
        self.directed, self.graph = directed, nx.DiGraph()

    def from_dask_cudf_edgelist(
        self, table: Any, *, source: str, destination: str, weight: str, store_transposed: bool
    ) -> None:
        record("cugraph.Graph.from_dask_cudf_edgelist", 1, ("source", "destination", "weight", "store_transposed"))
        assert store_transposed == self.directed
        edges = list(table.compute()[[source, destination, weight]].itertuples(index=False, name=None))
        assert len({edge[:2] for edge in edges}) == len(edges)
        self.graph.add_weighted_edges_from(edges)
        if not self.directed:
            self.graph.add_weighted_edges_from((v, u, w) for u, v, w in edges)


def frame(found: dict[int, Any], name: str) -> Any:
    """Return a frame of Dask, of vertices and values, as `cugraph.dask` answers."""
    table = pd.DataFrame({"vertex": found.keys(), name: found.values()}).sample(frac=1, random_state=0)
    return SimpleNamespace(compute=lambda: table)


def pagerank(graph: DistributedGraph, *, alpha: float, personalization: Any, max_iter: int, tol: float,
             fail_on_nonconvergence: bool) -> Any:  # fmt: skip
    p = None if personalization is None else dict(personalization.to_numpy().tolist())
    ranks = nx.pagerank(graph.graph, alpha, p, max_iter=max_iter, tol=tol)
    return frame(ranks, "pagerank"), not fail_on_nonconvergence


def communities(graph: DistributedGraph, *, resolution: float, random_state: int = 0) -> Any:
    labels, quality = parts(graph.graph, resolution)
    return frame(labels, "partition"), quality


@pytest.fixture(autouse=True)
def _libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins on a GPU with a gigabyte of free memory; what is asked of them is compared with what RAPIDS accepts."""
    monkeypatch.setattr(GpuDevice, "free_memory", lambda _: 10**9)
    install(monkeypatch, {
        "cugraph": {"Graph": DistributedGraph},
        "cugraph.dask": {
            "pagerank": pagerank, "leiden": communities, "louvain": communities,
            "weakly_connected_components": lambda graph: frame(joined(graph.graph), "labels"),
        },
        "cugraph.dask.comms.comms": {"initialize": lambda p2p: None, "destroy": lambda: None},
    })  # fmt: skip
    with stand_in_for_cupy(), recording() as calls:
        yield
    assert faults(calls) == []


def edges_of(graph: Graph, index: str) -> Edges:
    order = np.lexsort(graph.edges.T)
    offsets = np.searchsorted(graph.edges[order, 1], np.arange(graph.vertices + 1))
    weights = None if graph.weights is None else graph.weights[order]
    return Edges(offsets, graph.edges[order, 0].astype(index), weights)


def exact_ranks(graph: Graph, restart: Array | None) -> Array:
    share = graph.matrix / np.maximum(graph.matrix.sum(axis=1, keepdims=True), 1e-300)
    dangling = graph.matrix.sum(axis=1) == 0
    p = np.full(VERTICES, 1 / VERTICES) if restart is None else restart
    return np.linalg.solve(np.eye(VERTICES) - 0.8 * (share.T + np.outer(p, dangling)), 0.2 * p)


@pytest.mark.parametrize("personalized", [False, True])
@pytest.mark.parametrize(("weighted", "index"), [(False, "int32"), (True, "int64")])
def test_the_librarys_ranks_are_in_the_order_of_the_vertices(
    tmp_path: Path, weighted: bool, index: str, personalized: bool
) -> None:
    graph = random_graph(VERTICES, 0.05, weighted=weighted)
    restart = np.where(np.arange(VERTICES) % 9 == 4, 1 / 7, 0.0) if personalized else None
    found = cugraph_ranks(edges_of(graph, index), restart, SETTINGS)
    np.testing.assert_allclose(on_host(found, "float64"), exact_ranks(graph, restart), atol=1e-9)
    folder = graph.write(tmp_path / "graph")
    together = ranks_beyond_one_gpu(folder, LITTLE, Device(), restart, settings=SETTINGS, weighted=weighted)
    assert together is not None
    # It does not know of vertices without edges: those begin with what any has, or with their share.
    assert together.sum() == pytest.approx(1)
    assert np.abs(together - exact_ranks(graph, restart)).sum() < 0.03


@pytest.mark.parametrize("method", ["leiden", "louvain"])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_and_modularity_are_those_of_edges_of_either_direction(
    tmp_path: Path, method: Any, weighted: bool
) -> None:
    random = np.random.default_rng(0)
    group = np.arange(VERTICES) % 3
    chosen = (random.random((VERTICES, VERTICES)) < 0.5) & (group[:, None] == group)
    # The first vertices have no edges.
    chosen[:ALONE], chosen[:, :ALONE] = False, False
    edges = np.argwhere(chosen)
    graph = Graph(VERTICES, edges, random.random(len(edges)) + 1 if weighted else None)
    folder, rows = graph.write(tmp_path / "graph"), edges_of(graph, "int32")
    wanted: dict[str, Any] = {"method": method, "resolution": 0.5, "seed": 1}
    alone = cugraph_groups(rows, **wanted)
    together = groups_beyond_one_gpu(folder, LITTLE, Device(), **wanted)
    assert together is not None
    for components, labels, quality in (alone, together):
        for each in (components, labels):
            assert len(np.unique(each)) == 3 + ALONE
            assert [len(np.unique(each[ALONE:][group[ALONE:] == one])) for one in range(3)] == [1, 1, 1]
        assert quality == pytest.approx(modularity(rows, number_by_size(labels), resolution=0.5))


def test_a_graph_without_edges_has_a_group_for_each_vertex() -> None:
    edges = Edges(np.zeros(4, np.int64), np.empty(0, np.int32))
    components, labels, quality = cugraph_groups(edges, method="leiden", resolution=1, seed=0)
    assert (components.tolist(), labels.tolist(), quality) == ([0, 1, 2], [0, 1, 2], 0)


def test_the_library_is_left_out_where_memory_is_short_and_communities_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = random_graph(VERTICES, 0.05).write(tmp_path / "graph")
    gpu = SimpleNamespace(name="gpu", free_memory=lambda: 10**4)
    monkeypatch.setattr(solving, "SMALL_EDGES", 0)
    problem = solving.Problem(folder, SETTINGS, None, gpu, 1)  # type: ignore[arg-type]
    assert solving._cugraph_ranks(problem, problem.edges) is None
    with pytest.raises(ResourceError, match=r"communities\.method to none"):
        find_groups(folder, settings=Communities(), device=gpu)  # type: ignore[arg-type]
    assert find_groups(folder, settings=Communities(method="none"), device=gpu).modularity is None  # type: ignore[arg-type]


def test_a_graph_that_does_not_fit_into_the_memory_of_a_gpu_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrictDevice, "free_memory", lambda _: 1000)
    graph = random_graph(300, 0.02).write(tmp_path / "graph")
    with pytest.raises(ResourceError, match=r"edges needs about .* of memory.*Use a GPU with more"):
        rank(graph, tmp_path, device=StrictDevice())


def test_several_gpus_are_asked_where_the_graph_does_not_fit_into_one(tmp_path: Path) -> None:
    folder = random_graph(VERTICES, 0.05).write(tmp_path / "graph")
    problem = solving.Problem(folder, SETTINGS, None, Device(), 1)
    wanted: dict[str, Any] = {"method": "leiden", "resolution": 1, "seed": 0}
    settings: dict[str, Any] = {"settings": SETTINGS, "weighted": False}
    assert ranks_beyond_one_gpu(folder, MUCH, Device(), None, **settings) is None
    assert groups_beyond_one_gpu(folder, MUCH, Device(), **wanted) is None
    ranks = ranks_beyond_one_gpu(folder, LITTLE, Device(), None, **settings)
    assert ranks is not None
    solution = solving.solve_on_one_worker(problem, ranks)
    assert solution.from_cugraph
    np.testing.assert_allclose(solution.ranks, solving.solve_on_one_worker(problem).ranks, atol=1e-11)
    assert groups_beyond_one_gpu(folder, LITTLE, Device(), **wanted) is not None

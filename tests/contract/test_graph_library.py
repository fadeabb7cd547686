"""What is asked of cuGraph, and made of its answers, with stand-ins that answer as NetworkX does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from tests.contract.device_array import recording
from tests.contract.signatures import problems, recorded
from tests.contract.strict_device import cupy_of_devices, on_device, on_host
from tests.graphs import Graph, random_graph
from whitewater.engines import Array, gpu_memory
from whitewater.errors import ResourceError
from whitewater.graphs.communities_gpu import gpu_communities
from whitewater.graphs.edges import Edges
from whitewater.graphs.library_gpu import gpu_library_ranks

VERTICES = 60
ALONE = 4


class Frame:
    """Stands for a table, or a column, of cuDF, made of arrays of the device."""

    def __init__(self, columns: Mapping[str, Any] | Any) -> None:
        if not isinstance(columns, Mapping):
            columns = {"values": columns}
        self.table = pd.DataFrame(
            {name: on_host(column, "int32", "int64", "float64") for name, column in columns.items()}
        )

    def __getitem__(self, name: str) -> Frame:
        return Frame({"values": on_device(self.table[name].to_numpy())})

    @property
    def values(self) -> Array:
        return on_device(self.table["values"].to_numpy())

    def groupby(self, names: Sequence[str], *, sort: bool) -> Any:
        grouped = self.table.groupby(list(names), sort=sort)
        return SimpleNamespace(agg=lambda how: SimpleNamespace(reset_index=lambda: as_frame(grouped.agg(how))))


class LibraryGraph:
    """Stands for a graph of cuGraph: directed edges are given once, the others in one direction or in both."""

    def __init__(self, *, directed: bool) -> None:
        self.graph = nx.DiGraph() if directed else nx.Graph()

    def from_cudf_edgelist(
        self, table: Frame, *, source: str, destination: str, weight: str, renumber: bool = True,
        store_transposed: bool = False, vertices: Frame | None = None
    ) -> None:  # fmt: skip
        assert store_transposed == self.graph.is_directed()
        if vertices is not None:
            self.graph.add_nodes_from(vertices.table["values"].tolist())
        edges = list(zip(*(table.table[name].tolist() for name in (source, destination, weight)), strict=True))
        self.graph.add_weighted_edges_from(edges)
        assert self.graph.number_of_edges() == len(edges)


def as_frame(table: Any) -> Frame:
    return Frame({name: on_device(column.to_numpy()) for name, column in table.reset_index().items()})


def pagerank(graph: LibraryGraph, *, alpha: float, personalization: Frame | None, max_iter: int, tol: float,
             fail_on_nonconvergence: bool) -> tuple[Frame, bool]:  # fmt: skip
    chosen = personalization and dict(personalization.table[["vertex", "values"]].to_numpy().tolist())
    ranks = nx.pagerank(graph.graph, alpha=alpha, personalization=chosen, max_iter=max_iter, tol=tol)
    # In an order that is not that of the vertices.
    shuffled = pd.DataFrame({"vertex": list(ranks), "pagerank": list(ranks.values())}).sample(frac=1, random_state=0)
    return as_frame(shuffled), not fail_on_nonconvergence


def communities(graph: LibraryGraph, *, resolution: float, random_state: int = 0) -> tuple[Frame, float]:
    found = nx.community.louvain_communities(graph.graph, resolution=resolution, seed=random_state)
    members = [(vertex, number) for number, group in enumerate(found) for vertex in group]
    return as_frame(pd.DataFrame(members, columns=["vertex", "partition"])), 0.0


def module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(members)
    return made


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for CuPy, cuDF and cuGraph on a GPU with a gigabyte of free memory."""
    monkeypatch.setattr(gpu_memory, "free_memory", lambda: 10**9)
    cupy = cupy_of_devices()
    cugraph = module("cugraph", Graph=LibraryGraph, pagerank=pagerank, leiden=communities, louvain=communities)
    for each in (cupy, module("cudf", DataFrame=Frame, Series=Frame), cugraph):
        monkeypatch.setitem(sys.modules, each.__name__, each)


def edges_of(graph: Graph, index: str) -> Edges:
    order = np.lexsort((graph.edges[:, 0], graph.edges[:, 1]))
    counts = np.bincount(graph.edges[:, 1], minlength=graph.vertices)
    weights = None if graph.weights is None else graph.weights[order]
    return Edges(np.concatenate([[0], np.cumsum(counts)]), graph.edges[order, 0].astype(index), weights)


@pytest.mark.parametrize("personalized", [False, True])
@pytest.mark.parametrize(("weighted", "index"), [(False, "int32"), (True, "int64")])
def test_the_librarys_ranks_are_in_the_order_of_the_vertices(weighted: bool, index: str, personalized: bool) -> None:
    graph = random_graph(VERTICES, 0.05, weighted=weighted)
    restart = np.where(np.arange(VERTICES) % 9 == 4, 1 / 7, 0.0) if personalized else None
    with recording() as calls:
        found = gpu_library_ranks(edges_of(graph, index), damping=0.8, restart=restart, tolerance=1e-12, iterations=500)
    assert problems(calls, recorded().get) == []
    share = graph.matrix / np.maximum(graph.matrix.sum(axis=1, keepdims=True), 1e-300)
    dangling = graph.matrix.sum(axis=1) == 0
    p = np.full(VERTICES, 1 / VERTICES) if restart is None else restart
    system = np.eye(VERTICES) - 0.8 * (share.T + np.outer(p, dangling))
    assert found is not None
    np.testing.assert_allclose(on_host(found, "float64"), np.linalg.solve(system, 0.2 * p), atol=1e-9)


@pytest.mark.parametrize("method", ["leiden", "louvain"])
@pytest.mark.parametrize("weighted", [False, True])
def test_communities_join_what_edges_of_either_direction_join(method: Any, weighted: bool) -> None:
    random = np.random.default_rng(0)
    group = np.arange(VERTICES) % 3
    chosen = (random.random((VERTICES, VERTICES)) < 0.5) & (group[:, None] == group)
    # The first vertices have no edges; their numbers are those of the library's communities, too.
    chosen[:ALONE], chosen[:, :ALONE] = False, False
    edges = np.argwhere(chosen)
    graph = Graph(VERTICES, edges, random.random(len(edges)) + 1 if weighted else None)
    with recording() as calls:
        found = gpu_communities(edges_of(graph, "int32"), method=method, resolution=0.5, seed=1)
    assert problems(calls, recorded().get) == []
    assert len(np.unique(found)) == 3 + ALONE
    assert [len(np.unique(found[ALONE:][group[ALONE:] == each])) for each in range(3)] == [1, 1, 1]


def test_a_graph_without_edges_has_a_community_for_each_vertex() -> None:
    found = gpu_communities(Edges(np.zeros(4, np.int64), np.empty(0, np.int32)), method="leiden", resolution=1, seed=0)
    assert found.tolist() == [0, 1, 2]


def test_the_library_is_left_out_where_memory_is_short_and_communities_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_memory, "free_memory", lambda: 10**4)
    edges = edges_of(random_graph(VERTICES, 0.05), "int32")
    assert gpu_library_ranks(edges, damping=0.8, restart=None, tolerance=1e-9, iterations=9) is None
    with pytest.raises(ResourceError, match=r"communities\.method to none"):
        gpu_communities(edges, method="leiden", resolution=1, seed=0)

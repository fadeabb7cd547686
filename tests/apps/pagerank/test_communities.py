"""Components are the connected ones, communities are good ones, and both are numbered by size."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.graphs import Graph, random_graph, rank, read_adjacency, read_vertex_values
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import Device
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.graphs.graph_folder import GraphFolder
from whitewater.io.store import read_json
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Communities
from whitewater_apps.pagerank.steps import communities as step


@dataclass(frozen=True)
class Found:
    """What the step wrote."""

    vertices: pd.DataFrame
    summary: dict[str, Any]


def find(folder: GraphFolder, out: Path, **config: Any) -> Found:
    rank(folder, out, tolerance=1e-6)
    run = Run("pagerank", "communities", Device(), Communities.model_validate(config))
    vertices, summary = Output(out / "vertices.parquet"), Output(out / "communities.json")
    step.communities(run, graph=folder.path, ranks=out / "ranks.parquet", vertices=vertices, summary=summary)
    return Found(pd.read_parquet(vertices), read_json(summary))


def undirected(graph: Graph) -> Any:
    """Return NetworkX's graph, the weights of both directions added up."""
    found = networkx.Graph()
    found.add_nodes_from(range(graph.vertices))
    weights = np.ones(len(graph.edges)) if graph.weights is None else graph.weights
    for (source, target), weight in zip(graph.edges.tolist(), weights.tolist(), strict=True):
        before = found.get_edge_data(source, target, {"weight": 0})["weight"]
        found.add_edge(source, target, weight=before + weight)
    return found


def sets(labels: npt.NDArray[Any]) -> list[set[int]]:
    return [set(np.flatnonzero(labels == label).tolist()) for label in range(labels.max() + 1)]


def without_edges(vertices: int) -> Graph:
    return Graph(vertices, np.empty((0, 2), np.int64))


GRAPHS = st.builds(
    random_graph,
    vertices=st.integers(1, 40),
    density=st.floats(0, 0.15),
    dangling=st.floats(0, 1),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


@settings(max_examples=30, deadline=None)
@given(graph=GRAPHS, method=st.sampled_from(["leiden", "louvain"]), resolution=st.floats(0.1, 5))
@pytest.mark.slow
def test_components_and_modularity_are_those_of_networkx(graph: Graph, method: str, resolution: float) -> None:
    oracle = undirected(graph)
    with TemporaryDirectory() as folder:
        written = graph.write(Path(folder) / "graph")
        found = find(written, Path(folder), method=method, resolution=resolution)
    components = sorted(networkx.connected_components(oracle), key=lambda group: (-len(group), min(group)))
    assert sets(found.vertices["component"].to_numpy()) == components
    communities = sets(found.vertices["community"].to_numpy())
    assert communities == sorted(communities, key=lambda group: (-len(group), min(group)))
    expected = networkx.community.modularity(oracle, communities, resolution=resolution) if len(graph.edges) else 0
    assert found.summary["communities"]["modularity"] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(graph=GRAPHS, seed=st.integers(0, 2**31 - 1))
def test_communities_by_leiden_are_connected_and_better_than_all_alone_or_all_together(graph: Graph, seed: int) -> None:
    oracle = undirected(graph)
    with TemporaryDirectory() as folder:
        found = find(graph.write(Path(folder) / "graph"), Path(folder), seed=seed)
    communities = sets(found.vertices["community"].to_numpy())
    assert all(networkx.is_connected(oracle.subgraph(group)) for group in communities)
    if not len(graph.edges):
        return
    best = found.summary["communities"]["modularity"]
    alone = networkx.community.modularity(oracle, [{vertex} for vertex in oracle])
    whole = networkx.community.modularity(oracle, [set(oracle)])
    assert best >= max(alone, whole) - 1e-12


@pytest.mark.parametrize(("method", "least"), [("leiden", 0.999), ("louvain", 0.98)])
@pytest.mark.parametrize("weighted", [False, True])
def test_communities_are_as_good_as_the_best_of_networkx(
    tmp_path: Path, method: str, least: float, weighted: bool
) -> None:
    planted = networkx.planted_partition_graph(6, 25, 0.3, 0.03, seed=2, directed=True)
    edges = np.array(sorted(planted.edges), np.int64)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(edges)) if weighted else None
    graph = Graph(150, edges, weights)
    oracle = undirected(graph)
    best = max(
        networkx.community.modularity(oracle, networkx.community.louvain_communities(oracle, seed=seed))
        for seed in range(5)
    )
    found = find(graph.write(tmp_path / "graph"), tmp_path, method=method)
    assert found.summary["communities"]["modularity"] >= least * best
    if method == "leiden" and not weighted:
        assert [len(group) for group in sets(found.vertices["community"].to_numpy())] == [25] * 6


def test_communities_depend_on_the_seed_only(tmp_path: Path) -> None:
    folder = random_graph(300, 0.02, dangling=0.1).write(tmp_path / "graph")
    first, again, other = (find(folder, tmp_path, seed=seed).vertices["community"] for seed in (5, 5, 6))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_the_table_has_a_row_for_each_vertex(tmp_path: Path) -> None:
    graph = Graph(
        4,
        np.array([[0, 1], [0, 0], [3, 0]]),
        ids=np.array([-7, 2, 3, 2**62]),
        names=["https://a/", "https://b/", "https://c/", "https://d/"],
    )
    folder = graph.write(tmp_path / "graph")
    found = find(folder, tmp_path)
    table = found.vertices
    assert table.columns.tolist() == ["vertex", "name", "rank", "in_degree", "out_degree", "component", "community"]
    assert table.drop(columns=["rank", "community"]).to_numpy().tolist() == [
        [-7, "https://a/", 2, 2, 0],
        [2, "https://b/", 1, 0, 0],
        [3, "https://c/", 0, 0, 1],
        [2**62, "https://d/", 0, 1, 0],
    ]
    pd.testing.assert_series_equal(table["rank"], pd.read_parquet(tmp_path / "ranks.parquet")["rank"])
    assert found.summary["components"] == {
        "count": 2, "largest": 3, "sizes": [3, 1], "size_counts": [[1, 1], [3, 1]]
    }  # fmt: skip


def test_without_a_method_there_are_components_only(tmp_path: Path) -> None:
    found = find(random_graph(30, 0.05).write(tmp_path / "graph"), tmp_path, method="none")
    assert set(found.vertices["community"]) == {-1}
    described = found.summary["communities"]
    assert (described["count"], described["sizes"], described["modularity"]) == (0, [], None)


@pytest.mark.parametrize("vertices", [0, 1, 3])
@pytest.mark.parametrize("method", ["leiden", "louvain", "none"])
def test_vertices_without_edges_are_components_and_communities_of_their_own(
    tmp_path: Path, vertices: int, method: str
) -> None:
    found = find(without_edges(vertices).write(tmp_path / "graph"), tmp_path, method=method)
    assert found.vertices["component"].tolist() == list(range(vertices))
    assert found.vertices["community"].tolist() == ([-1] * vertices if method == "none" else list(range(vertices)))
    assert found.summary["components"]["count"] == vertices


def test_work_on_workers_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = random_graph(300, 0.02).write(tmp_path / "graph")
    here = find(folder, tmp_path)
    monkeypatch.setattr(step, "SMALL_EDGES", 0)
    there = find(folder, tmp_path)
    pd.testing.assert_frame_equal(here.vertices, there.vertices)
    assert here.summary == there.summary


def test_communities_that_do_not_fit_are_refused_and_components_may_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = random_graph(300, 0.1).write(tmp_path / "graph")
    find(folder, tmp_path)
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 200_000)
    with pytest.raises(ResourceError, match=r"leiden communities of 300 vertices .* Set communities\.method to none"):
        find(folder, tmp_path)
    find(folder, tmp_path, method="none")


def test_ranks_of_other_vertices_are_refused(tmp_path: Path) -> None:
    folder = random_graph(30, 0.1).write(tmp_path / "graph")
    run = Run("pagerank", "communities", Device(), Communities())
    outputs = {"vertices": Output(tmp_path / "vertices.parquet"), "summary": Output(tmp_path / "communities.json")}
    with pytest.raises(InputError, match="cannot be read"):
        step.communities(run, graph=folder.path, ranks=tmp_path / "ranks.parquet", **outputs)
    rank(random_graph(31, 0.1).write(tmp_path / "other"), tmp_path)
    with pytest.raises(IntegrityError, match="other vertices"):
        step.communities(run, graph=folder.path, ranks=tmp_path / "ranks.parquet", **outputs)


@needs_real_data
@pytest.mark.parametrize(
    ("name", "directed", "output"),
    [
        ("wcc_dir-input", True, "wcc_dir-output"),
        ("wcc_undir-input", False, "wcc_undir-output"),
        ("example_example-directed-input", True, "example_example-directed-WCC"),
        ("example_example-undirected-input", False, "example_example-undirected-WCC"),
    ],
)
def test_components_are_the_reference_of_ldbc(tmp_path: Path, name: str, directed: bool, output: str) -> None:
    graph = read_adjacency(real_data("graph", "ldbc", name), directed=directed)
    expected = read_vertex_values(real_data("graph", "ldbc", output))
    # Vertices without edges are not in lists of edges.
    table = find(graph.write(tmp_path / "graph"), tmp_path).vertices.set_index("vertex")
    pairs = pd.DataFrame({"expected": expected[table.index], "component": table["component"]})
    assert set(expected.index) - set(table.index) == set(
        expected.index[expected.groupby(expected).transform("size") == 1]
    )
    assert len(pairs.drop_duplicates()) == pairs["expected"].nunique() == pairs["component"].nunique()

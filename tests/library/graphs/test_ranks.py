"""Ranks are the fixed point, or the fixed iterations, of the written recurrence, wherever they are computed."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import networkx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.graphs import Graph, from_pairs, random_graph, rank, read_adjacency, read_vertex_values
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.graphs.graph_folder import Edges, MergedEdges, open_graph, write_graph
from whitewater.graphs.pagerank import solving
from whitewater.graphs.pagerank.in_edges import prepare_in_edges
from whitewater.graphs.pagerank.solving import ROUNDING

Ranks = npt.NDArray[np.float64]


def dense(graph: Graph, definition: str, *, iterations: int, damping: float = 0.85, p: Ranks | None = None) -> Ranks:
    """Follow a recurrence with dense matrices, vertex by vertex as it is written."""
    n = graph.vertices
    weights = graph.matrix if definition == "networkx" else (graph.matrix > 0).astype(float)
    strength = weights.sum(axis=1)
    dangling = strength == 0
    uniform = np.full(n, 1 / n)
    p = uniform if p is None else p
    x = p.copy()
    for _ in range(iterations):
        pulled = weights.T @ np.divide(x, strength, out=np.zeros(n), where=~dangling)
        if definition == "networkx":
            x = damping * (pulled + x[dangling].sum() * p) + (1 - damping) * p
        elif definition == "graphalytics":
            x = damping * (pulled + x[dangling].sum() / n) + (1 - damping) / n
        else:
            x = damping * pulled + (1 - damping) / n
    return x


def as_networkx(graph: Graph) -> Any:
    found = networkx.DiGraph()
    found.add_nodes_from(range(graph.vertices))
    weights = np.ones(len(graph.edges)) if graph.weights is None else graph.weights
    found.add_weighted_edges_from((u, v, w) for (u, v), w in zip(graph.edges.tolist(), weights.tolist(), strict=True))
    return found


GRAPHS = st.builds(
    random_graph,
    vertices=st.integers(1, 40),
    density=st.floats(0, 0.5),
    dangling=st.floats(0, 1),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


@settings(max_examples=60, deadline=None)
@given(graph=GRAPHS, damping=st.floats(0.05, 0.95), definition=st.sampled_from(["networkx", "graphalytics", "gap"]))
def test_each_definition_equals_its_dense_recurrence(graph: Graph, damping: float, definition: str) -> None:
    with TemporaryDirectory() as folder:
        written = graph.write(Path(folder) / "graph")
        found = rank(
            written, Path(folder), definition=definition, damping=damping, tolerance=1e-13, maximum_iterations=2000
        )
    iterations = 10 if definition == "graphalytics" else 2000
    expected = dense(graph, definition, iterations=iterations, damping=damping)
    assert np.abs(found.ranks - expected).sum() <= 1e-12
    if definition != "gap":
        assert abs(found.convergence["sum"] - 1) <= 1e-9


@pytest.mark.parametrize("weighted", [False, True])
def test_networkx_computes_the_same(tmp_path: Path, weighted: bool) -> None:
    graph = random_graph(300, 0.02, dangling=0.75, weighted=weighted)
    expected = networkx.pagerank(as_networkx(graph), tol=1e-16, max_iter=1000)
    found = rank(graph.write(tmp_path / "graph"), tmp_path, tolerance=1e-12)
    assert np.abs(found.ranks - list(expected.values())).sum() <= 1e-11
    assert found.convergence["dangling_vertices"] >= 225
    assert abs(found.convergence["sum"] - 1) <= 1e-9


def test_weights_count_only_where_they_are_asked_for(tmp_path: Path) -> None:
    graph = random_graph(50, 0.2, weighted=True)
    folder = graph.write(tmp_path / "graph")
    without = Graph(graph.vertices, graph.edges)
    found = rank(folder, tmp_path, weighted=False, tolerance=1e-13)
    np.testing.assert_allclose(found.ranks, dense(without, "networkx", iterations=500), rtol=1e-11)
    assert np.abs(found.ranks - rank(folder, tmp_path, tolerance=1e-13).ranks).sum() > 1e-3


def test_the_four_page_graph_has_its_published_ranks_after_ten_iterations(tmp_path: Path) -> None:
    folder = from_pairs([(1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 2)]).write(tmp_path / "graph")
    stopped = rank(folder, tmp_path, definition="graphalytics", iterations=10)
    assert stopped.vertices.tolist() == [1, 2, 3, 4]
    assert stopped.ranks.round(4).tolist() == [0.2202, 0.4289, 0.2202, 0.1307]
    # They were published as they were when none changed by more than 0.001; these are exact.
    assert rank(folder, tmp_path).ranks.round(4).tolist() == [0.2199, 0.4292, 0.2199, 0.1310]


def test_a_graph_without_vertices_has_no_ranks(tmp_path: Path) -> None:
    found = rank(Graph(0, np.empty((0, 2), np.int64)).write(tmp_path / "graph"), tmp_path)
    assert len(found.ranks) == 0
    assert (found.convergence["iterations"], found.convergence["sum"]) == (0, 0)


def test_graphalytics_does_as_many_iterations_as_are_asked_for(tmp_path: Path) -> None:
    graph = random_graph(60, 0.1)
    folder = graph.write(tmp_path / "graph")
    for iterations in (0, 1, 7):
        found = rank(folder, tmp_path, definition="graphalytics", iterations=iterations)
        np.testing.assert_allclose(found.ranks, dense(graph, "graphalytics", iterations=iterations), rtol=1e-14)
        assert found.convergence["iterations"] == len(found.convergence["log"]) == iterations


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("definition", ["networkx", "gap"])
def test_the_distance_to_the_exact_ranks_is_within_its_bound(tmp_path: Path, definition: str, tolerance: float) -> None:
    graph = random_graph(80, 0.05)
    found = rank(graph.write(tmp_path / "graph"), tmp_path, definition=definition, tolerance=tolerance)
    distance = np.abs(found.ranks - dense(graph, definition, iterations=1000)).sum()
    log = found.convergence["log"]
    assert distance <= found.convergence["error_bound"] == log[-1]["error_bound"] <= tolerance < log[-2]["error_bound"]


def test_the_bound_holds_where_only_rounding_is_left(tmp_path: Path) -> None:
    # Of two vertices one links to the other, which is dangling: x[0] = 1 / (2 + d), exactly.
    folder = from_pairs([(0, 1)]).write(tmp_path / "graph")
    for damping in (0.5, 0.85, 0.99):
        found = rank(folder, tmp_path, definition="graphalytics", damping=damping, iterations=5000)
        exact = 1 / (2 + Fraction(damping))
        distance = abs(Fraction(float(found.ranks[0])) - exact) + abs(Fraction(float(found.ranks[1])) - (1 - exact))
        assert distance <= found.convergence["error_bound"] < 1e-15 / (1 - damping)


def test_a_vertex_that_a_million_lead_to_is_added_up_as_exactly_as_any() -> None:
    edges = Edges(np.array([0, 1_000_003]), np.zeros(1_000_003, np.int32))
    sums = np.empty(1)
    prepare_in_edges(Device(), edges, threads=1)(np.array([0.1]), sums)
    assert abs(Fraction(float(sums[0])) / (1_000_003 * Fraction(0.1)) - 1) <= ROUNDING


def test_too_few_iterations_stop_the_run_and_say_what_to_set(tmp_path: Path) -> None:
    folder = random_graph(80, 0.05).write(tmp_path / "graph")
    with pytest.raises(IntegrityError, match=r"after 3 iterations .*maximum_iterations higher") as error:
        rank(folder, tmp_path, maximum_iterations=3)
    looser = float(str(error.value).split("the tolerance above ")[1].removesuffix("."))
    assert rank(folder, tmp_path, maximum_iterations=3, tolerance=looser * 1.01).convergence["converged"]


@pytest.mark.parametrize("weights", [(1e-320, 1e-320, 1.0), (1e302, 1e302, 1.0), (1e308, 1e308, 1.0)])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_weights_that_add_up_to_what_ranks_cannot_be_divided_by_are_refused(
    tmp_path: Path, weights: tuple[float, ...]
) -> None:
    graph = Graph(3, np.array([[1, 0], [1, 2], [2, 1]]), np.array(weights), ids=np.array([5, 17, 20]))
    with pytest.raises(InputError, match=r"1 vertices, the first with id 17, add up to .*Scale the weights"):
        rank(graph.write(tmp_path / "graph"), tmp_path)


def test_work_that_does_not_fit_is_refused_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = random_graph(80, 0.05).write(tmp_path / "graph")
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 1000)
    with pytest.raises(ResourceError, match="PageRank of 80 vertices"):
        rank(folder, tmp_path)


# Limits what the process may allocate, above what it has when all code was loaded by work on a few edges.
LIMITED = """
import resource, sys
from pathlib import Path
from tests.helpers.graphs import rank
from whitewater.graphs.pagerank import solving
from whitewater.graphs.graph_folder import open_graph

few, graph, out = (Path(each) for each in sys.argv[1:4])
solving.SMALL_EDGES = 2**62
rank(open_graph(few), out, tolerance=1e-3, threads=1)
allocated = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (allocated + int(sys.argv[4]),) * 2)
if sys.argv[5:] == ["copied"]:
    open_graph(graph).sources.copy()
rank(open_graph(graph), out, tolerance=1e-3, threads=1)
"""


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Rank in a process of limited memory, whose allocators give back what is freed."""
    paths = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "MALLOC_MMAP_THRESHOLD_": "131072", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits all allocations on Linux only")
def test_edges_that_memory_cannot_hold_stream_from_the_disk(tmp_path: Path) -> None:
    few = random_graph(80, 0.05).write(tmp_path / "few")
    # Vertex v has edges from v to v + 599, of 20,000 vertices, each wrapped around: 48 MB of sources.
    targets = np.arange(20_000)
    sources = np.sort((targets[:, None] + np.arange(600)) % 20_000, axis=1)
    rows = MergedEdges(range(20_000), np.full(20_000, 600), sources.ravel())
    write_graph(tmp_path / "graph", ids=targets, rows=[rows], weighted=False)
    streamed = limited(few.path, tmp_path / "graph", tmp_path / "streamed", 36_000_000)
    assert streamed.returncode == 0, streamed.stderr
    copied = limited(few.path, tmp_path / "graph", tmp_path / "copied", 36_000_000, "copied")
    assert "MemoryError" in copied.stderr
    ranks = rank(open_graph(tmp_path / "graph"), tmp_path, tolerance=1e-3).ranks
    assert pd.read_parquet(tmp_path / "streamed/ranks.parquet")["rank"].to_numpy().tobytes() == ranks.tobytes()


@pytest.mark.parametrize(("weighted", "threads", "kind"), [(False, 5, "threads"), (True, 2, "processes")])
def test_ranks_are_the_same_bits_for_threads_and_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weighted: bool, threads: int, kind: Literal["threads", "processes"]
) -> None:
    # Large enough for several parts of threads, and for more than one slice of vertices.
    random = np.random.default_rng(3)
    keys = np.unique(random.integers(0, 140_000**2, 540_000))
    pairs = np.stack([keys // 140_000 // 2, keys % 140_000], axis=1)
    pairs = np.unique(pairs, axis=0)
    weights = random.uniform(0.1, 9, len(pairs)) if weighted else None
    folder = Graph(140_000, pairs, weights).write(tmp_path / "graph")
    alone = rank(folder, tmp_path, tolerance=1e-3)
    assert alone.facts["workers"]["count"] == 1
    monkeypatch.setattr(solving, "SMALL_EDGES", 0)
    spread = rank(folder, tmp_path, tolerance=1e-3, threads=threads, cluster=Cluster(kind=kind))
    assert spread.ranks.tobytes() == alone.ranks.tobytes()
    assert spread.convergence == alone.convergence
    assert spread.facts["workers"]["count"] == 1


@settings(max_examples=20, deadline=None)
@given(graph=GRAPHS, seed=st.integers(0, 2**32 - 1))
def test_ranks_belong_to_vertices_whatever_their_numbers(graph: Graph, seed: int) -> None:
    numbers = np.random.default_rng(seed).permutation(graph.vertices)
    permuted = Graph(graph.vertices, numbers[graph.edges], graph.weights)
    with TemporaryDirectory() as folder:
        found = rank(graph.write(Path(folder) / "graph"), Path(folder))
        again = rank(permuted.write(Path(folder) / "permuted"), Path(folder))
    np.testing.assert_allclose(again.ranks[numbers], found.ranks, rtol=1e-12)


LDBC: dict[str, Any] = {"definition": "graphalytics", "damping": 0.85}


@needs_real_data
@pytest.mark.parametrize("directed", [True, False])
def test_ldbc_examples_are_met_at_two_iterations(tmp_path: Path, directed: bool) -> None:
    name = f"example_example-{'directed' if directed else 'undirected'}"
    graph = read_adjacency(real_data("graph", "ldbc", f"{name}-input"), directed=directed)
    expected = read_vertex_values(real_data("graph", "ldbc", f"{name}-PR"))
    found = rank(graph.write(tmp_path / "graph"), tmp_path, iterations=2, **LDBC)
    assert found.vertices.tolist() == expected.index.tolist()
    assert np.abs(found.ranks - expected.to_numpy()).max() <= 1e-15


# What LDBC publishes of the undirected graph is not converged: it is 1.6e-7 away from the fixed point.
@needs_real_data
@pytest.mark.parametrize(("name", "distance"), [("pr_dir", 1e-12), ("pr_undir", 2e-7)])
def test_ldbc_converged_ranks_are_met(tmp_path: Path, name: str, distance: float) -> None:
    graph = read_adjacency(real_data("graph", "ldbc", f"{name}-input"), directed=name == "pr_dir")
    expected = read_vertex_values(real_data("graph", "ldbc", f"{name}-output"))
    found = rank(graph.write(tmp_path / "graph"), tmp_path, iterations=300, **LDBC)
    assert found.vertices.tolist() == expected.index.tolist()
    assert np.abs(found.ranks - expected.to_numpy()).max() <= distance


@needs_real_data
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("personalized", [False, True])
def test_a_network_of_emails_is_ranked_as_networkx_ranks_it(tmp_path: Path, weighted: bool, personalized: bool) -> None:
    pairs = np.loadtxt(real_data("graph", "snap", "email-Eu-core.csv"), usecols=(0, 1), dtype=np.int64)
    weights = np.random.default_rng(0).uniform(0.1, 5, len(pairs)) if weighted else None
    graph = Graph(int(pairs.max()) + 1, pairs, weights)
    chosen = {7: 1.0, 100: 2.5, 999: 0.5}
    table = tmp_path / "chosen.csv"
    table.write_text("vertex,weight\n" + "".join(f"{vertex},{weight}\n" for vertex, weight in chosen.items()))
    expected = networkx.pagerank(
        as_networkx(graph), personalization=chosen if personalized else None, tol=1e-16, max_iter=1000
    )
    found = rank(graph.write(tmp_path / "graph"), tmp_path, personalization=str(table) if personalized else "")
    assert np.abs(found.ranks - list(expected.values())).sum() <= 1e-10
    assert found.convergence["start"] == ("personalization" if personalized else "uniform")

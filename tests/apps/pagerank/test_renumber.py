"""Edges become the rows that SciPy makes of them, whatever their ids, order, files, workers and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.graphs import write_edges
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import Device, resolve
from whitewater.engines.config import Cluster, Engine
from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError
from whitewater.graphs.build import with_kernels as edge_plan
from whitewater.graphs.edges_folder import EdgesWriter, finish_edges
from whitewater.graphs.graph_folder import GraphFolder, open_graph
from whitewater.io.store import read_json
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Renumber
from whitewater_apps.pagerank.steps import renumber as renumber_step
from whitewater_apps.pagerank.steps.renumber import renumber

CPU = resolve("cpu")
Ids = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]
LEAST, MOST = -(2**63), 2**63 - 1
LITTLE_GB = 1e-6


def graph_of(edges: Path, name: str = "graph", *, threads: int = 1, cluster: str = "auto", device: Device = CPU,
             engine: Engine = "local", **values: Any) -> GraphFolder:  # fmt: skip
    """Run the step; check what it counts, and that it leaves nothing behind."""
    folder = edges.with_name(name)
    workers = Cluster.model_validate({"kind": cluster})
    run = Run("pagerank", "renumber", device, Renumber(**values), threads, workers, engine=engine)
    renumber(run, edges=edges, graph=Output(folder), summary=Output(folder.with_suffix(".json")))
    graph, counted = open_graph(folder), read_json(folder.with_suffix(".json"))
    assert counted["rows"] + counted["reversed"] == counted["edges"] + counted["duplicates"]
    assert (counted["edges"], counted["vertices"]) == (graph.edges, graph.vertices)
    assert all(path.is_file() for path in folder.iterdir())
    return graph


def files_of(graph: GraphFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(graph.path.iterdir())}


def matrix_of(graph: GraphFolder) -> scipy.sparse.csr_matrix:
    """Return the matrix whose row is the target; SciPy checks its form."""
    values = np.ones(graph.edges) if graph.weights is None else graph.weights
    matrix = scipy.sparse.csr_matrix((values, graph.sources, graph.indptr), shape=(graph.vertices, graph.vertices))
    matrix.check_format(full_check=True)
    return matrix


def by_scipy(ids: Ids, source: Ids, target: Ids, weight: Weights) -> scipy.sparse.csr_matrix:
    """Return the matrix of the sums of weights."""
    ends = np.searchsorted(ids, target), np.searchsorted(ids, source)
    return scipy.sparse.coo_matrix((weight, ends), shape=(len(ids), len(ids))).tocsr()


@contextmanager
def in_folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


few_ids = st.integers(-20, 20)
any_ids = st.one_of(few_ids, st.sampled_from([LEAST, MOST, LEAST + 1, 2**40, -(2**33)]), st.integers(LEAST, MOST))
weights = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1e-9, 1e9, 2.5])


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[Ids, Ids, Weights]:
    """Lists of edges of close or distant ids, with loops and repetitions."""
    vertices = draw(st.lists(draw(st.sampled_from([few_ids, any_ids])), min_size=1, max_size=12))
    rows = draw(st.lists(st.tuples(st.sampled_from(vertices), st.sampled_from(vertices), weights), min_size=1))
    source, target, weight = zip(*rows, strict=True)
    return np.array(source, np.int64), np.array(target, np.int64), np.array(weight)


@settings(max_examples=60, deadline=None)
@given(edges=edge_lists(), memory_gb=st.sampled_from([1.0, LITTLE_GB]), weighted=st.booleans())
def test_the_sums_are_scipys(edges: tuple[Ids, Ids, Weights], memory_gb: float, weighted: bool) -> None:
    source, target, weight = edges
    with in_folder() as folder:
        write_edges(folder / "edges", source, target, weight if weighted else None, group_rows=7)
        graph = graph_of(folder / "edges", duplicates="sum", memory_gb=memory_gb)
        ids = np.unique(np.concatenate([source, target]))
        expected = by_scipy(ids, source, target, weight if weighted else np.ones(len(source)))
        assert np.array_equal(graph.ids, ids)
        difference = matrix_of(graph) - expected
        assert abs(difference).max() <= 1e-15 * expected.max()
        assert (matrix_of(graph).indices == expected.indices).all()
        assert np.array_equal(graph.out_degree, np.diff(expected.tocsc().indptr))
        assert graph.out_weight is not None
        assert np.allclose(graph.out_weight, expected.sum(axis=0).A1, rtol=1e-14)


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of Dask of five edges."""
    monkeypatch.setattr(Device, "partition_rows", 5)


@pytest.mark.usefixtures("small_partitions")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=edge_lists(), directed=st.booleans(), random=st.randoms(use_true_random=False),
       memory_gb=st.sampled_from([1.0, LITTLE_GB]), rule=st.sampled_from(["sum", "maximum"]),
       engine=st.sampled_from(["local", "dask"]))  # fmt: skip
def test_every_byte_is_the_same_for_any_order_and_partition(
    *,
    edges: tuple[Ids, Ids, Weights],
    directed: bool,
    random: Random,
    memory_gb: float,
    rule: str,
    engine: Engine,
) -> None:
    source, target, weight = edges
    rows, order = random.randint(1, 40), np.array(random.sample(range(len(source)), len(source)))
    with in_folder() as folder:
        write_edges(folder / "edges", source, target, weight, directed=directed)
        for part, places in enumerate(np.array_split(order, 3)):
            with EdgesWriter(folder / "parts", part, weighted=True, group_rows=rows) as writer:
                writer.add(source[places], target[places], weight[places])
        counts = {"read": len(source), "edges": len(source)}
        finish_edges(folder / "parts", weighted=True, directed=directed, vertices=None, counts=counts)
        whole = graph_of(folder / "edges", duplicates=rule, memory_gb=1.0)
        parts = graph_of(folder / "parts", "other", duplicates=rule, memory_gb=memory_gb, engine=engine)
        assert files_of(whole) == files_of(parts)


def random_edges(folder: Path, *, wide: bool, edges: int = 30_000, weighted: bool = True) -> Path:
    """Write a multigraph of 700 vertices, a tenth of whose edges lead to one of them, with close or distant ids."""
    random = np.random.default_rng(5)
    ids = random.integers(LEAST, MOST, 700) if wide else random.permutation(2000)[:700] - 1000
    source, target = ids[random.integers(0, 700, edges)], ids[random.integers(0, 700, edges)]
    target[: edges // 10] = ids[3]
    weight = random.random(edges) + 0.1 if weighted else None
    write_edges(folder / "edges", source, target, weight, group_rows=edges // 9)
    return folder / "edges"


@pytest.mark.parametrize("wide", [False, True])
def test_memory_files_and_threads_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wide: bool
) -> None:
    edges = random_edges(tmp_path, wide=wide)
    alone = files_of(graph_of(edges, duplicates="sum"))
    monkeypatch.setattr(renumber_step, "SMALL", 0)
    monkeypatch.setattr(edge_plan, "SMALLEST_PIECE", 500)
    assert files_of(graph_of(edges, "disk", duplicates="sum", memory_gb=LITTLE_GB)) == alone
    assert files_of(graph_of(edges, "threads", duplicates="sum", threads=3)) == alone


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_processes_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    edges = random_edges(tmp_path, wide=True)
    alone = files_of(graph_of(edges, duplicates="sum"))
    monkeypatch.setattr(renumber_step, "SMALL", 0)
    monkeypatch.setattr(Device, "partition_rows", 5_000)
    assert (
        files_of(graph_of(edges, "processes", duplicates="sum", threads=2, cluster="processes", engine=engine)) == alone
    )


# Limits what the process may allocate, above what it has when all code was loaded by work on a few edges.
LIMITED = """
import resource, sys
from pathlib import Path
from whitewater.engines import memory
from whitewater_apps.pagerank.config import Renumber
from whitewater.engines import resolve
from whitewater_apps.pagerank.steps import renumber as renumber_step
from whitewater_apps.pagerank.steps.renumber import renumber
from whitewater.step import Output, Run

def graph(edges, folder, memory_gb):
    run = Run("pagerank", "renumber", resolve("cpu"), Renumber(duplicates="sum", memory_gb=memory_gb), 2)
    renumber(run, edges=edges, graph=Output(folder), summary=Output(folder.with_suffix(".json")))

def allocated():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))

few, edges, folder, memory_gb, more = (*map(Path, sys.argv[1:4]), *map(float, sys.argv[4:6]))
if sys.argv[6:] == ["unaware"]:
    memory.available = lambda: 2**62
renumber_step.SMALL = 0
graph(few, folder.with_name(folder.name + "-few"), memory_gb)
limit = allocated() + int(more)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
graph(edges, folder, memory_gb)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits all allocations on Linux only")
def test_edges_that_memory_cannot_hold_go_through_files(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    for name, rows in (("few", 1000), ("edges", 6_000_000)):
        source, target = random.integers(0, 50_000, (2, rows))
        write_edges(tmp_path / name, source, target, random.random(rows) + 0.1, group_rows=1 << 18)
    # 96 MB of keys and weights, and 90 MB for everything.
    assert limited(tmp_path, "disk", memory_gb=0.02, megabytes=90).returncode == 0
    refused = limited(tmp_path, "refused", memory_gb=100, megabytes=90)
    assert "Lower renumber.memory_gb, so that edges go to disk" in refused.stderr
    failed = limited(tmp_path, "memory", "unaware", memory_gb=100, megabytes=90)
    assert failed.returncode != 0
    assert "malloc of size" in failed.stderr or "MemoryError" in failed.stderr
    expected = graph_of(tmp_path / "edges", "expected", duplicates="sum", memory_gb=100)
    assert files_of(open_graph(tmp_path / "disk")) == files_of(expected)


def limited(folder: Path, name: str, *more: str, memory_gb: float, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Run the step in a process of limited memory, whose allocators give back what is freed."""
    inputs = (str(folder / each) for each in ("few", "edges", name))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_MMAP_THRESHOLD_": "131072",
    }
    return subprocess.run(
        [sys.executable, "-c", LIMITED, *inputs, str(memory_gb), str(megabytes * 10**6), *more],
        env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
def test_many_buckets_and_pieces_give_scipys_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wide: bool
) -> None:
    monkeypatch.setattr(edge_plan, "BUCKET_EDGES", 100)
    monkeypatch.setattr(edge_plan, "SMALLEST_PIECE", 500)
    edges = random_edges(tmp_path, wide=wide)
    table = pq.read_table(edges / "edges-00000.parquet")
    source, target, weight = (column.to_numpy() for column in table.columns)
    graph = graph_of(edges, duplicates="sum", memory_gb=LITTLE_GB)
    expected = by_scipy(np.asarray(graph.ids), source, target, weight)
    assert np.array_equal(matrix_of(graph).indptr, expected.indptr)
    assert np.array_equal(matrix_of(graph).indices, expected.indices)
    assert np.allclose(matrix_of(graph).data, expected.data, rtol=1e-14)


def test_an_undirected_edge_leads_both_ways_and_a_loop_once(tmp_path: Path) -> None:
    write_edges(tmp_path / "edges", [1, 2, 3, 3], [2, 1, 3, 1], directed=False)
    graph = graph_of(tmp_path / "edges")
    assert graph.indptr.tolist() == [0, 2, 3, 5]
    assert graph.sources.tolist() == [1, 2, 0, 0, 2]
    counted = read_json(tmp_path / "graph.json")
    assert (counted["reversed"], counted["duplicates"], counted["self_loops"]) == (3, 2, 1)


def test_vertices_without_edges_are_counted_and_have_their_place(tmp_path: Path) -> None:
    vertices = pa.table({"vertex": pa.array([-5, 1, 2, 9, 70], pa.int64()), "name": list("abcde")})
    write_edges(tmp_path / "edges", [9, 9], [1, 2], vertices=vertices)
    graph = graph_of(tmp_path / "edges")
    names = graph.names()
    assert names is not None
    assert names.to_pylist() == list("abcde")
    assert graph.ids.tolist() == [-5, 1, 2, 9, 70]
    assert graph.indptr.tolist() == [0, 0, 1, 2, 2, 2]
    counted = read_json(tmp_path / "graph.json")
    assert (counted["dangling"], counted["isolated"], counted["minimum_id"], counted["maximum_id"]) == (4, 2, -5, 70)


@pytest.mark.parametrize("other", [4, MOST])
def test_an_end_that_is_not_in_the_table_of_vertices_has_no_name(tmp_path: Path, other: int) -> None:
    vertices = pa.table({"vertex": pa.array([1, 5], pa.int64()), "name": ["a", "b"]})
    write_edges(tmp_path / "edges", [1], [other], vertices=vertices)
    graph = graph_of(tmp_path / "edges")
    names = graph.names()
    assert names is not None
    assert dict(zip(graph.ids.tolist(), names.to_pylist(), strict=True)) == {1: "a", 5: "b", other: None}


@pytest.mark.parametrize("ids", [[3], [-7, MOST]])
def test_a_graph_without_edges_has_its_vertices(tmp_path: Path, ids: list[int]) -> None:
    write_edges(tmp_path / "edges", [], [], vertices=pa.table({"vertex": pa.array(ids, pa.int64())}))
    graph = graph_of(tmp_path / "edges")
    assert graph.ids.tolist() == ids
    assert (graph.edges, graph.indptr.tolist(), graph.in_edges().ranges()) == (0, [0] * (len(ids) + 1), [(0, len(ids))])


def test_a_graph_without_vertices_is_refused(tmp_path: Path) -> None:
    write_edges(tmp_path / "edges", [], [])
    with pytest.raises(InputError, match=r"no vertices.*Check the source"):
        graph_of(tmp_path / "edges")


def test_edges_with_weights_that_repeat_are_refused_by_drop_and_named(tmp_path: Path) -> None:
    write_edges(tmp_path / "edges", [8, 5, 9, 5], [1, 6, 1, 6], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ConfigError, match=r"from 5 to 6: set it to sum or maximum"):
        graph_of(tmp_path / "edges")


def test_edges_with_weights_that_do_not_repeat_are_kept_by_drop(tmp_path: Path) -> None:
    write_edges(tmp_path / "edges", [8, 5], [1, 6], [1.5, 2.5])
    assert np.asarray(graph_of(tmp_path / "edges").weights).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(("rule", "expected"), [("drop", None), ("maximum", None), ("sum", [3.0, 1.0])])
def test_without_weights_only_the_sum_makes_some(tmp_path: Path, rule: str, expected: list[float] | None) -> None:
    write_edges(tmp_path / "edges", [7, 2, 7, 7], [2, 7, 2, 2])
    graph = graph_of(tmp_path / "edges", duplicates=rule)
    assert graph.sources.tolist() == [1, 0]
    assert (None if graph.weights is None else graph.weights.tolist()) == expected


def test_the_maximum_is_numpys(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    source, target, weight = random.integers(0, 5, 400), random.integers(0, 5, 400), random.random(400)
    write_edges(tmp_path / "edges", source, target, weight)
    expected = np.zeros((5, 5))
    np.maximum.at(expected, (target, source), weight)
    assert np.array_equal(matrix_of(graph_of(tmp_path / "edges", duplicates="maximum")).toarray(), expected)


def test_an_id_that_the_statistics_deny_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_edges(tmp_path / "edges", [1, 2], [2, 3])
    monkeypatch.setattr(edge_plan, "code_by_distance", lambda *_, **__: edge_plan.IdCodes(1, 2))
    with pytest.raises(IntegrityError, match="does not have by its statistics"):
        graph_of(tmp_path / "edges")


def test_files_without_statistics_give_the_same_graph(tmp_path: Path) -> None:
    edges = random_edges(tmp_path, wide=False)
    expected = files_of(graph_of(edges, duplicates="sum"))
    path = edges / "edges-00000.parquet"
    pq.write_table(pq.read_table(path), path, write_statistics=False, row_group_size=4000)
    assert files_of(graph_of(edges, "other", duplicates="sum")) == expected


def test_work_that_does_not_fit_is_refused_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = random_edges(tmp_path, wide=False)
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 10_000)
    with pytest.raises(ResourceError, match=r"1,994 vertices at most.*Lower renumber\.memory_gb"):
        graph_of(edges)
    assert not list((tmp_path / "graph").glob("*"))


def test_edges_of_one_target_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_edges(tmp_path / "edges", np.arange(20_000) % 20, np.full(20_000, 7))
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 300_000)
    with pytest.raises(
        ResourceError, match=r"merging 20,000 edges of a few targets .* the vertex with the most in-edges"
    ):
        graph_of(tmp_path / "edges", memory_gb=LITTLE_GB)


@needs_real_data
@pytest.mark.parametrize("rule", ["drop", "sum"])
def test_email_eu_core_is_networkxs_graph(tmp_path: Path, rule: str) -> None:
    import networkx as nx

    source, target = np.loadtxt(real_data("graph", "snap", "email-Eu-core.csv"), np.int64, usecols=(0, 1)).T
    again = np.concatenate([np.arange(len(source)), np.arange(0, len(source), 7)])
    write_edges(tmp_path / "edges", source[again], target[again], group_rows=5000)
    graph = graph_of(tmp_path / "edges", duplicates=rule)
    oracle = nx.MultiDiGraph(list(zip(source[again].tolist(), target[again].tolist(), strict=True)))
    nodes = sorted(oracle)
    expected = nx.to_numpy_array(oracle if rule == "sum" else nx.DiGraph(oracle), nodes).T
    assert graph.ids.tolist() == nodes
    assert np.array_equal(matrix_of(graph).toarray(), expected)
    assert read_json(tmp_path / "graph.json")["self_loops"] == nx.number_of_selfloops(nx.DiGraph(oracle))

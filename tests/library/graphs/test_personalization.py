"""Walks begin anew where a table says; a table that does not say it clearly is refused."""

from pathlib import Path

import networkx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.graphs import Graph, random_graph, rank
from whitewater.errors import InputError
from whitewater.graphs.graph_folder import GraphFolder
from whitewater.graphs.pagerank.personalization import read_personalization
from whitewater.graphs.vertex_ids import vertex_ids

NAMES = ("https://a.example/", "https://b.example/x", "https://b.example/ü", "plain, with a comma")


@pytest.fixture
def named(tmp_path: Path) -> GraphFolder:
    """A graph without edges whose vertices have names."""
    ids = vertex_ids(NAMES)
    order = np.argsort(ids)
    graph = Graph(4, np.empty((0, 2), np.int64), ids=ids[order], names=[NAMES[place] for place in order])
    return graph.write(tmp_path / "named")


@pytest.fixture
def numbered(tmp_path: Path) -> GraphFolder:
    """A graph without edges and names."""
    return Graph(3, np.empty((0, 2), np.int64), ids=np.array([-5, 7, 2**62])).write(tmp_path / "numbered")


def read(folder: GraphFolder, table: pd.DataFrame, kind: str = "csv") -> npt.NDArray[np.float64]:
    path = folder.path.parent / f"chosen.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return read_personalization(path, folder)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_of_a_vertex_are_added_up_and_the_sum_is_1(numbered: GraphFolder, kind: str) -> None:
    table = pd.DataFrame({"vertex": [2**62, -5, 2**62], "weight": [1.0, 4.0, 3.0]})
    assert read(numbered, table, kind).tolist() == [0.5, 0, 0.5]


def test_without_weights_each_row_counts_1(numbered: GraphFolder) -> None:
    assert read(numbered, pd.DataFrame({"vertex": [7, 7, 7, -5]})).tolist() == [0.25, 0.75, 0]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_vertices_are_found_by_name(named: GraphFolder, kind: str) -> None:
    names = named.names()
    assert names is not None
    found = read(named, pd.DataFrame({"name": NAMES, "weight": [1, 2, 3, 4]}), kind)
    assert dict(zip(names.to_pylist(), found.tolist(), strict=True)) == dict(
        zip(NAMES, [0.1, 0.2, 0.3, 0.4], strict=True)
    )


def test_unknown_names_are_listed_but_not_all(named: GraphFolder) -> None:
    table = pd.DataFrame({"name": [NAMES[0], *(f"https://{number}.example/" for number in range(9))]})
    with pytest.raises(
        InputError, match=r"9 of 10 rows name no vertex .*: https://0\.example/, .*4\.example/ and 4 more\."
    ):
        read(named, table)


@pytest.mark.parametrize("weights", [[1.0, -0.5], [1.0, np.nan], [np.inf, 1.0]])
def test_weights_that_are_negative_missing_or_infinite_are_refused(numbered: GraphFolder, weights: list[float]) -> None:
    with pytest.raises(InputError, match="1 weights are negative, missing or not finite"):
        read(numbered, pd.DataFrame({"vertex": [7, -5], "weight": weights}))


@pytest.mark.parametrize("weights", [[], [0.0, 0.0]])
def test_weights_that_are_all_0_are_refused(numbered: GraphFolder, weights: list[float]) -> None:
    table = pd.DataFrame({"vertex": [7, -5][: len(weights)], "weight": weights}).astype({"vertex": "int64"})
    with pytest.raises(InputError, match="add up to 0"):
        read(numbered, table)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("page,weight\n1,2\n", "columns page, weight; it needs either vertex"),
        ("vertex,name\n7,a\n", "columns vertex, name; it needs either vertex"),
        ("vertex\n7.5\n", "cannot be read"),
        ("vertex,weight\n7,much\n", "cannot be read"),
        ("vertex,weight\n,1\n", "1 rows have no vertex"),
        ("name\nhttps://a.example/\n", "the vertices of this graph have none"),
        ("vertex, weight\n7, 1\n", "a column ' weight'. Write it in lower case, without blanks"),
        ("vertex,Name,Weight\n7,a,1\n", "a column 'Weight'"),
        ("vertex,vertex\n7,7\n", "columns vertex, vertex. Keep one of each name"),
        ("vertex,weight,weight\n7,1,1\n", "Keep one of each name"),
        ("", "cannot be read"),
    ],
)
def test_tables_of_another_form_are_refused(numbered: GraphFolder, text: str, message: str) -> None:
    path = numbered.path.parent / "chosen.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_personalization(path, numbered)


@pytest.mark.parametrize("table", [{"vertex": ["seven"]}, {"vertex": [7.5]}, {"vertex": [7], "weight": ["much"]}])
def test_columns_of_parquet_that_are_not_numbers_are_refused(
    numbered: GraphFolder, table: dict[str, list[str]]
) -> None:
    with pytest.raises(InputError, match=r"pagerank\.rank\.personalization: .*chosen\.parquet cannot be read"):
        read(numbered, pd.DataFrame(table), "parquet")


def test_names_in_parquet_that_are_not_text_are_refused(named: GraphFolder) -> None:
    binary = pa.array([b"\xff"])
    names = pa.Array.from_buffers(pa.string(), 1, binary.buffers())
    pq.write_table(pa.table({"name": names}), named.path.parent / "chosen.parquet")
    with pytest.raises(InputError, match=r"chosen\.parquet cannot be read: .*Invalid UTF8"):
        read_personalization(named.path.parent / "chosen.parquet", named)


@pytest.mark.parametrize("weight", [1e308, 5e-324])
def test_weights_of_any_size_are_shares(numbered: GraphFolder, weight: float) -> None:
    assert read(numbered, pd.DataFrame({"vertex": [7, -5], "weight": weight})).tolist() == [0.5, 0.5, 0]


def test_a_table_may_be_named_from_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "chosen.csv").write_text("vertex\n0\n")
    folder = Graph(2, np.array([[0, 1]])).write(tmp_path / "graph")
    # Vertex 1 is dangling, so vertex 0 has 1 / (1 + 0.85).
    found = rank(folder, tmp_path, personalization="~/chosen.csv")
    assert found.ranks == pytest.approx([1 / 1.85, 0.85 / 1.85], abs=1e-10)


@pytest.mark.parametrize("dangling", [0.0, 0.75])
def test_the_rank_of_dangling_vertices_goes_where_the_personalization_says(tmp_path: Path, dangling: float) -> None:
    graph = random_graph(200, 0.03, dangling=dangling, weighted=True)
    chosen = {3: 1.0, 150: 4.0}
    pd.DataFrame({"vertex": chosen.keys(), "weight": chosen.values()}).to_csv(tmp_path / "chosen.csv", index=False)
    directed = networkx.DiGraph()
    directed.add_nodes_from(range(200))
    assert graph.weights is not None
    directed.add_weighted_edges_from(
        (u, v, w) for (u, v), w in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True)
    )
    expected = networkx.pagerank(directed, personalization=chosen, tol=1e-16, max_iter=1000)
    found = rank(graph.write(tmp_path / "graph"), tmp_path, personalization=str(tmp_path / "chosen.csv"))
    assert np.abs(found.ranks - list(expected.values())).sum() <= 1e-10
    assert abs(found.convergence["sum"] - 1) <= 1e-9

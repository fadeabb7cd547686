"""A folder of a graph: what is written is read, whatever is damaged is refused, and ranges share the edges evenly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.errors import InputError, IntegrityError
from whitewater.graphs.graph_folder import RANGE_EDGES, Edges, MergedEdges, index_type, open_graph, write_graph

IDS = np.array([-4, 0, 9], np.int64)


def written(path: Path, *, weighted: bool = True) -> Path:
    """Write edges 1 -> 0, 2 -> 0, 0 -> 2 and 2 -> 2; those of the last vertex apart."""
    rows = [
        MergedEdges(vertices, np.array(counts), np.array(sources), np.array(weights) if weighted else None)
        for vertices, counts, sources, weights in (
            (range(2), [2, 0], [1, 2], [0.5, 2.0]),
            (range(2, 3), [2], [0, 2], [3.0, 4.0]),
        )
    ]
    return write_graph(path, ids=IDS, rows=rows, weighted=weighted, names=pa.array(["a", None, "c"])).path


def test_a_graph_is_read_as_it_was_written(tmp_path: Path) -> None:
    graph = open_graph(written(tmp_path / "graph"))
    assert (graph.vertices, graph.edges, graph.weighted, graph.named) == (3, 4, True, True)
    assert graph.ids.tolist() == IDS.tolist()
    assert graph.indptr.tolist() == [0, 2, 2, 4]
    assert graph.sources.tolist() == [1, 2, 0, 2]
    assert graph.sources.dtype == np.int32
    assert np.asarray(graph.weights).tolist() == [0.5, 2.0, 3.0, 4.0]
    assert graph.out_degree.tolist() == [1, 1, 2]
    assert np.asarray(graph.out_weight).tolist() == [3.0, 0.5, 6.0]
    names = graph.names()
    assert names is not None
    assert names.to_pylist() == ["a", None, "c"]


def test_a_graph_without_weights_has_none(tmp_path: Path) -> None:
    graph = open_graph(written(tmp_path / "graph", weighted=False))
    assert (graph.weighted, graph.weights, graph.out_weight) == (False, None, None)
    assert not list(graph.path.glob("*weight*"))


def test_arrays_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        open_graph(written(tmp_path / "graph")).sources[0] = 2


@pytest.mark.parametrize("damage", ["cut", "other", "absent"])
def test_a_damaged_array_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path / "graph") / "sources.npy"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "other":
        np.save(path, np.zeros(3, np.int32))
    else:
        path.unlink()
    with pytest.raises((InputError, IntegrityError), match=r"sources\.npy .*Run the step renumber again"):
        open_graph(path.parent)


def test_names_that_are_damaged_or_too_few_are_refused(tmp_path: Path) -> None:
    graph = open_graph(written(tmp_path / "graph"))
    path = graph.path / "names.parquet"
    pq.write_table(pa.table({"name": ["a"]}), path)
    with pytest.raises(IntegrityError, match="has 1 rows, not 3"):
        graph.names()
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"names\.parquet cannot be read"):
        graph.names()


def test_counts_that_are_not_those_of_the_sources_are_refused(tmp_path: Path) -> None:
    rows = MergedEdges(range(1), np.array([2]), np.array([1]))
    with pytest.raises(IntegrityError, match="1 sources are given, but there are 2 edges"):
        write_graph(tmp_path / "graph", ids=IDS, rows=[rows], weighted=False)
    assert not (tmp_path / "graph" / "graph.json").exists()


@settings(deadline=None)
@given(degrees=st.lists(st.integers(0, 4 * RANGE_EDGES), min_size=1, max_size=60), at_most=st.integers(1, 80))
def test_ranges_cover_the_vertices_once_and_share_the_edges(degrees: list[int], at_most: int) -> None:
    indptr = np.cumsum([0, *degrees])
    ranges = Edges(indptr, np.empty(0, np.int32)).ranges(at_most=at_most)
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == len(degrees)
    assert all(start < stop for start, stop in ranges)
    share = max(indptr[-1] / at_most, RANGE_EDGES)
    assert len(ranges) <= max(1, min(at_most, indptr[-1] // RANGE_EDGES))
    assert all(indptr[stop] - indptr[start] <= 2 * share + max(degrees) for start, stop in ranges)


def test_numbers_are_of_32_bits_as_long_as_they_fit() -> None:
    assert index_type(2**31 - 1) == "int32"
    assert index_type(2**31) == "int64"

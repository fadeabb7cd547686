"""A folder of edges gives back what was written, and says what is wrong with one that was changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.graphs import write_edges
from tests.helpers.oracle import sql
from whitewater.errors import InputError, IntegrityError
from whitewater.graphs.edges_folder import EdgesWriter, finish_edges, open_edges

EXTREMES = [-(2**63), -2, -1, 0, 2**63 - 1]


def test_edges_are_read_back_by_others_in_the_order_in_which_they_were_added(tmp_path: Path) -> None:
    write_edges(tmp_path, EXTREMES, EXTREMES[::-1], [0.5, 1, 2, 3, 4], group_rows=2)
    found = sql(f"select source, target, weight from '{tmp_path}/edges-*.parquet'")
    assert found["source"].tolist() == EXTREMES
    assert found["target"].tolist() == EXTREMES[::-1]
    assert found["weight"].tolist() == [0.5, 1, 2, 3, 4]


def test_row_groups_are_full_however_the_edges_came(tmp_path: Path) -> None:
    ids = np.arange(23)
    with EdgesWriter(tmp_path, 0, weighted=False, group_rows=5) as first:
        for start in range(0, 23, 3):
            first.add(ids[start : start + 3], ids[start : start + 3])
    with EdgesWriter(tmp_path, 1, weighted=False, group_rows=5):
        pass
    with EdgesWriter(tmp_path, 2, weighted=False, group_rows=5) as last:
        last.add(ids[:2], ids[:2])
    counts = {"read": 26, "dropped_broken": 1, "edges": 25}
    finish_edges(tmp_path, weighted=False, directed=False, vertices=None, counts=counts)
    folder = open_edges(tmp_path)
    assert [rows for _, _, rows in folder.row_groups()] == [5, 5, 5, 5, 3, 2]
    assert [path.name for path, _, _ in folder.row_groups()][-2:] == ["edges-00000.parquet", "edges-00002.parquet"]
    assert (folder.edges, folder.weighted, folder.directed, folder.named) == (25, False, False, False)
    assert folder.counts == counts
    assert folder.vertices() is None


def test_vertices_are_given_back_with_their_names(tmp_path: Path) -> None:
    table = pa.table({"vertex": [-5, 3], "name": ["https://example.org/", "ü"]})
    folder = write_edges(tmp_path, [3], [-5], vertices=table)
    assert folder.named
    assert folder.vertices() == table


def test_a_graph_may_have_no_edges(tmp_path: Path) -> None:
    folder = write_edges(tmp_path, [], [], vertices=pa.table({"vertex": [1, 2]}))
    assert folder.row_groups() == []
    vertices = folder.vertices()
    assert vertices is not None
    assert vertices["vertex"].to_pylist() == [1, 2]


def test_counts_that_do_not_reconcile_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=f"{tmp_path}: the counts do not add up"):
        finish_edges(tmp_path, weighted=False, directed=True, vertices=None, counts={"read": 3, "edges": 2})


def test_what_was_lost_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"edges\.json"):
        open_edges(tmp_path)
    write_edges(tmp_path, [1, 2], [2, 3], vertices=pa.table({"vertex": [1, 2, 3]}))
    pq.write_table(pa.table({"vertex": [1]}), tmp_path / "vertices.parquet")
    with pytest.raises(IntegrityError, match=r"vertices\.parquet has 1 rows, not 3"):
        open_edges(tmp_path).vertices()
    (tmp_path / "vertices.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"vertices\.parquet cannot be read"):
        open_edges(tmp_path).vertices()
    (tmp_path / "edges-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"edges-00000\.parquet cannot be read"):
        open_edges(tmp_path).row_groups()
    (tmp_path / "edges-00000.parquet").unlink()
    with pytest.raises(IntegrityError, match="has 0 rows, not 2"):
        open_edges(tmp_path).row_groups()

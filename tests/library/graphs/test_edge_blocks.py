"""Edges of a row group: what was written, some at a time; what is not an edge is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whitewater.errors import InputError
from whitewater.graphs.edges_folder import edge_blocks
from whitewater.io.folder import RowGroup

IDS = np.array([-(2**63), -2, -1, 0, 2**63 - 1])


def read(table: pa.Table, path: Path, *, rows: int = 10, weighted: bool = False) -> list[list[list[float] | None]]:
    pq.write_table(table, path / "edges.parquet", row_group_size=5, compression="snappy", use_dictionary=False)
    group = RowGroup(path / "edges.parquet", table.num_rows // 5 - 1, 5)
    blocks = edge_blocks(group, weighted=weighted, rows=rows)
    arrays = [(block.source, block.target, block.weight) for block in blocks]
    return [[None if each is None else each.tolist() for each in block] for block in arrays]


@pytest.mark.parametrize("rows", [2, 5, 10])
def test_edges_of_a_row_group_come_some_at_a_time(tmp_path: Path, rows: int) -> None:
    sources, weights = np.concatenate([np.arange(5), IDS]), np.arange(10) / 4
    table = pa.table({"weight": weights, "target": sources[::-1].copy(), "source": sources})
    blocks = read(table, tmp_path, rows=rows, weighted=True)
    assert max(len(source or ()) for source, *_ in blocks) == min(rows, 5)
    found = [[value for block in blocks for value in block[end] or ()] for end in range(3)]
    assert found == [IDS.tolist(), [4, 3, 2, 1, 0], [1.25, 1.5, 1.75, 2.0, 2.25]]
    assert all(weight is None for *_, weight in read(table, tmp_path, rows=rows))


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([1, 2, None, 4, 5]), "column 'target' has a null"),
        (pa.nulls(5), "column 'target' is of type null, not int64"),
        (pa.array([1, 2, 3, 4, 2**63], pa.uint64()), "column 'target' is of type uint64, not int64"),
        (pa.array([1.0] * 5), "column 'target' is of type double, not int64"),
        (pa.array(["1"] * 5), "column 'target' is of type string, not int64"),
    ],
)
def test_what_is_not_an_id_is_refused(tmp_path: Path, column: pa.Array, problem: str) -> None:
    with pytest.raises(InputError, match=rf"edges\.parquet cannot be read: {problem}"):
        read(pa.table({"source": IDS, "target": column}), tmp_path)


def test_a_missing_column_and_a_cut_off_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"edges\.parquet cannot be read: .*weight"):
        read(pa.table({"source": IDS, "target": IDS}), tmp_path, weighted=True)
    whole = (tmp_path / "edges.parquet").read_bytes()
    (tmp_path / "edges.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"edges\.parquet cannot be read"):
        list(edge_blocks(RowGroup(tmp_path / "edges.parquet", 0, 5), weighted=False, rows=10))

"""The plan of the work on edges: all rows are in it once, buckets hold all codes, and memory decides what spills."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.graphs import write_edges
from whitewater.errors import InputError
from whitewater.graphs.build.with_kernels import (
    CODES,
    FEW_CODES,
    SMALLEST_PIECE,
    IdCodes,
    Piece,
    Sizes,
    code_by_distance,
    split_tasks,
)
from whitewater.graphs.edges_folder import open_edges

NONE = np.empty(0, np.int64)


def sizes_of(entries: int, *, budget: int = 10**12, weighted: bool = False) -> Sizes:
    return Sizes(entries, weighted, budget, threads=4)


@given(entries=st.integers(0, 10**11), codes=st.integers(1, CODES), budget=st.sampled_from([10**6, 10**9, 10**14]))
def test_every_code_is_in_a_bucket_that_a_key_can_be_shifted_to(entries: int, codes: int, budget: int) -> None:
    shift, width = sizes_of(entries, budget=budget).bucket_bits(codes)
    assert 0 <= shift < 32
    assert (codes - 1) >> shift < 1 << width


@given(entries=st.integers(1, 10**10), weighted=st.booleans(), budget=st.integers(1, 10**13))
def test_edges_under_way_keep_to_the_budget(entries: int, weighted: bool, budget: int) -> None:
    sizes = sizes_of(entries, budget=budget, weighted=weighted)
    assert sizes.spills == (2 * (16 if weighted else 8) * entries > budget)
    if sizes.spills and sizes.range_edges > SMALLEST_PIECE:
        # A task merges a range, and the results of as many wait.
        assert sizes.range_edges * (48 if weighted else 24) * 2 * sizes.threads <= budget


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(0, 300), group_rows=st.integers(1, 50), threads=st.integers(1, 5))
def test_every_row_group_is_in_one_task(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group_rows: int, threads: int
) -> None:
    path = tmp_path_factory.mktemp("plan") / "edges"
    folder = write_edges(path, np.arange(rows), np.arange(rows), group_rows=group_rows)
    tasks = split_tasks(folder.row_groups(), threads=threads)
    assert [group for task in tasks for group in task] == folder.row_groups()
    assert len(tasks) <= 4 * threads
    assert all(tasks)


def test_ids_that_lie_close_together_are_coded_as_distances(tmp_path: Path) -> None:
    for name, last, span in (
        ("close", FEW_CODES - 8, IdCodes(-7, FEW_CODES)),
        ("distant", FEW_CODES - 7, None),
        ("extreme", 2**63 - 1, None),
    ):
        write_edges(tmp_path / name, [5, -7], [last, 0])
        assert code_by_distance(open_edges(tmp_path / name).row_groups(), NONE, ends=4) == span


def test_vertices_without_edges_are_in_the_span(tmp_path: Path) -> None:
    vertices = np.array([-9, 3, 88], np.int64)
    table = pa.table({"vertex": pa.array(vertices)})
    folder = write_edges(tmp_path / "edges", [3], [3], vertices=table)
    assert code_by_distance(folder.row_groups(), vertices, ends=5) == IdCodes(-9, 98)


def test_a_file_that_was_cut_while_the_step_ran_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.npy"
    np.save(path, np.arange(10, dtype=np.uint64))
    piece = Piece(path, np.empty(0), np.array([0, 3, 6, 10]))
    assert [keys.tolist() for keys, _ in piece.buckets(range(1, 3))] == [[3, 4, 5], [6, 7, 8, 9]]
    assert type(next(piece.buckets(range(1)))[0]) is np.ndarray  # a slice of a memmap takes ten times as long
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"keys\.npy cannot be read: .* Run the step"):
        list(piece.buckets(range(3)))

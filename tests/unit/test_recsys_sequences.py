"""Operators that look at other rows see all rows of a key, wherever files end; else it is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recsys_logs import write_parts
from whitewater.errors import ConfigError, InputError
from whitewater.recsys import dataset
from whitewater.recsys.operators import DifferenceLag, Groupby, Normalize
from whitewater.recsys.workflow import Workflow

LAG = DifferenceLag(partition_cols="user", order="time")
RUNS = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def visits(runs: list[int]) -> pa.Table:
    """Return rows of users, one run of rows each; the user of the last run is null."""
    users = np.repeat([*(f"user {number % 7}{number}" for number in range(len(runs) - 1)), None], runs)
    times = np.arange(len(users))
    return pa.table({"user": pa.array(users, pa.string()), "time": times, "price": (times * 7919 % 1000).astype(float)})


def cut(table: pa.Table, sizes: list[int]) -> pa.Table:
    bounds = np.minimum(np.cumsum([0, *sizes]), len(table)).tolist()
    return pa.concat_tables(
        table.slice(start, stop - start) for start, stop in zip(bounds, [*bounds[1:], len(table)], strict=True)
    )


@settings(max_examples=25, deadline=None)
@given(RUNS, st.lists(st.integers(1, 12), max_size=20))
def test_differences_go_over_the_ends_of_parts(runs: list[int], sizes: list[int]) -> None:
    table = visits(runs)
    frame = table.to_pandas()
    expected = frame["price"] - frame.groupby("user", dropna=False)["price"].shift()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", 0)
        made = Workflow(["price"] >> LAG).fit(table).transform(cut(table, sizes))
    np.testing.assert_allclose(made.column(0).to_numpy(), expected, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(RUNS, st.lists(st.integers(1, 12), max_size=20))
def test_groups_of_rows_are_whole_wherever_parts_end(runs: list[int], sizes: list[int]) -> None:
    table = visits(runs)
    graph = ["price"] >> Groupby(groupby_cols="user", sort_cols="time", aggs={"price": ["sum"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "FEW_ROWS", 0)
        made = Workflow(graph).fit(table).transform(cut(table, sizes)).to_pandas()
    expected = table.to_pandas().groupby("user", dropna=False, sort=False)["price"].sum()
    np.testing.assert_allclose(sorted(made["price_sum"]), sorted(expected), rtol=1e-6)


def test_what_is_learnt_of_differences_is_learnt_of_whole_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    table = visits([5, 3, 8, 2])
    graph = ["price"] >> LAG >> Normalize()
    expected = Workflow(graph).fit(table).transform(table)
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    made = Workflow(graph).fit(cut(table, [1, 3, 3, 6])).transform(table)
    np.testing.assert_allclose(made.column(0).to_numpy(), expected.column(0).to_numpy(), rtol=1e-6)


@pytest.mark.parametrize("sizes", [[], [2], [1, 1, 1]])
def test_a_key_that_comes_again_is_refused_with_its_rows(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    table = pa.table({"user": ["a", "b", "a", "c"], "time": [1, 2, 3, 4], "price": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(InputError, match=r"rows 0 and 2 \(counted from 0\) have the same user.*Sort the data by user"):
        Workflow(["price"] >> LAG).fit(cut(table, sizes)).transform(table)


def test_files_are_cut_between_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    table = visits([4, 9, 1, 6])
    expected = Workflow(["price"] >> LAG).fit(table).transform(table)
    source = write_parts(table, tmp_path / "parts", [3, 2, 1, 5, 9])
    workflow = Workflow(["price"] >> LAG).fit(source)
    pd.testing.assert_frame_equal(workflow.transform(source).to_pandas(), expected.to_pandas())


def test_operators_that_need_other_orders_are_refused() -> None:
    other: Any = ["time"] >> DifferenceLag(partition_cols="price", order="time")
    with pytest.raises(ConfigError, match="rows in the order of different columns"):
        Workflow((["price"] >> LAG) + other).fit(visits([2, 2]))


def test_a_label_cannot_go_along_with_groups_of_rows() -> None:
    graph = ["price"] >> Groupby(groupby_cols="user", sort_cols="time", aggs={"price": ["sum"]})
    with pytest.raises(ConfigError, match="time cannot be carried along"):
        Workflow(graph, carry=["time"]).fit(visits([2, 2]))

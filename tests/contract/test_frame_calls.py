"""What our source asks of frames on pandas is recorded; what cuDF has not, or does otherwise, is found."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.base import compute

from tests.contract import device_array, frame_calls
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.signatures import faults
from whitewater.tables.with_dask import backend_module


@pytest.fixture(autouse=True)
def _this_file_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what this file asks count as what our source asks."""
    monkeypatch.setattr(device_array, "SOURCES", (*device_array.SOURCES, __file__))
    monkeypatch.setattr(frame_calls, "is_ours", __file__.__eq__)


def trips() -> Any:
    return pd.DataFrame({"hour": [2, 1, 2, 3], "tip": [1.0, np.nan, 0.5, 2.0], "paid": ["Cash ", "Credit", None, "x"],
                         "at": pd.to_datetime(pd.Series(["2019-03-01 10:00:00", None] * 2))})  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "fault"),
    [
        (lambda frame: frame["paid"].str.casefold(), "RAPIDS has no cudf.Series.str.casefold"),
        (lambda frame: frame["paid"].str.replace("C", "c"), "regex"),
        (lambda frame: frame.to_csv(index=False, float_format="%g"), "float_format"),
        (lambda frame: frame.groupby("hour", sort=True)["tip"].skew(), "cudf.Series.groupby.skew"),
        (lambda frame: frame.groupby("hour", sort=True)[["tip"]].sum(engine="cython"), "no parameter engine"),
        (lambda frame: backend_module("pandas").json_normalize({"a": [1]}), "RAPIDS has no cudf.json_normalize"),
        (lambda frame: frame["hour"].nbytes, "RAPIDS has no cudf.Series.nbytes"),
        (lambda frame: np.asarray(frame["tip"]), "cudf.Series.__array__"),
        (lambda frame: sorted(frame["hour"]), "cudf.Series.__iter__"),
        (lambda frame: frame.assign(cents=lambda each: each["tip"] * 100), None),
        (lambda frame: frame.groupby("hour", dropna=False, sort=False).agg({"tip": "sum"}), None),
        (lambda frame: frame["at"].dt.hour.fillna(-1).astype("int32"), None),
        (lambda frame: backend_module("pandas").DataFrame({"a": [1]}), None),
        (lambda frame: (frame.columns, len(frame), frame.tip, frame["tip"].dtype, frame.iloc[:1]), None),
        (lambda frame: operator.gt(frame["tip"], 1) & ~frame["tip"].isna(), None),
    ],
)
def test_what_is_asked_is_compared_with_what_cudf_accepts(ask: Callable[[Any], Any], fault: str | None) -> None:
    frame = trips()
    with frames_as_cudf() as calls:
        ask(frame)
    found = faults(calls)
    assert bool(found) == bool(fault), (found, calls)
    assert fault is None or fault in found[0]


def test_a_comparison_with_a_null_is_null_and_so_is_what_follows_of_it() -> None:
    frame = trips()
    with frames_as_cudf():
        dear = frame["tip"] > 0.75
        either = dear | (frame["hour"] > 0)
        known = dear.fillna(False)
        with pytest.raises(ValueError, match="NA"):
            dear.astype("int32")
    assert [bool(each) for each in dear.isna()] == [False, True, False, False]
    assert [bool(each) for each in either.isna()] == [False, True, False, False]
    assert (known.dtype, known.to_list()) == (bool, [True, False, False, True])
    assert not (trips()["tip"] > 0.75).isna().any()


def test_groups_and_joined_rows_come_in_another_order_unless_they_are_sorted() -> None:
    frame = pd.DataFrame({"key": np.arange(300) % 100, "x": np.arange(300)})
    with frames_as_cudf():
        groups = frame.groupby("key")["x"].sum()
        sorted_groups = frame.groupby("key", sort=True)["x"].sum()
        joined = frame.merge(frame, on="key")
    expected = frame.groupby("key")["x"].sum()
    assert groups.index.to_list() != expected.index.to_list()
    pd.testing.assert_series_equal(groups.sort_index(), expected)
    pd.testing.assert_series_equal(sorted_groups, expected)
    right = frame.merge(frame, on="key")
    assert joined["x_x"].to_list() != right["x_x"].to_list()
    order = list(right.columns)
    pd.testing.assert_frame_equal(
        joined.sort_values(order, ignore_index=True), right.sort_values(order, ignore_index=True)
    )


def tips_in_cents(frame: Any) -> Any:
    return frame.assign(cents=(frame["tip"].fillna(0) * 100).astype("int64"))


def test_partitions_of_dask_are_watched() -> None:
    table = dd.from_pandas(trips(), npartitions=2)
    with frames_as_cudf() as calls:
        sums = table.map_partitions(tips_in_cents).groupby("hour", dropna=False)["cents"].sum()
        (found,) = compute(sums, scheduler="threads")
    assert found.to_dict() == {1: 0, 2: 150, 3: 200}
    assert {call.name for call in calls} >= {"cudf.Series.fillna", "cudf.Series.astype", "cudf.DataFrame.assign"}
    assert faults(calls) == []


def test_nothing_is_watched_afterwards() -> None:
    with frames_as_cudf() as calls:
        pass
    assert trips()["paid"].str.casefold() is not None
    assert calls == {}
    assert "__getattribute__" not in vars(pd.DataFrame)

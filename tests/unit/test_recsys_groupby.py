"""One row for each key, as pandas makes it of the rows in their order."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recsys_operators import categories, fields_of, lists, numbers, type_of, values_of
from whitewater.devices import Device, resolve
from whitewater.devices.columns import Block
from whitewater.errors import ConfigError
from whitewater.recsys.operators.groupby import Groupby
from whitewater.recsys.operators.numeric import is_null
from whitewater.recsys.operators.operator import Applying

CPU = resolve("cpu")
SKIPPING_NULLS = ("count", "mean", "min", "max")


def grouped(operator: Groupby, block: Block, inputs: tuple[str, ...], device: Device = CPU) -> dict[str, Any]:
    """Return the columns that come out, which are those that were promised."""
    made = operator.transform(inputs, block, {}, Applying(device))
    promised = operator.output(inputs, fields_of(block))
    assert {name: type_of(column) for name, column in made.items()} == {field.name: field.type for field in promised}
    return {name: values_of(column, device) for name, column in made.items()}


def plain(values: pd.Series) -> list[Any]:
    """Return values with None for null."""
    return [None if is_null(value) else value for value in values]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.none() | st.integers(-9, 9)), min_size=1, max_size=40
    )
)
def test_aggregations_are_those_of_pandas(rows: list[tuple[int, int, int | None]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    frame = pd.DataFrame(rows, columns=["user", "time", "x"]).astype({"x": "float64"})
    block: Block = {
        "user": numbers([user for user, _, _ in rows], "int64"),
        "time": numbers([time for _, time, _ in rows], "int32"),
        "x": numbers([x for _, _, x in rows], "int16"),
    }
    operator = Groupby(
        groupby_cols="user", sort_cols="time", aggs=("list", "first", "last", "sum", "count", "mean", "min", "max")
    )
    found = grouped(operator, block, ("x",))
    groups = frame.sort_values(["user", "time"], kind="stable").groupby("user")["x"]
    assert found["user"] == list(groups.groups)
    for name in SKIPPING_NULLS:
        assert found[f"x_{name}"] == pytest.approx(plain(groups.agg(name)))
    assert found["x_sum"] == plain(groups.sum(min_count=1))
    assert found["x_list"] == [plain(values) for _, values in groups]
    assert found["x_first"] == [plain(values)[0] for _, values in groups]
    assert found["x_last"] == [plain(values)[-1] for _, values in groups]


def test_text_is_listed_counted_and_picked_and_rows_of_equal_order_stay_as_they_come(device: Device) -> None:
    block: Block = {
        "user": categories(["b", "b", "b", "a", None, None], device),
        "time": numbers([2, 1, 1, None, math.nan, 0], "float64", device),
        "item": categories(["x", "y", "z", "x", None, "w"], device),
    }
    operator = Groupby(
        groupby_cols=["user"], sort_cols=["time"], aggs={"item": ["list", "count", "first", "last"], "time": "max"}
    )
    assert grouped(operator, block, ("user", "item", "time"), device) == {
        "user": ["b", "a", None],
        "item_list": [["y", "z", "x"], ["x"], ["w", None]],
        "item_count": [3, 1, 1],
        "item_first": ["y", "x", "w"],
        "item_last": ["x", "x", None],
        "time_max": [2.0, None, 0.0],
    }


def test_rows_are_ordered_by_several_columns_nulls_last(device: Device) -> None:
    random = np.random.default_rng(0)
    rows = 400
    frame = pd.DataFrame(
        {
            "user": np.sort(random.integers(0, 9, rows)),
            "day": random.integers(0, 4, rows),
            "time": np.where(random.random(rows) < 0.2, np.nan, random.integers(0, 5, rows)),
            "row": np.arange(rows),
        }
    )
    block: Block = {
        "user": numbers(frame["user"].tolist(), "int64", device),
        "day": numbers([None if math.isnan(day) else day for day in frame["day"]], "int8", device),
        "time": numbers(frame["time"].tolist(), "float64", device),
        "row": numbers(frame["row"].tolist(), "int64", device),
    }
    operator = Groupby(groupby_cols="user", sort_cols=("day", "time"), aggs="list", name_sep=".")
    # DataFrame.sort_values by several columns is stable, and puts nulls last.
    oracle = frame.sort_values(["user", "day", "time"], kind="stable").groupby("user")["row"].agg(list)
    assert grouped(operator, block, ("row",), device)["row.list"] == oracle.tolist()


def test_large_integers_and_sums_keep_their_digits() -> None:
    large = 2**62
    block: Block = {
        "user": numbers([1, 1, 2, 3], "int8"),
        "id": numbers([large + 1, large, None, -large - 1], "int64"),
        "x": numbers([1e12, 1.0, 1e-3, 2e-3]),
    }
    found = grouped(Groupby(groupby_cols="user", aggs={"id": ("min", "max"), "x": "sum"}), block, ("id", "x"))
    assert found["id_min"] == [large, None, -large - 1]
    assert found["id_max"] == [large + 1, None, -large - 1]
    # Differences of running sums would have lost these.
    assert found["x_sum"] == [1e12 + 1, 1e-3, 2e-3]


def test_no_rows_have_no_groups() -> None:
    block: Block = {"user": numbers([], "int64"), "x": numbers([])}
    operator = Groupby(groupby_cols="user", aggs=("list", "sum", "min", "first", "last"), sort_cols="x")
    assert all(values == [] for values in grouped(operator, block, ("x",)).values())


def test_what_the_engine_is_told() -> None:
    operator = Groupby(groupby_cols=("user", "day"), sort_cols=("time", "day"), aggs="list")
    assert operator.changes_rows
    assert operator.sequence() == ("user", "day")
    assert operator.dependencies(fitting=False, training=False) == ("user", "day", "time")
    with pytest.raises(ConfigError, match="Groupby needs other rows"):
        operator.row(("x",), {})


def test_aggregations_that_suit_no_type_are_refused_by_name() -> None:
    fields = fields_of({"user": categories(["a"]), "x": numbers([1]), "item": categories(["x"]), "l": lists([[1]])})
    with pytest.raises(ConfigError, match=r"no mean of the column 'item' of type string; .* list, first, last, count"):
        Groupby(groupby_cols="user", aggs="mean").output(("x", "item"), fields)
    with pytest.raises(ConfigError, match="no count of the column 'l'"):
        Groupby(groupby_cols="user", aggs="count").output(("l",), fields)
    with pytest.raises(ConfigError, match="'item', by which rows are ordered, is of type string"):
        Groupby(groupby_cols="user", sort_cols="item", aggs="count").output(("x",), fields)
    with pytest.raises(ConfigError, match="Groupby aggregates y, which it is not given"):
        Groupby(groupby_cols="user", aggs={"y": "count"}).output(("x",), fields)
    with pytest.raises(ConfigError, match="aggs"):
        Groupby(groupby_cols="user", aggs="median")


def test_keys_keep_their_type() -> None:
    block: Block = {"user": numbers([1, 1, 2], "int8"), "x": numbers([1, 2, 3], "int8")}
    fields = Groupby(groupby_cols="user", aggs=("min", "list", "count", "sum")).output(("x",), fields_of(block))
    assert [field.type for field in fields] == [pa.int8(), pa.int8(), pa.list_(pa.int8()), pa.int64(), pa.float64()]

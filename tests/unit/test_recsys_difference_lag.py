"""Differences to rows before are pandas' within a key, and never of two keys; a wrong order is an error."""

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recsys_operators import categories, fields_of, numbers, values_of
from whitewater.devices import Device, resolve
from whitewater.devices.columns import Block
from whitewater.errors import ConfigError, InputError
from whitewater.recsys.operators.difference_lag import DifferenceLag
from whitewater.recsys.operators.operator import Applying

CPU = resolve("cpu")


def differences(operator: DifferenceLag, block: Block, inputs: tuple[str, ...], device: Device = CPU) -> dict[str, Any]:
    """Return the columns that come out, which are those that were promised."""
    made = operator.transform(inputs, block, {}, Applying(device))
    assert list(made) == [field.name for field in operator.output(inputs, fields_of(block))]
    return {name: values_of(column, device) for name, column in made.items()}


@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(-50, 50)), min_size=1, max_size=40),
    shifts=st.lists(st.sampled_from([-3, -1, 1, 2, 50]), min_size=1, unique=True),
)
def test_differences_are_those_of_pandas_within_a_key(rows: list[tuple[str, int | None]], shifts: list[int]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    frame = pd.DataFrame(rows, columns=["user", "x"]).astype({"x": "float64"})
    block: Block = {
        "user": categories([user for user, _ in rows]),
        "x": numbers([x for _, x in rows], "int32"),
        "time": numbers(range(len(rows)), "int64"),
    }
    operator = DifferenceLag(partition_cols="user", order="time", shift=tuple(shifts))
    found = differences(operator, block, ("x",))
    for shift in shifts:
        oracle = frame["x"] - frame.groupby("user")["x"].shift(shift)
        assert found[f"x_difference_lag_{shift}"] == [None if math.isnan(value) else value for value in oracle]


def test_times_differ_exactly_and_keys_may_be_several_or_null(device: Device) -> None:
    block: Block = {
        "user": categories(["a", "a", "a", None, None], device),
        "shop": numbers([1, 1, 2, None, None], "int16", device),
        "time": numbers([1_700_000_000, 1_700_000_001, 5, 7, 7], "int64", device),
    }
    operator = DifferenceLag(partition_cols=("user", "shop"), order="time")
    assert differences(operator, block, ("time",), device) == {"time_difference_lag_1": [None, 1.0, None, None, 0.0]}
    assert operator.sequence() == ("user", "shop")
    assert operator.dependencies(fitting=False, training=False) == ("user", "shop", "time")


def test_a_descending_order_is_refused_with_its_rows() -> None:
    block: Block = {
        "user": categories(["a", "b", "b", "b"]),
        "time": numbers([9, 3, 2, 1], "int64"),
        "x": numbers([1.0, 2.0, 3.0, 4.0]),
    }
    operator = DifferenceLag(partition_cols="user", order="time")
    with pytest.raises(InputError, match=r"'time' descends from 3.0 to 2.0 .* equal user: rows 1 and 2.* 1 times more"):
        differences(operator, block, ("x",))
    with pytest.raises(InputError, match="'time', by which rows are ordered, has nulls"):
        differences(operator, {**block, "time": numbers([1, 2, None, 3])}, ("x",))


def test_no_rows_have_no_differences() -> None:
    block: Block = {"user": numbers([], "int64"), "time": numbers([], "int64")}
    assert differences(DifferenceLag(partition_cols="user", order="time"), block, ("time",)) == {
        "time_difference_lag_1": []
    }


def test_one_row_alone_has_no_difference() -> None:
    with pytest.raises(ConfigError, match="DifferenceLag needs other rows"):
        DifferenceLag(partition_cols="user", order="time").row(("x",), {})


def test_text_is_refused_by_name() -> None:
    fields = fields_of({"user": categories(["a"]), "time": numbers([1]), "x": numbers([1])})
    with pytest.raises(ConfigError, match="DifferenceLag takes numbers, but the column 'user'"):
        DifferenceLag(partition_cols="user", order="time").output(("user",), fields)
    with pytest.raises(ConfigError, match="'user', by which rows are ordered, is of type string"):
        DifferenceLag(partition_cols="x", order="user").output(("x",), fields)
    for shift in (0, (1, 0), ()):
        with pytest.raises(ConfigError, match="shift"):
            DifferenceLag(partition_cols="user", order="time", shift=shift)

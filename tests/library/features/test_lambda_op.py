"""Functions are named, not stored: those of the calendar are pandas', and what is not registered is refused."""

import json
import math
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.library.features.operator_cases import applied, applied_by_row, categories, fields_of, numbers, on_host
from whitewater.engines import Array, Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Block, Numbers
from whitewater.features.operators import arithmetic
from whitewater.features.operators.arithmetic import LambdaOp, find_function, register


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "_FUNCTIONS", dict(arithmetic._FUNCTIONS))


@given(seconds=st.lists(st.integers(-(2**31), 2**33), min_size=1))
def test_hour_and_day_are_those_of_pandas(seconds: list[int]) -> None:
    times = pd.to_datetime(pd.Series(seconds), unit="s")
    block: Block = {"time": Numbers(np.array(seconds, np.int64))}
    for name, oracle in {
        "hour_of_day": times.dt.hour,
        "day_of_week": times.dt.dayofweek,
        "seconds_of_day": times.dt.hour * 3600 + times.dt.minute * 60 + times.dt.second,
    }.items():
        found = applied(LambdaOp(function=name), block)
        assert found == {"time": oracle.tolist()}
        assert applied_by_row(LambdaOp(function=name), block) == found


def test_buckets_of_squared_logarithms_are_those_written_out(device: Device) -> None:
    values = [None, -3.0, 0.0, 1.0, 2.0, 3.0, 100.0, 123456.0, math.nan]
    operator = LambdaOp(function="squared_logarithm_bucket")
    block: Block = {"I5": numbers(values, device=device)}

    def written_out(value: float) -> int:
        return math.floor(math.log(value) ** 2) if value > 2 else int(value)

    oracle = [None if value is None or math.isnan(value) else written_out(value) for value in values]
    assert applied(operator, block, device=device) == {"I5": oracle}
    assert applied_by_row(operator, on_host(block, device)) == {"I5": oracle}


def test_nulls_never_reach_a_function() -> None:
    seen: list[int] = []

    @register("seen", version=1, output=pa.float32())
    def see(values: Array, xp: ModuleType) -> Array:
        assert not xp.isnan(values).any()
        seen.append(len(values))
        return values / 3

    found = applied(LambdaOp(function="seen"), {"x": numbers([1.0, None, math.nan, 2.0])})
    assert found == {"x": [float(np.float32(1 / 3)), None, None, float(np.float32(2 / 3))]}
    assert seen == [2]


@pytest.mark.parametrize("name", ["math.sqrt", "builtins.eval", "whitewater.features.operators.arithmetic.hour_of_day"])
def test_a_function_is_not_imported_by_its_path_as_nvtabular_does(name: str) -> None:
    with pytest.raises(ConfigError, match=f"no function '{name}' is registered"):
        LambdaOp.model_validate_json(json.dumps({"function": name, "version": 1}))


def test_the_version_goes_along_and_another_one_is_refused() -> None:
    stored = LambdaOp(function="hour_of_day").model_dump(mode="json")
    assert stored == {"function": "hour_of_day", "version": 1}
    assert LambdaOp.model_validate(stored) == LambdaOp(function="hour_of_day")
    arithmetic._FUNCTIONS.pop("hour_of_day")
    register("hour_of_day", version=2, output=pa.int32())(lambda values, xp: values * 0)
    with pytest.raises(ConfigError, match="needs version 1 of the function 'hour_of_day', but 2 is registered"):
        LambdaOp.model_validate(stored)


def test_a_name_belongs_to_one_function() -> None:
    def mine(values: Array, xp: ModuleType) -> Array:
        return values

    for _ in range(2):  # as when its module is imported again
        register("mine", version=1, output=pa.float32())(mine)
    assert find_function("mine").compute is mine
    with pytest.raises(ConfigError, match="'mine' is registered already"):
        register("mine", version=1, output=pa.float32())(lambda values, xp: values)


@pytest.mark.parametrize(("version", "output"), [(0, pa.int32()), (1, pa.string()), (1, pa.bool_())])
def test_functions_have_a_version_and_put_out_numbers(version: int, output: pa.DataType) -> None:
    with pytest.raises(ConfigError, match="version of 1 or more, and one of the types"):
        register("wrong", version=version, output=output)


@pytest.mark.parametrize("result", [0.5, math.nan, math.inf, 2.0**31])
def test_results_that_are_not_integers_of_the_type_are_refused(result: float) -> None:
    register("wrong", version=1, output=pa.int32())(lambda values, xp: values * 0 + result)
    block: Block = {"x": numbers([1.0])}
    for apply in (applied, applied_by_row):
        with pytest.raises(
            InputError, match="'wrong' returned numbers for the column 'x' that are not of its type int32"
        ):
            apply(LambdaOp(function="wrong"), block)


@pytest.mark.parametrize("compute", [lambda values, xp: values[:1], lambda values, xp: values.sum()])
def test_functions_that_return_other_rows_are_refused(compute: Any) -> None:
    register("wrong", version=1, output=pa.float32())(compute)
    with pytest.raises(InputError, match="must return one number for each value"):
        applied(LambdaOp(function="wrong"), {"x": numbers([1.0, 2.0])})


def test_text_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="LambdaOp takes numbers, but the column 'C1' is of type string"):
        LambdaOp(function="hour_of_day").output(("C1",), fields_of({"C1": categories(["a"])}))

"""Nulls become a constant or the exact median; bounds and logarithms are exact; nothing that has no value gets one."""

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.library.features.operator_cases import (
    applied,
    applied_by_row,
    categories,
    fields_of,
    fitted_on,
    numbers,
    on_host,
)
from whitewater.engines import Device, resolve
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.columns.column import Block, Numbers
from whitewater.features.operator import Mode
from whitewater.features.operators import scale_and_fill
from whitewater.features.operators.arithmetic import Clip, LogOp
from whitewater.features.operators.scale_and_fill import FillMedian, FillMissing, Median

CPU = resolve("cpu")
FINITE = st.floats(-1e300, 1e300) | st.floats(1, 2)


def median_of(values: npt.NDArray[np.float64], cuts: list[int], device: Device = CPU) -> float:
    """Return the median that FillMedian learns of a column in parts."""
    parts = np.split(values, sorted(cut % (len(values) + 1) for cut in cuts))
    learned = fitted_on(FillMedian(), [{"I1": Numbers(device.to_device(part))} for part in parts], device=device)["I1"]
    assert isinstance(learned, Median)
    return learned.median


@pytest.mark.parametrize("bits", [1, 8, 16])
@given(
    values=st.lists(FINITE | st.integers(-9, 9), min_size=1, max_size=80),
    cuts=st.lists(st.integers(0, 80), max_size=63),
)
def test_the_median_is_numpys_to_the_bit_in_any_number_of_parts_and_passes(
    bits: int, values: list[float], cuts: list[int]
) -> None:
    column = np.array(values, np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale_and_fill, "COUNTED_BITS", bits)
        found = median_of(column, cuts)
    assert math.copysign(1, found + 0.0) == math.copysign(1, float(np.median(column)) + 0.0)
    assert found == np.median(column)


@pytest.mark.parametrize("rows", [99_999, 100_000])
@pytest.mark.parametrize(
    "kind", ["normal", "long tail", "about zero", "few", "close together", "two humps", "infinite"]
)
def test_the_median_of_many_values_is_found(kind: str, rows: int, device: Device) -> None:
    random = np.random.default_rng(rows)
    values = {
        "normal": random.normal(0, 1, rows),
        "long tail": np.exp(random.normal(0, 3, rows)).round(2),
        "about zero": np.where(random.random(rows) < 0.4, 0.0, random.normal(0, 1e-310, rows)),
        "few": random.integers(0, 50, rows).astype(np.float64),
        "close together": 1.7e9 + random.random(rows),
        "two humps": np.append(1 + random.random(rows // 2), 4 + random.random(rows - rows // 2)),
        "infinite": np.where(random.random(rows) < 0.4, -np.inf, np.exp(random.normal(0, 50, rows))),
    }[kind]
    assert median_of(values, [10, 30_000, 60_000], device) == np.median(values)


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("int8", -100, 100), ("int32", -(2**30), 2**30), ("int64", 0, 2**50)]
)
def test_the_median_of_integers_skips_nulls(dtype: str, low: int, high: int) -> None:
    random = np.random.default_rng(3)
    values, valid = random.integers(low, high, 30_000).astype(dtype), random.random(30_000) < 0.7
    parts: list[Block] = [
        {"I1": Numbers(values[rows], valid[rows])} for rows in (slice(0, 0), slice(0, 9_000), slice(9_000, None))
    ]
    learned = fitted_on(FillMedian(), parts)["I1"].facts()
    assert learned == {"median": np.median(values[valid]), "count": valid.sum()}


def test_data_that_change_between_two_passes_are_noticed() -> None:
    values = 1 + np.random.default_rng(0).random(50_001)
    mode = Mode(CPU, memory=2**26)
    (statistic,) = FillMedian().statistics(("I1",), {})
    again = statistic.combine([statistic.observe(iter([{"I1": Numbers(values)}]), mode)], mode)
    assert not isinstance(again, Median)
    with pytest.raises(IntegrityError, match=r"I1.*without changing the data"):
        again.combine([again.observe(iter([{"I1": Numbers(values + 1)}]), mode)], mode)


def test_fill_median_fills_nulls_and_nan_and_says_where(device: Device) -> None:
    block: Block = {
        "I1": numbers([3, None, 1, 2, None], "int32", device),
        "x": numbers([0.5, math.nan, None, 1.5, 4.0], "float32", device),
    }
    operator = FillMedian(add_binary_cols=True)
    fitted = fitted_on(operator, [block], device=device)
    found = applied(operator, block, fitted, device=device)
    frame = pd.DataFrame({"I1": [3, None, 1, 2, None], "x": [0.5, None, None, 1.5, 4.0]})
    oracle = frame.fillna(frame.median())
    assert found == {
        "I1": oracle["I1"].tolist(), "I1_filled": frame["I1"].isna().tolist(),
        "x": oracle["x"].tolist(), "x_filled": frame["x"].isna().tolist(),
    }  # fmt: skip
    assert applied_by_row(operator, on_host(block, device), fitted) == found


@pytest.mark.parametrize("operator", [FillMedian(), FillMissing(fill_val=0.5)])
def test_a_row_has_the_float_of_an_integer_that_no_float_is(operator: FillMedian | FillMissing) -> None:
    block: Block = {"x": numbers([2**53 + 1, 2**53 + 3, 5, None], "int64")}
    fitted = fitted_on(operator, [block])
    assert applied(operator, block, fitted) == applied_by_row(operator, block, fitted)


def test_fill_missing_keeps_the_type_where_it_holds_the_value(device: Device) -> None:
    block: Block = {"a": numbers([7, None], "int64", device), "b": numbers([math.nan, 0.1], "float32", device)}
    exact = FillMissing(fill_val=-1)
    assert applied(exact, block, device=device) == {"a": [7, -1], "b": [-1.0, float(np.float32(0.1))]}
    assert [field.type for field in exact.output(("a", "b"), fields_of(block))] == [pa.int64(), pa.float32()]
    wider = FillMissing(fill_val=0.1)
    assert applied(wider, block, device=device) == {"a": [7.0, 0.1], "b": [0.1, float(np.float32(0.1))]}
    assert [field.type for field in wider.output(("a", "b"), fields_of(block))] == [pa.float64(), pa.float64()]


@pytest.mark.parametrize("large", [2**53 + 1, 2**62])
def test_fill_missing_and_clip_keep_large_integers(large: int) -> None:
    block: Block = {"id": numbers([large, None], "int64")}
    for operator, expected in ((FillMissing(), [large, 0]), (Clip(min_value=0), [large, None])):
        assert applied(operator, block) == {"id": expected}
        assert applied_by_row(operator, block) == {"id": expected}


def test_clip_is_pandas_clip_and_keeps_nulls(device: Device) -> None:
    values = [-5.0, None, 0.0, 2.5, math.inf, -math.inf, 9.0]
    oracle = pd.Series(values).clip(-1, 3)
    operator = Clip(min_value=-1, max_value=3)
    block: Block = {"x": numbers(values, device=device)}
    expected = {"x": [None if math.isnan(value) else value for value in oracle]}
    assert applied(operator, block, device=device) == expected
    assert applied_by_row(operator, on_host(block, device)) == expected
    assert applied(Clip(max_value=3), {"n": numbers([1, None, 7], "int8")}) == {"n": [1, None, 3]}
    assert applied(Clip(max_value=2.5), {"n": numbers([1, None, 7], "int8")}) == {"n": [1.0, None, 2.5]}


def test_clip_without_bounds_or_with_crossed_ones_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither min_value nor max_value"):
        Clip()
    with pytest.raises(ConfigError, match="min_value is above max_value"):
        Clip(min_value=2, max_value=1)


def test_log_of_values_near_0_keeps_its_digits_which_nvtabular_loses(device: Device) -> None:
    values = [1e-12, 0.0, None, 3.0, -0.5, 1e15]
    assert np.log(np.float32(1e-12) + np.float32(1)) == 0  # as NVTabular computes it
    found = applied(LogOp(), {"x": numbers(values, device=device)}, device=device)
    oracle = [None if value is None else float(np.float32(math.log1p(value))) for value in values]
    assert found == {"x": oracle}
    assert applied_by_row(LogOp(), {"x": numbers(values)}) == found


@pytest.mark.parametrize("value", [-1.0, -3.0, -math.inf])
def test_values_without_a_logarithm_are_refused_and_not_turned_into_nan(value: float) -> None:
    block: Block = {"I2": numbers([1.0, value, None])}
    for apply in (applied, applied_by_row):
        with pytest.raises(InputError, match=r"'I2'.*1 in one part.*Clip\(min_value=0\)"):
            apply(LogOp(), block)


def test_columns_without_a_median_are_refused_by_name() -> None:
    empty: Block = {"I3": numbers([None, math.nan, None])}
    with pytest.raises(InputError, match=r"'I3' has no value.*FillMissing"):
        fitted_on(FillMedian(), [empty, empty])
    many = np.random.default_rng(0).random(100_000)
    for infinite in (-math.inf, math.inf):
        for values in (np.array([infinite, infinite, 1.0]), np.append(many, np.full(100_001, infinite))):
            with pytest.raises(InputError, match=r"'I3' is not finite.*Clip"):
                fitted_on(FillMedian(), [{"I3": Numbers(values)}])


@pytest.mark.parametrize("operator", [FillMissing(), FillMedian(), Clip(min_value=0), LogOp()])
def test_text_is_refused_by_name(operator: FillMissing) -> None:
    text: Block = {"C1": categories(["a", None])}
    with pytest.raises(
        ConfigError, match=f"{type(operator).__name__} takes numbers, but the column 'C1' is of type string"
    ):
        operator.output(("C1",), fields_of(text))

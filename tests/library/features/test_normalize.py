"""Normalized columns are scikit-learn's, at any offset and in any number of parts; constants are 0."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tests.library.features.operator_cases import (
    applied,
    applied_by_row,
    categories,
    fields_of,
    fitted_on,
    numbers,
    on_host,
    rows_of,
)
from whitewater.engines import Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Block, Numbers
from whitewater.features.operators.scale_and_fill import Normalize, NormalizeMinMax

SCALERS = [(Normalize(), StandardScaler()), (NormalizeMinMax(), MinMaxScaler())]
Floats = npt.NDArray[np.float64]


def awkward(offset: float, rows: int = 500) -> Floats:
    """Return numbers with a long tail and NaN for null."""
    random = np.random.default_rng(5)
    values = offset + np.exp(random.normal(0, 1, rows)).round(3)
    values[random.random(rows) < 0.2] = np.nan
    return values


@pytest.mark.parametrize(("operator", "scaler"), SCALERS, ids=["Normalize", "NormalizeMinMax"])
@pytest.mark.parametrize("offset", [0.0, -7.0, 1.7e9])
def test_normalized_columns_are_those_of_scikit_learn(
    operator: Normalize, scaler: Any, offset: float, device: Device
) -> None:
    values = awkward(offset)
    block: Block = {"x": Numbers(device.to_device(values))}
    # The oracle is spared the offset, which its own sums do not bear.
    oracle = scaler.fit_transform((values - offset)[:, None])[:, 0]
    fitted = fitted_on(operator, [rows_of(block, slice(0, 100)), rows_of(block, slice(100, None))], device=device)
    found = applied(operator, block, fitted, device=device)["x"]
    np.testing.assert_allclose(np.array(found, np.float64), oracle, rtol=1e-6, atol=1e-6)
    assert applied_by_row(operator, on_host(block, device), fitted)["x"] == found


@given(
    offset=st.floats(-1e12, 1e12),
    cuts=st.lists(st.integers(0, 200), max_size=63),
    shuffle=st.randoms(use_true_random=False),
)
def test_neither_parts_nor_order_change_results_by_1e_6_at_offsets_of_1e12(
    offset: float, cuts: list[int], shuffle: Any
) -> None:
    values = offset + np.random.default_rng(0).normal(0, 1, 200)
    order = list(range(200))
    shuffle.shuffle(order)
    parts: list[Block] = [{"x": Numbers(part)} for part in np.split(values[order], sorted(cuts))]
    for operator in (Normalize(), NormalizeMinMax()):
        whole = applied(operator, {"x": Numbers(values)}, fitted_on(operator, [{"x": Numbers(values)}]))
        parted = applied(operator, {"x": Numbers(values)}, fitted_on(operator, parts))
        np.testing.assert_allclose(parted["x"], whole["x"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("operator", [Normalize(), NormalizeMinMax()])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e9])
def test_constant_columns_become_0_which_nvtabular_makes_half_or_nan(operator: Normalize, value: float) -> None:
    block: Block = {"x": numbers([value] * 1001 + [None])}
    fitted = fitted_on(operator, [rows_of(block, slice(0, 7)), rows_of(block, slice(7, None))])
    assert applied(operator, block, fitted)["x"] == [0.0] * 1001 + [None]
    later: Block = {"x": numbers([value + 5, None])}
    assert applied(operator, later, fitted)["x"] == applied_by_row(operator, later, fitted)["x"] == [0.0, None]


def test_values_outside_the_fitted_range_go_on_beyond_0_and_1() -> None:
    fitted = fitted_on(NormalizeMinMax(), [{"x": numbers([10, 20], "int32")}])
    later: Block = {"x": numbers([0, 15, 40, math.inf])}
    assert applied(NormalizeMinMax(), later, fitted)["x"] == [-1.0, 0.5, 3.0, math.inf]
    assert applied_by_row(NormalizeMinMax(), later, fitted)["x"] == [-1.0, 0.5, 3.0, math.inf]


@pytest.mark.parametrize("operator", [Normalize(), NormalizeMinMax()])
def test_values_too_large_for_a_deviation_are_refused_by_name_and_not_all_made_0(operator: Normalize) -> None:
    block: Block = {"x": Numbers(np.array([1e300, -1e300, 0.0]))}
    with pytest.raises(InputError, match=r"'x' has values of up to 1e\+300.* Put Clip"):
        fitted_on(operator, [block])
    parts: list[Block] = [{"x": Numbers(np.array([value]))} for value in (1e300, -1e300)]
    with pytest.raises(InputError, match="Put Clip"):
        fitted_on(operator, parts)


@pytest.mark.parametrize("operator", [Normalize(), NormalizeMinMax()])
def test_columns_without_a_scale_are_refused_by_name(operator: Normalize) -> None:
    name = type(operator).__name__
    with pytest.raises(InputError, match=f"{name}: the column 'I3' has no value"):
        fitted_on(operator, [{"I3": numbers([None, math.nan])}])
    with pytest.raises(InputError, match=f"{name}: the column 'I3' has infinite values"):
        fitted_on(operator, [{"I3": numbers([1.0, 2.0])}, {"I3": numbers([-math.inf])}])
    with pytest.raises(ConfigError, match=f"{name} takes numbers, but the column 'C1' is of type string"):
        operator.output(("C1",), fields_of({"C1": categories(["a"])}))

"""Moments are those of all values, however they are parted, and however far from 0 they are."""

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whitewater.engines import resolve
from whitewater.features.operators.moments import Moments, grouped_moments

CPU = resolve("cpu")
Floats = npt.NDArray[np.float64]


def moments_of(values: Floats) -> Moments:
    """Return the moments of one group."""
    return grouped_moments(np.zeros(len(values), np.int32), values, 1)


def merged(values: Floats, cuts: list[int]) -> Moments:
    """Return the moments of values in parts."""
    parts = np.split(values, sorted(cut % (len(values) + 1) for cut in cuts))
    return reduce(Moments.merged, map(moments_of, parts), Moments.none())


def exact(values: Floats) -> tuple[Fraction, float]:
    """Return mean and variance by fractions of integers."""
    fractions = [Fraction(value) for value in values.tolist()]
    mean = sum(fractions, Fraction(0)) / len(values)
    return mean, math.fsum(float((value - mean) ** 2) for value in fractions) / len(values)


@given(
    offset=st.floats(-1e12, 1e12),
    spread=st.sampled_from([1.0, 1e3, 1e6]),
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(2, 300),
    cuts=st.lists(st.integers(0, 300), max_size=63),
)
def test_moments_do_not_depend_on_the_parts_nor_on_the_offset(
    offset: float, spread: float, seed: int, rows: int, cuts: list[int]
) -> None:
    values = offset + np.random.default_rng(seed).normal(0, spread, rows)
    found = merged(values, cuts)
    mean, variance = exact(values)
    assert found.count[0] == rows
    assert (found.minimum[0], found.maximum[0]) == (values.min(), values.max())
    assert abs(Fraction(found.mean[0]) + Fraction(found.rest[0]) - mean) < 1e-12 * spread
    assert found.variance()[0] == pytest.approx(variance, rel=1e-9)


@given(value=st.floats(-1e12, 1e12), rows=st.integers(1, 3000), cuts=st.lists(st.integers(0, 3000), max_size=7))
@example(value=0.1, rows=1001, cuts=[7, 400])
def test_equal_values_have_no_variance_at_all(value: float, rows: int, cuts: list[int]) -> None:
    values = np.full(rows, value)
    assert merged(values, cuts).variance()[0] == 0


def test_no_values_have_no_moments_and_change_none() -> None:
    none = moments_of(np.array([np.nan, np.nan]))
    some = moments_of(np.array([1.0, np.nan, 3.0]))
    assert np.isnan(none.variance()[0])
    for both in (none.merged(some), some.merged(none)):
        assert (both.count[0], both.mean[0], both.variance()[0]) == (2, 2.0, 1.0)
    assert np.isnan(some.variance(ddof=2)[0])


def test_infinite_values_show_in_the_extremes_only() -> None:
    found = moments_of(np.array([1.0, np.inf, 3.0, -np.inf]))
    assert (found.count[0], found.mean[0], found.deviation[0]) == (2, 2.0, 2.0)
    assert (found.minimum[0], found.maximum[0]) == (-np.inf, np.inf)


@pytest.mark.parametrize("offset", [0.0, 1e12])
def test_moments_of_groups_are_those_of_pandas(offset: float) -> None:
    random = np.random.default_rng(4)
    codes = random.integers(-1, 40, 3000).astype(np.int32)
    codes[codes == 17] = 16
    values = offset + random.normal(0, 1, len(codes))
    values[::7] = np.nan
    state = Moments.none(40)
    for part in (slice(0, 0), slice(0, 900), slice(900, 3000)):
        state = state.merged(grouped_moments(codes[part], values[part], 40))
    # Offsets are taken off for pandas, exactly.
    groups = pd.Series(values - offset).groupby(codes).agg(["count", "mean", "var", "min", "max"]).drop(index=-1)
    there = groups.index.to_numpy()
    np.testing.assert_array_equal(state.count[there], groups["count"])
    np.testing.assert_allclose(((state.mean - offset) + state.rest)[there], groups["mean"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.variance(ddof=1)[there], groups["var"], rtol=1e-9)
    np.testing.assert_array_equal(state.minimum[there] - offset, groups["min"])
    np.testing.assert_array_equal(state.maximum[there] - offset, groups["max"])
    assert state.count[17] == 0
    assert np.isnan(state.variance()[17])

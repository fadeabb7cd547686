"""Sums of doubles and of their squares are those of fractions, in whatever order and parts, by kernel and by arrays."""

from collections.abc import Callable
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.contract.strict_device import StrictDevice
from whitewater.engines import Device
from whitewater.features.operators.exact_sums import ExactSums, exact_sums, sums_by_arrays

Way = tuple[Callable[..., ExactSums], Device]
# By the kernel, and by arrays of both devices.
WAYS = [(exact_sums, Device()), (sums_by_arrays, Device()), (exact_sums, StrictDevice())]
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def summed(values: list[float], parts: int, by: Way) -> ExactSums:
    sums, device = by
    cut = np.array_split(np.array(values, np.float64), parts)
    found = (sums(device.to_device(part), device) for part in cut)
    return reduce(ExactSums.merged, found, ExactSums.none())


@pytest.mark.parametrize("by", WAYS)
@given(values=st.lists(DOUBLES, min_size=1, max_size=30), parts=st.integers(1, 7))
@example(values=[5e-324, -5e-324, 1e-310, 0.0, -0.0, -1.7976931348623157e308], parts=2)
@example(values=[1.7e9, 1.7e9 + 2**-20, 1e-200, 1e200], parts=3)
def test_moments_are_those_of_fractions(by: Way, values: list[float], parts: int) -> None:
    found = summed(values, parts, by)

    fractions = [Fraction(value) for value in values]
    mean = sum(fractions, Fraction(0)) / len(fractions)
    assert found.moments() == (mean, sum((each - mean) ** 2 for each in fractions) / len(fractions))
    assert (found.count, found.minimum, found.maximum) == (len(values), min(values), max(values))


@pytest.mark.parametrize("by", WAYS)
def test_values_without_a_size_count_for_the_extremes_only(by: Way) -> None:
    found = summed([1.0, np.nan, -np.inf, 3.0, np.inf], 2, by)

    assert (found.count, found.minimum, found.maximum) == (2, -np.inf, np.inf)
    assert found.moments() == (Fraction(2), Fraction(1))
    assert summed([np.nan, np.nan], 1, by).count == 0


def test_parts_of_many_rows_do_not_overflow() -> None:
    bins = exact_sums(np.array([1.9999999999999998]), Device()).bins

    assert np.abs(bins).max() < 2**31

"""Sums of doubles and of their squares are those of fractions, in whatever order and parts, by kernel and by arrays."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.contract.strict_device import StrictDevice
from whitewater.engines import Device
from whitewater.features.operators.scale_and_fill import Sums, merge, moments, sums_of

# By the kernel, and by arrays.
DEVICES = [Device(), StrictDevice()]
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def summed(values: list[float], parts: int, device: Device) -> Sums:
    split = np.array_split(np.array(values, np.float64), parts)
    return reduce(merge, [sums_of(device.to_device(part), device) for part in split])


@pytest.mark.parametrize("device", DEVICES)
@given(values=st.lists(DOUBLES, min_size=1, max_size=30), parts=st.integers(1, 7))
@example(values=[5e-324, -5e-324, 1e-310, 0.0, -0.0, -1.7976931348623157e308], parts=2)
@example(values=[1.7e9, 1.7e9 + 2**-20, 1e-200, 1e200], parts=3)
def test_moments_are_those_of_fractions(device: Device, values: list[float], parts: int) -> None:
    minimum, maximum, sums = summed(values, parts, device)

    fractions = [Fraction(value) for value in values]
    mean = sum(fractions, Fraction(0)) / len(fractions)
    variance = sum((each - mean) ** 2 for each in fractions) / len(fractions)
    assert moments(sums) == (len(values), mean, variance)
    assert (minimum, maximum) == (min(values), max(values))


@pytest.mark.parametrize("device", DEVICES)
def test_values_without_a_size_count_for_the_extremes_only(device: Device) -> None:
    minimum, maximum, sums = summed([1.0, np.nan, -np.inf, 3.0, np.inf], 2, device)

    assert (minimum, maximum) == (-np.inf, np.inf)
    assert moments(sums) == (2, Fraction(2), Fraction(1))
    assert summed([np.nan, np.nan], 1, device)[:2] == (np.inf, -np.inf)


def test_parts_of_many_rows_do_not_overflow() -> None:
    sums = summed([1.9999999999999998], 1, Device())[2]

    assert np.abs(sums).max() < 2**26

"""Column arithmetic equals that of Python, value by value, on each device."""

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import Device
from whitewater.tables.blocks import NULL_TIMESTAMP
from whitewater.tables.elementwise import Bounds, Clock, mark_outside, ratio, seconds, steps

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)
EPOCH = datetime(1970, 1, 1)
HOUR = 3_600_000_000


def column(device: Device, values: list[float] | list[int], dtype: str = "float64") -> np.ndarray:
    return device.to_device(np.array(values, dtype))


# The first example compiles.
@settings(deadline=None)
@given(pairs=st.lists(st.tuples(FLOATS, FLOATS)))
def test_ratio_is_nan_without_a_denominator_above_zero(device: Device, pairs: list[tuple[float, float]]) -> None:
    numerators, denominators = (column(device, [pair[side] for pair in pairs]) for side in (0, 1))
    found = device.to_host(ratio(numerators, denominators, device))
    for value, (numerator, denominator) in zip(found.tolist(), pairs, strict=True):
        if denominator > 0 and not math.isnan(numerator):
            with np.errstate(all="ignore"):
                assert value == float(np.float64(numerator) / denominator) or math.isnan(value)
        else:
            assert math.isnan(value)


# The first example compiles.
@settings(deadline=None)
@given(moments=st.lists(st.tuples(st.datetimes(), st.datetimes())))
def test_seconds_equal_those_of_datetime(device: Device, moments: list[tuple[datetime, datetime]]) -> None:
    stamps = [[(each - EPOCH) // timedelta(microseconds=1) for each in side] for side in zip(*moments, strict=True)]
    start, end = (column(device, side, "int64") for side in stamps or ([], []))
    expected = [(last - first) / timedelta(seconds=1) for first, last in moments]
    assert device.to_host(seconds(start, end, device)).tolist() == pytest.approx(expected, rel=1e-12)


def test_seconds_from_or_to_null_are_nan(device: Device) -> None:
    start, end = column(device, [NULL_TIMESTAMP, 0], "int64"), column(device, [0, NULL_TIMESTAMP], "int64")
    assert np.isnan(device.to_host(seconds(start, end, device))).all()


# The first example compiles.
@settings(deadline=None)
@given(values=st.lists(FLOATS, min_size=1), limits=st.tuples(FLOATS, FLOATS, FLOATS, FLOATS))
def test_each_broken_bound_sets_its_bit(
    device: Device, values: list[float], limits: tuple[float, float, float, float]
) -> None:
    above, at_least, below, at_most = limits
    mask = device.to_device(np.full(len(values), 1, np.int64))
    mark_outside(column(device, values), Bounds(*limits), mask, 2, device)
    expected = [
        1 + 4 * (value <= above) + 8 * (value < at_least) + 16 * (value >= below) + 32 * (value > at_most)
        for value in values
    ]
    assert device.to_host(mask).tolist() == expected


# The first example compiles.
@settings(deadline=None)
@given(
    moments=st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2110, 1, 1))),
    step=st.sampled_from([HOUR, 24 * HOUR]),
    cycle=st.sampled_from([24, 168]),
)
def test_steps_count_hours_or_days_from_the_first_moment(
    device: Device, moments: list[datetime], step: int, cycle: int
) -> None:
    first, last = ((datetime(year, 1, 1) - EPOCH) // timedelta(microseconds=1) for year in (2000, 2100))
    stamps = [(each - EPOCH) // timedelta(microseconds=1) for each in moments]
    found = steps(column(device, [*stamps, NULL_TIMESTAMP], "int64"), Clock(first, last, step, 3, cycle), device)
    expected = [((each - first) // step + 3) % cycle if first <= each < last else -1 for each in stamps]
    assert device.to_host(found).tolist() == [*expected, -1]

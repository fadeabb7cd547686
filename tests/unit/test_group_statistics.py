"""Statistics by key on the CPU, and medians from their histograms: the oracle is NumPy on the values themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.devices import GroupStatistics
from whitewater.devices.group_statistics import (
    BINS,
    BINS_OF_OCTAVE,
    LEAST,
    OVERFLOW,
    CpuGroupAccumulator,
    bin_bounds,
    median_from_histogram,
)
from whitewater.errors import IntegrityError

Values = npt.NDArray[np.float64]


def gathered(values: Values, keys: npt.NDArray[np.int32] | None = None, *, groups: int = 1) -> GroupStatistics:
    """Return the statistics of values, all in group 0 unless there are keys."""
    accumulator = CpuGroupAccumulator([groups])
    accumulator.add([np.zeros(len(values), np.int32) if keys is None else keys], values)
    [statistics] = accumulator.result()
    return statistics


def median(values: Values) -> float:
    """Return the median that the histogram of the values gives."""
    return float(median_from_histogram(gathered(values).histogram)[0])


def fractions(seed: int, rows: int) -> Values:
    """Return tip fractions as there are: some zero, most about a fifth, cents divided by cents."""
    random = np.random.default_rng(seed)
    fare = random.integers(250, 8_000, rows)
    return np.asarray(np.round(fare * random.choice([0.0, 0.1, 0.2, 0.25], rows) + random.integers(0, 90, rows)) / fare)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 1_000), groups=st.lists(st.integers(1, 20), min_size=1, max_size=5), rows=st.integers(0, 400)
)
def test_each_key_counts_and_sums_as_numpy_in_whatever_slices(seed: int, groups: list[int], rows: int) -> None:
    random = np.random.default_rng(seed)
    values = np.exp(random.normal(-2, 4, rows)) * random.choice([0.0, 1.0], rows, p=[0.2, 0.8])
    keys = [random.integers(-1, size, rows).astype(np.int32) for size in groups]
    accumulator = CpuGroupAccumulator(groups)
    for part in np.array_split(np.arange(rows), random.integers(1, 5)):
        accumulator.add([key[part] for key in keys], values[part])
    for key, size, found in zip(keys, groups, accumulator.result(), strict=True):
        for group in range(size):
            chosen = values[key == group]
            assert found.count[group] == found.histogram[group].sum() == len(chosen)
            np.testing.assert_allclose(found.total[group], chosen.sum(), rtol=1e-12)
            np.testing.assert_allclose(found.total_of_squares[group], (chosen**2).sum(), rtol=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False) | st.floats(0, 20))
def test_a_value_is_counted_between_the_bounds_of_its_bin(value: float) -> None:
    [place] = np.flatnonzero(gathered(np.array([value])).histogram[0])
    bounds = bin_bounds()
    assert bounds[place] <= value
    assert value < bounds[place + 1] or value == bounds[place] == 0


def test_bins_are_2_to_the_minus_9_of_their_lower_bound_wide_at_most() -> None:
    bounds = bin_bounds()
    assert len(bounds) == BINS + 1
    log_linear = bounds[2:-1]
    assert (log_linear[0], log_linear[-1]) == (LEAST, OVERFLOW)
    assert (np.diff(log_linear) / log_linear[:-1]).max() == 1 / BINS_OF_OCTAVE


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(LEAST, OVERFLOW, exclude_max=True), min_size=1, max_size=60))
def test_a_median_is_within_2_to_the_minus_9_of_the_exact_one(values: list[float]) -> None:
    exact = float(np.median(values))
    assert abs(median(np.array(values)) - exact) <= exact * 2**-9


@pytest.mark.parametrize("rows", [1, 2, 999, 20_000])
def test_medians_of_tips_are_within_2_to_the_minus_10_of_the_exact_ones(rows: int) -> None:
    values = fractions(rows, rows)
    keys = (np.arange(rows) % 3).astype(np.int32)
    found = median_from_histogram(gathered(values, keys, groups=4).histogram)
    for group in range(min(rows, 3)):
        np.testing.assert_allclose(found[group], np.median(values[keys == group]), rtol=2**-10)
    assert np.isnan(found[min(rows, 3) :]).all()


def test_medians_outside_the_log_linear_bins_are_bounded() -> None:
    assert median(np.array([0.0, -0.0, 0.0, 5.0])) == 0
    assert 0 < median(np.array([1e-300, 1e-9, 1e-5])) < LEAST
    assert median(np.array([17.0, 1e9, 1e300])) == OVERFLOW
    assert median(np.array([0.0, 1.0])) == pytest.approx(0.5, rel=2**-9)


def test_partial_statistics_add_up() -> None:
    values = fractions(1, 1_000)
    keys = (np.arange(1_000) % 7).astype(np.int32)
    parts = gathered(values[:300], keys[:300], groups=7) + gathered(values[300:], keys[300:], groups=7)
    whole = gathered(values, keys, groups=7)
    np.testing.assert_array_equal(parts.count, whole.count)
    np.testing.assert_array_equal(parts.histogram, whole.histogram)
    np.testing.assert_allclose(parts.total, whole.total, rtol=1e-12)


@pytest.mark.parametrize(("key", "value"), [(0, -1e-300), (0, np.nan), (0, np.inf), (0, -np.inf), (2, 1.0)])
def test_values_that_are_negative_or_not_finite_and_keys_without_group_are_refused(key: int, value: float) -> None:
    accumulator = CpuGroupAccumulator([9, 2])
    with pytest.raises(IntegrityError, match=r"key [01]"):
        accumulator.add([np.zeros(2, np.int32), np.array([0, key], np.int32)], np.array([1.0, value]))


def test_values_of_rows_that_are_left_out_may_be_anything() -> None:
    keys = np.array([-1, 0, -5, -1], np.int32)
    statistics = gathered(np.array([np.nan, 2.0, -1.0, np.inf]), keys)
    assert (statistics.count[0], statistics.total[0]) == (1, 2.0)

"""Statistics by key on the CPU, and medians from their histograms: the oracle is NumPy on the values themselves."""

from __future__ import annotations

from functools import reduce
from operator import add
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.errors import IntegrityError
from whitewater.tables import group_statistics_cpu
from whitewater.tables.blocks import GroupStatistics
from whitewater.tables.group_accumulator import bin_bounds, medians
from whitewater.tables.group_statistics_cpu import LEAST, LIMIT, CpuGroupAccumulator

Values = npt.NDArray[np.float64]


def gathered(values: Values, keys: npt.NDArray[np.int32] | None = None, *, groups: int = 1) -> GroupStatistics:
    """Return the statistics of values, all in group 0 unless there are keys."""
    accumulator = CpuGroupAccumulator([groups])
    accumulator.add([np.zeros(len(values), np.int32) if keys is None else keys], values)
    [statistics] = accumulator.result()
    return statistics


def median(values: Values) -> float:
    """Return the median that the histogram of the values gives."""
    return float(medians(gathered(values))[0])


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
    values = np.exp(random.uniform(-13, 13, rows)) * random.choice([0.0, 1.0], rows, p=[0.2, 0.8])
    keys = [random.integers(-1, size, rows).astype(np.int32) for size in groups]
    accumulator = CpuGroupAccumulator(groups)
    for part in np.array_split(np.arange(rows), random.integers(1, 5)):
        accumulator.add([key[part] for key in keys], values[part])
    for key, size, found in zip(keys, groups, accumulator.result(), strict=True):
        for group in range(size):
            chosen = values[key == group]
            assert found.count[group] == found.histogram[:, group].sum() == len(chosen)
            np.testing.assert_allclose(found.total[group], chosen.sum(), rtol=2**-37)
            np.testing.assert_allclose(found.total_of_squares[group], (chosen**2).sum(), rtol=2**-36)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, LIMIT, exclude_max=True), min_size=1, max_size=60), st.integers(1, 9), st.randoms())
def test_sums_have_the_same_bits_in_any_order_and_in_any_parts(values: list[float], parts: int, random: Random) -> None:
    whole = gathered(np.array(values))
    random.shuffle(values)
    other = reduce(add, (gathered(part) for part in np.array_split(np.array(values), parts)))
    assert (whole.total.tobytes(), whole.total_of_squares.tobytes()) == (
        other.total.tobytes(), other.total_of_squares.tobytes()
    )  # fmt: skip
    assert medians(whole) == medians(other)


def test_more_rows_than_a_sum_holds_are_summed_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = fractions(4, 1_000)
    whole = gathered(values)
    monkeypatch.setattr(group_statistics_cpu, "_ROWS_OF_SUM", 7)
    for part in (gathered(values), gathered(values[:5]) + gathered(values[5:])):
        assert (part.total, part.total_of_squares, medians(part)) == (
            whole.total, whole.total_of_squares, medians(whole)
        )  # fmt: skip


def test_without_medians_counts_and_sums_are_the_same() -> None:
    values, keys = fractions(5, 500), (np.arange(500) % 3).astype(np.int32)
    accumulator = CpuGroupAccumulator([3], medians=False)
    accumulator.add([keys], values)
    [found] = accumulator.result()
    whole = gathered(values, keys, groups=3)
    np.testing.assert_array_equal(found.count, whole.count)
    np.testing.assert_array_equal(found.total, whole.total)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, LIMIT, exclude_max=True) | st.floats(0, 20))
def test_a_value_is_counted_between_the_bounds_of_its_bin(value: float) -> None:
    [place] = gathered(np.array([value])).bins
    bounds = bin_bounds()
    assert bounds[place] <= value
    assert value < bounds[place + 1] or value == bounds[place] == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(LEAST, LIMIT, exclude_max=True), min_size=1, max_size=60))
def test_a_median_is_within_2_to_the_minus_9_of_the_exact_one(values: list[float]) -> None:
    exact = float(np.median(values))
    assert abs(median(np.array(values)) - exact) <= exact * 2**-9


@pytest.mark.parametrize("rows", [1, 2, 999, 20_000])
def test_medians_of_tips_are_within_2_to_the_minus_10_of_the_exact_ones(rows: int) -> None:
    values = fractions(rows, rows)
    keys = (np.arange(rows) % 3).astype(np.int32)
    found = medians(gathered(values, keys, groups=4))
    for group in range(min(rows, 3)):
        np.testing.assert_allclose(found[group], np.median(values[keys == group]), rtol=2**-10)
    assert np.isnan(found[min(rows, 3) :]).all()


def test_medians_outside_the_log_linear_bins_are_bounded() -> None:
    assert median(np.array([0.0, -0.0, 0.0, 5.0])) == 0
    assert 0 < median(np.array([1e-300, 1e-9, LEAST / 2])) < LEAST
    assert median(np.array([0.0, 1.0])) == pytest.approx(0.5, rel=2**-9)


def test_partial_statistics_add_up() -> None:
    values = fractions(1, 1_000)
    keys = (np.arange(1_000) % 7).astype(np.int32)
    parts = gathered(values[:300], keys[:300], groups=7) + gathered(values[300:], keys[300:], groups=7)
    whole = gathered(values, keys, groups=7)
    np.testing.assert_array_equal(parts.count, whole.count)
    np.testing.assert_array_equal(parts.histogram, whole.histogram)
    np.testing.assert_array_equal(parts.total, whole.total)


@pytest.mark.parametrize(("key", "value"), [(0, -1e-300), (0, np.nan), (0, np.inf), (0, -np.inf), (0, LIMIT), (2, 1.0)])
def test_values_that_are_negative_not_finite_or_too_large_and_keys_without_group_are_refused(
    key: int, value: float
) -> None:
    accumulator = CpuGroupAccumulator([9, 2])
    with pytest.raises(IntegrityError, match=r"key [01]"):
        accumulator.add([np.zeros(2, np.int32), np.array([0, key], np.int32)], np.array([1.0, value]))


def test_values_of_rows_that_are_left_out_may_be_anything() -> None:
    keys = np.array([-1, 0, -5, -1], np.int32)
    statistics = gathered(np.array([np.nan, 2.0, -1.0, np.inf]), keys)
    assert (statistics.count[0], statistics.total[0]) == (1, 2.0)

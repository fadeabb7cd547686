"""Measures of drift: equal to SciPy's and to what is written out, and seldom above chance where nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.spatial import distance

from whitewater.features.columns.column import Numbers
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.drift_report import (
    chance,
    chance_of_ks,
    chance_of_new_categories,
    compare,
    jensen_shannon,
    kolmogorov_smirnov,
    number_bins,
    psi,
)

HISTOGRAMS = arrays(np.int64, 6, elements=st.integers(0, 50))


def written_out_psi(reference: Sequence[int], now: Sequence[int]) -> float:
    """The index over bins of which one at least is not empty; empty ones have half a row."""
    total = 0.0
    for before, after in zip(reference, now, strict=True):
        if before or after:
            p, q = max(before, 0.5) / sum(reference), max(after, 0.5) / sum(now)
            total += (q - p) * np.log(q / p)
    return total


@given(HISTOGRAMS, HISTOGRAMS)
@settings(max_examples=50, deadline=None)
def test_measures_of_histograms_equal_scipy_s_and_what_is_written_out(
    reference: npt.NDArray[np.int64], now: npt.NDArray[np.int64]
) -> None:
    assume(reference.any() and now.any())
    assert psi(reference, now) == pytest.approx(written_out_psi(reference.tolist(), now.tolist()), abs=1e-12)
    # Roots of differences near 0 keep half of the digits.
    assert jensen_shannon(reference, now) == pytest.approx(distance.jensenshannon(reference, now, 2), abs=1e-7)


def test_only_what_is_above_its_threshold_and_above_chance_is_drift() -> None:
    random = np.random.default_rng(4)
    bins = number_bins(random.standard_normal(500), bins=10)

    def verdict(shift: float, rows: int, chosen: Drift) -> tuple[str, list[str]]:
        values = [random.standard_normal(rows), random.standard_normal(rows) + shift]
        counts = [bins.count(Numbers(each)) for each in values]
        found = compare(bins, counts[0], counts[1], chosen)
        return found["verdict"], found["above"]

    strict = Drift(psi=1e-6, ks=1e-6, jensen_shannon=1e-6)
    assert verdict(0.0, 10_000, Drift()) == ("stable", [])
    assert verdict(0.0, 10_000, strict) == ("chance", [])
    assert verdict(0.3, 10_000, strict) == ("drift", ["psi", "jensen_shannon", "ks"])
    assert verdict(0.3, 10_000, Drift(psi=5, jensen_shannon=0.9)) == ("drift", ["ks"])


def test_limits_of_chance_are_seldom_exceeded_by_samples_of_one_distribution() -> None:
    random = np.random.default_rng(5)
    shares = 1 / np.arange(1, 60)
    trials, above = 1000, np.zeros(3)
    for _ in range(trials):
        values = [random.choice(59, rows, p=shares / shares.sum()) for rows in (4000, 3000)]
        reference, now = (np.bincount(each, minlength=59) for each in values)
        limits = chance(reference, now)
        above += [
            psi(reference, now) > limits["psi"],
            jensen_shannon(reference, now) > limits["jensen_shannon"],
            kolmogorov_smirnov(reference, now) > chance_of_ks(4000, 3000),
        ]

    assert (above <= 6).all()


@pytest.mark.parametrize("categories", [50, 500, 5000, 10**6])
def test_new_categories_are_seldom_more_than_those_seen_once_let_expect(categories: int) -> None:
    random = np.random.default_rng(6)
    limits, shares = [], []
    for _ in range(200):
        reference, now = (np.exp(random.random(rows) * np.log(categories)).astype(int) for rows in (4000, 3000))
        _, rows = np.unique(reference, return_counts=True)
        limits.append(chance_of_new_categories(int((rows == 1).sum()), reference=4000, rows=3000))
        shares.append(1 - np.isin(now, reference).mean())

    assert sum(np.array(shares) > limits) <= 2
    assert np.mean(limits) < np.mean(shares) + 0.06


def test_limits_of_chance_are_those_of_their_distributions() -> None:
    counts = np.full(59, 60)
    rows = 59 * 60

    assert chance(counts, counts)["psi"] == pytest.approx(stats.chi2.isf(0.001, 58) * 2 / rows, rel=1e-3)
    assert chance_of_ks(4000, 3000) == pytest.approx(
        stats.kstwobign.isf(0.001) * np.sqrt(1 / 4000 + 1 / 3000), rel=1e-3
    )


@given(
    arrays(np.float64, st.integers(1, 200), elements=st.integers(0, 30).map(float)),
    st.integers(2, 12),
)
@settings(max_examples=50, deadline=None)
def test_every_value_is_in_one_bin_and_heavy_values_are_alone(sample: npt.NDArray[np.float64], bins: int) -> None:
    made = number_bins(sample, bins=bins)
    counts = np.bincount(made.bins, made.count(Numbers(sample)))
    values, rows = np.unique(sample, return_counts=True)

    assert counts.sum() == len(sample)
    assert all(before <= after <= before + 1 for before, after in pairwise(made.bins))
    for value in values[rows * bins >= len(sample)]:
        bin_of = made.bins[made.count(Numbers(np.array([value]))).argmax()]
        assert (made.bins == bin_of).sum() == 1

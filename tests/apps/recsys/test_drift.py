"""Drift between days: measures equal to SciPy's and to what is written out, whatever way the log is cut."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.spatial import distance

from tests.helpers.recsys_logs import write_log
from whitewater.engines import Device, resolve
from whitewater.features.config import Role
from whitewater.features.log_folder import TYPES, LogColumn
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Drift
from whitewater_apps.recsys.steps.drift import (
    EDGES,
    chance,
    chance_of_ks,
    chance_of_new_categories,
    compare,
    drift,
    jensen_shannon,
    kolmogorov_smirnov,
    number_bins,
    psi,
)

Values = Sequence[Any]
CPU = resolve("cpu")
HISTOGRAMS = arrays(np.int64, 6, elements=st.integers(0, 50))


def log_of(
    directory: Path, days: Sequence[Mapping[str, Values]], types: Mapping[str, str], *, row_group_rows: int = 1000
) -> Path:
    """Write a log of days, some of which may have no rows; labels alternate."""
    roles: dict[str, Role] = {"string": "categorical", "int64": "categorical", "list<string>": "list"}
    columns = [LogColumn(name, roles.get(kind, "continuous"), kind) for name, kind in types.items()]
    numbers = np.repeat(np.arange(len(days), dtype=np.int32), [len(next(iter(values.values()))) for values in days])
    rows = np.arange(len(numbers))
    own = {name: pa.array(list(chain(*(values[name] for values in days))), TYPES[types[name]]) for name in types}
    table = pa.table({"row_id": rows, "day": numbers, "time": rows, "label": (rows % 2).astype(np.int8), **own})
    return write_log(table, directory, columns=columns, row_group_rows=row_group_rows)


def report_of(
    events: Path, directory: Path, chosen: Drift | None = None, *, threads: int = 1, device: Device = CPU
) -> dict[str, Any]:
    path = directory / "drift.json"
    drift(Run("recsys", "drift", device, chosen or Drift(), threads=threads), events=events, drift=Output(path))
    return cast("dict[str, Any]", json.loads(path.read_bytes()))


def column(report: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in report["columns"] if each["name"] == name)


def one_day(tmp_path: Path, type_: str, reference: Values, now: Values, chosen: Drift | None = None) -> dict[str, Any]:
    """Compare one column of one day with the first."""
    events = log_of(tmp_path / "log", [{"x": reference}, {"x": now}], {"x": type_})
    compared = column(report_of(events, tmp_path, chosen), "x")["days"]
    assert len(compared) == 1
    return cast("dict[str, Any]", compared[0])


def column_of(values: npt.ArrayLike) -> list[pa.ChunkedArray]:
    return [pa.chunked_array([np.asarray(values)])]


def written_out_psi(reference: Sequence[int], now: Sequence[int]) -> float:
    """The index over bins of which one at least is not empty; empty ones have half a row."""
    total = 0.0
    for before, after in zip(reference, now, strict=True):
        if before or after:
            p, q = max(before, 0.5) / sum(reference), max(after, 0.5) / sum(now)
            total += (q - p) * np.log(q / p)
    return total


def ks(reference: npt.NDArray[Any], now: npt.NDArray[Any]) -> float:
    # The method concerns the p-value only; that by default warns of large samples.
    return float(stats.ks_2samp(reference, now, method="asymp").statistic)


def quantile_bins(reference: npt.NDArray[Any], values: npt.NDArray[Any], bins: int) -> list[int]:
    cuts = np.quantile(reference, np.arange(1, bins) / bins, method="inverted_cdf")
    return list(np.bincount(np.searchsorted(cuts, values, side="left"), minlength=bins))


@pytest.mark.parametrize("values", [7, 900])
def test_the_kolmogorov_smirnov_distance_of_few_values_is_exact(tmp_path: Path, values: int) -> None:
    random = np.random.default_rng(values)
    reference = random.integers(-3, values, 3000)
    now = np.append(random.integers(0, 2 * values, 2000), [-100, 10**6])
    found = one_day(tmp_path, "int32", reference.tolist(), now.tolist())

    assert found["ks"] == pytest.approx(ks(reference, now), abs=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e12])
def test_the_kolmogorov_smirnov_distance_of_many_values_is_within_its_bound(tmp_path: Path, offset: float) -> None:
    random = np.random.default_rng(1)
    reference = offset + random.standard_normal(20_000)
    now = offset + np.append(random.standard_normal(5000) * 1.1 + 0.2, np.full(500, 0.123))
    found = one_day(tmp_path, "float64", reference.tolist(), now.tolist())
    exact = ks(reference, now)

    assert found["ks"] - 1e-6 <= exact <= found["ks"] + 1 / EDGES + 1e-6


def test_the_index_of_numbers_is_that_of_quantiles_of_the_reference(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    reference, now = random.standard_normal(3000), random.standard_normal(2000) + 0.5
    found = one_day(tmp_path, "float64", reference.tolist(), now.tolist(), Drift(bins=7))
    bins = [quantile_bins(reference, values, 7) for values in (reference, now)]

    assert found["psi"] == pytest.approx(written_out_psi(*bins), abs=1e-6)
    assert found["jensen_shannon"] == pytest.approx(distance.jensenshannon(*bins, 2), abs=1e-6)


def test_nulls_are_a_bin_and_no_values(tmp_path: Path) -> None:
    reference, now = [1, 2, 3, None] * 100, [1, 2, 3, None, None, None] * 100
    found = one_day(tmp_path, "int32", reference, now)

    assert found["psi"] == pytest.approx(written_out_psi([100, 100, 100, 100], [100, 100, 100, 300]), abs=1e-6)
    assert (found["ks"], found["nulls"], found["verdict"]) == (0, 0.5, "drift")


@pytest.mark.parametrize("type_", ["int32", "float64", "string"])
def test_columns_without_values_have_no_distance_but_the_share_of_nulls(tmp_path: Path, type_: str) -> None:
    value: Any = "a" if type_ == "string" else 1
    days = [{"x": [None] * 50}, {"x": [None] * 50}, {"x": [value] * 50}]
    report = report_of(log_of(tmp_path / "log", days, {"x": type_}), tmp_path)
    nothing, values = column(report, "x")["days"]

    assert (nothing["psi"], nothing["jensen_shannon"], nothing["verdict"], nothing["nulls"]) == (0, 0, "stable", 1)
    assert (values["jensen_shannon"], values["verdict"], values["nulls"]) == (1, "drift", 0)
    if type_ == "string":
        assert values["new_categories"] == 1
    else:
        assert (nothing["ks"], values["ks"]) == (None, None)


@pytest.mark.parametrize(("now", "verdict"), [(5, "stable"), (4, "drift"), (6, "drift")])
def test_a_constant_column_is_stable_until_it_is_another_constant(tmp_path: Path, now: int, verdict: str) -> None:
    found = one_day(tmp_path, "int32", [5] * 300, [now] * 300)

    assert found["verdict"] == verdict
    assert (found["psi"] > 1) == (found["ks"] == 1) == (verdict == "drift")


def test_days_without_rows_are_counted_and_not_compared(tmp_path: Path) -> None:
    days: list[Mapping[str, Values]] = [{"x": [1, 2]}, {"x": []}, {"x": []}, {"x": [1, 2, 2, 3]}]
    report = report_of(log_of(tmp_path / "log", days, {"x": "int32"}), tmp_path)

    assert report["days_without_rows"] == 2
    assert [(each["day"], each["rows"], each["label_rate"]) for each in report["days"]] == [(0, 2, 0.5), (3, 4, 0.5)]
    assert [each["day"] for each in column(report, "x")["days"]] == [3]


def test_a_log_of_one_day_has_nothing_to_compare(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = report_of(log_of(tmp_path / "log", [{"x": ["a", None]}], {"x": "string"}), tmp_path)

    assert (report["summary"]["stable"], column(report, "x")["days"], column(report, "x")["nulls"]) == (["x"], [], 0.5)
    assert "nothing to compare" in caplog.text


def test_new_categories_are_those_that_the_reference_lacks_however_rare_the_others(tmp_path: Path) -> None:
    reference = ["a"] * 40 + ["b"] * 30 + ["c"] * 20 + ["rare", None]
    now = ["a"] * 10 + ["c"] * 10 + ["rare"] * 5 + ["new"] * 7 + [""] * 3 + [None] * 5
    found = one_day(tmp_path, "string", reference, now, Drift(categories=2))

    # The two most frequent, all others, and nulls.
    assert found["psi"] == pytest.approx(written_out_psi([40, 30, 21, 1], [10, 0, 25, 5]), abs=1e-6)
    assert found["new_categories"] == 10 / 40
    assert found["nulls"] == 5 / 40


def test_integers_and_lists_are_categories(tmp_path: Path) -> None:
    days: list[Mapping[str, Values]] = [
        {"x": [1, 1, 2, None], "y": [["a", "b"], [], None, ["a"]]},
        {"x": [1, 3, 3, 3], "y": [["c", "a", "a"], ["c"], [], []]},
    ]
    report = report_of(log_of(tmp_path / "log", days, {"x": "int64", "y": "list<string>"}), tmp_path)
    integers, lists = (column(report, name) for name in "xy")

    assert (integers["known"], integers["nulls"], integers["days"][0]["new_categories"]) == (2, 0.25, 0.75)
    assert (lists["role"], lists["known"], lists["nulls"]) == ("list", 2, 0.4)
    assert (lists["days"][0]["new_categories"], lists["days"][0]["nulls"]) == (0.333333, 0.333333)


def test_reports_do_not_depend_on_how_the_log_is_cut_or_on_the_threads(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    days = [
        {
            "x": (random.standard_normal(rows) + day).tolist(),
            "y": [f"{value}" if value else None for value in random.zipf(1.3 + 0.1 * day, rows) % 500],
        }
        for day, rows in enumerate([3000, 2500, 2000])
    ]
    kinds = {"x": "float64", "y": "string"}
    whole = log_of(tmp_path / "whole", days, kinds, row_group_rows=10_000)
    cut = log_of(tmp_path / "cut", days, kinds, row_group_rows=113)

    with pytest.MonkeyPatch.context() as patched:
        # A sample, too, is the same.
        patched.setattr("whitewater_apps.recsys.steps.drift.SAMPLE", 1100)
        first = report_of(whole, tmp_path)
        assert report_of(cut, tmp_path) == report_of(cut, tmp_path, threads=4) == first
    assert column(first, "x")["days"][0]["ks"] != column(report_of(whole, tmp_path), "x")["days"][0]["ks"]


def test_the_summary_names_columns_by_the_worst_of_their_days(tmp_path: Path) -> None:
    same = list(range(100)) * 3
    days = [{"x": same, "y": same}, {"x": [0] * 300, "y": same}, {"x": same, "y": same}]
    report = report_of(log_of(tmp_path / "log", days, {"x": "int32", "y": "int32"}), tmp_path)

    assert report["summary"] == {"drift": ["x"], "chance": [], "stable": ["y"]}
    assert [each["verdict"] for each in column(report, "x")["days"]] == ["drift", "stable"]


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
        counts = [bins.count(column_of(each)) for each in values]
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
    counts = np.bincount(made.bins, made.count(column_of(sample)))
    values, rows = np.unique(sample, return_counts=True)

    assert counts.sum() == len(sample)
    assert all(before <= after <= before + 1 for before, after in pairwise(made.bins))
    for value in values[rows * bins >= len(sample)]:
        bin_of = made.bins[made.count(column_of([value])).argmax()]
        assert (made.bins == bin_of).sum() == 1

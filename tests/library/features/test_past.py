"""Counts and means of the past against a loop over all pairs of rows."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.frames import learned
from whitewater.errors import ConfigError, InputError
from whitewater.features.operators.encodings import PastCount, PastMean

INPUTS: tuple[str | tuple[str, ...], ...] = ("city", ("city", "item"))
SMOOTH, FIRST = 3.0, 0.25


def log_of(rows: int, *, seed: int, days: float, null_targets: float = 0.2) -> pd.DataFrame:
    """Return rows in no order of time, some of it before 1970."""
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "time": (draw.random(rows) * days * 86_400).astype(np.int64) - 86_400,
            "city": np.array(["Ulm", "Zürich", "", None], object)[draw.integers(0, 4, rows)],
            "item": draw.integers(0, 3, rows),
            "spent": np.where(draw.random(rows) < null_targets, np.nan, draw.normal(30, 9, rows)),
            "clicked": draw.integers(0, 2, rows).astype(np.int8),
        }
    )


def past_by_loop(known: pd.DataFrame, rows: pd.DataFrame, columns: list[str], target: str | None, period: int) -> Any:
    """Return count and mean of each row, from all pairs of it and a row that is known."""

    def category(row: pd.Series) -> tuple[Any, ...]:
        return tuple(None if pd.isna(row[name]) else row[name] for name in columns)

    seen = [
        (row["time"] // period, category(row), 0.0 if target is None else row[target]) for _, row in known.iterrows()
    ]
    found = []
    for _, row in rows.iterrows():
        before = [each for each in seen if each[0] < row["time"] // period and not np.isnan(each[2])]
        same = [value for _, other, value in before if other == category(row)]
        prior = sum(value for _, _, value in before) / len(before) if before else FIRST
        found.append((len(same), (sum(same) + SMOOTH * prior) / (len(same) + SMOOTH)))
    return np.array(found).T


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 60), seed=st.integers(0, 999), days=st.sampled_from([0.1, 1.0, 5.0, 4000.0]),
    period=st.sampled_from([1, 3600, 86_400, 10**9])
)  # fmt: skip
def test_only_rows_of_earlier_periods_count(rows: int, seed: int, days: float, period: int) -> None:
    known, new = log_of(rows, seed=seed, days=days), log_of(30, seed=seed + 1, days=2 * days)
    known.loc[0, "spent"] = 7
    new.loc[:3, "city"] = "Aleppo"
    counting = PastCount(period=period)
    averaging = PastMean(target="spent", period=period, p_smooth=SMOOTH, first_mean=FIRST)
    for given_, each in product((known, new), INPUTS):
        columns = [each] if isinstance(each, str) else list(each)
        name = "_".join(columns)
        counts = learned(counting, known, (each,), parts=3).applied(given_)
        means = learned(averaging, known, (each,), parts=3, blocks=2).applied(given_)
        np.testing.assert_array_equal(
            counts[f"{name}_past_count"], past_by_loop(known, given_, columns, None, period)[0]
        )
        np.testing.assert_allclose(
            means[f"{name}_past_mean_spent"], past_by_loop(known, given_, columns, "spent", period)[1], rtol=1e-6
        )


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 999), day=st.integers(-1, 4), huge=st.sampled_from([1e15, -3e7, 0.1]))
def test_targets_from_a_day_on_change_nothing_up_to_it_not_even_the_last_digit(
    seed: int, day: int, huge: float
) -> None:
    log = log_of(300, seed=seed, days=7, null_targets=0)
    later = (log["time"] // 86_400 >= day).to_numpy()
    changed = log.assign(spent=np.where(later, log["spent"] * huge, log["spent"]))
    operator = PastMean(target="spent")
    before, after = (learned(operator, each, INPUTS).applied(each) for each in (log, changed))
    up_to = (log["time"] // 86_400 <= day).to_numpy()
    pd.testing.assert_frame_equal(after[up_to], before[up_to], check_exact=True)
    assert (after[~up_to] != before[~up_to]).any(axis=None)


@settings(max_examples=10, deadline=None)
@given(parts=st.integers(1, 64), blocks=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_past_does_not_depend_on_partitions_or_order(parts: int, blocks: int, seed: int) -> None:
    log = log_of(400, seed=1, days=9)
    shuffled = log.sample(frac=1, random_state=seed)
    for operator in (PastCount(), PastMean(target="clicked")):
        whole = learned(operator, log, INPUTS).applied(log)
        parted = learned(operator, shuffled, INPUTS, parts=parts, blocks=blocks).applied(shuffled)
        pd.testing.assert_frame_equal(parted.sort_index(), whole, check_exact=True)


def test_training_and_serving_are_one_function() -> None:
    log = log_of(200, seed=2, days=5)
    past = learned(PastMean(target="clicked"), log, INPUTS)
    pd.testing.assert_frame_equal(past.applied(log, training=True), past.applied(log), check_exact=True)


def test_a_row_after_all_of_fitting_knows_all_of_it() -> None:
    log = log_of(300, seed=5, days=5)
    past = learned(PastCount(), log, ("city",))
    late = past.applied(pd.DataFrame({"city": ["Ulm", "Aleppo"], "time": [10**12, 10**12]}))
    assert late["city_past_count"].tolist() == [(log["city"] == "Ulm").sum(), 0]


def test_rows_with_a_null_target_count_nowhere_and_are_told() -> None:
    log = log_of(300, seed=6, days=5)
    facts = learned(PastMean(target="spent"), log, ("city",), parts=4).fitted["city"].facts()
    assert facts["null_rows"] == log["spent"].isna().sum() > 0


def test_a_null_time_is_refused_in_fitting_in_a_batch_and_in_a_row() -> None:
    log = log_of(50, seed=7, days=5)
    past = learned(PastCount(), log, ("city",))
    log["time"] = log["time"].astype("Int64")
    log.loc[3:4, "time"] = pd.NA
    for attempt in (past.applied, lambda rows: learned(PastCount(), rows, ("city",))):
        with pytest.raises(InputError, match="the time 'time' is null in 2 of 50 rows"):
            attempt(log)
    with pytest.raises(InputError, match="the time 'time' is None"):
        past.operator.row(past.inputs, past.fitted)({"city": "Ulm", "time": None})


def test_a_time_of_floats_is_refused() -> None:
    log = log_of(50, seed=8, days=5)
    with pytest.raises(ConfigError, match="the time 'spent' is of type double"):
        learned(PastCount(time="spent"), log, ("city",))

"""What the taxi application says of its results: contrasts as the files have them, and none that they have not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from whitewater_apps.taxi.headline import headline

Hour = tuple[int, int, float, float]


def write_hours(place: Path, hours: list[Hour]) -> None:
    """Write hours as (hour, trips, mean, half the interval)."""
    table = pd.DataFrame(hours, columns=["hour", "trips", "mean", "half"]).assign(service="yellow")
    bounds = {"mean_low": table["mean"] - table["half"], "mean_high": table["mean"] + table["half"]}
    table.assign(**bounds).to_parquet(place / "tips_by_hour.parquet")


def write_metrics(place: Path, **services: Any) -> None:
    (place / "model").mkdir()
    (place / "model" / "metrics.json").write_text(json.dumps({"services": services}))


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (
            [(8, 40, 0.1, 0.01), (9, 40, 0.3, 0.01)],
            "yellow taxis at 9:00: 30.0 % [29.0, 31.0] of the fare (n = 40)",
        ),
        ([(8, 40, 0.1, 0.01), (9, 40, 0.11, 0.01)], "do not clearly differ by hour"),
        ([(8, 40, 0.1, 0.0), (9, 40, 0.1, 0.0)], "are the same in all 2 hours: 10.0 % of the fare."),
        (
            [(8, 40, 0.1, 0.01), (9, 29, 0.3, 0.01)],
            "[9.0, 11.0] of the fare (n = 40). No other hour has 30 trips",
        ),
        ([(8, 29, 0.1, 0.01)], "No hour of the day has 30 trips"),
    ],
)
def test_hours_are_told_apart_only_where_they_differ(tmp_path: Path, hours: list[Hour], words: str) -> None:
    write_hours(tmp_path, hours)
    [sentence] = headline(tmp_path)
    assert words in sentence


def test_the_extremes_of_24_hours_without_any_difference_are_noise(tmp_path: Path) -> None:
    found = []
    for seed in range(40):
        means = np.random.default_rng(seed).normal(0.2, 0.01, 24)
        write_hours(tmp_path, [(hour, 40, mean, 1.96 * 0.01) for hour, mean in enumerate(means)])
        found += headline(tmp_path)
    assert sum("within noise, given the choice among 24 hours" in sentence for sentence in found) >= 36


@pytest.mark.parametrize(
    ("rows", "kept", "sentence"),
    [
        (1, 1, "Of 1 row read, 1 is kept and 0 (0.0 %) are in quarantine."),
        (2_000, 1_999, "Of 2,000 rows read, 1,999 are kept and 1 (0.1 %) is in quarantine."),
    ],
)
def test_one_row_is_not_said_to_be_rows(tmp_path: Path, rows: int, kept: int, sentence: str) -> None:
    totals = {"rows_in": rows, "rows_out": kept, "quarantined": rows - kept}
    (tmp_path / "quality.json").write_text(json.dumps({"totals": totals}))
    assert headline(tmp_path) == [sentence]


@pytest.mark.parametrize(("low", "clear"), [(0.001, True), (-0.001, False)])
def test_a_model_is_called_better_only_where_its_gain_is_clear(tmp_path: Path, low: float, clear: bool) -> None:
    error = {"value": 0.05, "low": 0.04, "high": 0.06}
    scores = {"mae": error, "mae_gain": {"value": 0.01, "low": low, "high": 0.02}}
    held_out = {"ridge": scores, "forest": scores, "hour_mean": {"mae": error}}
    write_metrics(tmp_path, yellow={"status": "fitted", "held_out": held_out})
    [sentence] = headline(tmp_path)
    assert sentence.endswith("(held-out trips)." if clear else "the model is not clearly better.")


def test_the_better_model_is_told_with_its_error_and_that_of_the_mean_of_the_hour(tmp_path: Path) -> None:
    errors = {"constant": 0.08, "hour_mean": 0.0721, "ridge": 0.066, "forest": 0.0612}
    gain = {"value": 0.01, "low": 0.005, "high": 0.015}
    held_out = {
        model: {"mae": {"value": error, "low": error - 0.001, "high": error + 0.001}, "mae_gain": gain}
        for model, error in errors.items()
    }
    skipped = {"status": "skipped", "reason": "few"}
    write_metrics(tmp_path, yellow={"status": "fitted", "held_out": held_out}, green=skipped)
    [sentence] = headline(tmp_path)
    assert [word for word in ("random forest", "6.1 [6.0, 6.2] points", "7.2 [7.1, 7.3]") if word not in sentence] == []

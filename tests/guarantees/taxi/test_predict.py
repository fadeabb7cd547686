"""A prediction is counted only where there is one; trips of a service without a model are counted apart."""

import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.guarantees.running import Clone
from tests.helpers.raw_files import write_parquet, yellow_frame

PREDICTIONS = "results/taxi/cpu/predictions"
QUICK = {"ridge_alphas": [1.0], "forest": {"trees": [2], "depths": [3]}, "folds": 2, "bootstrap": 20}


def write_green(folder: Path, rows: int) -> Path:
    """Write green trips by the names of their columns."""
    names = {name: name.replace("tpep", "lpep") for name in yellow_frame(1).columns}
    return write_parquet(yellow_frame(rows, seed=2).rename(columns=names), folder / "green.parquet")


@pytest.mark.slow
def test_trips_of_a_service_without_a_model_are_not_counted_as_predicted(fresh: Clone) -> None:
    write_parquet(yellow_frame(3_000), fresh / "yellow.parquet")
    write_green(fresh.folder, 40)
    paths = {"fetch": {"source": "files", "files": {"paths": ["yellow.parquet", "green.parquet"]}}}
    ended = fresh.run("taxi", {**paths, "model": QUICK}, PREDICTIONS, "taxi")
    assert ended.status == 0, ended.terminal
    found = pd.read_parquet(fresh / PREDICTIONS)
    yellow, green = (int((found["service"] == service).sum()) for service in ("yellow", "green"))
    assert int(found["ridge"].notna().sum()) == yellow > green > 0
    summary = fresh.json(f"{PREDICTIONS}/_summary.json")
    assert {name: (each["predicted"], each["not_predicted"]) for name, each in summary.items()} == {
        "yellow": (yellow, 0),
        "green": (0, green),
    }
    assert "yellow" in summary["green"]["reason"]
    log = (fresh / "logs/taxi/cpu/predict.log").read_text()
    assert f"{yellow} of {yellow + green} trips predicted" in log
    assert f"{green} of green" in log
    assert fresh.json("logs/taxi/cpu/predict.json")["facts"]["services"] == summary
    results = fresh.start(sys.executable, "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert f"{yellow:,} of {yellow + green:,} trips are predicted" in " ".join(results.terminal.split())


@pytest.mark.slow
def test_a_model_that_can_predict_no_trip_stops_the_run(fresh: Clone) -> None:
    write_green(fresh.folder, 40)
    ended = fresh.run("taxi", {"fetch": {"source": "files", "files": {"paths": ["green.parquet"]}}}, PREDICTIONS)
    assert ended.message.startswith("InputError: none of the ")
    assert "green" in ended.message
    assert not (fresh / PREDICTIONS).exists()

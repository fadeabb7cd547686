"""The tip model: later trips are held out, the search equals scikit-learn's, and every score has an honest interval."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.metrics import r2_score

from tests.apps.taxi.cleaned_trips import BOROUGHS, SETTINGS, run_model, trips, write_parts, zones
from whitewater.errors import ResourceError
from whitewater_apps.taxi.tip_model import FeatureSet

FEATURE_SET = FeatureSet(SETTINGS.features, BOROUGHS, zones())


def metrics_of(artifact: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((artifact / "metrics.json").read_text())
    return found


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of three services, one of which has few trips."""
    folder = tmp_path_factory.mktemp("services")
    write_parts(trips(4_000), folder / "trips", service="yellow", parts=2)
    write_parts(trips(1_500, seed=1), folder / "trips", service="fhvhv")
    write_parts(trips(150), folder / "trips", service="green")
    return run_model(folder)


def test_models_beat_the_baselines_where_there_is_something_to_learn(fitted: Path) -> None:
    scores = metrics_of(fitted)["services"]["yellow"]["held_out"]
    assert scores["constant"]["r2"]["value"] < 0.05
    assert 0.05 < scores["hour_mean"]["r2"]["value"] < scores["ridge"]["r2"]["value"]
    for name in ("ridge", "forest"):
        assert scores[name]["r2_gain"]["low"] > 0
        assert scores[name]["mae_gain"]["low"] > 0
        assert scores[name]["r2"]["low"] < scores[name]["r2"]["value"] < scores[name]["r2"]["high"]


def test_metrics_say_what_was_used_and_how_it_was_chosen(fitted: Path) -> None:
    found = metrics_of(fitted)["services"]["yellow"]
    assert found["sample"]["eligible"] == (trips(4_000)["payment_type"] == 1).sum()
    assert found["sample"]["used"] == found["sample"]["limit"] == 2_000
    assert "smallest hash" in found["sample"]["rule"]
    assert found["split"]["training_trips"] + found["split"]["held_out_trips"] == 2_000
    assert [len(each["folds"]) for each in found["search"]["candidates"]] == [5] * 4
    assert found["search"]["best"]["ridge"] == {"alpha": 1.0}
    assert list(found["effects"]) == sorted(FEATURE_SET.linear_columns())
    assert sum(found["importances"].values()) == pytest.approx(1)


def test_predictions_are_of_the_latest_trips_and_give_the_reported_scores(fitted: Path) -> None:
    found, held_out = metrics_of(fitted)["services"]["yellow"], pd.read_parquet(fitted / "predictions.parquet")
    assert list(held_out.columns) == ["service", "pickup_datetime", "observed", "ridge", "forest"]
    held_out = held_out[held_out["service"] == "yellow"]
    assert held_out["pickup_datetime"].min() == pd.Timestamp(found["split"]["held_out_from"])
    assert held_out["pickup_datetime"].is_monotonic_increasing
    for name in ("ridge", "forest"):
        r2 = r2_score(held_out["observed"], held_out[name])
        assert found["held_out"][name]["r2"]["value"] == pytest.approx(r2, rel=1e-9)


def test_a_service_with_few_trips_is_skipped_with_the_reason(fitted: Path) -> None:
    green = metrics_of(fitted)["services"]["green"]
    assert green["status"] == "skipped"
    assert "trips with a recorded tip, fewer than 200" in green["reason"]


def test_results_do_not_depend_on_partitions_row_order_or_workers(tmp_path: Path) -> None:
    frame = trips(2_500)
    artifacts = []
    for parts, threads in ((1, 1), (7, 2)):
        folder = tmp_path / str(parts)
        write_parts(frame.sample(frac=1, random_state=parts), folder / "trips", service="green", parts=parts)
        artifacts.append(run_model(folder, threads=threads))
    one, two = artifacts
    for name in ("model.json", "green/ridge.json", "green/forest.treelite", "predictions.parquet"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert numbers(metrics_of(one)) == pytest.approx(numbers(metrics_of(two)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (trips(500, card=0), "0 trips with a recorded tip"),
        (trips(500, card=1).assign(pickup_datetime=pd.Timestamp("2019-03-05")), "0 trips before those held out"),
    ],
)
def test_without_any_model_the_outputs_are_still_whole(tmp_path: Path, frame: pd.DataFrame, reason: str) -> None:
    write_parts(frame, tmp_path / "trips", service="yellow")
    artifact = run_model(tmp_path)
    found = metrics_of(artifact)["services"]["yellow"]
    assert found["status"] == "skipped"
    assert found["reason"].startswith(reason)
    predictions = pd.read_parquet(artifact / "predictions.parquet")
    assert predictions.empty
    assert list(predictions.columns) == ["service", "pickup_datetime", "observed", "ridge", "forest"]


def test_more_memory_than_there_is_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parts(trips(1_500), tmp_path / "trips", service="yellow")
    monkeypatch.setattr("whitewater.engines.memory.available", lambda: 1_000)
    with pytest.raises(ResourceError, match=r"Set taxi\.model\.max_rows"):
        run_model(tmp_path)


def numbers(value: Any) -> list[float]:
    """Return every number of a JSON value, in its order."""
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [float(value)] if isinstance(value, int | float) else []

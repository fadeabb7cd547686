"""The tip model: later trips are held out, the search equals scikit-learn's, and every score has an honest interval."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import PredefinedSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.apps.taxi.cleaned_trips import BOROUGHS, drawn, trips, write_parts, zones
from whitewater.engines import Array, resolve
from whitewater.errors import ResourceError
from whitewater.learn.config import Forest
from whitewater.learn.evaluate import evaluate
from whitewater.learn.sample import Sample, split_by_time
from whitewater.learn.search import (
    FoldScore,
    ForestCandidate,
    RidgeCandidate,
    choose,
    fold_bounds,
    report,
    score_fold,
    search,
)
from whitewater.learn.trained import REFERENCE, hour_mean
from whitewater.step import Output, Run
from whitewater_apps.taxi.config import Model
from whitewater_apps.taxi.features import FeatureSet
from whitewater_apps.taxi.steps.model import model
from whitewater_apps.taxi.zones import zones_csv

DEVICE = resolve("cpu")
SETTINGS = Model(
    max_rows=2_000, ridge_alphas=(1.0, 1e6), forest=Forest(trees=(5,), depths=(2, 6), rows_per_tree=500), bootstrap=40
)
WHICH = FeatureSet(SETTINGS.features, BOROUGHS)
Task = TypeVar("Task")
Result = TypeVar("Result")


def here(function: Callable[[Task], Result], tasks: Sequence[Task], *, label: str) -> Iterator[Result]:
    return map(function, tasks)


def sample_of(folder: Path, rows: int = 3_000) -> Sample:
    return drawn(write_parts(trips(rows), folder, service="yellow"), 2_000, which=WHICH)


def run_model(folder: Path, *, threads: int = 2, **settings: Any) -> Path:
    (folder / "zones.csv").write_text(zones_csv(zones()))
    run = Run("taxi", "model", DEVICE, SETTINGS.model_copy(update=settings), threads=threads)
    model(run, trips=folder / "trips", zones=folder / "zones.csv", model=Output(folder / "model"))
    return folder / "model"


def metrics_of(artifact: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((artifact / "metrics.json").read_text())
    return found


class TestSplit:
    def test_held_out_trips_are_the_latest(self, tmp_path: Path) -> None:
        sample = sample_of(tmp_path)
        split = split_by_time(sample, 0.2)
        assert split.training.time.max() < split.moment <= split.held_out.time.min()
        assert len(split.held_out) == pytest.approx(0.2 * len(sample), abs=2)
        assert split.rows == len(sample)

    def test_trips_of_one_moment_stay_together(self, tmp_path: Path) -> None:
        sample = sample_of(tmp_path)
        hours = Sample(sample.hashes, sample.time // 86_400_000_000, sample.target, sample.features, sample.eligible)
        split = split_by_time(hours, 0.5)
        assert not set(split.training.time) & set(split.held_out.time)

    def test_both_parts_stay_in_the_order_of_the_hash(self, tmp_path: Path) -> None:
        split = split_by_time(sample_of(tmp_path), 0.2)
        for part in (split.training, split.held_out):
            assert (np.diff(part.hashes.astype(object)) >= 0).all()


class TestSearch:
    def test_each_trip_is_in_one_fold(self) -> None:
        bounds = fold_bounds(103, 5)
        rows = [row for first, last in bounds for row in range(first, last)]
        assert rows == list(range(103))
        assert {last - first for first, last in bounds} == {20, 21}

    @pytest.mark.parametrize("alpha", [1.0, 1e4])
    def test_ridge_scores_are_those_of_scikit_learn(self, tmp_path: Path, alpha: float) -> None:
        sample = sample_of(tmp_path)
        fold = np.repeat(np.arange(5), [last - first for first, last in fold_bounds(len(sample), 5)])
        expected = cross_validate(
            make_pipeline(StandardScaler(), Ridge(alpha=alpha)),
            WHICH.linear(sample.features, DEVICE),
            sample.target,
            cv=PredefinedSplit(fold),
            scoring=("r2", "neg_mean_absolute_error"),
        )
        found = [
            score_fold(("yellow", RidgeCandidate(alpha), number, sample.features, sample.target),
                       forms=WHICH, settings=SETTINGS, device=DEVICE)
            for number in range(5)
        ]  # fmt: skip
        assert [score.r2 for score in found] == pytest.approx(expected["test_r2"], rel=1e-9)
        assert [-score.mae for score in found] == pytest.approx(expected["test_neg_mean_absolute_error"], rel=1e-9)

    def test_the_grid_is_searched_whole_and_the_best_candidates_are_chosen(self, tmp_path: Path) -> None:
        sample = sample_of(tmp_path)
        training: dict[str, tuple[Array, Array]] = {"yellow": (sample.features, sample.target)}
        found = search(training, forms=WHICH, settings=SETTINGS, device=DEVICE, run_tasks=here)["yellow"]
        chosen = choose(found)
        assert len(found) == 4 * 5
        assert chosen[0] == RidgeCandidate(1.0)
        assert chosen[1] == ForestCandidate(trees=5, depth=6)

    def test_the_choice_does_not_depend_on_the_order_in_which_tasks_end(self, tmp_path: Path) -> None:
        scores = [
            FoldScore("yellow", candidate, fold, error, None, 0.1)
            for candidate, error in ((RidgeCandidate(1), 0.2), (RidgeCandidate(9), 0.2), (ForestCandidate(1, 2), 0.3))
            for fold in range(5)
        ]
        assert choose(scores) == choose(scores[::-1])
        assert choose(scores)[0] == RidgeCandidate(9)
        assert report(scores) == report(scores[::-1])


class TestEvaluation:
    def observed(self) -> tuple[Array, dict[str, Array]]:
        random = np.random.default_rng(0)
        observed = random.gamma(2, 0.1, 500)
        return observed, {"hour_mean": np.full(500, 0.19), "good": observed + random.normal(0, 0.05, 500)}

    def test_values_are_those_of_scikit_learn(self) -> None:
        observed, predictions = self.observed()
        scores = evaluate(observed, predictions, reference=REFERENCE, replicates=20, seed=1, device=DEVICE)
        for name, prediction in predictions.items():
            assert scores[name]["r2"]["value"] == pytest.approx(r2_score(observed, prediction), rel=1e-9)
            assert scores[name]["mae"]["value"] == pytest.approx(mean_absolute_error(observed, prediction), rel=1e-9)
        gain = r2_score(observed, predictions["good"]) - r2_score(observed, predictions["hour_mean"])
        assert scores["good"]["r2_gain"]["value"] == pytest.approx(gain, rel=1e-9)

    def test_intervals_are_percentiles_over_resampled_trips(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("whitewater.learn.evaluate._BLOCK_BYTES", 7 * 8 * 500)
        observed, predictions = self.observed()
        rows = [np.random.default_rng([1, replicate]).integers(0, 500, 500) for replicate in range(60)]
        r2 = [r2_score(observed[each], predictions["good"][each]) for each in rows]
        mae = [mean_absolute_error(observed[each], predictions["good"][each]) for each in rows]
        scores = evaluate(observed, predictions, reference=REFERENCE, replicates=60, seed=1, device=DEVICE)["good"]
        for name, resampled in (("r2", r2), ("mae", mae)):
            expected = np.quantile(resampled, [0.025, 0.975])
            np.testing.assert_allclose([scores[name]["low"], scores[name]["high"]], expected)

    def test_a_target_that_does_not_vary_has_no_r2(self) -> None:
        observed = np.full(50, 0.2)
        scores = evaluate(
            observed, {"hour_mean": observed + 0.1}, reference=REFERENCE, replicates=20, seed=1, device=DEVICE
        )["hour_mean"]
        assert scores["r2"] == {"value": None, "low": None, "high": None}
        assert scores["mae"]["value"] == pytest.approx(0.1)

    def test_the_baseline_is_the_mean_of_the_hour_of_training_trips(self) -> None:
        frame = trips(2_000).assign(target=np.random.default_rng(0).random(2_000))
        frame = frame[frame["pickup_datetime"].dt.hour != 4]
        later = trips(300, seed=1)["pickup_datetime"]
        means = frame.groupby(frame["pickup_datetime"].dt.hour)["target"].mean().reindex(range(24))
        expected = later.dt.hour.map(means.fillna(frame["target"].mean()))
        target = frame["target"].to_numpy()
        found = hour_mean(target, microseconds(frame["pickup_datetime"]), microseconds(later), DEVICE)
        np.testing.assert_allclose(found, expected)


def microseconds(times: Any) -> Array:
    values: Array = times.to_numpy().astype("datetime64[us]").astype(np.int64)
    return values


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of three services, one of which has few trips."""
    folder = tmp_path_factory.mktemp("services")
    write_parts(trips(4_000), folder / "trips", service="yellow", parts=2)
    write_parts(trips(1_500, seed=1), folder / "trips", service="fhvhv")
    write_parts(trips(150), folder / "trips", service="green")
    return run_model(folder)


class TestStep:
    def test_models_beat_the_baselines_where_there_is_something_to_learn(self, fitted: Path) -> None:
        scores = metrics_of(fitted)["services"]["yellow"]["held_out"]
        assert scores["constant"]["r2"]["value"] < 0.05
        assert 0.05 < scores["hour_mean"]["r2"]["value"] < scores["ridge"]["r2"]["value"]
        for name in ("ridge", "forest"):
            assert scores[name]["r2_gain"]["low"] > 0
            assert scores[name]["mae_gain"]["low"] > 0
            assert scores[name]["r2"]["low"] < scores[name]["r2"]["value"] < scores[name]["r2"]["high"]

    def test_metrics_say_what_was_used_and_how_it_was_chosen(self, fitted: Path) -> None:
        found = metrics_of(fitted)["services"]["yellow"]
        assert found["sample"]["eligible"] == (trips(4_000)["payment_type"] == 1).sum()
        assert found["sample"]["used"] == found["sample"]["limit"] == 2_000
        assert "smallest hash" in found["sample"]["rule"]
        assert found["split"]["training_trips"] + found["split"]["held_out_trips"] == 2_000
        assert [len(each["folds"]) for each in found["search"]["candidates"]] == [5] * 4
        assert found["search"]["best"]["ridge"] == {"alpha": 1.0}
        assert list(found["effects"]) == sorted(WHICH.linear_columns())
        assert sum(found["importances"].values()) == pytest.approx(1)

    def test_predictions_are_of_the_latest_trips_and_give_the_reported_scores(self, fitted: Path) -> None:
        found, held_out = metrics_of(fitted)["services"]["yellow"], pd.read_parquet(fitted / "predictions.parquet")
        assert list(held_out.columns) == ["service", "pickup_datetime", "observed", "ridge", "forest"]
        held_out = held_out[held_out["service"] == "yellow"]
        assert held_out["pickup_datetime"].min() == pd.Timestamp(found["split"]["held_out_from"])
        assert held_out["pickup_datetime"].is_monotonic_increasing
        for name in ("ridge", "forest"):
            r2 = r2_score(held_out["observed"], held_out[name])
            assert found["held_out"][name]["r2"]["value"] == pytest.approx(r2, rel=1e-9)

    def test_a_service_with_few_trips_is_skipped_with_the_reason(self, fitted: Path) -> None:
        green = metrics_of(fitted)["services"]["green"]
        assert green["status"] == "skipped"
        assert "trips with a recorded tip, fewer than 200" in green["reason"]

    def test_results_do_not_depend_on_partitions_row_order_or_workers(self, tmp_path: Path) -> None:
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
    def test_without_any_model_the_outputs_are_still_whole(
        self, tmp_path: Path, frame: pd.DataFrame, reason: str
    ) -> None:
        write_parts(frame, tmp_path / "trips", service="yellow")
        artifact = run_model(tmp_path)
        found = metrics_of(artifact)["services"]["yellow"]
        assert found["status"] == "skipped"
        assert found["reason"].startswith(reason)
        predictions = pd.read_parquet(artifact / "predictions.parquet")
        assert predictions.empty
        assert list(predictions.columns) == ["service", "pickup_datetime", "observed", "ridge", "forest"]

    def test_more_memory_than_there_is_is_refused_before_the_work(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
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

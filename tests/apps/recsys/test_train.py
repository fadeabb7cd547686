"""The step train and its measures, against scikit-learn."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from whitewater.engines import resolve
from whitewater.engines.gpu import GpuDevice
from whitewater.errors import DeviceError, InputError
from whitewater.features.feature_folder import open_features, write_features, write_file
from whitewater.features.schema import Field, Schema
from whitewater.learn.estimators import fit_boosted_trees
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Train
from whitewater_apps.recsys.prediction_quality import area_under_curve, quality
from whitewater_apps.recsys.steps.train import load_matrix, train

CPU = resolve("cpu")
FIELDS = (
    Field("I1_plain", pa.float32(), ("plain",)),
    Field("I1", pa.float32(), ("numbers",)),
    Field("C1", pa.int32(), ("categorical", "ids")),
    Field("words", pa.list_(pa.int32()), ("lists",)),
    Field("label", pa.int8(), ("label",)),
    Field("row_id", pa.int64(), ("key",)),
)


def folder(path: Path, rows: int, *, seed: int, files: int = 1, **columns: Any) -> Path:
    """Write features whose label depends on I1, and on the parity of C1."""
    generator = np.random.default_rng(seed)
    number, word = generator.normal(size=rows), generator.integers(0, 10, rows)
    odds = 1.5 * number + 2.0 * (word % 2) - 1
    data: dict[str, Any] = {
        "I1_plain": np.exp(number).astype(np.float32),
        "I1": number.astype(np.float32),
        "C1": word.astype(np.int32),
        "words": [[1]] * rows,
        "label": (odds + generator.logistic(size=rows) > 0).astype(np.int8),
        "row_id": np.arange(rows),
    } | columns
    path.mkdir()
    table = pa.table(data, pa.schema([(each.name, each.type) for each in FIELDS]))
    parts = [table.slice(start, -(-rows // files)) for start in range(0, rows, max(1, -(-rows // files)))]
    written = [write_file(path, number, part, Schema(FIELDS), row_group_rows=500) for number, part in enumerate(parts)]
    write_features(path, Schema(FIELDS), written, seed=None)
    return path


def trained(tmp_path: Path, *, threads: int = 1, name: str = "metrics.json", **settings: Any) -> dict[str, Any]:
    run = Run("recsys", "train", CPU, Train(trees=20, depth=3, **settings), threads)
    parts = {part: tmp_path / part for part in ("train", "valid", "test")}
    train(run, **parts, metrics=Output(tmp_path / name))
    found: dict[str, Any] = json.loads((tmp_path / name).read_text())
    return found


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for seed, (part, rows) in enumerate({"train": 3000, "valid": 1000, "test": 1001}.items()):
        folder(tmp_path / part, rows, seed=seed)
    return tmp_path


# ---- quality


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40))
def test_auc_is_that_of_scikit_learn_ties_included(rows: list[tuple[bool, int]]) -> None:
    positive = np.array([label for label, _ in rows])
    predictions = np.array([value / 5 for _, value in rows], np.float32)
    found, _ = area_under_curve(positive, predictions)
    if positive.all() or not positive.any():
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(positive, predictions), abs=1e-12)


def test_log_loss_and_calibration_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(1)
    predictions = generator.random(1000)
    labels = (generator.random(1000) < predictions**2).astype(np.float64)
    found = quality(labels, predictions)
    assert found["log_loss"] == pytest.approx(log_loss(labels, predictions), rel=1e-9)
    observed, predicted = calibration_curve(labels, predictions, n_bins=10, strategy="quantile")
    assert [each["observed"] for each in found["calibration"]] == pytest.approx(observed, abs=0.011)
    assert [each["predicted"] for each in found["calibration"]] == pytest.approx(predicted, abs=0.002)
    assert found["calibration_error"] == pytest.approx(np.abs(observed - predicted).mean(), abs=0.003)


def test_equal_predictions_are_in_one_bin_so_that_the_order_of_rows_tells_nothing() -> None:
    labels = np.append(np.ones(500), np.zeros(500))
    alike = quality(labels, np.full(1000, 0.5))
    assert (len(alike["calibration"]), alike["calibration_error"]) == (1, 0.0)
    leaves = np.random.default_rng(3).integers(0, 4, 1000) / 4
    order = np.random.default_rng(4).permutation(1000)
    assert quality(labels, leaves)["calibration"] == quality(labels[order], leaves[order])["calibration"]
    assert [each["predicted"] for each in quality(labels, leaves)["calibration"]] == [0, 0.25, 0.5, 0.75]


def test_standard_error_of_the_auc_is_the_spread_over_samples() -> None:
    generator = np.random.default_rng(2)
    samples = []
    for _ in range(400):
        labels = (np.arange(300) < 100).astype(np.float64)
        samples.append(quality(labels, generator.normal(size=300) + labels))
    spread = np.std([each["auc"] for each in samples])
    errors = [each["auc_standard_error"] for each in samples]
    assert np.mean(errors) == pytest.approx(spread, rel=0.15)


def test_a_certain_and_wrong_prediction_costs_much_but_not_infinitely() -> None:
    assert 1 < quality(np.array([1.0, 0.0]), np.array([0.0, 0.0]))["log_loss"] < 20


# ---- the matrix


def test_predictions_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        quality(np.array([0.0, 1.0, 1.0]), np.array([0.5, np.nan, 0.5]))


def test_rows_are_drawn_evenly_over_files(tmp_path: Path) -> None:
    numbers = np.arange(1001)
    made = folder(tmp_path / "f", 1001, seed=1, files=3, I1=numbers.astype(np.float32), C1=numbers.astype(np.int32))
    features, labels = load_matrix(open_features(made), ["C1", "I1"], CPU, maximum_rows=300)
    assert features.tolist() == [[number, number] for number in range(0, 1001, 4)]
    assert len(labels) == 251


# ---- the step


def test_features_are_worth_what_is_lost_without_them(parts: Path) -> None:
    trees = trained(parts)["models"]["boosted_trees"]
    assert set(trees) == {"all", "plain", "without numbers", "without ids"}
    assert trees["all"]["auc"] > trees["plain"]["auc"] + 0.02
    assert trees["all"]["auc"] > trees["without ids"]["auc"] + 0.02
    assert trees["all"]["auc"] > trees["without numbers"]["auc"] + 0.1


def test_regression_is_scikit_learns_on_standardized_numbers_without_ids(parts: Path) -> None:
    found = trained(parts)["models"]["logistic_regression"]
    assert set(found) == {"all", "plain"}
    train_rows, test_rows = (pd.read_parquet(parts / part / "part-00000.parquet") for part in ("train", "test"))
    mean, spread = train_rows["I1"].mean(), train_rows["I1"].std(ddof=0)
    model = LogisticRegression().fit((train_rows[["I1"]] - mean) / spread, train_rows["label"])
    predicted = model.predict_proba((test_rows[["I1"]] - mean) / spread)[:, 1]
    assert found["all"]["auc"] == pytest.approx(roc_auc_score(test_rows["label"], predicted), abs=1e-9)
    assert found["all"]["log_loss"] == pytest.approx(log_loss(test_rows["label"], predicted), abs=1e-5)


def test_metrics_are_the_same_for_any_number_of_threads(parts: Path) -> None:
    assert trained(parts, threads=1, name="one.json") == trained(parts, threads=2, name="two.json")


def test_nulls_are_values_to_trees_and_means_to_the_regression(tmp_path: Path) -> None:
    values = np.where(np.arange(1000) % 3 == 0, np.nan, 1.0).astype(np.float32)
    for seed, part in enumerate(("train", "valid", "test")):
        labels = (np.isnan(values) ^ (np.random.default_rng(seed).random(1000) < 0.1)).astype(np.int8)
        folder(tmp_path / part, 1000, seed=seed, I1=values, I1_plain=values, label=labels)
    models = trained(tmp_path)["models"]
    assert models["boosted_trees"]["plain"]["auc"] > 0.8
    assert models["logistic_regression"]["plain"]["auc"] == 0.5


def test_features_that_are_infinite_are_named(tmp_path: Path) -> None:
    for seed, part in enumerate(("train", "valid", "test")):
        folder(tmp_path / part, 100, seed=seed, I1=np.where(np.arange(100) == 7, -np.inf, 1.0).astype(np.float32))
    with pytest.raises(InputError, match=r"train: a value of I1 is infinite, or .* Bound it by Clip"):
        trained(tmp_path)


def test_fewer_rows_than_there_are_is_said(parts: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = trained(parts, maximum_rows=1000)
    assert found["parts"]["train"] == {"rows": 1000, "of": 3000} | {"label_rate": found["parts"]["train"]["label_rate"]}
    assert "1000 of 3000 rows" in caplog.text


@pytest.mark.parametrize("label", [0, 1])
def test_training_rows_of_one_label_are_refused(tmp_path: Path, label: int) -> None:
    for seed, part in enumerate(("train", "valid", "test")):
        folder(tmp_path / part, 100, seed=seed, label=np.full(100, label, np.int8))
    with pytest.raises(InputError, match=f"label {label}"):
        trained(tmp_path)
    assert not (tmp_path / "metrics.json").exists()


def test_validation_rows_without_any_leave_all_trees(tmp_path: Path) -> None:
    for seed, (part, rows) in enumerate({"train": 500, "valid": 0, "test": 500}.items()):
        folder(tmp_path / part, rows, seed=seed)
    assert trained(tmp_path)["models"]["boosted_trees"]["all"]["trees"] == 20


@pytest.mark.skipif(xgboost.build_info()["USE_CUDA"], reason="this XGBoost computes on GPUs")
def test_trees_for_a_gpu_are_refused_by_an_xgboost_for_cpus() -> None:
    rows = np.zeros((2, 1), np.float32), np.array([0, 1], np.float32)
    with pytest.raises(DeviceError, match="xgboost-cpu"):
        fit_boosted_trees(GpuDevice(), rows, rows, trees=1, depth=1, learning_rate=0.1, seed=0, threads=1)

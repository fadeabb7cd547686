"""A stored tip model predicts what the fitted one did, in any batch, and no changed byte of it is ever used."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.apps.taxi.cleaned_trips import BOROUGHS, drawn, trips, write, write_parts, zones
from whitewater.engines import Array, resolve
from whitewater.engines.choose import Engine
from whitewater.errors import InputError, IntegrityError
from whitewater.learn.config import Forest
from whitewater.learn.estimators import forest_as_treelite
from whitewater.learn.sample import Sample
from whitewater.learn.search import ForestCandidate, ForestModel, RidgeCandidate, fit_forest, fit_ridge
from whitewater.learn.trained import Models
from whitewater.step import Output, Run
from whitewater_apps.taxi.artifact import TipModel, load, save
from whitewater_apps.taxi.config import Model, Predict
from whitewater_apps.taxi.features import FeatureSet
from whitewater_apps.taxi.steps.predict import predict
from whitewater_apps.taxi.zones import zones_csv

DEVICE = resolve("cpu")
SETTINGS = Model(forest=Forest(rows_per_tree=1_000))
WHICH = FeatureSet(SETTINGS.features, BOROUGHS)
FRAME = trips(2_000)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return drawn(write_parts(FRAME, tmp_path_factory.mktemp("trips"), service="yellow"), 10_000, which=WHICH)


@pytest.fixture(scope="module")
def fitted(sample: Sample) -> TipModel:
    ridge, _ = fit_ridge(sample.features, sample.target, RidgeCandidate(5.0), forms=WHICH, device=DEVICE)
    grown = fit_forest(
        sample.features, sample.target, ForestCandidate(10, 6), forms=WHICH, settings=SETTINGS, device=DEVICE
    )
    forest = ForestModel(forest_as_treelite(grown, DEVICE))
    return TipModel(WHICH, {"yellow": Models(ridge, forest)})


@pytest.fixture
def stored(fitted: TipModel, tmp_path: Path) -> Path:
    save(fitted, tmp_path / "model")
    return tmp_path / "model"


def test_a_reloaded_ridge_predicts_what_scikit_learn_does(sample: Sample, stored: Path) -> None:
    columns = WHICH.linear(sample.features, DEVICE)
    expected = make_pipeline(StandardScaler(), Ridge(alpha=5.0)).fit(columns, sample.target).predict(columns)
    predicted = load(stored).services["yellow"].ridge.predict(sample.features, WHICH, DEVICE)
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-12)


def test_a_reloaded_forest_predicts_what_scikit_learn_does(sample: Sample, stored: Path) -> None:
    rows = WHICH.tree(sample.features, DEVICE)
    forest = RandomForestRegressor(
        n_estimators=10,
        max_depth=6,
        max_features=1 / 3,
        min_samples_leaf=5,
        max_samples=1_000 / len(sample),
        random_state=SETTINGS.seed,
    )
    expected = forest.fit(rows, sample.target).predict(rows)
    predicted = load(stored).services["yellow"].forest.predict(sample.features, WHICH, DEVICE)
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-6)


def test_a_reloaded_model_is_the_model(fitted: TipModel, stored: Path) -> None:
    assert load(stored) == fitted


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tip model"):
        load(tmp_path)


def test_a_model_of_the_first_format_is_refused_with_the_step_that_fits_it_again(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"format": 1, "sha256": "signed in another way"}))
    with pytest.raises(InputError, match=r"has format 1; this version reads 2\. Run the step model again\."):
        load(tmp_path)


def run_predict(folder: Path, trips_path: Path, model: Path, name: str, engine: Engine = "local") -> pd.DataFrame:
    (folder / "zones.csv").write_text(zones_csv(zones()))
    run = Run("taxi", "predict", DEVICE, Predict(), threads=2, engine=engine)
    predict(run, trips=trips_path, zones=folder / "zones.csv", model=model, predictions=Output(folder / name))
    return pd.read_parquet(folder / name)


def test_predictions_are_those_of_the_model_row_by_row(sample: Sample, stored: Path, tmp_path: Path) -> None:
    predicted = run_predict(tmp_path, write_parts(FRAME, tmp_path / "trips", service="yellow"), stored, "predictions")
    known = predicted[predicted["observed"].notna()]
    assert len(predicted) == len(FRAME)
    assert (predicted["pickup_datetime"].to_numpy() == FRAME["pickup_datetime"].to_numpy()).all()
    model = load(stored).services["yellow"]
    alone: list[Array] = [
        np.concatenate([model.ridge.predict(row, WHICH, DEVICE), model.forest.predict(row, WHICH, DEVICE)])
        for row in sample.features[:50, np.newaxis]
    ]
    for number, (ridge, forest) in enumerate(alone):
        same = known["pickup_datetime"].astype("int64").eq(sample.time[number])
        same &= np.isclose(known["observed"], sample.target[number])
        np.testing.assert_allclose(known.loc[same, "ridge"], [ridge], rtol=0, atol=1e-12)
        np.testing.assert_allclose(known.loc[same, "forest"], [forest], rtol=0, atol=1e-6)


def test_one_file_of_all_services_gives_the_same_predictions_as_partitions(stored: Path, tmp_path: Path) -> None:
    green = trips(500, seed=1)
    write_parts(green, tmp_path / "trips", service="green")
    write_parts(FRAME, tmp_path / "trips", service="yellow", parts=3)
    whole = write(pd.concat([green.assign(service="green"), FRAME.assign(service="yellow")]), tmp_path / "all.parquet")
    first = run_predict(tmp_path, tmp_path / "trips", stored, "first")
    second = run_predict(tmp_path, whole, stored, "second")
    pd.testing.assert_frame_equal(first, second)


def test_both_engines_write_the_same_bytes(stored: Path, tmp_path: Path) -> None:
    frame = pd.concat([FRAME.assign(service="yellow"), trips(500, seed=1).assign(service="green")])
    mixed = write(frame.sample(frac=1, random_state=0), tmp_path / "all.parquet", row_group_size=999)
    for engine in ("local", "dask"):
        run_predict(tmp_path, mixed, stored, engine, engine)
    files = [file.relative_to(tmp_path / "local") for file in sorted((tmp_path / "local").rglob("*.*"))]
    assert len(files) == 1 + 2 * 3
    for file in files:
        assert (tmp_path / "local" / file).read_bytes() == (tmp_path / "dask" / file).read_bytes()


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_trips_that_cannot_be_read_are_refused_by_the_name_of_their_file(
    stored: Path, tmp_path: Path, engine: Engine
) -> None:
    path = next(write_parts(FRAME, tmp_path / "trips", service="yellow").rglob("*.parquet"))
    data = bytearray(path.read_bytes())
    data[4:4000] = bytes(3996)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"part-0\.parquet cannot be read"):
        run_predict(tmp_path, path.parents[3], stored, "predictions", engine)


def test_no_trips_are_refused(stored: Path, tmp_path: Path) -> None:
    empty = write_parts(FRAME.head(0), tmp_path / "trips", service="yellow")
    with pytest.raises(InputError, match="holds no trips to predict"):
        run_predict(tmp_path, empty, stored, "predictions")


def test_every_file_is_listed_and_a_changed_or_lost_one_is_refused(stored: Path) -> None:
    listed = set(json.loads((stored / "model.json").read_text())["files"])
    assert listed == {path.relative_to(stored).as_posix() for path in stored.rglob("*.*")} - {"model.json"}
    for name in listed:
        data = (stored / name).read_bytes()
        (stored / name).write_bytes(bytes([data[0] ^ 1]) + data[1:])
        with pytest.raises(IntegrityError, match=f"{name} was changed or cut off"):
            load(stored)
        (stored / name).unlink()
        with pytest.raises(InputError, match=f"{name} is missing or cannot be read"):
            load(stored)
        (stored / name).write_bytes(data)

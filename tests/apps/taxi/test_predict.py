"""The step `predict`: a stored tip model predicts of each trip what the fitted one did, in any files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.apps.taxi.cleaned_trips import run_model, trips, write, write_parts, zones
from whitewater.engines import resolve
from whitewater.engines.config import Engine
from whitewater.errors import InputError
from whitewater.step import Output, Run
from whitewater_apps.taxi.config import Predict
from whitewater_apps.taxi.steps.predict import predict
from whitewater_apps.taxi.tip_model import load
from whitewater_apps.taxi.zones import zones_csv

DEVICE = resolve("cpu")
FRAME = trips(2_000)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("yellow")
    write_parts(FRAME, folder / "trips", service="yellow")
    return run_model(folder)


def test_a_model_of_the_first_format_is_refused_with_the_step_that_fits_it_again(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"format": 1, "sha256": "signed in another way"}))
    with pytest.raises(InputError, match=r"has format 1; this version reads 2\. Run the step model again\."):
        load(tmp_path, zones())


def run_predict(folder: Path, trips_path: Path, model: Path, name: str, engine: Engine = "local") -> pd.DataFrame:
    (folder / "zones.csv").write_text(zones_csv(zones()))
    run = Run("taxi", "predict", DEVICE, Predict(), threads=2, engine=engine)
    predict(run, trips=trips_path, zones=folder / "zones.csv", model=model, predictions=Output(folder / name))
    return pd.read_parquet(folder / name)


def test_predictions_are_those_of_the_fitted_model_trip_by_trip(stored: Path, tmp_path: Path) -> None:
    parts = write_parts(FRAME, tmp_path / "trips", service="yellow", parts=7)
    predicted = run_predict(tmp_path, parts, stored, "predictions")
    assert (predicted["pickup_datetime"].to_numpy() == FRAME["pickup_datetime"].to_numpy()).all()
    held_out = pd.read_parquet(stored / "predictions.parquet")
    both = held_out.merge(predicted, on=["pickup_datetime", "observed"], suffixes=("", "_again"))
    assert len(both) == len(held_out) > 100
    np.testing.assert_allclose(both["ridge_again"], both["ridge"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both["forest_again"], both["forest"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_one_file_of_all_services_gives_the_same_predictions_as_partitions(
    stored: Path, tmp_path: Path, engine: Engine
) -> None:
    green = trips(500, seed=1)
    write_parts(green, tmp_path / "trips", service="green")
    write_parts(FRAME, tmp_path / "trips", service="yellow", parts=3)
    mixed = pd.concat([green.assign(service="green"), FRAME.assign(service="yellow")]).sort_index(kind="stable")
    whole = write(mixed, tmp_path / "all.parquet", row_group_size=999)
    first = run_predict(tmp_path, tmp_path / "trips", stored, "first")
    second = run_predict(tmp_path, whole, stored, "second", engine)
    pd.testing.assert_frame_equal(first, second)


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

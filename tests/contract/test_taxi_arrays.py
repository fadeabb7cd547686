"""Features, models and predictions of trips keep to what CuPy and cuML can do: as strict a device gives the CPU's.

Trips come as arrays from Polars here; how cuDF makes them is in `test_taxi_frames`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.apps.taxi.pipeline import Results, run_taxi
from tests.apps.taxi.raw_trips import write_raw
from tests.apps.taxi.test_engines import DIRTY
from tests.contract.device_array import recording
from tests.contract.executed import ROOT, Line, executed_lines, never_run
from tests.contract.signatures import Call, Describe, problems
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.engines import Device, resolve
from whitewater.step import Output, Run
from whitewater_apps.taxi.config import Model, Predict
from whitewater_apps.taxi.steps.model import model
from whitewater_apps.taxi.steps.predict import predict

# Forests are fitted on float32 and, as cuML's, predict float32.
RTOL, ATOL = 1e-5, 1e-6
TAXI = ROOT.with_name("whitewater_apps") / "taxi"
NAMES = ("features", "fit", "prediction", "sample")
DEVICE_CODE = [*(TAXI / f"{name}.py" for name in NAMES), ROOT / "tables" / "hashing.py"]
# Parts of kernels, which are compiled for the CPU, and what only `tests/apps/taxi` runs.
COMPILED = {"xxh64", "_stripes", "eight_bytes", "_four_bytes", "_codes"}
SETTINGS = Model.model_validate(
    {**DIRTY["model"], "features": [*Model().features, "congestion_surcharge", "airport_fee"], "ridge_alphas": [1, 100]}
)


@dataclass(frozen=True)
class Scenario:
    """What the steps made on the CPU and on the strict device, and what they did there."""

    cpu: Path
    strict: Path
    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]


def run_steps(device: Device, cleaned: Results, zones: Path, folder: Path) -> Path:
    """Fit models to cleaned trips, and predict those of the data set and of a file of one service after the other."""
    folder.mkdir()
    trips, fitted = cleaned.folder / "trips", Output(folder / "model")
    model(Run("taxi", "model", device, SETTINGS), trips=trips, zones=zones, model=fitted)
    one_file = folder / "one.parquet"
    cleaned.trips().to_parquet(one_file)
    for name, given in (("predictions", trips), ("predictions_of_one_file", one_file)):
        predict(Run("taxi", "predict", device, Predict()), trips=given, zones=zones, model=fitted,
                predictions=Output(folder / name))  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("taxi")
    files, zones = write_raw(folder)
    cleaned = run_taxi(files, zones=zones, folder=folder / "made", device=resolve("cpu"), settings=DIRTY, upto="clean")
    with stand_in_for_cupy(), recording() as calls, executed_lines(ROOT.parent) as lines:
        strict = run_steps(StrictDevice(), cleaned, zones, folder / "strict")
    return Scenario(run_steps(Device(), cleaned, zones, folder / "cpu"), strict, calls, lines)


def test_every_call_is_one_that_rapids_accepts(scenario: Scenario, rapids: Describe) -> None:
    assert problems(scenario.calls, rapids) == []
    called = {call.name for call in scenario.calls}
    assert {"cupy.where", "cupy.ndarray.astype", "cupy.ndarray.__rshift__", "cuml.linear_model.Ridge.fit"} <= called
    assert {
        "cuml.linear_model.Ridge",
        "cuml.ensemble.RandomForestRegressor",
        "nvforest.load_from_treelite_model",
    } <= called


@pytest.mark.parametrize("path", DEVICE_CODE, ids=lambda path: path.name)
def test_every_line_that_handles_arrays_of_a_device_ran_on_the_strict_one(scenario: Scenario, path: Path) -> None:
    assert never_run(path, scenario.lines, without=COMPILED) == []


@pytest.mark.parametrize("name", ["predictions", "predictions_of_one_file"])
def test_predictions_are_the_same(scenario: Scenario, name: str) -> None:
    cpu, strict = (pd.read_parquet(each / name) for each in (scenario.cpu, scenario.strict))
    assert len(cpu) > 500
    pd.testing.assert_frame_equal(strict, cpu, rtol=RTOL, atol=ATOL)


def test_the_models_score_the_same(scenario: Scenario) -> None:
    cpu, strict = (
        json.loads((each / "model" / "metrics.json").read_text())["services"]
        for each in (scenario.cpu, scenario.strict)
    )
    assert {service for service, each in cpu.items() if each["status"] == "fitted"} == {"yellow", "green", "fhvhv"}
    for service in cpu:
        for name, scores in cpu[service]["held_out"].items():
            for score, interval in scores.items():
                found = strict[service]["held_out"][name][score]
                np.testing.assert_allclose(list(found.values()), list(interval.values()), rtol=RTOL, atol=ATOL)

"""The steps of the taxi application that handle arrays, in one process, on a device and trips of a few months.

Trips come as arrays from Polars here; how cuDF makes them is in `test_taxi_frames`.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.gpu_proof.same import Rule
from tests.apps.taxi.pipeline import run_taxi
from tests.apps.taxi.raw_trips import write_raw
from tests.apps.taxi.test_engines import DIRTY
from tests.contract.site import Site
from whitewater.engines import Device
from whitewater.step import Output
from whitewater_apps.taxi.config import Model, Predict
from whitewater_apps.taxi.steps.model import model
from whitewater_apps.taxi.steps.predict import predict

SETTINGS = Model.model_validate(
    {**DIRTY["model"], "features": [*Model().features, "congestion_surcharge", "airport_fee"], "ridge_alphas": [1, 100]}
)
# Forests are fitted on float32 and, as cuML's, predict float32.
RULES = (
    Rule("predictions*", 1e-5),
    Rule("model/metrics.json", 1e-5, left_out=("importances",)),
    Rule("model/*", compared=False),
)


def write_trips(directory: Path) -> Path:
    """Write trips, cleaned on the CPU, as a data set and as one file of them all; and zones."""
    files, zones = write_raw(directory)
    cleaned = run_taxi(files, zones=zones, folder=directory / "inputs", device=Device(), settings=DIRTY, upto="clean")
    zones.rename(cleaned.folder / "zones.csv")
    pd.read_parquet(cleaned.folder / "trips").to_parquet(cleaned.folder / "one.parquet")
    return cleaned.folder


def run_steps(site: Site, *, inputs: Path, results: Path) -> None:
    """Fit models to cleaned trips, and predict those of the data set and of a file of one service after the other."""
    results.mkdir()
    trips, zones, fitted = inputs / "trips", inputs / "zones.csv", Output(results / "model")
    site.run("taxi", model, settings=SETTINGS, trips=trips, zones=zones, model=fitted)
    for name, given in (("predictions", trips), ("predictions_of_one_file", inputs / "one.parquet")):
        site.run(
            "taxi", predict, settings=Predict(), case=name, trips=given, zones=zones, model=fitted,
            predictions=Output(results / name),
        )  # fmt: skip

"""The steps of the taxi application in one process, on a device and raw trips of a few months."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.gpu_proof.same import Rule
from tests.apps.taxi.pipeline import steps
from tests.apps.taxi.raw_trips import write_raw
from tests.apps.taxi.test_engines import DIRTY
from tests.contract.executed import APPLICATIONS, ROOT
from tests.contract.site import Site
from tests.guarantees.running import listed
from whitewater.io.store import read_json, write_json
from whitewater.step import Output
from whitewater_apps.taxi.config import Model, Taxi

MODEL = {"features": [*Model().features, "congestion_surcharge", "airport_fee"], "ridge_alphas": [1, 100]}
SETTINGS = Taxi.model_validate({**DIRTY, "model": {**DIRTY["model"], **MODEL}})
# Forests are fitted on float32 and, as cuML's, predict float32. All else is equal byte by byte.
RULES = (
    Rule("predictions*", 1e-5),
    Rule("model/metrics.json", 1e-5, left_out=("importances",)),
    Rule("model/*", compared=False),
)
CALLS = {
    "cudf.DataFrame.__getitem__", "cudf.Series.astype", "cudf.Series.fillna", "cudf.concat",
    "cupy.where", "cupy.ndarray.astype", "cupy.right_shift",
    "cuml.linear_model.Ridge", "cuml.linear_model.Ridge.fit", "cuml.ensemble.RandomForestRegressor",
    "nvforest.load_from_treelite_model",
}  # fmt: skip
# cuDF reads and writes the files. Predictions come down to be scored, and models are small.
CROSSINGS = {"standardize": (0, 0), "clean": (0, 0), "tips": (0, 0), "model": (1, 35.36), "predict": (1, 1)}
CODE = [
    *(APPLICATIONS / "taxi" / f"{name}.py" for name in ("tip_model", "steps/predict")),
    ROOT / "learn" / "trained.py", ROOT / "tables" / "hashing.py",
]  # fmt: skip
# What only the steps of the minimal application run, and what only frames of cuDF do.
OF_CPU = {"check_blocks", "write_frame"}
FRAMES = (APPLICATIONS / "taxi" / "with_dask.py", ROOT / "tables" / "with_dask.py")
BESIDE = {"from whitewater_apps.taxi.with_polars import read"}
spread_out = nullcontext


def write_inputs(directory: Path) -> Path:
    """Write raw files of every form, the list of them, and zones."""
    write_json(directory / "inputs.json", listed(*write_raw(directory)[0]))
    return directory


def run_steps(site: Site, *, inputs: Path, results: Path) -> None:
    """Clean trips, fit models to them, and predict those of the data set, and of one file of them all."""
    results.mkdir()
    (results / "inputs.json").write_bytes((inputs / "inputs.json").read_bytes())
    run = partial(site.run, "taxi")
    for step, paths in steps(results, zones=inputs / "zones.csv").items():
        run(step, settings=getattr(SETTINGS, step.__name__), **paths)
    pd.read_parquet(results / "trips").to_parquet(results / "one.parquet")
    again = {**paths, "trips": results / "one.parquet", "predictions": Output(results / "predictions_of_one_file")}
    run(step, settings=SETTINGS.predict, case="of one file", **again)


def check_data(folder: Path) -> None:
    """Check that there are models of all services."""
    services = read_json(folder / "model" / "metrics.json")["services"]
    assert {name for name, each in services.items() if each["status"] == "fitted"} == {"yellow", "green", "fhvhv"}
    assert len(pd.read_parquet(folder / "predictions")) > 500

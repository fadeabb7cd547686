"""The computing steps of the taxi application in one process, on a device and a few hundred trips."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import dataset

from tests.contract.raw_trips import WITHOUT_FAULTS
from tests.contract.site import Site
from whitewater.config.base import Section
from whitewater.io.store import read_json
from whitewater.learn.config import Forest
from whitewater.tables.config import Range
from whitewater_apps.taxi import config as taxi
from whitewater_apps.taxi.steps.clean import clean
from whitewater_apps.taxi.steps.model import model
from whitewater_apps.taxi.steps.predict import predict
from whitewater_apps.taxi.steps.standardise import standardise
from whitewater_apps.taxi.steps.tips import tips

BOUNDS = Range(above=0, below=300)
SETTINGS: dict[str, Any] = {
    "standardise": taxi.Standardise(block_rows=1000),
    "clean": taxi.Clean(
        required=("pickup_datetime", "fare_amount"),
        ranges=taxi.Ranges(speed=BOUNDS, passenger_count=Range(at_least=0, at_most=9)),
        exclude_pickup_boroughs=("EWR",),
        exclude_dropoff_boroughs=("Staten Island",),
        minimum_month_share=0.01,
        # The table lacks a zone on purpose.
        max_unknown_zone_fraction=1,
    ),
    "tips": taxi.Tips(),
    "model": taxi.Model(
        features=(*taxi.Model().features, "congestion_surcharge", "airport_fee"),
        max_rows=200,
        folds=2,
        ridge_alphas=(1.0, 100.0),
        forest=Forest(trees=(3,), depths=(3,)),
        bootstrap=20,
    ),
    "predict": taxi.Predict(),
}
OFF: dict[str, Any] = {"minimum_month_share": 0, "max_unknown_zone_fraction": 1}
KEEP_ALL = taxi.Clean(required=(), ranges=taxi.Ranges(**dict.fromkeys(taxi.Ranges.model_fields)), **OFF)
REFUSE_ALL = taxi.Clean(ranges=taxi.Ranges(fare_amount=Range(above=1e6)), **OFF)
TABLES = ("hour", "weekday_hour", "month", "payment_type", "passenger_count", "borough", "zone")


@dataclass(frozen=True)
class Results:
    """Where the outputs of the steps are."""

    trips: Path
    quarantine: Path
    quality: Path
    tables: Path
    model: Path
    predictions: Path
    predictions_of_one_file: Path
    nothing_kept: Path
    all_kept: Path


def run_steps(site: Site, *, inputs: Path, zones: Path, results: Path) -> Results:
    """Run standardise, clean, tips, model and predict one after the other, and some of them on unusual inputs, too."""
    results.mkdir()

    def step(function: Callable[..., None], *, settings: Section | None = None, **paths: Any) -> None:
        site.run("taxi", function, settings=settings or SETTINGS[function.__name__], **paths)

    made = Results(**{field.name: results / field.name for field in fields(Results)})
    standardised = results / "standardised"
    step(standardise, inputs=inputs, standardised=standardised)
    step(
        clean,
        standardised=standardised,
        zones=zones,
        trips=made.trips,
        quarantine=made.quarantine,
        quality=made.quality,
    )
    made.tables.mkdir()
    step(
        tips,
        trips=made.trips,
        zones=zones,
        tables={f"tips_by_{name}.csv": made.tables / f"{name}.csv" for name in TABLES},
    )
    step(model, trips=made.trips, zones=zones, model=made.model)
    step(predict, trips=made.trips, zones=zones, model=made.model, predictions=made.predictions)

    one_file = results / "one.parquet"
    read(made.trips).to_parquet(one_file)
    step(predict, trips=one_file, zones=zones, model=made.model, predictions=made.predictions_of_one_file)
    step(clean, settings=REFUSE_ALL, standardised=standardised, zones=zones, trips=results / "no_trips",
         quarantine=made.nothing_kept, quality=results / "nothing_kept.json")  # fmt: skip
    good = results / "good.json"
    good.write_text(
        json.dumps({"files": [each for each in read_json(inputs)["files"] if each["origin"] == WITHOUT_FAULTS]})
    )
    step(standardise, inputs=good, standardised=results / "good")
    step(clean, settings=KEEP_ALL, standardised=results / "good", zones=zones, trips=made.all_kept,
         quarantine=results / "no_quarantine", quality=results / "all_kept.json")  # fmt: skip
    return made


def read(data_set: Path) -> pd.DataFrame:
    """Return a data set partitioned in Hive's layout, in an order of rows that its content determines."""
    keys = pa.schema({"service": pa.string(), "year": pa.int16(), "month": pa.int8()})
    partitioning = dataset.partitioning(keys, flavor="hive")
    frame: pd.DataFrame = dataset.dataset(data_set, partitioning=partitioning).to_table().to_pandas()
    return frame.sort_values(list(frame.columns.drop("reasons", errors="ignore")), ignore_index=True)

"""Cleaned trips with a known rule of tipping, for tests of the tip model."""

import random
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Device
from whitewater.engines.config import Engine
from whitewater.engines.workers import thread_workers
from whitewater.learn.config import Forest
from whitewater.learn.sample import Sample
from whitewater.step import Output, Run
from whitewater_apps.taxi.config import Model, Service
from whitewater_apps.taxi.data_sets import row_groups
from whitewater_apps.taxi.schema import TRIP_SCHEMA
from whitewater_apps.taxi.steps.model import model
from whitewater_apps.taxi.tip_model import FeatureSet, draw_sample
from whitewater_apps.taxi.zones import Zones, zones_csv

BOROUGHS = ("Bronx", "Brooklyn", "EWR", "Manhattan", "Queens", "Staten Island")
CARD, CASH = 1, 2
SETTINGS = Model(
    max_rows=2_000, ridge_alphas=(1.0, 1e6), forest=Forest(trees=(5,), depths=(2, 6), rows_per_tree=500), bootstrap=40
)


def zones() -> Zones:
    """Return a table in which location L is in borough (L - 1) mod 6, and 265 is unknown."""
    boroughs = (None, *(BOROUGHS[location % len(BOROUGHS)] for location in range(264)), None)
    names = tuple(borough and f"zone {number}" for number, borough in enumerate(boroughs))
    return Zones(boroughs, names, names, duplicates=0)


def trips(rows: int, *, seed: int = 0, card: float = 0.8) -> pd.DataFrame:
    """Return cleaned trips of 2019-03, with nulls, whose tip by card depends on hour, fare and borough, with noise."""
    random = np.random.default_rng(seed)
    pickup = pd.Timestamp("2019-03-01") + pd.to_timedelta(random.integers(0, 31 * 86_400, rows), unit="s").as_unit("us")
    minutes = random.gamma(3, 5, rows) + 1
    distance = np.round(minutes * random.uniform(0.1, 0.4, rows), 2)
    location = random.integers(1, 266, rows)
    paid = np.where(random.random(rows) < card, CARD, CASH)
    fare = np.round(2.5 + 0.5 * minutes + 2 * distance, 1)
    rate = 0.15 + 0.03 * np.sin(pickup.hour / 24 * 2 * np.pi) + 0.4 / fare + 0.05 * ((location - 1) % 6 == 3)
    tip = np.round(np.clip(rate + random.normal(0, 0.03, rows), 0, None) * fare, 2)
    frame = pd.DataFrame(
        {
            "pickup_datetime": pickup,
            "dropoff_datetime": pickup + pd.to_timedelta(np.rint(minutes * 60), unit="s").as_unit("us"),
            "passenger_count": some_null(random.integers(0, 7, rows), random),
            "trip_distance": distance,
            "rate_code": some_null(random.choice([1, 1, 1, 2, 5, 99], rows), random),
            "pickup_location_id": some_null(location, random),
            "dropoff_location_id": random.integers(1, 266, rows),
            "payment_type": paid,
            "fare_amount": fare,
            "extra": random.choice([0.0, 0.5, 1.0], rows),
            "tip_amount": np.where(paid == CARD, tip, 0.0),
            "tolls_amount": np.where(random.random(rows) < 0.05, 6.12, 0.0),
            "congestion_surcharge": some_null(random.choice([0.0, 2.5], rows), random),
            "airport_fee": np.full(rows, np.nan),
        }
    )
    return frame.assign(total_amount=frame["fare_amount"] + frame["tip_amount"])


def some_null(values: Any, random: np.random.Generator) -> pd.Series:
    """Return the values with one in twenty missing."""
    return pd.Series(values).where(random.random(len(values)) > 0.05)


def write(frame: pd.DataFrame, path: Path, *, row_group_size: int = 1_000_000) -> Path:
    """Write trips as one Parquet file, in the schema of the step clean."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([field for field in TRIP_SCHEMA if field.name in frame])
    table = pa.table([pa.array(frame[each.name], each.type, from_pandas=True) for each in schema], schema)
    if "service" in frame:
        table = table.append_column("service", pa.array(frame["service"]))
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def write_parts(frame: pd.DataFrame, folder: Path, *, service: str, parts: int = 1) -> Path:
    """Write trips as a partitioned data set of several files."""
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        path = folder / f"service={service}" / "year=2019" / "month=3" / f"part-{number}.parquet"
        write(frame.iloc[rows], path)
    return folder


def drawn(
    path: Path, rows: int, *, feature_set: FeatureSet, service: Service = "yellow", engine: Engine = "local"
) -> Sample:
    """Draw trips of a service from a data set, whose row groups are read in another order."""
    groups = random.Random(3).sample(row_groups(path), len(row_groups(path)))
    with dask.config.set({"dataframe.backend": "pandas"}), thread_workers(2) as workers:
        run = Run("taxi", "model", Device(), SETTINGS.model_copy(update={"max_rows": rows}), engine=engine)
        return draw_sample(groups, service, feature_set=feature_set, run=run, workers=workers)


def run_model(folder: Path, *, threads: int = 2, **settings: Any) -> Path:
    """Fit models to the trips of a folder; return where they are."""
    (folder / "zones.csv").write_text(zones_csv(zones()))
    run = Run("taxi", "model", Device(), SETTINGS.model_copy(update=settings), threads=threads)
    model(run, trips=folder / "trips", zones=folder / "zones.csv", model=Output(folder / "model"))
    return folder / "model"

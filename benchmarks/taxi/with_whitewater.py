"""The taxi benchmark with what Whitewater's steps are made of, on Polars: the units of the raw files are the tasks.

It ends as Whitewater's command line does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa

from benchmarks.taxi.variant import CARD, MAXIMUM_FARE, MAXIMUM_HOURS, MAXIMUM_MILES, Answer, Work, answer, main
from whitewater.process import leave
from whitewater.tables.config import Range
from whitewater.tables.fixed_point import VALUE, integers
from whitewater.tables.partitions import write_table
from whitewater.tables.raw_files import Unit, open_raw, units
from whitewater.tables.rules import Rule
from whitewater_apps.taxi.config import Clean, Ranges, Tips
from whitewater_apps.taxi.partitions import TRIP_SCHEMA
from whitewater_apps.taxi.rules import rules
from whitewater_apps.taxi.schema import SOURCE
from whitewater_apps.taxi.with_polars import kept, quantity, trips_of
from whitewater_apps.taxi.zones import Zones, read_zones

# Larger pieces of text are memory that the system hands out, and zeroes, anew each time.
PARQUET_ROWS, TEXT_ROWS = 2**20, 2**17
NEEDED = (
    "pickup_datetime",
    "dropoff_datetime",
    "trip_distance",
    "pickup_location_id",
    "payment_type",
    "fare_amount",
    "tip_amount",
)
CLEAN = Clean(
    required=("pickup_datetime", "dropoff_datetime", "trip_distance", "fare_amount", "tip_amount"),
    ranges=Ranges(
        duration=Range(above=0, at_most=MAXIMUM_HOURS * 3600),
        trip_distance=Range(at_least=0, at_most=MAXIMUM_MILES),
        fare_amount=Range(above=0, at_most=MAXIMUM_FARE),
        tip_amount=Range(at_least=0),
        tip_fraction=None,
    ),
    minimum_month_share=0,
)
PICKUP, LOCATION = pl.col("pickup_datetime"), pl.col("pickup_location_id")


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    if work.output is not None:
        work.output.mkdir(parents=True)
    zones = read_zones(work.zones)
    every = [
        unit for number, file in enumerate(work.files) for unit in _units(file, number, projected=work.output is None)
    ]
    task = partial(_aggregate, every=rules(CLEAN, zones, []), output=work.output)
    with work.placement.run("taxi", "tips", Tips(), threads=work.threads).workers() as workers:
        groups = pl.concat(workers.map(task, every, label="tips"))
    return _answer(groups, zones)


def _units(path: Path, number: int, *, projected: bool) -> list[Unit]:
    [file] = open_raw(path, SOURCE)
    rows = PARQUET_ROWS if file.form == "parquet" else TEXT_ROWS
    return units(replace(file, era=file.era.project(NEEDED)) if projected else file, rows=rows, number=number)


def _aggregate(unit: Unit, *, every: Sequence[Rule], output: Path | None) -> pl.DataFrame:
    trips = trips_of(unit).filter(kept(every)).drop("issues")
    if output is not None:
        cleaned = trips.collect()
        schema = [TRIP_SCHEMA.field(name) for name in TRIP_SCHEMA.names if name in cleaned.columns]
        write_table(
            cleaned.select(field.name for field in schema).to_arrow().cast(pa.schema(schema)),
            output / f"{unit.stem(0)}.parquet",
        )
        trips = cleaned.lazy()
    fraction = integers(quantity("tip_fraction"), lambda numbers: numbers.cast(pl.Int64))
    return (
        trips.filter(pl.col("payment_type") == CARD)
        .group_by(PICKUP.dt.weekday().alias("weekday") - 1, PICKUP.dt.hour().alias("hour"), LOCATION)
        .agg(pl.len().alias("trips"), *(fraction[name].sum().alias(name) for name in VALUE))
        .collect(engine="streaming")
    )


def _answer(groups: pl.DataFrame, zones: Zones) -> Answer:
    boroughs = {place: zones.boroughs[code] for place, code in enumerate(zones.borough_codes.tolist()) if code >= 0}
    keyed = groups.with_columns(borough=LOCATION.replace_strict(boroughs, default=None, return_dtype=pl.String))
    mean = sum(pl.col(name).sum() / 2**power for name, power in VALUE.items()) / pl.col("trips").sum()
    by_hour, by_weekday_hour, by_borough = (
        keyed.group_by(keys).agg(pl.col("trips").sum(), mean=mean).rows()
        for keys in (["hour"], ["weekday", "hour"], ["borough"])
    )
    return answer(by_hour, by_weekday_hour, by_borough)


if __name__ == "__main__":
    main(compute, is_placed=True)
    leave(0)

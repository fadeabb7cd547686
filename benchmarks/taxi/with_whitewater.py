"""The taxi benchmark with what Whitewater's steps are made of, on Polars: the units of the raw files are the tasks.

It ends as Whitewater's command line does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
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

# Larger pieces are memory that the system hands out, and zeroes, anew each time.
PARQUET_ROWS, TEXT_ROWS, WHOLE_FILE = 2**19, 2**17, 2**62
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
PICKUP, LOCATION, KEY = pl.col("pickup_datetime"), pl.col("pickup_location_id").cast(pl.Int64), pl.col("key")
# One integer of hour of week and location; 1970 began on a Thursday, 72 hours after the start of its week.
HOUR, THURSDAY, ZONES = 3_600_000_000, 72, 2**9


def compute(work: Work) -> Answer:
    """Aggregate, and write the cleaned trips where that is asked for."""
    if work.output is not None:
        work.output.mkdir(parents=True)
    zones = read_zones(work.zones)
    every = [_units(file, number, projected=work.output is None) for number, file in enumerate(work.files)]
    # Parquet of which few columns are read is one query, whose threads are Polars' own.
    shares = [list(chain(*every))] if work.output is None and not work.csv else [[unit] for unit in chain(*every)]
    task = partial(_aggregate, every=rules(CLEAN, zones, []), output=work.output)
    with work.placement.run("taxi", "tips", Tips(), threads=work.threads).workers() as workers:
        groups = pl.concat(workers.map(task, shares, label="tips"))
    return _answer(groups, zones)


def _units(path: Path, number: int, *, projected: bool) -> list[Unit]:
    [file] = open_raw(path, SOURCE)
    rows = TEXT_ROWS if file.form != "parquet" else WHOLE_FILE if projected else PARQUET_ROWS
    return units(replace(file, era=file.era.project(NEEDED)) if projected else file, rows=rows, number=number)


def _aggregate(share: Sequence[Unit], *, every: Sequence[Rule], output: Path | None) -> pl.DataFrame:
    if output is None:
        trips = chain.from_iterable(trips_of(unit, unit.rows or TEXT_ROWS) for unit in share)
        return _tips(_clean(pl.concat(trips), every))
    [unit] = share
    return pl.concat(
        _tips(_write(_clean(trips, every), output / f"{unit.stem(number)}.parquet"))
        for number, trips in enumerate(trips_of(unit, PARQUET_ROWS))
    )


def _clean(trips: pl.LazyFrame, every: Sequence[Rule]) -> pl.LazyFrame:
    return trips.filter(kept(every)).drop("issues")


def _write(trips: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    cleaned = trips.collect()
    schema = pa.schema([field for field in TRIP_SCHEMA if field.name in cleaned.columns])
    write_table(cleaned.select(schema.names).to_arrow().cast(schema), path)
    return cleaned.lazy()


def _tips(trips: pl.LazyFrame) -> pl.DataFrame:
    fraction = integers(quantity("tip_fraction"), lambda numbers: numbers.cast(pl.Int64))
    return (
        trips.filter(pl.col("payment_type") == CARD)
        .group_by(key=(PICKUP.to_physical() // HOUR + THURSDAY) % 168 * ZONES + LOCATION.fill_null(0))
        .agg(pl.len().alias("trips"), *(fraction[name].sum().alias(name) for name in VALUE))
        .collect(engine="streaming")
    )


def _answer(groups: pl.DataFrame, zones: Zones) -> Answer:
    boroughs = {place: borough for place, borough in enumerate(zones.boroughs) if borough is not None}
    hour_of_week, location = KEY // ZONES, KEY % ZONES
    keyed = groups.select(
        pl.col("trips", *VALUE),
        weekday=hour_of_week // 24,
        hour=hour_of_week % 24,
        borough=location.replace_strict(boroughs, default=None, return_dtype=pl.String),
    )
    mean = sum(pl.col(name).sum() / 2**power for name, power in VALUE.items()) / pl.col("trips").sum()
    by_hour, by_weekday_hour, by_borough = (
        keyed.group_by(keys).agg(pl.col("trips").sum(), mean=mean).rows()
        for keys in (["hour"], ["weekday", "hour"], ["borough"])
    )
    return answer(by_hour, by_weekday_hour, by_borough)


if __name__ == "__main__":
    main(compute, is_placed=True)
    leave(0)

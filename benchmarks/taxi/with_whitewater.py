"""The taxi benchmark with what Whitewater's steps are made of, on Polars: the units of the raw files are the tasks.

It starts and ends as the process of a step does.
"""

from __future__ import annotations

from whitewater.process import exit_fast, import_fast, start_fast

if __name__ == "__main__":
    import_fast()

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path

import polars as pl
import pyarrow as pa

from benchmarks.taxi.variant import CARD, MAXIMUM_FARE, MAXIMUM_HOURS, MAXIMUM_MILES, Answer, Work, answer, main
from whitewater.tables import with_polars as tables
from whitewater.tables.config import Range
from whitewater.tables.eras import Era, Rule
from whitewater.tables.group_statistics import VALUE_UNIT
from whitewater.tables.partitions import write_table
from whitewater.tables.raw_files import RawFile, Unit, open_raw, units
from whitewater_apps.taxi.config import Clean, Ranges, Tips
from whitewater_apps.taxi.rules import rules
from whitewater_apps.taxi.schema import CODES, SOURCE, STANDARDIZED_SCHEMA, TRIP_SCHEMA
from whitewater_apps.taxi.with_polars import is_kept, quantity
from whitewater_apps.taxi.zones import Zones, read_zones

# Larger pieces are memory that the system hands out, and zeroes, anew each time.
PARQUET_ROWS, TEXT_ROWS = 2**19, 2**18
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
    every, projected = rules(CLEAN, zones, []), work.output is None
    files = list(chain.from_iterable(open_files(path, projected=projected) for path in work.files))
    with work.placement.run("taxi", "tips", Tips(), threads=work.threads).workers() as workers:
        if projected and not work.csv:
            # Parquet of which few columns are read is one query, whose threads are Polars' own.
            groups = _tips(_clean(pl.concat(_scans(files)), every))
        else:
            rows = TEXT_ROWS if work.csv else PARQUET_ROWS
            parts = units(files, rows=rows)
            groups = pl.concat(workers.map(partial(_aggregate, every=every, output=work.output), parts, label="tips"))
    return roll_up(groups, zones)


def open_files(path: Path, *, projected: bool) -> list[RawFile]:
    """Recognize a raw file; if ``projected``, only the columns that the answer needs are read."""
    files = open_raw(path, SOURCE)
    return [replace(file, era=_project(file.era)) for file in files] if projected else files


def _project(era: Era) -> Era:
    return replace(era, columns={name: raw for name, raw in era.columns.items() if name in NEEDED})


def _scans(files: Sequence[RawFile]) -> Iterator[pl.LazyFrame]:
    """Yield one scan of the files of an era: of a scan for each file, Polars reads ahead in all of them at once."""
    for era, group in groupby(files, key=lambda file: file.era):
        yield _in_schema(pl.scan_parquet([file.path for file in group], glob=False, hive_partitioning=False), era)


def _in_schema(raw: pl.LazyFrame, era: Era) -> pl.LazyFrame:
    return tables.in_schema(raw, era, STANDARDIZED_SCHEMA, CODES)


def _aggregate(unit: Unit, *, every: Sequence[Rule], output: Path | None) -> pl.DataFrame:
    groups = []
    for number, (raw, _) in enumerate(tables.pieces(unit, PARQUET_ROWS if unit.rows else TEXT_ROWS)):
        trips = _clean(_in_schema(raw, unit.file.era), every)
        groups.append(_tips(_write(trips, output / f"{unit.stem(number)}.parquet") if output else trips))
    return pl.concat(groups)


def _clean(trips: pl.LazyFrame, every: Sequence[Rule]) -> pl.LazyFrame:
    # As a column, in which Polars evaluates what rules have in common once.
    return trips.with_columns(kept=is_kept(every)).filter("kept").drop("kept", "issues")


def _write(trips: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    cleaned = trips.collect()
    schema = pa.schema([field for field in TRIP_SCHEMA if field.name in cleaned.columns])
    write_table(cleaned.select(schema.names).to_arrow().cast(schema), path)
    return cleaned.lazy()


def _tips(trips: pl.LazyFrame) -> pl.DataFrame:
    return (
        trips.filter(pl.col("payment_type") == CARD)
        .select(
            key=(PICKUP.to_physical() // HOUR + THURSDAY) % 168 * ZONES + LOCATION.fill_null(0),
            total=tables.in_units(quantity("tip_fraction")),
        )
        .group_by("key")
        .agg(pl.len().alias("trips"), tables.exact_sum("total"))
        .collect(engine="streaming")
    )


def roll_up(groups: pl.DataFrame, zones: Zones) -> Answer:
    """Return the answer from sums by hour of week and zone."""
    groups = groups.group_by("key").agg(pl.col("trips").sum(), tables.exact_sum("total"))
    boroughs = {place: borough for place, borough in enumerate(zones.boroughs) if borough is not None}
    hour_of_week, location = KEY // ZONES, KEY % ZONES
    keyed = groups.select(
        pl.col("trips", "total"),
        weekday=hour_of_week // 24,
        hour=hour_of_week % 24,
        borough=location.replace_strict(boroughs, default=None, return_dtype=pl.String),
    )
    mean = pl.col("total").sum() / VALUE_UNIT / pl.col("trips").sum()
    by_hour, by_weekday_hour, by_borough = (
        keyed.group_by(keys).agg(pl.col("trips").sum(), mean=mean).rows()
        for keys in (["hour"], ["weekday", "hour"], ["borough"])
    )
    return answer(by_hour, by_weekday_hour, by_borough)


if __name__ == "__main__":
    start_fast()
    main(compute, is_placed=True)
    exit_fast(0)

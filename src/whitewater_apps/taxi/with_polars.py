"""The operations on tables of trips in Polars.

``standardize_unit``, ``clean_trips``, ``tip_statistics`` and ``read`` have the same arguments and results in Dask.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.step import Run
from whitewater.tables import with_polars as tables
from whitewater.tables.eras import Rule
from whitewater.tables.group_statistics import merge
from whitewater.tables.partitions import Partition
from whitewater.tables.raw_files import Counts, Unit, write_unit
from whitewater_apps.taxi import tip_tables
from whitewater_apps.taxi.config import Standardize
from whitewater_apps.taxi.data_sets import UNKNOWN_MONTH, YEARS, DataSets, RowGroup, Tally, directory
from whitewater_apps.taxi.rules import ISSUES_BIT, RULES_BIT, file_month
from whitewater_apps.taxi.schema import APP, CARD, CODES, DURATIONS, RATIOS, STANDARDIZED_SCHEMA, TARGET, TRIP_SCHEMA

PICKUP, DROPOFF, SERVICE = pl.col("pickup_datetime"), pl.col("dropoff_datetime"), pl.col("service")


def standardize_unit(unit: Unit, *, folder: Path, run: Run[Standardize]) -> Counts:
    """Write a unit of a raw file as parts in `STANDARDIZED_SCHEMA`; count its rows by service and month of pickup."""
    frames = tables.read_frames(unit, rows=run.settings.block_rows, schema=STANDARDIZED_SCHEMA, codes=CODES)
    return write_unit(unit, frames, folder, schema=STANDARDIZED_SCHEMA, write=tables.write_frame, count=_count_months)


def _count_months(trips: pl.DataFrame) -> Counter[tuple[int | None, ...]]:
    # By day first, because computing the month of each trip takes longer.
    days = trips.select("service", day=PICKUP.dt.date()).group_by("service", "day").len("trips")
    months = days.group_by("service", month(pl.col("day")).alias("month")).agg(pl.col("trips").sum())
    return Counter({tuple(key): count for *key, count in months.iter_rows()})


def clean_trips(partitions: Sequence[Partition], rules: Sequence[Rule], *, into: DataSets, workers: Workers) -> Tally:
    """Write kept trips, and rejected ones with all their reasons, by service and month of pickup; count both."""
    return sum(workers.map(partial(_clean_partition, rules=rules, into=into), partitions, label="clean"), Tally())


def _clean_partition(partition: Partition, *, rules: Sequence[Rule], into: DataSets) -> Tally:
    query = tables.scan(partition, STANDARDIZED_SCHEMA).with_columns(month=month(PICKUP), kept=is_kept(rules))
    trips = query.collect().lazy()  # computed once for all queries below
    kept = trips.filter("kept").with_columns(mask=pl.lit(0, pl.Int64))
    rejected = trips.filter(~pl.col("kept")).with_columns(mask=reason_mask(rules)).collect().lazy()
    tally = Tally(
        tables.count_rows(kept, "file", "service", "month", "mask")
        + tables.count_rows(rejected, "file", "service", "month", "mask"),
        tables.count_rows(trips, "file", "pickup_location_id"),
        tables.count_rows(trips, "file", "dropoff_location_id"),
    )
    name = partition.name
    for service_month in tally.service_months(kept=True):
        rows = kept.filter(_is_of(*service_month)).select(TRIP_SCHEMA.names).collect()
        tables.write_frame(rows, into.trips / directory(*service_month) / name, TRIP_SCHEMA)
    for service_month in tally.service_months(kept=False):
        rows = rejected.filter(_is_of(*service_month)).collect()
        table = tables.to_arrow(rows, TRIP_SCHEMA)
        into.reject(table, rows["mask"].to_numpy(), rows["file"].to_numpy(), service_month, name)
    return tally


def reason_mask(rules: Sequence[Rule]) -> pl.Expr:
    """Return an int64 mask of the reasons to reject each trip, with the bits of `rules.reasons`."""
    return pl.col("issues").cast(pl.Int64) * (1 << ISSUES_BIT) + tables.rule_mask(rules, quantity) * (1 << RULES_BIT)


def is_kept(rules: Sequence[Rule]) -> pl.Expr:
    """Return whether each trip is kept; faster than ``reason_mask(rules) == 0``."""
    return (pl.col("issues") == 0) & tables.breaks_no_rule(rules, quantity)


def quantity(name: str) -> pl.Expr:
    """Return a column, or a quantity computed from columns."""
    if name in DURATIONS:
        return (DROPOFF - PICKUP).dt.total_microseconds() / 1_000_000 / DURATIONS[name]
    if name in RATIOS:
        dividend, divisor = map(quantity, RATIOS[name])
        ratio = dividend / divisor
        return pl.when((divisor > 0) & ratio.is_not_nan()).then(ratio)
    if name == "file_month":
        key: pl.Expr = file_month(pl.col("file"), SERVICE, month(PICKUP))
        return pl.when(PICKUP.is_not_null()).then(key)
    return pl.col(name)


def month(time: pl.Expr) -> pl.Expr:
    """Return the `whitewater_apps.taxi.data_sets.month_number`, int32."""
    year, month_of_year = time.dt.year(), time.dt.month().cast(pl.Int32)
    in_range = year.is_between(*YEARS)
    return pl.when(in_range).then(year * 12 + month_of_year - 1).otherwise(UNKNOWN_MONTH)


def _is_of(service: int, month: int) -> pl.Expr:
    return (SERVICE.fill_null(0) == service) & (pl.col("month") == month)


def tip_statistics(partitions: Sequence[Partition], *, workers: Workers) -> tip_tables.TipSums:
    """Return the sums of tip / fare for each key; raises InputError if a tip is 2**20 times the fare or more."""
    parts = workers.map(_tip_sums, partitions, label="tips")
    return dict(zip(tip_tables.KEYS, merge(parts, tip_tables.SCHEMAS), strict=True))


def _tip_sums(partition: Partition) -> list[pa.Table]:
    trips = with_tips(tables.scan(partition, tip_tables.TIP_SCHEMA))
    return tables.sums_by_bin(trips, tip_tables.SCHEMAS, "fraction", refusal=tip_tables.REFUSAL)


def with_tips(trips: pl.LazyFrame) -> pl.LazyFrame:
    """Return the tip fraction and the keys of each trip; see `tip_tables`."""
    fraction, number, passengers = pl.col("fraction"), pl.col("month"), pl.col("passenger_count")
    has_month, service = number != UNKNOWN_MONTH, pl.col("file")  # `tip_tables.trip_parts` numbers files by service
    is_by_card_or_app = (pl.col("payment_type") == CARD) | (service == APP)
    # First as columns, because Polars would evaluate an expression again at each use.
    return trips.with_columns(fraction=quantity(TARGET), month=month(PICKUP)).select(
        "payment_type",
        service=service,
        fraction=pl.when(fraction >= 0).then(fraction),
        recorded=(is_by_card_or_app & (fraction >= 0)).fill_null(False),
        plain=(fraction > 0).fill_null(False),
        hour_of_week=pl.when(has_month).then((PICKUP.dt.weekday().cast(pl.Int16) - 1) * 24 + PICKUP.dt.hour()),
        month=pl.when(has_month).then(number),
        passenger_count=pl.when(passengers <= tip_tables.MOST_PASSENGERS).then(passengers),
        location_id="pickup_location_id",
    )


def read(group: RowGroup, names: Sequence[str], *, rows: int, device: Device) -> Iterator[dict[str, Array]]:
    """Yield columns of a row group's trips; see `whitewater_apps.taxi.tip_model.read_trips`."""
    trips = pl.scan_parquet(group.path, glob=False, hive_partitioning=False).slice(group.first_row, group.rows)
    if "service" in group.names:
        trips = trips.filter(group.service == SERVICE)
    columns = tables.collect(trips.select(name for name in names if name in group.names), group.path)
    for part in columns.iter_slices(rows):
        yield tables.to_arrays(part, names, device)

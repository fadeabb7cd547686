"""The operations on tables of trips in Dask, on pandas or cuDF by its option ``dataframe.backend``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from dask.delayed import delayed

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.step import Run
from whitewater.tables import with_dask as tables
from whitewater.tables.eras import Rule
from whitewater.tables.partitions import Partition
from whitewater.tables.raw_files import Counts, Unit, write_unit
from whitewater.tables.with_dask import Frame, Series
from whitewater_apps.taxi import tip_tables
from whitewater_apps.taxi.config import Standardize
from whitewater_apps.taxi.data_sets import TRIPS, UNKNOWN_MONTH, YEARS, DataSets, RowGroup, Tally, directory
from whitewater_apps.taxi.rules import ISSUES_BIT, RULES_BIT, file_month
from whitewater_apps.taxi.schema import APP, CARD, CODES, DURATIONS, RATIOS, STANDARDIZED_SCHEMA, TARGET, TRIP_SCHEMA


def standardize_unit(unit: Unit, *, folder: Path, run: Run[Standardize]) -> Counts:
    """Write a unit of a raw file as parts of one schema; see `with_polars`."""
    frames = tables.read_frames(unit, rows=run.settings.block_rows, codes=CODES, backend=run.device.frames)
    return write_unit(unit, frames, folder, schema=STANDARDIZED_SCHEMA, write=tables.write_frame, count=_count_months)


def _count_months(trips: Frame) -> Counter[tuple[int | None, ...]]:
    return tables.count_rows(trips[["service"]].assign(month=month(trips["pickup_datetime"])), "service", "month")


def clean_trips(partitions: Sequence[Partition], rules: Sequence[Rule], *, into: DataSets, workers: Workers) -> Tally:
    """Write kept trips, and rejected ones with all their reasons; see `with_polars`."""
    if not partitions:
        return Tally()
    frames = tables.read(partitions, STANDARDIZED_SCHEMA).to_delayed()
    write = delayed(partial(_write_trips, rules=rules, into=into))
    tallies = [write(trips, partition.name) for trips, partition in zip(frames, partitions, strict=True)]
    return sum(workers.compute(*tallies), Tally())


def _write_trips(trips: Frame, name: str, *, rules: Sequence[Rule], into: DataSets) -> Tally:
    trips = trips.assign(month=month(trips["pickup_datetime"]), mask=reason_mask(trips, rules))
    tally = Tally(
        tables.count_rows(trips, "file", "service", "month", "mask"),
        tables.count_rows(trips, "file", "pickup_location_id"),
        tables.count_rows(trips, "file", "dropoff_location_id"),
    )
    is_kept = trips["mask"] == 0
    for service_month in tally.service_months(kept=True):
        path = into.trips / directory(*service_month) / name
        tables.write_frame(trips[is_kept & _is_of(trips, *service_month)], path, TRIP_SCHEMA)
    rejected = trips[~is_kept]
    for service_month in tally.service_months(kept=False):
        rows = rejected[_is_of(rejected, *service_month)]
        table = tables.to_arrow(rows, TRIP_SCHEMA)
        into.reject(table, rows["mask"].to_numpy(), rows["file"].to_numpy(), service_month, name)
    return tally


def reason_mask(trips: Frame, rules: Sequence[Rule]) -> Series:
    """Return an int64 mask of the reasons to reject each trip, with the bits of `rules.reasons`."""
    rule_mask = tables.rule_mask(rules, partial(quantity, trips))
    return trips["issues"].astype("int64") * (1 << ISSUES_BIT) + rule_mask * (1 << RULES_BIT)


def quantity(trips: Frame, name: str) -> Series:
    """Return a column, or a quantity computed from columns."""
    if name in DURATIONS:
        return (trips["dropoff_datetime"] - trips["pickup_datetime"]).dt.total_seconds() / DURATIONS[name]
    if name in RATIOS:
        dividend, divisor = (quantity(trips, operand) for operand in RATIOS[name])
        return (dividend / divisor).where((divisor > 0).fillna(False))
    if name == "file_month":
        pickup = trips["pickup_datetime"]
        return file_month(trips["file"], trips["service"], month(pickup)).where(pickup.notna())
    return trips[name]


def month(time: Series) -> Series:
    """Return the `whitewater_apps.taxi.data_sets.month_number`, int32."""
    year, month_of_year = (part.fillna(0).astype("int32") for part in (time.dt.year, time.dt.month))
    return (year * 12 + month_of_year - 1).where((year >= YEARS[0]) & (year <= YEARS[1]), UNKNOWN_MONTH)


def _is_of(trips: Frame, service: int, month: int) -> Series:
    return (trips["service"].fillna(0) == service) & (trips["month"] == month)


def tip_statistics(partitions: Sequence[Partition], *, workers: Workers) -> tip_tables.TipSums:
    """Return the sums of tip / fare for each key; see `with_polars`."""
    trips = tables.read(partitions, tip_tables.TIP_SCHEMA).map_partitions(with_tips)
    [sums] = workers.compute(tables.group_statistics(trips, tip_tables.SCHEMAS, "fraction", refusal=tip_tables.REFUSAL))
    return dict(zip(tip_tables.KEYS, sums, strict=True))


def with_tips(trips: Frame) -> Frame:
    """Return the tip fraction and the keys of each trip; see `tip_tables`."""
    pickup, number = trips["pickup_datetime"], month(trips["pickup_datetime"])
    fraction = quantity(trips, TARGET)
    fraction = fraction.where((fraction >= 0).fillna(False))
    service = trips["file"]  # `tip_tables.trip_parts` numbers files by service
    is_by_card_or_app = (trips["payment_type"] == CARD).fillna(False) | (service == APP)
    passengers = trips["passenger_count"]
    return trips[["payment_type"]].assign(
        service=service,
        fraction=fraction,
        recorded=is_by_card_or_app & fraction.notna(),
        plain=(fraction > 0).fillna(False),
        hour_of_week=(pickup.dt.weekday * 24 + pickup.dt.hour).where(number != UNKNOWN_MONTH),
        month=number.where(number != UNKNOWN_MONTH),
        passenger_count=passengers.where((passengers <= tip_tables.MOST_PASSENGERS).fillna(False)),
        location_id=trips["pickup_location_id"],
    )


def read(group: RowGroup, names: Sequence[str], *, rows: int, device: Device) -> Iterator[dict[str, Array]]:
    """Yield columns of a row group's trips; see `whitewater_apps.taxi.tip_model.read_trips`."""
    with TRIPS.explain_errors(group.path):
        columns = [name for name in (*names, "service") if name in group.names]
        trips = tables.read_parquet(group.path, columns, row_groups=[group.index], backend=device.frames)
    if "service" in columns:
        trips = trips[trips["service"] == group.service]
    for start in range(0, len(trips), rows):
        yield tables.to_arrays(trips.iloc[start : start + rows], names, device)

"""The operations on tables of trips in Dask; option ``dataframe.backend`` makes them run on pandas or cuDF.

Functions on frames use only what pandas and cuDF have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import dask
from dask.delayed import delayed

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.tables import with_dask as tables
from whitewater.tables.group_statistics import nothing
from whitewater.tables.partitions import Partition, columns_present
from whitewater.tables.raw_files import Unit, UnitCounts
from whitewater.tables.rules import Rule
from whitewater.tables.with_dask import Frame, Series
from whitewater_apps.taxi.partitions import (
    FIRST_YEAR,
    LAST_YEAR,
    MEASURED,
    STANDARDIZED,
    TRIP_SCHEMA,
    UNKNOWN_MONTH,
    DataSets,
    Tally,
    directory,
)
from whitewater_apps.taxi.rules import ISSUES_BIT, RULES_BIT, file_month
from whitewater_apps.taxi.schema import APP, CARD, CODES, RATIOS, TARGET
from whitewater_apps.taxi.tip_tables import KEYS, MOST_PASSENGERS, NEEDED, REFUSAL, SCHEMAS, UNCHANGED, TipSums
from whitewater_apps.taxi.trip_files import TRIPS, RowGroup


def standardize(units: Sequence[Unit], workers: Workers, *, folder: Path, rows: int) -> Iterable[UnitCounts]:
    """Write units of raw files as parts of one schema; see `operations.Operations`."""
    backend = dask.config.get("dataframe.backend")
    write = partial(tables.write_unit, folder=folder, rows=rows, schema=STANDARDIZED, codes=CODES, backend=backend)
    return workers.compute(*map(delayed(partial(write, count=_count_months)), units))


def _count_months(trips: Frame) -> Counter[tuple[int | None, ...]]:
    return tables.count_rows(trips[["service"]].assign(month=month(trips["pickup_datetime"])), "service", "month")


def clean(partitions: Sequence[Partition], rules: Sequence[Rule], *, into: DataSets, workers: Workers) -> Tally:
    """Write kept trips, and rejected ones with all their reasons; see `operations.Operations`."""
    if not partitions:
        return Tally()
    schema = columns_present(partitions, STANDARDIZED, needed=MEASURED)
    trips = tables.read(partitions, schema).map_partitions(_flag, rules)
    write = delayed(partial(_write_cleaned, into=into))
    names = [partition.name for partition in partitions]
    written = [write(frame, name) for frame, name in zip(trips.to_delayed(), names, strict=True)]
    return sum(workers.compute(*written), Tally())


def _flag(trips: Frame, rules: Sequence[Rule]) -> Frame:
    """Return the trips with the month of pickup and the mask of the reasons to reject each."""
    return trips.assign(month=month(trips["pickup_datetime"]), mask=broken(trips, rules))


def _write_cleaned(trips: Frame, name: str, *, into: DataSets) -> Tally:
    counts = Tally(
        tables.count_rows(trips, "file", "service", "month", "mask"),
        tables.count_rows(trips, "file", "pickup_location_id"),
        tables.count_rows(trips, "file", "dropoff_location_id"),
    )
    kept = trips["mask"] == 0
    for place in counts.places(kept=True):
        path = into.trips / directory(*place) / name
        tables.write_frame(trips[kept & _is_at(trips, *place)], path, TRIP_SCHEMA)
    bad = trips[~kept]
    for place in counts.places(kept=False):
        rows = bad[_is_at(bad, *place)]
        table = tables.to_arrow(rows, TRIP_SCHEMA)
        into.reject(table, rows["mask"].to_numpy(), rows["file"].to_numpy(), place, name)
    return counts


def broken(trips: Frame, rules: Sequence[Rule]) -> Series:
    """Return an int64 mask of the reasons to reject each trip; its bits are those of `rules.reasons`."""
    return trips["issues"].astype("int64") * (1 << ISSUES_BIT) + tables.broken(rules, partial(quantity, trips)) * (
        1 << RULES_BIT
    )


def quantity(trips: Frame, name: str) -> Series:
    """Return a column, or a quantity that follows from columns; null where it is not known."""
    if name == "duration":  # seconds
        return (trips["dropoff_datetime"] - trips["pickup_datetime"]).dt.total_seconds()
    if name in RATIOS:
        dividend, divisor = RATIOS[name]
        if not isinstance(divisor, str):
            return quantity(trips, dividend) / divisor
        known = quantity(trips, divisor)
        return (quantity(trips, dividend) / known).where((known > 0).fillna(False))
    if name == "file_month":
        pickup = trips["pickup_datetime"]
        return file_month(trips["file"], trips["service"], month(pickup)).where(pickup.notna())
    return trips[name]


def month(time: Series) -> Series:
    """Return the number of the month, see `whitewater_apps.taxi.partitions`, as int32."""
    year, of_year = (part.fillna(0).astype("int32") for part in (time.dt.year, time.dt.month))
    return (year * 12 + of_year - 1).where((year >= FIRST_YEAR) & (year <= LAST_YEAR), UNKNOWN_MONTH)


def _is_at(trips: Frame, service: int, number: int) -> Series:
    return (trips["service"].fillna(0) == service) & (trips["month"] == number)


def tip_statistics(partitions: Sequence[Partition], *, workers: Workers) -> TipSums:
    """Return the sums of tip / fare by each key; see `Operations.tip_statistics`."""
    if not partitions:
        return dict(zip(KEYS, nothing(SCHEMAS), strict=True))
    trips = tables.read(partitions, NEEDED).map_partitions(with_tips)
    [sums] = workers.compute(tables.group_statistics(trips, SCHEMAS, "fraction", refusal=REFUSAL))
    return dict(zip(KEYS, sums, strict=True))


def with_tips(trips: Frame) -> Frame:
    """Return the tip of each trip as a fraction of its fare, and the keys by which it counts; see `tip_tables`."""
    pickup, number = trips["pickup_datetime"], month(trips["pickup_datetime"])
    fraction = quantity(trips, TARGET)
    fraction = fraction.where((fraction >= 0).fillna(False))
    paid_by_card_or_in_app = (trips["payment_type"] == CARD).fillna(False) | (trips["file"] == APP)
    passengers = trips["passenger_count"]
    return trips[list(UNCHANGED)].assign(
        service=trips["file"],
        fraction=fraction,
        recorded=paid_by_card_or_in_app & fraction.notna(),
        plain=(fraction > 0).fillna(False),
        hour_of_week=(pickup.dt.weekday * 24 + pickup.dt.hour).where(number != UNKNOWN_MONTH),
        month=number.where(number != UNKNOWN_MONTH),
        passenger_count=passengers.where((passengers <= MOST_PASSENGERS).fillna(False)),
        location_id=trips["pickup_location_id"],
    )


def read(group: RowGroup, names: Sequence[str], *, rows: int, device: Device) -> Iterator[dict[str, Array]]:
    """Yield columns of the trips of a row group; see `Operations.read`."""
    with TRIPS.explained(group.path):
        columns = [name for name in (*names, "service") if name in group.names]
        trips = tables.read_parquet(group.path, columns, row_groups=[group.index], backend=device.frames)
    if "service" in columns:
        trips = trips[trips["service"] == group.service]
    for start in range(0, len(trips), rows):
        yield tables.to_arrays(trips.iloc[start : start + rows], names, device)

"""What is counted of tips, and the tables made from it.

The fraction of a trip is tip / fare, where the fare is above 0 and the tip not below. It is *recorded* where the trip
was paid by card or in an app: cash tips are not recorded, their `tip_amount` of 0 means missing. It is *plain* where
it is above 0.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater import lazy_pandas as pd
from whitewater.tables.group_statistics import LIMIT, SUMS, summarize
from whitewater.tables.partitions import Part
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.data_sets import YEARS, month_name, row_groups
from whitewater_apps.taxi.schema import PAYMENT_NAMES, SERVICES, TARGET, TRIP_SCHEMA, columns_of
from whitewater_apps.taxi.zones import Zones

ALL = "all"
# More than nine passengers, whom no taxi seats, count as null; so does a clock that was wrong.
MOST_PASSENGERS = 9
# Hour of the week is 24 x weekday + hour, from Monday 0 h; month is 12 x year + month - 1.
KEYS = {
    "hour_of_week": pa.int16(),
    "month": pa.int32(),
    "payment_type": pa.int16(),
    "passenger_count": pa.int16(),
    "location_id": pa.int16(),
}
KINDS_OF_TRIP = pa.schema({"service": pa.int8(), "recorded": pa.bool_(), "plain": pa.bool_()})
SCHEMAS = [KINDS_OF_TRIP.append(pa.field(name, type_)) for name, type_ in KEYS.items()]
REFUSAL = (
    f"{{count}} trips have a tip_amount of {LIMIT:,.0f} times their fare_amount or more. Send such trips to quarantine "
    "with an upper bound in taxi.clean.ranges.tip_fraction."
)
# Columns of trips that the keys and the fraction follow from, see ``with_tips`` of the engines.
COLUMNS = ("pickup_datetime", "passenger_count", "pickup_location_id", "payment_type", *columns_of(TARGET))
NEEDED = pa.schema([TRIP_SCHEMA.field(name) for name in COLUMNS])
# The sums of `whitewater.tables.group_statistics` by each key.
TipSums = Mapping[str, pa.Table]


def trip_parts(trips: Path) -> list[Part]:
    """Return the files of cleaned trips by service, whose code stands for a file's number."""
    rows: Counter[tuple[Service, Path]] = Counter()
    for group in row_groups(trips):
        if "service" not in group.names:
            rows[group.service, group.path] += group.rows
    return [Part(path, SERVICES.index(service), count) for (service, path), count in rows.items()]


def tip_tables(sums: TipSums, zones: Zones, *, confidence: float) -> dict[str, "pd.DataFrame"]:
    """Return the tables by name: hour, weekday_hour, month, payment_type, passenger_count, borough, zone.

    Columns: ``service``, the key, ``all_trips``, ``trips``, ``mean``, ``mean_low``, ``mean_high``, ``median``,
    ``plain_trips``, ``plain_mean``. The interval is mean ± z s / sqrt(n) (normal approximation), unknown for a single
    trip; the error of the median is told by `whitewater.tables.group_statistics`, 2**-11 but for huge tables. A null
    key is a row with a null key, the last of its service. Groups without trips are left out.
    """
    week, places = sums["hour_of_week"], sums["location_id"]
    hours = _to_pandas(week["hour_of_week"])
    week = week.append_column("weekday", pa.array(hours // 24)).append_column("hour", pa.array(hours % 24))
    # A location that the table of zones lacks has no borough.
    borough, zone = (pa.array(texts, pa.string()) for texts in (zones.boroughs, zones.names))
    payment = pa.array(PAYMENT_NAMES.values())
    months = pa.array([month_name(number) for number in range((YEARS[1] + 1) * 12)], pa.string())
    table = partial(_table, confidence=confidence)
    return {
        "hour": table(week, "hour"),
        "weekday_hour": table(week, "weekday", "hour"),
        "month": table(sums["month"], "month", names={"month": months}),
        "payment_type": table(sums["payment_type"], "payment_type", names={"payment_name": payment}),
        "passenger_count": table(sums["passenger_count"], "passenger_count"),
        "borough": table(places.append_column("borough", borough.take(places["location_id"])), "borough"),
        "zone": table(places, "location_id", names={"zone": zone, "borough": borough}),
    }


def _to_pandas(values: Any) -> Any:
    """Return a table or a column of Arrow as pandas', small integers as nullable ones."""
    return values.to_pandas(types_mapper={pa.int16(): pd.Int16Dtype()}.get)


def _table(
    sums: pa.Table, *keys: str, confidence: float, names: Mapping[str, pa.Array] = MappingProxyType({})
) -> "pd.DataFrame":
    """Return the rows of each service, and of all together; ``names`` are indexed by the last key."""
    everywhere = sums.set_column(0, "service", pa.repeat(pa.scalar(len(SERVICES), pa.int8()), len(sums)))
    sums = pa.concat_tables([sums, everywhere])
    recorded, plain = (summarize(_only(sums, kind), ["service", *keys]) for kind in ("recorded", "plain"))
    count, mean, deviation = (recorded[name].to_pandas() for name in ("values", "mean", "deviation"))
    margin = NormalDist().inv_cdf(0.5 + confidence / 2) * deviation / np.sqrt(count)
    columns = {"service": pa.array([*SERVICES, ALL]).take(recorded["service"])}
    columns |= {key: recorded[key] for key in keys}
    columns |= {name: texts.take(recorded[keys[-1]]) for name, texts in names.items()}
    rows: pd.DataFrame = _to_pandas(pa.table(columns)).assign(
        all_trips=recorded["rows"].to_numpy(),
        trips=count,
        mean=mean,
        mean_low=mean - margin,
        mean_high=mean + margin,
        median=recorded["median"].to_numpy(),
        plain_trips=plain["values"].to_numpy(),
        plain_mean=plain["mean"].to_numpy(),
    )
    # Kept in the Parquet file; the pictures say it.
    rows.attrs["confidence"] = confidence
    return rows


def _only(sums: pa.Table, kind: str) -> pa.Table:
    """Return the sums with the values of the trips of one kind alone; the rows are still those of all."""
    chosen = sums[kind].cast(pa.int64())
    for name in ("values", *SUMS):
        sums = sums.set_column(sums.column_names.index(name), name, pc.multiply(sums[name], chosen))
    return sums

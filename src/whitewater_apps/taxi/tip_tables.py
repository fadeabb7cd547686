"""The tables of tips, and the sums that engines compute for them.

The fraction of a trip is tip / fare, with a fare above 0 and a tip of at least 0. It is *recorded* if the trip was paid
by card or in an app: a cash trip has a `tip_amount` of 0, which means missing. It is *plain* if it is above 0.
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
from whitewater.errors import InputError
from whitewater.tables.group_statistics import LIMIT, SUMS, summarize
from whitewater.tables.partitions import Part
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.data_sets import YEARS, month_name, row_groups
from whitewater_apps.taxi.schema import PAYMENT_NAMES, SERVICES, TARGET, TRIP_SCHEMA, columns_of
from whitewater_apps.taxi.zones import Zones

ALL = "all"
# No cab seats more than nine. More passengers count as null, and so does a month of a wrong clock.
MOST_PASSENGERS = 9
# The hour of the week is 24 x weekday + hour, from Monday at 0:00; for the month see `month_number`.
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
# Columns that the keys and the fraction are computed from.
SOURCE_COLUMNS = {"pickup_datetime", "payment_type", "passenger_count", "pickup_location_id", *columns_of(TARGET)}
TIP_SCHEMA = pa.schema([field for field in TRIP_SCHEMA if field.name in SOURCE_COLUMNS])
# Sums of `whitewater.tables.group_statistics` by key.
TipSums = Mapping[str, pa.Table]


def trip_parts(trips: Path) -> list[Part]:
    """List the files of cleaned trips by service; the number of a file is the code of its service.

    Raises InputError if a file is not in the directory of a service.
    """
    rows: Counter[tuple[Service, Path]] = Counter()
    for group in row_groups(trips):
        if "service" in group.names:
            raise InputError(f"{group.path}: tips are summarized by the directory of a service. Write its trips to "
                             "directories such as service=yellow, as step clean does.")  # fmt: skip
        rows[group.service, group.path] += group.rows
    return [Part(path, SERVICES.index(service), count) for (service, path), count in rows.items()]


def tip_tables(sums: TipSums, zones: Zones, *, confidence: float) -> dict[str, "pd.DataFrame"]:
    """Return the tables by name: hour, weekday_hour, month, payment_type, passenger_count, borough, zone.

    Columns: ``service``, the key, ``all_trips``, ``trips``, ``mean``, ``mean_low``, ``mean_high``, ``median``,
    ``plain_trips``, ``plain_mean``. The interval is mean ± z s / sqrt(n) (normal approximation), null for a single
    trip. The median has the error of `whitewater.tables.group_statistics`, 2**-11 except in huge tables. The last row
    of a service has a null key, if there are such trips. Groups without trips are left out.
    """
    week, places = sums["hour_of_week"], sums["location_id"]
    hours = _to_pandas(week["hour_of_week"])
    week = week.append_column("weekday", pa.array(hours // 24)).append_column("hour", pa.array(hours % 24))
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
    """Convert an Arrow table or column to pandas, int16 to a nullable type."""
    return values.to_pandas(types_mapper={pa.int16(): pd.Int16Dtype()}.get)


def _table(
    sums: pa.Table, *keys: str, confidence: float, names: Mapping[str, pa.Array] = MappingProxyType({})
) -> "pd.DataFrame":
    """Return the rows of each service, and of all together; ``names`` are indexed by the last key."""
    overall = sums.set_column(0, "service", pa.repeat(pa.scalar(len(SERVICES), pa.int8()), len(sums)))
    sums = pa.concat_tables([sums, overall])
    recorded, plain = (summarize(_keep_values(sums, kind), ["service", *keys]) for kind in ("recorded", "plain"))
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
    # Written to the Parquet file, for the figures.
    rows.attrs["confidence"] = confidence
    return rows


def _keep_values(sums: pa.Table, kind: str) -> pa.Table:
    """Return the sums with the values of one kind of trip; ``rows`` still counts all trips."""
    is_kind = sums[kind].cast(pa.int64())
    for name in ("values", *SUMS):
        sums = sums.set_column(sums.column_names.index(name), name, pc.multiply(sums[name], is_kind))
    return sums

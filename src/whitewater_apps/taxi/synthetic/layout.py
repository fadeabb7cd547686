"""The layouts of TLC's files by service and month: columns, types, spellings, and the quirks of their CSV."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pyarrow as pa

from whitewater.errors import ConfigError
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import ALIASES, FLAG, TRIP_COLUMNS
from whitewater_apps.taxi.synthetic.trips import Trips

FIRST_MONTH: dict[Service, str] = {"yellow": "2015-01", "green": "2017-01", "fhvhv": "2019-02"}
PARQUET_SINCE = "2017-01"  # what the model writes as Parquet; TLC has converted older months too, without coordinates
CSV_UNTIL = "2022-04"  # in May 2022 TLC moved to Parquet
NARROWED_SINCE = "2023-02"  # types, of Parquet

YELLOW_2015 = (
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,pickup_longitude,pickup_latitude,"
    "RateCodeID,store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,fare_amount,extra,mta_tax,tip_amount,"
    "tolls_amount,improvement_surcharge,total_amount"
)
YELLOW_ZONES = (
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,RatecodeID,store_and_fwd_flag,"
    "PULocationID,DOLocationID,payment_type,fare_amount,extra,mta_tax,tip_amount,tolls_amount,improvement_surcharge,"
    "total_amount"
)
GREEN_ZONES = (
    "VendorID,lpep_pickup_datetime,lpep_dropoff_datetime,store_and_fwd_flag,RatecodeID,PULocationID,DOLocationID,"
    "passenger_count,trip_distance,fare_amount,extra,mta_tax,tip_amount,tolls_amount,ehail_fee,improvement_surcharge,"
    "total_amount,payment_type,trip_type"
)
FHVHV = (
    "hvfhs_license_num,dispatching_base_num,originating_base_num,request_datetime,on_scene_datetime,pickup_datetime,"
    "dropoff_datetime,PULocationID,DOLocationID,trip_miles,trip_time,base_passenger_fare,tolls,bcf,sales_tax,"
    "congestion_surcharge,airport_fee,tips,driver_pay,shared_request_flag,shared_match_flag,access_a_ride_flag,"
    "wav_request_flag,wav_match_flag"
)
PARQUET: dict[Service, str] = {
    "yellow": f"{YELLOW_ZONES},congestion_surcharge",
    "green": f"{GREEN_ZONES},congestion_surcharge",
    "fhvhv": FHVHV,
}
# Yellow's CSV to a month: its header, what ends that line, and the surplus commas of its rows.
CSV = {
    "2015-06": (YELLOW_2015, "\r\n", 0),
    "2016-06": (YELLOW_2015.replace("RateCodeID", "RatecodeID"), "\r\n", 0),
    "2016-12": (YELLOW_ZONES, "\r\n", 2),
    "2018-12": (YELLOW_ZONES, "\n\r\n", 0),
    CSV_UNTIL: (f"{YELLOW_ZONES},congestion_surcharge", "\r\n", 0),
}
# Null together in trips sent by an app; the payment of yellow ones is 0 in Parquet.
LEFT_OUT = {"passenger_count", "rate_code", "store_and_forward", "payment_type", "congestion_surcharge", "airport_fee",
            "trip_type"}  # fmt: skip
NARROWED = {"vendor_id", "pickup_location_id", "dropoff_location_id"}
# How numbers of the model are spelled in columns of text: in flags, and by raw name in others.
FLAGS = ("N", "Y")
BASES = [f"B{90_000 + number}" for number in range(6)]
SPELLINGS = {
    "hvfhs_license_num": [f"HV{number:04d}" for number in range(6)],
    "dispatching_base_num": BASES,
    "originating_base_num": BASES,
}


class Layout(NamedTuple):
    """A form of file: names of the columns as they stand in it; of CSV the header line, and what follows its rows."""

    service: Service
    month: str
    form: Literal["csv", "parquet"]
    names: list[str]
    header: str = ""
    pads: int = 0


def layout(service: Service, month: str, *, first: bool = False) -> Layout:
    """Return the layout of a service's file of a month: before 2017 as published then (CSV), later as today (Parquet).

    Yellow's is CSV as well if it is the ``first`` file that is asked for, and TLC published CSV then.

    Raises ConfigError if the service is not simulated in that month.
    """
    if month < FIRST_MONTH[service]:
        raise ConfigError(f"taxi.fetch.generated: it has no {service} trips before {FIRST_MONTH[service]}. "
                          f"Remove {month} from months, or {service} from services.")  # fmt: skip
    if month < PARQUET_SINCE or (first and service == "yellow" and month <= CSV_UNTIL):
        header, end, pads = next(rest for last, rest in CSV.items() if month <= last)
        return Layout(service, month, "csv", header.split(","), f"{header}{end}", pads)
    fees = ["Airport_fee" if month >= NARROWED_SINCE else "airport_fee"] if service == "yellow" else []
    fees += ["cbd_congestion_fee"] if month >= "2025-01" else []
    return Layout(service, month, "parquet", [*PARQUET[service].split(","), *fees])


def raw_table(trips: Trips, chosen: Layout) -> pa.Table:
    """Return trips as a table of the layout: its names, order, types and spellings."""
    return pa.table([_column(name, trips, chosen) for name in chosen.names], names=chosen.names)


def _column(raw_name: str, trips: Trips, chosen: Layout) -> pa.Array:
    column = ALIASES[raw_name.lower()] or "vendor_id"  # bases follow from the license
    recent, parquet = chosen.month >= NARROWED_SINCE, chosen.form == "parquet"
    if column not in trips:
        return pa.nulls(len(trips["dispatched"]), pa.null() if parquet and not recent else pa.float64())
    left_out = column in LEFT_OUT or (column == "vendor_id" and not parquet)
    values = pa.array(trips[column], mask=trips["dispatched"] & left_out)
    if spellings := SPELLINGS.get(raw_name) or (FLAGS if TRIP_COLUMNS[column].codes is FLAG else None):
        return pa.array(spellings, pa.large_string() if recent else pa.string()).take(values)
    if column.endswith("_datetime"):
        return values.cast(pa.timestamp("us")).cast(pa.timestamp("us" if parquet else "s"), safe=False)
    if column == "payment_type" and chosen.service == "yellow" and parquet:
        return values.fill_null(0)
    if column in NARROWED:
        return values.cast(pa.int32() if recent else pa.int64())
    # To January 2023 columns that may be null were stored as floats.
    return values.cast(pa.float64()) if parquet and not recent and column in LEFT_OUT else values

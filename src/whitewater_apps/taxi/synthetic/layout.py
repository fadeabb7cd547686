"""The layouts of TLC's files by service and month: columns, types, spellings, and the quirks of their CSV."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from whitewater.errors import ConfigError
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import ALIASES, TRIP_COLUMNS
from whitewater_apps.taxi.synthetic.city import Integers, Mask
from whitewater_apps.taxi.synthetic.trips import Trips

Form = Literal["csv", "parquet"]
FIRST_MONTH: dict[Service, str] = {"yellow": "2015-01", "green": "2017-01", "fhvhv": "2019-02"}
PARQUET_SINCE = "2017-01"  # what the model writes as Parquet; TLC has converted older months too, without coordinates
CSV_UNTIL = "2022-04"  # in May 2022 TLC moved to Parquet

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
# Headers of yellow's CSV, each with the last month that has it; green is simulated from its first month of Parquet on.
HEADERS = (
    ("2015-06", YELLOW_2015),
    ("2016-06", YELLOW_2015.replace("RateCodeID", "RatecodeID")),
    ("2018-12", YELLOW_ZONES),
    (CSV_UNTIL, f"{YELLOW_ZONES},congestion_surcharge"),
)
# Null together in trips sent by an app; the payment of yellow ones is 0 in Parquet.
LEFT_OUT = ("passenger_count", "rate_code", "store_and_forward", "payment_type", "congestion_surcharge", "airport_fee",
            "trip_type")  # fmt: skip
NEVER_KNOWN = ("ehail_fee", "airport_fee")
UBER, LYFT = 3, 5


class Layout(NamedTuple):
    """A form of file: names of the columns as they stand in it; of CSV the header line, and what follows its rows."""

    service: Service
    month: str
    form: Form
    names: list[str]
    header: str = ""
    pads: int = 0

    @property
    def recent(self) -> bool:
        """Whether the file is of the time since TLC narrowed the types, in 2023."""
        return self.month >= "2023-02"

    @property
    def yellow_parquet(self) -> bool:
        """Whether a payment is never null, but 0."""
        return self.service == "yellow" and self.form == "parquet"


def layout(service: Service, month: str, form: Form) -> Layout:
    """Return the layout of a service's file of a month: as published then (CSV) or as published today (Parquet).

    Raises ConfigError if the service is not simulated in that month.
    """
    if month < FIRST_MONTH[service]:
        raise ConfigError(f"taxi.fetch.generated: it has no {service} trips before {FIRST_MONTH[service]}. "
                          f"Remove {month} from months, or {service} from services.")  # fmt: skip
    if form == "parquet":
        return Layout(service, month, form, _parquet_names(service, month))
    header = next(header for last, header in HEADERS if month <= last)
    end = "\n\r\n" if "2017-01" <= month <= "2018-12" else "\r\n"
    pads = 2 if "2016-07" <= month <= "2016-12" else 0
    return Layout(service, month, form, header.split(","), f"{header}{end}", pads)


def _parquet_names(service: Service, month: str) -> list[str]:
    airport_fee = "Airport_fee" if month >= "2023-02" else "airport_fee"
    header = {
        "yellow": f"{YELLOW_ZONES},congestion_surcharge,{airport_fee}",
        "green": f"{GREEN_ZONES},congestion_surcharge",
        "fhvhv": FHVHV,
    }[service]
    return [*header.split(","), *(["cbd_congestion_fee"] if month >= "2025-01" else [])]


def raw_table(trips: Trips, chosen: Layout) -> pa.Table:
    """Return trips as a table of the layout: its names, order, types and spellings."""
    return pa.table([_column(name, trips, chosen) for name in chosen.names], names=chosen.names)


def _column(raw_name: str, trips: Trips, chosen: Layout) -> pa.Array:
    column = ALIASES.get(raw_name.strip().lower(), raw_name)
    nulls = _nulls(column, trips, chosen)
    spelled = _spelled(column, trips, chosen)
    if spelled is not None:
        text = pa.large_string() if chosen.recent else pa.string()
        return pa.array(spelled[0], text).take(pa.array(spelled[1], pa.int64(), mask=nulls))
    if nulls.all() and column in NEVER_KNOWN and chosen.form == "parquet" and not chosen.recent:
        return pa.nulls(len(nulls))
    values = trips.get(column, np.zeros(len(nulls)))
    if column == "payment_type" and chosen.yellow_parquet:
        values = np.where(trips["dispatched"], 0, values)
    if column.endswith("_datetime"):
        unit = "us" if chosen.form == "parquet" else "s"
        return pa.array(values.astype("datetime64[us]"), mask=nulls).cast(pa.timestamp(unit), safe=False)
    return pa.array(values, mask=nulls).cast(_number_type(column, chosen))


def _number_type(column: str, chosen: Layout) -> pa.DataType:
    if TRIP_COLUMNS[column].kind == "float64":
        return pa.float64()
    if column in ("vendor_id", "pickup_location_id", "dropoff_location_id"):
        return pa.int32() if chosen.recent else pa.int64()
    # To January 2023 columns that may be null were stored as floats.
    nullable = column in LEFT_OUT and not (column == "payment_type" and chosen.yellow_parquet)
    return pa.float64() if nullable and chosen.form == "parquet" and not chosen.recent else pa.int64()


def _nulls(column: str, trips: Trips, chosen: Layout) -> Mask:
    none = np.zeros(len(trips["vendor_id"]), bool)
    if column == "ehail_fee" or (column == "airport_fee" and chosen.month < "2021"):
        return ~none
    if column in ("on_scene_datetime", "originating_base_num"):
        return np.asarray(trips["vendor_id"] == LYFT)
    if chosen.service == "fhvhv" or (column == "payment_type" and chosen.yellow_parquet):
        return none
    return trips["dispatched"] if column in LEFT_OUT or (column == "vendor_id" and chosen.form == "csv") else none


def _spelled(column: str, trips: Trips, chosen: Layout) -> tuple[tuple[str, ...], Integers] | None:
    """Return the spellings of a column of text, and which of them each trip has; None for numbers and times."""
    vendor, flags = trips["vendor_id"], ("N", "Y")
    if column == "store_and_forward":
        return flags, trips[column]
    if chosen.service != "fhvhv":
        return None
    if column == "vendor_id":
        return tuple(f"HV{license:04d}" for license in range(LYFT + 1)), vendor
    if column in ("dispatching_base_num", "originating_base_num"):
        return tuple(f"B{90_000 + license}" for license in range(LYFT + 1)), vendor
    if column == "access_a_ride":
        return (*flags, " "), np.where(vendor == UBER, 2, trips[column])
    return (flags, trips[column]) if TRIP_COLUMNS[column].kind == "int8" else None

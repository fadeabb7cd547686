"""The layouts of TLC's files by service and month: columns, types, spellings, and the quirks of their CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from whitewater.taxi.schema import ALIASES, TRIP_COLUMNS, Service
from whitewater.taxi.simulation.city import Integers, Mask
from whitewater.taxi.simulation.trips import Trips

if TYPE_CHECKING:
    import pyarrow as pa

Form = Literal["csv", "parquet"]
FIRST_MONTH: dict[Service, str] = {"yellow": "2009-01", "green": "2013-08", "fhvhv": "2019-02"}
PARQUET_SINCE = "2017-01"  # what the model writes as Parquet; TLC has converted older months too, without coordinates
CSV_UNTIL = "2022-04"  # in May 2022 TLC moved to Parquet

YELLOW_2009 = (
    "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,Start_Lon,Start_Lat,Rate_Code,"
    "store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,surcharge,mta_tax,Tip_Amt,Tolls_Amt,Total_Amt"
)
YELLOW_2010 = (
    "vendor_id,pickup_datetime,dropoff_datetime,passenger_count,trip_distance,pickup_longitude,pickup_latitude,rate_code,"
    "store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,fare_amount,surcharge,mta_tax,tip_amount,"
    "tolls_amount,total_amount"
)
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
GREEN_2013 = (
    "VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime,Store_and_fwd_flag,RateCodeID,Pickup_longitude,Pickup_latitude,"
    "Dropoff_longitude,Dropoff_latitude,Passenger_count,Trip_distance,Fare_amount,Extra,MTA_tax,Tip_amount,Tolls_amount,"
    "Ehail_fee,Total_amount,Payment_type,Trip_type "
)
GREEN_2015 = GREEN_2013.replace("Total_amount", "improvement_surcharge,Total_amount")
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
# Null together in trips sent by an app; the payment of yellow ones is 0 in Parquet.
LEFT_OUT = ("passenger_count", "rate_code", "store_and_forward", "payment_type", "congestion_surcharge", "airport_fee",
            "trip_type")  # fmt: skip
NEVER_KNOWN = ("ehail_fee", "airport_fee")
UBER, LYFT = 3, 5
VENDORS = ("", "CMT", "VTS")
# To 2014 payments were words, spelled otherwise by each vendor: codes 0 to 4 of vendor 1, then those of vendor 2.
PAYMENTS = (
    (2009, ("", "Credit", "Cash", "No Charge", "Dispute", "", "CREDIT", "CASH", "No Charge", "Dispute")),
    (2010, ("", "Cre", "Cas", "No ", "Dis", "", "CRD", "CSH", "NOC", "DIS")),
    (2014, ("", "CRD", "CSH", "NOC", "DIS", "", "CRD", "CSH", "NOC", "DIS")),
)


@dataclass(frozen=True)
class Layout:
    """A form of file: names of the columns as they stand in it; of CSV the header line, and what follows its rows."""

    service: Service
    month: str
    form: Form
    names: tuple[str, ...]
    header: str = ""
    pads: int = 0
    blank_line: bool = False

    @property
    def recent(self) -> bool:
        """Whether the file is of the time since TLC narrowed the types, in 2023."""
        return self.month >= "2023-02"


def layout(service: Service, month: str, form: Form) -> Layout:
    """Return the layout of a service's file of a month: as published then (CSV) or as published today (Parquet).

    Green months are asked for as CSV to 2016 only.
    """
    if form == "parquet":
        return Layout(service, month, form, tuple(_parquet_names(service, month)))
    names = _csv_header(service, month).split(",")
    padded = "2016-07" <= month <= "2016-12" or (service == "green" and month <= "2015-06")
    blank_line = _blank_after_header(service, month)
    separator = ", " if service == "yellow" and month[:4] == "2014" else ","
    return Layout(service, month, form, tuple(names), separator.join(names), 2 if padded else 0, blank_line)


def raw_table(trips: Trips, chosen: Layout) -> pa.Table:
    """Return trips as a table of the layout: its names, order, types and spellings."""
    import pyarrow as pa

    columns = [_column(name, trips, chosen) for name in chosen.names]
    return pa.Table.from_arrays(columns, names=list(chosen.names))


def _csv_header(service: Service, month: str) -> str:
    if service == "green":
        return _before(month, (("2014-12", GREEN_2013), ("2016-06", GREEN_2015))) or GREEN_ZONES
    yellow_2016 = YELLOW_2015.replace("RateCodeID", "RatecodeID")
    eras_of_yellow = (
        ("2009-12", YELLOW_2009), ("2014-12", YELLOW_2010), ("2015-06", YELLOW_2015), ("2016-06", yellow_2016),
        ("2018-12", YELLOW_ZONES),
    )  # fmt: skip
    return _before(month, eras_of_yellow) or f"{YELLOW_ZONES},congestion_surcharge"


def _before(month: str, eras: Sequence[tuple[str, str]]) -> str | None:
    return next((header for last, header in eras if month <= last), None)


def _blank_after_header(service: Service, month: str) -> bool:
    return month <= "2014-12" or ("2016-01" if service == "green" else "2017-01") <= month <= "2018-12"


def _parquet_names(service: Service, month: str) -> list[str]:
    if service == "fhvhv":
        names = FHVHV.split(",")
    elif service == "green":
        names = [*GREEN_ZONES.split(","), "congestion_surcharge"]
    else:
        names = [
            *YELLOW_ZONES.split(","),
            "congestion_surcharge",
            "Airport_fee" if month >= "2023-02" else "airport_fee",
        ]
    return [*names, "cbd_congestion_fee"] if month >= "2025-01" else names


def _column(raw_name: str, trips: Trips, chosen: Layout) -> pa.Array:
    import pyarrow as pa

    column = ALIASES.get(raw_name.strip().lower(), raw_name)
    nulls = _nulls(column, trips, chosen)
    text = pa.large_string() if chosen.recent else pa.string()
    spelled = _spelled(column, trips, chosen)
    if spelled is not None:
        spellings, codes = spelled
        return pa.array(spellings, text).take(pa.array(codes, pa.int64(), mask=nulls))
    if nulls.all() and column in NEVER_KNOWN and chosen.form == "parquet" and not chosen.recent:
        return pa.nulls(len(nulls))
    values = trips.get(column, np.zeros(len(nulls)))
    if column == "payment_type" and chosen.service == "yellow" and chosen.form == "parquet":
        values = np.where(trips["dispatched"], 0, values)
    if column.endswith("_datetime"):
        unit = "us" if chosen.form == "parquet" else "s"
        return pa.array(values.astype("datetime64[us]"), mask=nulls).cast(pa.timestamp(unit), safe=False)
    return pa.array(values, mask=nulls).cast(_number_type(column, chosen))


def _number_type(column: str, chosen: Layout) -> pa.DataType:
    import pyarrow as pa

    if TRIP_COLUMNS[column].kind == "float64":
        return pa.float64()
    if column in ("vendor_id", "pickup_location_id", "dropoff_location_id"):
        return pa.int32() if chosen.recent else pa.int64()
    # To January 2023 columns that may be null were stored as floats.
    nullable = column in LEFT_OUT and not (column == "payment_type" and chosen.service == "yellow")
    return pa.float64() if nullable and chosen.form == "parquet" and not chosen.recent else pa.int64()


def _nulls(column: str, trips: Trips, chosen: Layout) -> Mask:
    none = np.zeros(len(trips["vendor_id"]), bool)
    if column == "ehail_fee" or (column == "airport_fee" and chosen.month < "2021"):
        return ~none
    if column in ("on_scene_datetime", "originating_base_num"):
        return np.asarray(trips["vendor_id"] == LYFT)
    if chosen.month[:4] == "2009" and column in ("rate_code", "mta_tax"):
        return ~none if column == "rate_code" else np.asarray(trips["mta_tax"] == 0)
    if column == "store_and_forward" and chosen.service == "yellow" and chosen.month < "2015":
        return np.asarray(trips["vendor_id"] == 2)
    if column == "payment_type" and chosen.service == "yellow" and chosen.form == "parquet":
        return none
    left_out = column in LEFT_OUT or (column == "vendor_id" and chosen.form == "csv")
    return trips["dispatched"] if left_out and chosen.service != "fhvhv" else none


def _spelled(column: str, trips: Trips, chosen: Layout) -> tuple[tuple[str, ...], Integers] | None:
    """Return the spellings of a column of text, and which of them each trip has; None for numbers and times."""
    vendor, year = trips["vendor_id"], int(chosen.month[:4])
    if chosen.service == "fhvhv":
        return _spelled_by_apps(column, trips)
    if column == "store_and_forward":
        return ("0", "1") if year <= 2010 else ("N", "Y"), trips[column]
    if chosen.service == "yellow" and year <= 2014:
        if column == "vendor_id":
            return VENDORS, vendor
        if column == "payment_type":
            by_vendor = next(words for last, words in PAYMENTS if year <= last)
            return by_vendor, trips[column] + len(by_vendor) // 2 * (vendor - 1)
    return None


def _spelled_by_apps(column: str, trips: Trips) -> tuple[tuple[str, ...], Integers] | None:
    vendor = trips["vendor_id"]
    if column == "vendor_id":
        return tuple(f"HV{licence:04d}" for licence in range(LYFT + 1)), vendor
    if column in ("dispatching_base_num", "originating_base_num"):
        return tuple(f"B{90_000 + licence}" for licence in range(LYFT + 1)), vendor
    if column == "access_a_ride":
        return ("N", "Y", " "), np.where(vendor == UBER, 2, trips[column])
    return (("N", "Y"), trips[column]) if TRIP_COLUMNS[column].kind == "int8" else None

"""Eras are told apart by their columns, whatever the file is called."""

from pathlib import Path

import pytest

from tests.helpers.raw_files import YELLOW_2019
from whitewater.errors import InputError
from whitewater_apps.taxi.schema import CODES, SERVICES, SOURCE, TRIP_COLUMNS

YELLOW_2009 = (
    "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,Start_Lon,Start_Lat,Rate_Code,"
    "store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,surcharge,mta_tax,Tip_Amt,Tolls_Amt,Total_Amt"
)
YELLOW_2014 = (
    "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, pickup_longitude, "
    "pickup_latitude, rate_code, store_and_fwd_flag, dropoff_longitude, dropoff_latitude, payment_type, fare_amount, "
    "surcharge, mta_tax, tip_amount, tolls_amount, total_amount"
)
GREEN_2024 = (
    "VendorID,lpep_pickup_datetime,lpep_dropoff_datetime,store_and_fwd_flag,RatecodeID,PULocationID,DOLocationID,"
    "passenger_count,trip_distance,fare_amount,extra,mta_tax,tip_amount,tolls_amount,ehail_fee,improvement_surcharge,"
    "total_amount,payment_type,trip_type,congestion_surcharge"
)
FHVHV_2025 = (
    "hvfhs_license_num,dispatching_base_num,originating_base_num,request_datetime,on_scene_datetime,pickup_datetime,"
    "dropoff_datetime,PULocationID,DOLocationID,trip_miles,trip_time,base_passenger_fare,tolls,bcf,sales_tax,"
    "congestion_surcharge,airport_fee,tips,driver_pay,shared_request_flag,shared_match_flag,access_a_ride_flag,"
    "wav_request_flag,wav_match_flag,cbd_congestion_fee"
)


@pytest.mark.parametrize(
    ("header", "service", "columns"),
    [
        (YELLOW_2009, "yellow", 18),
        (YELLOW_2009.replace("mta_tax", "mta_tax").replace("vendor_name", "vendor_name"), "yellow", 18),
        (YELLOW_2014, "yellow", 18),
        (YELLOW_2014 + ",__index_level_0__", "yellow", 18),
        (YELLOW_2019, "yellow", 18),
        (YELLOW_2019 + ",airport_fee", "yellow", 19),
        (YELLOW_2019 + ",Airport_fee,cbd_congestion_fee", "yellow", 20),
        (GREEN_2024, "green", 20),
        (GREEN_2024 + ",cbd_congestion_fee", "green", 21),
        (FHVHV_2025, "fhvhv", 23),
        (FHVHV_2025.removesuffix(",cbd_congestion_fee"), "fhvhv", 22),
        (YELLOW_2019 + ",color", None, 19),
    ],
)
def test_every_era_is_recognized(header: str, service: str | None, columns: int) -> None:
    era = SOURCE.recognize(header.split(","), path="anything.csv")
    code = era.constants.get("service")
    assert (None if code is None else SERVICES[code]) == service
    assert len(era.columns) == columns
    assert set(era.columns) <= set(TRIP_COLUMNS)


def test_columns_that_are_left_out_are_named() -> None:
    era = SOURCE.recognize(FHVHV_2025.split(","), path="x")
    assert era.ignored_columns == ("dispatching_base_num", "originating_base_num")


def test_a_file_without_fares_is_not_a_file_of_trips() -> None:
    with pytest.raises(InputError, match="no column for fare_amount, tip_amount"):
        SOURCE.recognize(["tpep_pickup_datetime", "tpep_dropoff_datetime"], path="x")


@pytest.mark.parametrize(
    ("column", "code", "spellings"),
    [
        ("payment_type", 1, ("CRD", "Credit", "CREDIT", "Cre", "CRE", "1", "1.0", "1.00", "1.")),
        ("payment_type", 2, ("CSH", "CASH", "Cash", "CAS", "Cas", "2")),
        ("payment_type", 3, ("NOC", "No Charge", "No ")),
        ("payment_type", 4, ("DIS", "Dispute")),
        ("payment_type", 5, ("UNK", "NA ")),
        ("payment_type", -1, ("barter", "7", "-1", "1.5", "1.0.0", ".0", ".")),
        ("vendor_id", 1, ("CMT", "1")),
        ("vendor_id", 2, ("VTS", "2", "HV0002")),
        ("store_and_forward", 1, ("Y", "1")),
        ("store_and_forward", 0, ("N", "0", "0.0")),
        ("store_and_forward", None, ("", " ", None)),
    ],
)
def test_spellings_of_all_years_become_one_code(
    column: str, code: int | None, spellings: tuple[str | None, ...]
) -> None:
    assert [CODES[column].code_of(text) for text in spellings] == [code] * len(spellings)


def test_the_readme_lists_every_column() -> None:
    readme = Path("workflows/taxi/README.md").read_text()
    for name, column in TRIP_COLUMNS.items():
        kind = {"timestamp": "timestamp[us]", "float64": "double"}.get(column.kind, column.kind)
        assert f"| `{name}` | {kind} | {column.unit} | {column.meaning} |" in readme

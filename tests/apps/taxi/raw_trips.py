"""A few hundred raw trips of every form, with the dirt that the steps must cope with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROWS = 900
# Trips that are there twice.
REPEATED = slice(20, 60)
START = {"yellow": "2009-01-01", "green": "2019-03-01", "fhvhv": "2021-02-01", "either": "2019-03-01"}
# The file whose codes can all be understood.
BOROUGHS = ("Bronx", "Brooklyn", "EWR", "Manhattan", "Queens", "Staten Island")


def write_raw(directory: Path) -> tuple[list[Path], Path]:
    """Write raw files and the table of zones; return their paths."""
    frames = {"yellow.csv": _yellow(), "green.parquet": _green(), "fhvhv.parquet": _fhvhv(), "either.csv": _either()}
    for name, trips in frames.items():
        path, frame = directory / name, pd.concat([trips, trips[REPEATED]])
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False, row_group_size=ROWS // 2)
    with (directory / "yellow.csv").open("a") as file:
        file.write("VTS,2009-01-04 02:52:00,torn\n")
    zones = directory / "zones.csv"
    lines = [f"{zone},{BOROUGHS[zone % 6]},Zone {zone},Boro Zone" for zone in range(1, 264)]
    zones.write_text("\n".join(["LocationID,Borough,Zone,service_zone", *lines]) + "\n")
    return [directory / name for name in frames], zones


def _trips(service: str) -> dict[str, Any]:
    """Return pickup, drop-off, distance, fare and tip of trips of a month, some of them wrong or missing."""
    random = np.random.default_rng(len(service))
    seconds = pd.Series(random.integers(0, 28 * 86_400, ROWS))
    pickup = pd.Timestamp(START[service]) + pd.to_timedelta(seconds, "s")
    minutes = pd.Series(random.gamma(3.0, 5.0, ROWS) - (random.random(ROWS) < 0.03) * 60)
    distance = pd.Series((minutes.clip(lower=0) / 5 + random.random(ROWS)).round(2))
    fare = (2.5 + 2.5 * distance).round(2)
    tip = (fare * random.choice([0.0, 0.1, 0.2, 0.25], ROWS) + 0.01 * random.integers(0, 50, ROWS)).round(2)
    pickup[5], pickup[6] = None, pd.Timestamp("2002-12-31 23:10:00")
    fare[7], fare[8], fare[9], tip[10], tip[11], distance[12] = np.nan, -3.5, 0.0, np.nan, -1.0, 900.0
    dropoff = pickup + pd.to_timedelta(minutes.round(1), "min").dt.floor("s")
    return {"pickup": pickup, "dropoff": dropoff, "distance": distance, "fare": fare, "tip": tip}


def _choice(seed: int, values: list[Any]) -> pd.Series[Any]:
    return pd.Series(np.random.default_rng(seed).integers(0, len(values), ROWS)).map(dict(enumerate(values)))


def _named(trips: Mapping[str, Any], columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame of columns, each the name of one of the trips' or values of its own."""
    return pd.DataFrame({name: trips[value] if isinstance(value, str) else value for name, value in columns.items()})


def _yellow() -> pd.DataFrame:
    trips = _trips("yellow")
    return _named(
        trips,
        {
            "vendor_name": _choice(1, ["CMT", "VTS", "DDS", None]),
            "Trip_Pickup_DateTime": "pickup",
            "Trip_Dropoff_DateTime": "dropoff",
            "Passenger_Count": _choice(2, [1, 1, 2, 5, 208]),
            "Trip_Distance": "distance",
            "Start_Lon": _choice(3, [-73.98, 0.0]),
            "Start_Lat": _choice(3, [40.75, 0.0]),
            "Rate_Code": _choice(4, [None, 1]),
            "store_and_forward": _choice(5, [None, 0, 1]),
            "End_Lon": _choice(6, [-73.98, 0.0]),
            "End_Lat": _choice(6, [40.75, 0.0]),
            "Payment_Type": _choice(7, ["Credit", "CASH", "Credit", "Dispute", "barter"]),
            "Fare_Amt": "fare",
            "surcharge": _choice(8, [0.0, 0.5]),
            "mta_tax": _choice(9, [None, 0.5]),
            "Tip_Amt": "tip",
            "Tolls_Amt": _choice(10, [0.0, 4.15]),
            "Total_Amt": trips["fare"] + trips["tip"],
        },
    )


def _green() -> pd.DataFrame:
    trips = _trips("green")
    return _named(
        trips,
        {
            "VendorID": _choice(1, [1, 2]),
            "lpep_pickup_datetime": "pickup",
            "lpep_dropoff_datetime": "dropoff",
            "store_and_fwd_flag": _choice(2, ["N", "Y", None]),
            "RatecodeID": _choice(3, [1.0, 1.0, 5.0, 99.0, None]),
            "PULocationID": _choice(4, [7, 75, 74, 75, 260, 76, 77, 263, 0, 300]),
            "DOLocationID": _choice(5, [74, 42, 2, 3, 264, 41, 7]),
            "passenger_count": _choice(6, [1.0, 2.0, None, 2.5, 12.0]),
            "trip_distance": "distance",
            "fare_amount": "fare",
            "extra": _choice(7, [0.0, 0.5, 1.0]),
            "mta_tax": _choice(8, [0.5]),
            "tip_amount": "tip",
            "tolls_amount": _choice(9, [0.0, 5.76]),
            "ehail_fee": _choice(10, [None]).astype("float64"),
            "improvement_surcharge": _choice(11, [0.3]),
            "total_amount": trips["fare"] + trips["tip"],
            "payment_type": _choice(12, [1.0, 1.0, 2.0, 3.0, None]),
            "trip_type": _choice(13, [1.0, 2.0]),
            "congestion_surcharge": _choice(14, [0.0, 2.75, None]),
        },
    )


def _fhvhv() -> pd.DataFrame:
    trips = _trips("fhvhv")
    return _named(
        trips,
        {
            "hvfhs_license_num": _choice(1, ["HV0003", "HV0005"]),
            "dispatching_base_num": _choice(2, ["B02764"]),
            # A time with a zone, which no library reads as a local time.
            "request_datetime": trips["pickup"].dt.tz_localize("UTC"),
            "pickup_datetime": "pickup",
            "dropoff_datetime": "dropoff",
            "PULocationID": _choice(3, [61, 132, 264]),
            "DOLocationID": _choice(4, [61, 1, 138]),
            "trip_miles": "distance",
            "trip_time": _choice(5, [300, 900]),
            "base_passenger_fare": "fare",
            "tolls": _choice(6, [0.0, 6.55]),
            "bcf": _choice(7, [0.3]),
            "sales_tax": _choice(8, [1.2]),
            "tips": "tip",
            "driver_pay": _choice(9, [9.5]),
            "shared_request_flag": _choice(10, ["N", "Y"]),
            "access_a_ride_flag": _choice(11, [" ", "N"]),
        },
    )


def _either() -> pd.DataFrame:
    """Trips that name their service row by row, one of them wrongly."""
    return _named(
        _trips("either"),
        {
            "pickup_datetime": "pickup",
            "dropoff_datetime": "dropoff",
            "passenger_count": _choice(1, [1, 4]),
            "trip_distance": "distance",
            "fare_amount": "fare",
            "tip_amount": "tip",
            "payment_type": _choice(2, ["credit card", "cash", None]),
            "color": _choice(3, ["yellow", "green", "yellow", "green", "mauve"]),
        },
    )

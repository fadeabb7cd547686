"""Small raw files in the layouts of TLC, made by the tests themselves."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

YELLOW_2019 = (
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,RatecodeID,store_and_fwd_flag,"
    "PULocationID,DOLocationID,payment_type,fare_amount,extra,mta_tax,tip_amount,tolls_amount,improvement_surcharge,"
    "total_amount,congestion_surcharge"
)
TRIP = "1,2019-03-01 08:00:00,2019-03-01 08:10:00,1,1.5,1,N,141,233,1,10.0,0,0.5,2.0,0,0.3,12.8,2.5"


def yellow_frame(rows: int, *, seed: int = 1, month: str = "2019-03") -> pd.DataFrame:
    """Return trips of a month with nulls, odd values and rows that cleaning rejects."""
    random = np.random.default_rng(seed)
    start = np.datetime64(f"{month}-01", "s")
    pickup = start + random.integers(0, 28 * 86_400, rows)
    fare = np.round(random.uniform(-2, 60, rows), 2)
    payment = random.choice([1.0, 1.0, 2.0, 3.0, 4.0, np.nan], rows)
    tip = np.where(payment == 1, np.round(np.maximum(fare, 0) * random.choice([0, 0.2, 0.3], rows), 2), 0.0)
    return pd.DataFrame(
        {
            "VendorID": random.choice([1, 2], rows),
            "tpep_pickup_datetime": pickup.astype("datetime64[us]"),
            "tpep_dropoff_datetime": (pickup + random.integers(-60, 4_000, rows)).astype("datetime64[us]"),
            "passenger_count": random.choice([0.0, 1.0, 2.0, 6.0, np.nan], rows),
            "trip_distance": np.round(random.exponential(3, rows), 2),
            "RatecodeID": random.choice([1.0, 2.0, 99.0, np.nan], rows),
            "store_and_fwd_flag": pd.Series(random.choice(["N", "Y", ""], rows)).replace("", None),
            "PULocationID": random.integers(1, 266, rows),
            "DOLocationID": random.integers(1, 266, rows),
            "payment_type": payment,
            "fare_amount": fare,
            "extra": random.choice([0.0, 0.5, 1.0], rows),
            "mta_tax": np.full(rows, 0.5),
            "tip_amount": tip,
            "tolls_amount": np.zeros(rows),
            "improvement_surcharge": np.full(rows, 0.3),
            "total_amount": np.round(fare + tip + 0.8, 2),
            "congestion_surcharge": random.choice([0.0, 2.5, np.nan], rows),
        }
    )


def write_parquet(frame: pd.DataFrame, path: Path, *, row_group_size: int | None = None) -> Path:
    """Write a frame as TLC's writer does."""
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=row_group_size)
    return path


def write_zones(path: Path) -> Path:
    """Write a table of 265 zones, five boroughs in turn."""
    boroughs = ("Bronx", "Brooklyn", "Manhattan", "Queens", "Staten Island")
    rows = (f"{number},{boroughs[number % 5]},Zone {number},Boro Zone" for number in range(1, 266))
    path.write_text("\n".join(["LocationID,Borough,Zone,service_zone", *rows]) + "\n")
    return path


def write_csv(path: Path, lines: list[str], *, header: str = YELLOW_2019, end: str = "\n") -> Path:
    """Write a CSV file with a header."""
    path.write_bytes((end.join([header, *lines]) + end).encode())
    return path

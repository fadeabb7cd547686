"""Months of trips in the layout of the yellow-taxi files of 2019, for measuring speed at full size.

The values have the cardinalities, the coarseness (cents, half dollars, whole seconds, hundredths of a mile) and the share
of dirt of the published files, so that encodings, sizes and the cost of decoding are like theirs: 3 million rows make a
Parquet file of about 56 MB and a CSV file of about 270 MB. They are no model of New York.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

VERSION = 1  # counts up when the same arguments give other files
FIRST_YEAR = 2019
ROW_GROUP_ROWS = 2**20
BOROUGHS = {
    "Manhattan": (69, 0.905),
    "Queens": (69, 0.065),
    "Brooklyn": (61, 0.020),
    "Bronx": (43, 0.003),
    "Staten Island": (20, 0.0005),
    "EWR": (1, 0.0005),
    "Unknown": (1, 0.005),
    "N/A": (1, 0.001),
}  # zones, and share of the pickups
HOURLY_DEMAND = (30, 20, 14, 10, 8, 10, 22, 38, 46, 46, 45, 47, 50, 50, 52, 53, 48, 57, 65, 62, 56, 56, 53, 43)
# Not in files of 2019 as they were first published, which were CSV.
NOT_IN_CSV = ("airport_fee",)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Months:
    """Files of one month each, in order, and the zone table that belongs to them."""

    parquet: tuple[Path, ...]
    csv: tuple[Path, ...]
    zones: Path
    rows: int
    sha256: str


def prepare(directory: Path, *, months: int, rows: int, seed: int, with_csv: bool, processes: int) -> Months:
    """Make sure that the files are there, and return them; what is there from an earlier call is not made again.

    Parameters
    ----------
    directory
        Where the files belong; a folder of it for each combination of ``rows`` and ``seed``.
    months
        Number of months from 2019-01.
    rows
        Trips in each month.
    with_csv
        Whether each month is wanted as CSV too.
    processes
        Months made at once.
    """
    folder = directory / f"rows-{rows}-seed-{seed}-version-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    zones = folder / "zones.csv"
    if not zones.exists():
        _write_zones(zones)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        names = list(_month_names(months))
        digests = list(pool.map(_prepare_month, [folder] * months, names, [rows] * months, [seed] * months))
        if with_csv:
            list(pool.map(_prepare_csv, [folder] * months, names))
    return Months(
        parquet=tuple(folder / f"yellow_tripdata_{name}.parquet" for name in names),
        csv=tuple(folder / f"yellow_tripdata_{name}.csv" for name in names) if with_csv else (),
        zones=zones,
        rows=rows * months,
        sha256=hashlib.sha256("".join(digests).encode()).hexdigest(),
    )


def simulate_month(month: str, *, rows: int, seed: int) -> pa.Table:
    """Return one month of trips, nearly in the order of their pickups, with the columns and types of TLC's files.

    About 0.5 % of the rows have nulls in the four columns that dispatched trips leave out, and 0.6 % are dirty: refunds
    with negative amounts, drop-offs before pickups, distances and fares out of any range, clocks that were wrong.
    """
    year, month_of_year = (int(part) for part in month.split("-"))
    random = np.random.Generator(np.random.PCG64DXSM([seed, year, month_of_year]))
    pickup = _pickups(random, month, rows)
    zone = _zones(random, rows)
    seconds = np.rint(np.clip(random.lognormal(6.4, 0.65, rows), 40, 10_000)).astype(np.int64)
    miles = np.round(seconds / 3600 * np.clip(random.normal(11, 3.5, rows), 3, 40), 2)
    amounts = _amounts(random, hour=pickup // 3600 % 24, zone=zone, seconds=seconds, miles=miles)
    columns: dict[str, npt.NDArray[Any]] = {
        "VendorID": random.choice(np.array([1, 2, 4]), rows, p=(0.36, 0.63, 0.01)),
        "tpep_pickup_datetime": pickup,
        "tpep_dropoff_datetime": pickup + seconds,
        "passenger_count": random.choice(np.arange(7.0), rows, p=(0.02, 0.7, 0.15, 0.04, 0.02, 0.045, 0.025)),
        "trip_distance": miles,
        "RatecodeID": random.choice(np.array([1.0, 2, 3, 4, 5, 99]), rows, p=(0.97, 0.02, 0.002, 0.001, 0.006, 0.001)),
        "store_and_fwd_flag": random.random(rows) < 0.005,
        "PULocationID": zone,
        "DOLocationID": np.where(random.random(rows) < 0.25, zone, _zones(random, rows)),
        **amounts,
    }
    _soil(random, columns)
    return _table(columns, dispatched=random.random(rows) < 0.005)


def _month_names(count: int) -> Iterator[str]:
    for index in range(count):
        yield f"{FIRST_YEAR + index // 12}-{index % 12 + 1:02d}"


def _pickups(random: np.random.Generator, month: str, rows: int) -> Integers:
    """Return seconds since 1970: ordered as vendors deliver them, each batch of minutes shuffled."""
    first = np.datetime64(month, "s").astype(np.int64)
    days = int(np.datetime64(month, "M").astype("datetime64[D]").astype(np.int64))
    length = int((np.datetime64(month, "M") + 1).astype("datetime64[D]").astype(np.int64)) - days
    demand = np.array(HOURLY_DEMAND, np.float64)
    hour = random.choice(24, rows, p=demand / demand.sum())
    moment = random.integers(0, length, rows) * 86_400 + hour * 3600 + random.integers(0, 3600, rows)
    moment.sort()
    return np.asarray(first + np.clip(moment + random.integers(-900, 900, rows), 0, length * 86_400 - 1))


def _zones(random: np.random.Generator, rows: int) -> Integers:
    """Return location ids from 1: within a borough, demand falls with the square root of the zone's rank."""
    weights = [
        share * rank / rank.sum() for count, share in BOROUGHS.values() for rank in [np.arange(1.0, count + 1) ** -0.5]
    ]
    cumulated = np.cumsum(np.concatenate(weights))
    return np.asarray(np.searchsorted(cumulated / cumulated[-1], random.random(rows), side="right") + 1)


def _amounts(
    random: np.random.Generator, *, hour: Integers, zone: Integers, seconds: Integers, miles: Floats
) -> dict[str, Floats]:
    rows = len(hour)
    payment = random.choice(np.array([1, 2, 3, 4]), rows, p=(0.715, 0.275, 0.006, 0.004))
    # The meter of 2012-2022: 2.50 to start, 0.50 for each fifth of a mile or minute in slow traffic.
    fare = 2.5 + 0.5 * np.rint(miles * 5 * 0.8 + seconds / 60 * 0.25)
    extra = np.where((hour >= 16) & (hour < 20), 1.0, np.where((hour >= 20) | (hour < 6), 0.5, 0.0))
    congestion = np.where(zone <= BOROUGHS["Manhattan"][0], 2.5, 0.0)
    tolls = np.where(random.random(rows) < 0.05, 6.12, 0.0)
    share = random.choice(np.array([0.0, 0.15, 0.2, 0.25, 0.3]), rows, p=(0.05, 0.1, 0.6, 0.15, 0.1))
    metered = np.round((fare + extra + 0.8 + congestion + tolls) * share, 2)
    chosen = np.where(random.random(rows) < 0.25, random.integers(1, 8, rows), metered)
    tip = np.where(payment == 1, chosen, 0.0)
    return {
        "payment_type": payment,
        "fare_amount": fare,
        "extra": extra,
        "mta_tax": np.full(rows, 0.5),
        "tip_amount": tip,
        "tolls_amount": tolls,
        "improvement_surcharge": np.full(rows, 0.3),
        "total_amount": np.round(fare + extra + 0.8 + congestion + tolls + tip, 2),
        "congestion_surcharge": congestion,
    }


def _soil(random: np.random.Generator, columns: dict[str, npt.NDArray[Any]]) -> None:
    """Spoil 0.1 % of the rows in each of six ways."""
    rows = len(columns["fare_amount"])
    faults = random.integers(0, 1000, rows)
    refunded = faults == 0
    for name in ("fare_amount", "extra", "mta_tax", "improvement_surcharge", "total_amount", "congestion_surcharge"):
        columns[name] = np.where(refunded, -columns[name], columns[name])
    pickup = columns["tpep_pickup_datetime"]
    columns["tpep_dropoff_datetime"] = np.where(
        faults == 1, pickup - 60, np.where(faults == 2, pickup + 86_340, columns["tpep_dropoff_datetime"])
    )
    columns["trip_distance"] = np.where(faults == 3, 8_300.57, columns["trip_distance"])
    columns["fare_amount"] = np.where(faults == 4, 0.0, columns["fare_amount"])
    wrong_clock = np.where(faults == 5, np.datetime64("2001-01-01", "s").astype(np.int64) - pickup, 0)
    columns["tpep_pickup_datetime"] = pickup + wrong_clock
    columns["tpep_dropoff_datetime"] = columns["tpep_dropoff_datetime"] + wrong_clock


def _table(columns: dict[str, npt.NDArray[Any]], *, dispatched: Mask) -> pa.Table:
    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        if name.endswith("datetime"):
            arrays[name] = pa.array(values * 1_000_000, pa.int64()).cast(pa.timestamp("us"))
        elif name == "store_and_fwd_flag":
            codes = pa.array(values.astype(np.int8), mask=dispatched)
            arrays[name] = pa.DictionaryArray.from_arrays(codes, ["N", "Y"]).cast(pa.string())
        elif name in ("passenger_count", "RatecodeID", "congestion_surcharge"):
            arrays[name] = pa.array(values, mask=dispatched)
        elif name == "payment_type":
            arrays[name] = pa.array(np.where(dispatched, 0, values))
        else:
            arrays[name] = pa.array(values)
    arrays["airport_fee"] = pa.nulls(len(dispatched), pa.float64())
    return pa.table(arrays)


def _prepare_month(folder: Path, month: str, rows: int, seed: int) -> str:
    """Write a month as Parquet unless it is there, and return its SHA-256."""
    path = folder / f"yellow_tripdata_{month}.parquet"
    digest = path.with_suffix(".json")
    if not digest.exists():
        staging = _staging(path)
        pq.write_table(
            simulate_month(month, rows=rows, seed=seed), staging, row_group_size=ROW_GROUP_ROWS, compression="snappy"
        )
        with staging.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        staging.replace(path)
        staging.write_text(json.dumps({"rows": rows, "sha256": sha256}))
        staging.replace(digest)
    return str(json.loads(digest.read_text())["sha256"])


def _prepare_csv(folder: Path, month: str) -> None:
    """Write a month as CSV unless it is there, as it was published: whole counts, whole seconds, empty nulls."""
    path = folder / f"yellow_tripdata_{month}.csv"
    if path.exists():
        return
    staging = _staging(path)
    with pq.ParquetFile(path.with_suffix(".parquet")) as source:
        schema = _csv_schema(source.schema_arrow)
        options = pa_csv.WriteOptions(quoting_style="none", quoting_header="none")
        with pa_csv.CSVWriter(staging, schema, write_options=options) as sink:
            for batch in source.iter_batches(columns=schema.names):
                sink.write_table(pa.Table.from_batches([batch]).cast(schema))
    staging.replace(path)


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    types = {"passenger_count": pa.int64(), "RatecodeID": pa.int64()}
    whole_seconds = {field.name: pa.timestamp("s") for field in schema if pa.types.is_timestamp(field.type)}
    return pa.schema(
        [
            (field.name, (types | whole_seconds).get(field.name, field.type))
            for field in schema
            if field.name not in NOT_IN_CSV
        ]
    )


def _write_zones(path: Path) -> None:
    boroughs: Sequence[str] = [name for name, (count, _) in BOROUGHS.items() for _ in range(count)]
    staging = _staging(path)
    with staging.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["LocationID", "Borough", "Zone", "service_zone"])
        writer.writerows([identifier, borough, f"Zone {identifier}", "Boro Zone"] for identifier, borough in enumerate(boroughs, 1))
    staging.replace(path)


def _staging(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")

"""The source `generated`: simulated TLC files, with the columns, types, spellings and CSV quirks of each month."""

import logging
from collections.abc import Iterator
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from whitewater.errors import ConfigError
from whitewater.io.store import remove_unfinished, write_atomically, write_bytes
from whitewater_apps.taxi.config import Generated, Service
from whitewater_apps.taxi.schema import ALIASES, FLAG, SERVICES, TRIP_COLUMNS
from whitewater_apps.taxi.synthetic import trips as model
from whitewater_apps.taxi.zones import Zones, zones_csv

logger = logging.getLogger(__name__)

# Trips of a month at scale 1: yellow as in 2024, and green a tenth of it, as in 2019. Fhvhv had three times as many as
# yellow, which would make the default large and teach nothing more.
ROWS: dict[Service, int] = {"yellow": 3_000_000, "green": 300_000, "fhvhv": 1_000_000}
BLOCK_TRIPS = 250_000
ZONES = "zones.csv"
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
GREEN = (
    "VendorID,lpep_pickup_datetime,lpep_dropoff_datetime,store_and_fwd_flag,RatecodeID,PULocationID,DOLocationID,"
    "passenger_count,trip_distance,fare_amount,extra,mta_tax,tip_amount,tolls_amount,ehail_fee,improvement_surcharge,"
    "total_amount,payment_type,trip_type,congestion_surcharge"
)
FHVHV = (
    "hvfhs_license_num,dispatching_base_num,originating_base_num,request_datetime,on_scene_datetime,pickup_datetime,"
    "dropoff_datetime,PULocationID,DOLocationID,trip_miles,trip_time,base_passenger_fare,tolls,bcf,sales_tax,"
    "congestion_surcharge,airport_fee,tips,driver_pay,shared_request_flag,shared_match_flag,access_a_ride_flag,"
    "wav_request_flag,wav_match_flag"
)
PARQUET: dict[Service, str] = {"yellow": f"{YELLOW_ZONES},congestion_surcharge", "green": GREEN, "fhvhv": FHVHV}
# Last month of a form of yellow CSV: its header, the end of that line, and the surplus commas of its rows.
CSV = {
    "2015-06": (YELLOW_2015, "\r\n", 0),
    "2016-06": (YELLOW_2015.replace("RateCodeID", "RatecodeID"), "\r\n", 0),
    "2016-12": (YELLOW_ZONES, "\r\n", 2),
    "2018-12": (YELLOW_ZONES, "\n\r\n", 0),
    CSV_UNTIL: (f"{YELLOW_ZONES},congestion_surcharge", "\r\n", 0),
}
# Null together in dispatched trips; their payment is 0 in yellow Parquet.
NULL_IF_DISPATCHED = {
    "passenger_count", "rate_code", "store_and_forward", "payment_type", "congestion_surcharge", "airport_fee",
    "trip_type",
}  # fmt: skip
NARROWED = {"vendor_id", "pickup_location_id", "dropoff_location_id"}
# Texts for the numbers of the model, by raw name.
BASES = [f"B{90_000 + number}" for number in range(6)]
SPELLINGS = {
    "hvfhs_license_num": [f"HV{number:04d}" for number in range(6)],
    "dispatching_base_num": BASES,
    "originating_base_num": BASES,
}


class Layout(NamedTuple):
    """The layout of a file: raw names of its columns; for CSV, the header line and the surplus commas of rows."""

    service: Service
    month: str
    form: Literal["csv", "parquet"]
    names: list[str]
    header: str = ""
    pads: int = 0


def simulate_month(service: Service, month: str, *, rows: int, seed: int) -> pa.Table:
    """Return ``rows`` trips of a month, ``YYYY-MM``, with the raw names, order and types of its columns.

    Before 2017 these are those of the CSV of the time, from then on those of today's Parquet. Trips are nearly sorted
    by pickup. Equal arguments give equal tables. Raises as `layout`.
    """
    return pa.concat_tables(_tables(layout(service, month), rows=rows, seed=seed))


def write_zones(path: Path) -> Path:
    """Write the zone table of the simulated city in TLC's layout, and return its path."""
    borough, name, service_zone = ((None, *texts[1:].tolist()) for texts in model.CITY[:3])
    write_bytes(path, zones_csv(Zones(borough, name, service_zone, duplicates=0)).encode())
    return path


def write_generated(directory: Path, settings: Generated) -> list[Path]:
    """Write the zone table, and replace the files of months; return their paths. For one process at a time."""
    layouts = [
        layout(service, month, first=month == settings.months[0])
        for service, month in dict.fromkeys(product(settings.services, settings.months))
    ]
    remove_unfinished(directory)
    for path in directory.glob("*_tripdata_*"):
        path.unlink()
    paths = []
    for file in layouts:
        path = directory / f"{file.service}_tripdata_{file.month}.{file.form}"
        rows = max(1, round(ROWS[file.service] * settings.scale))
        tables = _tables(file, rows=rows, seed=settings.seed)
        write = partial(_write_csv, file) if file.form == "csv" else _write_parquet
        write_atomically(path, partial(write, tables))
        logger.info("simulated %s: %d trips", path, rows)
        paths.append(path)
    write_zones(directory / ZONES)
    return paths


def _tables(file: Layout, *, rows: int, seed: int) -> Iterator[pa.Table]:
    """Yield the trips of a month nearly sorted by pickup, in blocks, so that memory is bounded."""
    service = file.service
    first = np.datetime64(file.month, "M")
    hours = np.arange(first, first + 1, dtype="datetime64[h]").astype(np.int64)
    seeds = (seed, SERVICES.index(service), int(first.astype(np.int64)))
    demand = model.hourly_demand(hours)
    counts = np.random.default_rng(seeds).multinomial(rows, demand / demand.sum())
    blocks = (np.cumsum(counts) - 1) // BLOCK_TRIPS
    for block in np.unique(blocks[counts > 0]):
        random = np.random.default_rng((*seeds, 1 + int(block)))
        hour = np.repeat(hours[blocks == block], counts[blocks == block])
        pickup = np.sort(hour * 3600 + random.integers(0, 3600, len(hour))) * model.MICROSECONDS
        simulate = model.app_trips if service == "fhvhv" else partial(model.taxi_trips, service)
        trips = simulate(file.month, pickup, random=random)
        trips = model.add_faults(trips, has_dispatched=service != "fhvhv" and file.month >= "2019", random=random)
        yield pa.table([_column(name, trips, file) for name in file.names], names=file.names)


def layout(service: Service, month: str, *, first: bool = False) -> Layout:
    """Return the layout of a file: CSV before 2017, then Parquet, but CSV to 2022 if it is the ``first`` yellow one.

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


def _column(raw_name: str, trips: model.Trips, file: Layout) -> pa.Array:
    """Return a column of a file, with its type and spellings."""
    column = ALIASES[raw_name.lower()] or "vendor_id"  # bases follow from the license
    is_narrow, is_parquet = file.month >= NARROWED_SINCE, file.form == "parquet"
    if column not in trips:
        return pa.nulls(len(trips["dispatched"]), pa.null() if is_parquet and not is_narrow else pa.float64())
    is_nullable = column in NULL_IF_DISPATCHED or (column == "vendor_id" and not is_parquet)
    values = pa.array(trips[column], mask=trips["dispatched"] & is_nullable)
    if spellings := SPELLINGS.get(raw_name) or (("N", "Y") if TRIP_COLUMNS[column].codes is FLAG else None):
        return pa.array(spellings, pa.large_string() if is_narrow else pa.string()).take(values)
    if column.endswith("_datetime"):
        return values.cast(pa.timestamp("us")).cast(pa.timestamp("us" if is_parquet else "s"), safe=False)
    if column == "payment_type" and file.service == "yellow" and is_parquet:
        return values.fill_null(0)
    if column in NARROWED:
        return values.cast(pa.int32() if is_narrow else pa.int64())
    # Until January 2023, nullable columns were stored as floats.
    return values.cast(pa.float64()) if is_parquet and not is_narrow and column in NULL_IF_DISPATCHED else values


def _write_parquet(tables: Iterator[pa.Table], path: Path) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _write_csv(file: Layout, tables: Iterator[pa.Table], path: Path) -> None:
    """Write the header and the rows with the quirks of their era, and a few torn lines."""
    options = pa_csv.WriteOptions(include_header=False, quoting_style="none", eol="\r\n")
    with path.open("wb") as stream:
        stream.write(file.header.encode())
        for table in tables:
            pads = [pa.nulls(len(table), pa.string())] * file.pads
            names = list(map(str, range(len(table.columns) + file.pads)))  # not written
            buffer = pa.BufferOutputStream()
            pa_csv.write_csv(pa.table([*table.columns, *pads], names), buffer, options)
            lines = buffer.getvalue().to_pybytes().splitlines(keepends=True)
            count = round(model.DIRT["torn_line"] * len(lines))
            for number in range(count):
                place = (number + 1) * len(lines) // (count + 1)
                lines.insert(place, lines[place][: len(lines[place]) // 2] + b"\r\n")
            stream.writelines(lines)

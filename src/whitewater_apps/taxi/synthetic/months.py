"""The source `generated`: a seeded model of TLC's files, with the dirt of the real ones, in the layout of each month.

The model is documented in `whitewater_apps.taxi.synthetic.trips`. Here are the layouts of files by service and month:
columns, types, spellings, and the quirks of their CSV.
"""

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
from whitewater.io.store import remove_unfinished, write_bytes, write_whole
from whitewater_apps.taxi.config import Generated, Service
from whitewater_apps.taxi.schema import ALIASES, FLAG, SERVICES, TRIP_COLUMNS
from whitewater_apps.taxi.synthetic import trips as model
from whitewater_apps.taxi.zones import Zones, zones_csv

logger = logging.getLogger(__name__)

# Trips of a month at scale 1. Yellow is that of a month in 2024; in 2019 green had a tenth of yellow's trips, and fhvhv
# three times as many, which would make the default large without teaching more.
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


def simulate_month(service: Service, month: str, *, rows: int, seed: int) -> pa.Table:
    """Return a month of so many trips, at least one, in the raw layout of its service and era.

    Before 2017 the layout is that of the CSV of the time, from then on that of today's Parquet: exact raw names, order
    and types; nearly in the order of the pickups; amounts in US dollars. Equal arguments give equal tables, whichever
    other months are simulated.

    Raises ConfigError if the service is not simulated in that month, which is ``YYYY-MM``.
    """
    return pa.concat_tables(_tables(layout(service, month), rows=rows, seed=seed))


def write_zones(path: Path) -> Path:
    """Write the simulated city's zone table, 265 rows in TLC's layout, and return its path."""
    borough, name, service_zone = ((None, *texts[1:].tolist()) for texts in model.CITY[:3])
    write_bytes(path, zones_csv(Zones(borough, name, service_zone, duplicates=0)).encode())
    return path


def write_generated(directory: Path, settings: Generated) -> list[Path]:
    """Write the zone table, `ZONES`, and a file for each service and month, and return the latter in that order.

    Yellow's first month is CSV, with the line ends and a few torn lines of its time, if TLC published CSV then; so are
    all months before 2017. The others are Parquet. Months of an earlier call are replaced, and removed if they are not
    asked for. Only one process at a time may use the directory.

    Raises ConfigError if a service is not simulated in a month.
    """
    wanted = [
        layout(service, month, first=month == settings.months[0])
        for service, month in dict.fromkeys(product(settings.services, settings.months))
    ]
    remove_unfinished(directory)
    for path in directory.glob("*_tripdata_*"):
        path.unlink()
    paths = [directory / f"{chosen.service}_tripdata_{chosen.month}.{chosen.form}" for chosen in wanted]
    for chosen, path in zip(wanted, paths, strict=True):
        rows = max(1, round(ROWS[chosen.service] * settings.scale))
        tables = _tables(chosen, rows=rows, seed=settings.seed)
        write_whole(path, partial(_write_csv if chosen.form == "csv" else _write_parquet, tables=tables, chosen=chosen))
        logger.info("simulated %s: %d trips", path, rows)
    write_zones(directory / ZONES)
    return paths


def _tables(chosen: Layout, *, rows: int, seed: int) -> Iterator[pa.Table]:
    """Yield the trips of a month in time order, a quarter of a million at once, so that memory stays bounded."""
    service = chosen.service
    first = np.datetime64(chosen.month, "M")
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
        trips = simulate(chosen.month, pickup, random=random)
        dispatched = service != "fhvhv" and chosen.month >= "2019"
        soiled = model.soil(trips, dispatched=dispatched, random=random)
        yield pa.table([_column(name, soiled, chosen) for name in chosen.names], names=chosen.names)


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


def _column(raw_name: str, trips: model.Trips, chosen: Layout) -> pa.Array:
    """Return a column of a layout, with its type and spellings."""
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


def _write_parquet(path: Path, *, tables: Iterator[pa.Table], chosen: Layout) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _write_csv(path: Path, *, tables: Iterator[pa.Table], chosen: Layout) -> None:
    """Write the header, a blank line where the era had one, and rows that end with its surplus commas and CRLF."""
    options = pa_csv.WriteOptions(include_header=False, quoting_style="none", eol="\r\n")
    with path.open("wb") as file:
        file.write(chosen.header.encode())
        for table in tables:
            pads = [pa.nulls(len(table), pa.string())] * chosen.pads
            names = list(map(str, range(len(table.columns) + chosen.pads)))  # not written
            buffer = pa.BufferOutputStream()
            pa_csv.write_csv(pa.table([*table.columns, *pads], names), buffer, options)
            lines = buffer.getvalue().to_pybytes().splitlines(keepends=True)
            torn = round(model.DIRT["torn_line"] * len(lines))
            for number in range(torn):
                place = (number + 1) * len(lines) // (torn + 1)
                lines.insert(place, lines[place][: len(lines[place]) // 2] + b"\r\n")
            file.writelines(lines)

"""The source `generated`: a seeded model of TLC's files, with the dirt of the real ones, in the layout of each month.

The parts of the model are documented where they are, in `whitewater_apps.taxi.synthetic`: `city` (zones, distances,
popularity), `trips` (demand by hour, fares, payment, tips), `dirt` (faults and their rates) and `layout` (columns and
spellings by era).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import chain, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from whitewater.io.store import remove_unfinished, write_bytes, write_whole
from whitewater_apps.taxi.config import Generated, Service
from whitewater_apps.taxi.schema import SERVICES
from whitewater_apps.taxi.synthetic.city import CITY
from whitewater_apps.taxi.synthetic.dirt import DIRT, soil
from whitewater_apps.taxi.synthetic.layout import Layout, layout, raw_table
from whitewater_apps.taxi.synthetic.trips import MICROSECONDS, app_trips, hourly_demand, taxi_trips
from whitewater_apps.taxi.zones import Zones, zones_csv

logger = logging.getLogger(__name__)

# Trips of a month at scale 1. Yellow is that of a month in 2024; in 2019 green had a tenth of yellow's trips, and fhvhv
# three times as many, which would make the default large without teaching more.
ROWS: dict[Service, int] = {"yellow": 3_000_000, "green": 300_000, "fhvhv": 1_000_000}
BLOCK_TRIPS = 250_000
ZONES = "zones.csv"


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
    borough, name, service_zone = ((None, *texts[1:].tolist()) for texts in CITY[:3])
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
    first, last = (np.datetime64(chosen.month, "M") + ahead for ahead in (0, 1))
    hours = np.arange(first.astype("datetime64[h]"), last.astype("datetime64[h]")).astype(np.int64)
    seeds = (seed, SERVICES.index(service), int(first.astype(np.int64)))
    demand = hourly_demand(hours)
    counts = np.random.default_rng(seeds).multinomial(rows, demand / demand.sum())
    blocks = (np.cumsum(counts) - 1) // BLOCK_TRIPS
    for block in np.unique(blocks[counts > 0]):
        random = np.random.default_rng((*seeds, 1 + int(block)))
        hour = np.repeat(hours[blocks == block], counts[blocks == block])
        pickup = np.sort(hour * 3600 + random.integers(0, 3600, len(hour))) * MICROSECONDS
        simulate = app_trips if service == "fhvhv" else partial(taxi_trips, service)
        trips = simulate(chosen.month, pickup, random=random)
        dispatched = service != "fhvhv" and chosen.month >= "2019"
        yield raw_table(soil(trips, dispatched=dispatched, random=random), chosen)


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
            torn = round(DIRT["torn_line"] * len(lines))
            for number in range(torn):
                place = (number + 1) * len(lines) // (torn + 1)
                lines.insert(place, lines[place][: len(lines[place]) // 2] + b"\r\n")
            file.writelines(lines)

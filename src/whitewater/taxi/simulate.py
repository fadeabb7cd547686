"""The source `generated`: a seeded model of TLC's files, with the dirt of the real ones, in the layout of each month.

The parts of the model are documented where they are, in `whitewater.taxi.simulation`: `city` (zones, distances,
popularity), `tariff` (fares and surcharges by date), `trips` (demand by hour, speed, payment, tips), `dirt` (faults and
their rates) and `layout` (columns and spellings by era).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.errors import ConfigError
from whitewater.store import put_in_place, read_json, sha256, write_json
from whitewater.taxi.schema import SERVICES, Service
from whitewater.taxi.simulation.city import city
from whitewater.taxi.simulation.dirt import DIRT, soil
from whitewater.taxi.simulation.layout import CSV_UNTIL, FIRST_MONTH, PARQUET_SINCE, Form, Layout, layout, raw_table
from whitewater.taxi.simulation.trips import MICROSECONDS, Trips, app_trips, hourly_demand, taxi_trips
from whitewater.taxi.zones import COLUMNS, LOCATIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.config.taxi import Generated

logger = logging.getLogger(__name__)

# Trips of a month at scale 1. Yellow is that of a month in 2024; in 2019 green had a tenth of yellow's trips, and fhvhv
# three times as many, which would make the default large without teaching more.
ROWS: dict[Service, int] = {"yellow": 3_000_000, "green": 300_000, "fhvhv": 1_000_000}
BLOCK_TRIPS = 250_000
STATE = "state.json"


@dataclass(frozen=True)
class MonthFile:
    """What decides the content of a generated file."""

    service: Service
    month: str
    form: Form
    rows: int
    seed: int

    @property
    def name(self) -> str:
        """Name of the file, as TLC names it."""
        return f"{self.service}_tripdata_{self.month}.{self.form}"


def simulate_month(service: Service, month: str, *, rows: int, seed: int) -> pa.Table:
    """Return a month of trips in the raw layout of its service and era.

    Parameters
    ----------
    service
        ``yellow``, ``green`` or ``fhvhv``.
    month
        ``YYYY-MM``. Before 2017 the layout is that of the CSV of the time, from then on that of today's Parquet.
    rows
        Number of records, at least 1.
    seed
        Equal arguments give equal tables, whichever other months are simulated.

    Returns
    -------
    pyarrow.Table
        Exact raw names, order and types; nearly in the order of the pickups; amounts in US dollars.

    Raises
    ------
    ConfigError
        If the service did not run in that month.
    """
    import pyarrow as pa

    chosen = layout(service, month, "csv" if month < PARQUET_SINCE else "parquet")
    _require_running(service, month)
    return pa.concat_tables(raw_table(trips, chosen) for trips in _blocks(service, month, rows=rows, seed=seed))


def simulate_zones() -> pa.Table:
    """Return the simulated city's zone table in TLC's layout: 265 rows, LocationID int64, the rest text."""
    import pyarrow as pa

    here = city()
    texts = (here.borough[1:], here.name[1:], here.service_zone[1:])
    return pa.table(dict(zip(COLUMNS, (range(1, LOCATIONS + 1), *texts), strict=True)))


def write_generated(directory: Path, settings: Generated) -> list[Path]:
    """Write the zone table and a file for each service and month; what is there from an earlier call is not made again.

    Yellow's first month is CSV, with the line ends and a few torn lines of its time, if TLC published CSV then; so are
    all months before 2017. The others are Parquet. Files of an earlier call that are not asked for are removed.
    Only one process at a time may use the directory.

    Returns
    -------
    list of Path
        The files of trips, by service and month.

    Raises
    ------
    ConfigError
        If a service did not run in a month.
    """
    files = _files(settings)
    directory.mkdir(parents=True, exist_ok=True)
    for unfinished in directory.glob(".*.part"):
        unfinished.unlink()
    state_path = directory / STATE
    known: dict[str, Any] = read_json(state_path) if state_path.exists() else {}
    for name in set(known) - {file.name for file in files}:
        (directory / name).unlink(missing_ok=True)
    state: dict[str, dict[str, str]] = {}
    for file in files:
        state[file.name] = _made(file, directory, known.get(file.name))
        if state != {name: known.get(name) for name in state}:
            write_json(state_path, {**known, **state})
    write_zones(directory / "zones.csv")
    return [directory / file.name for file in files]


def _files(settings: Generated) -> list[MonthFile]:
    months = tuple(dict.fromkeys(settings.months))
    for service in settings.services:
        for month in months:
            _require_running(service, month)
    return [
        MonthFile(
            service=service,
            month=month,
            form=_form(service, month, first=month == months[0]),
            rows=max(1, round(ROWS[service] * settings.scale)),
            seed=settings.seed,
        )
        for service in dict.fromkeys(settings.services)
        for month in months
    ]


def _form(service: Service, month: str, *, first: bool) -> Form:
    return "csv" if month < PARQUET_SINCE or (first and service == "yellow" and month <= CSV_UNTIL) else "parquet"


def _require_running(service: Service, month: str) -> None:
    if month < FIRST_MONTH[service]:
        raise ConfigError(f"taxi.fetch.generated: there are no {service} trips before {FIRST_MONTH[service]}. "
                          f"Remove {month} from months, or {service} from services.")  # fmt: skip


def _made(file: MonthFile, directory: Path, known: dict[str, str] | None) -> dict[str, str]:
    """Make a file unless it is there, of the same settings and code, and unharmed; return what tells so next time."""
    path = directory / file.name
    settings = hashlib.sha256(f"{asdict(file)} {_code()}".encode()).hexdigest()
    if known and known["settings"] == settings and path.is_file() and sha256(path) == known["sha256"]:
        return known
    beside = directory / f".{file.name}.part"
    chosen = layout(file.service, file.month, file.form)
    blocks = _blocks(file.service, file.month, rows=file.rows, seed=file.seed)
    write = _write_csv if file.form == "csv" else _write_parquet
    write(beside, blocks, chosen)
    digest = sha256(beside)
    put_in_place(beside, path)
    logger.info("simulated %s: %d trips", path, file.rows)
    return {"settings": settings, "sha256": digest}


def _code() -> str:
    """Return a checksum of the model's source, so that files of an older model are made again."""
    here = Path(__file__)
    sources = [here, *sorted((here.parent / "simulation").glob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _blocks(service: Service, month: str, *, rows: int, seed: int) -> Iterator[Trips]:
    """Yield the trips of a month in time order, a quarter of a million at once, so that memory stays bounded."""
    first, last = (np.datetime64(month, "M") + ahead for ahead in (0, 1))
    hours = np.arange(first.astype("datetime64[h]"), last.astype("datetime64[h]")).astype(np.int64)
    seeds = (seed, SERVICES.index(service), int(first.astype(np.int64)))
    demand = hourly_demand(service, hours)
    counts = np.random.default_rng(seeds).multinomial(rows, demand / demand.sum())
    blocks = (np.cumsum(counts) - 1) // BLOCK_TRIPS
    for block in np.unique(blocks[counts > 0]):
        random = np.random.default_rng((*seeds, 1 + int(block)))
        hour = np.repeat(hours[blocks == block], counts[blocks == block])
        pickup = np.sort(hour * 3600 + random.integers(0, 3600, len(hour))) * MICROSECONDS
        trips = app_trips(pickup, random=random) if service == "fhvhv" else taxi_trips(service, pickup, random=random)
        yield soil(trips, dispatched=service != "fhvhv" and month >= "2019", random=random)


def _write_parquet(path: Path, blocks: Iterator[Trips], chosen: Layout) -> None:
    import pyarrow.parquet as pq

    table = raw_table(next(blocks), chosen)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for trips in blocks:
            writer.write_table(raw_table(trips, chosen))


def _write_csv(path: Path, blocks: Iterator[Trips], chosen: Layout) -> None:
    """Write the header, a blank line where the era had one, and rows that end with its surplus commas and CRLF."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    options = pa_csv.WriteOptions(include_header=False, quoting_style="none", eol="\r\n")
    with path.open("wb") as file:
        file.write(f"{chosen.header}\n\r\n".encode() if chosen.blank_line else f"{chosen.header}\r\n".encode())
        for trips in blocks:
            lines = pa.BufferOutputStream()
            table = raw_table(trips, chosen)
            for number in range(chosen.pads):
                table = table.append_column(f"pad {number}", pa.nulls(len(table), pa.string()))
            pa_csv.write_csv(table, lines, options)
            count = round(DIRT.torn_lines * len(table))
            file.writelines(_torn(lines.getvalue().to_pybytes(), count=count))


def _torn(lines: bytes, *, count: int) -> Iterator[bytes]:
    """Yield the lines with ``count`` more among them, evenly, each the first half of the line that follows it."""
    start = 0
    for number in range(1, count + 1):
        end = lines.index(b"\n", len(lines) * number // (count + 1)) + 1
        following = lines[end : lines.find(b"\r\n", end)]
        yield lines[start:end]
        yield following[: len(following) // 2] + b"\r\n"
        start = end
    yield lines[start:]


def write_zones(path: Path) -> Path:
    """Write the simulated city's zone table as CSV, and return its path."""
    import pyarrow.csv as pa_csv

    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    pa_csv.write_csv(simulate_zones(), beside, pa_csv.WriteOptions(quoting_header="none"))
    put_in_place(beside, path)
    return path

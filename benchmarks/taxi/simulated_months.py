"""Months of simulated yellow-taxi trips at full size, all in the layout of 2019, as Parquet and CSV.

The trips are those of `whitewater_apps.taxi.synthetic.months`, with the dirt of real ones; 3 million make about 55 MB
of Parquet (snappy, row groups of 1 Mi rows) or 270 MB of CSV, as files of the Taxi and Limousine Commission do.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from whitewater_apps.taxi import synthetic as simulation
from whitewater_apps.taxi.synthetic.months import simulate_month, write_zones

FIRST_YEAR = 2019
ROW_GROUP_ROWS = 2**20
SCHEMA = pa.schema(
    {
        "VendorID": pa.int64(),
        "tpep_pickup_datetime": pa.timestamp("us"),
        "tpep_dropoff_datetime": pa.timestamp("us"),
        "passenger_count": pa.float64(),
        "trip_distance": pa.float64(),
        "RatecodeID": pa.float64(),
        "store_and_fwd_flag": pa.string(),
        "PULocationID": pa.int64(),
        "DOLocationID": pa.int64(),
        "payment_type": pa.int64(),
        "fare_amount": pa.float64(),
        "extra": pa.float64(),
        "mta_tax": pa.float64(),
        "tip_amount": pa.float64(),
        "tolls_amount": pa.float64(),
        "improvement_surcharge": pa.float64(),
        "total_amount": pa.float64(),
        "congestion_surcharge": pa.float64(),
        "airport_fee": pa.float64(),
    }
)
# CSV of 2019 had no airport fee, whole seconds, and counts without a fraction.
CSV_TYPES = {
    "tpep_pickup_datetime": pa.timestamp("s"),
    "tpep_dropoff_datetime": pa.timestamp("s"),
    "passenger_count": pa.int64(),
    "RatecodeID": pa.int64(),
}
CSV_SCHEMA = pa.schema([(field.name, CSV_TYPES.get(field.name, field.type)) for field in SCHEMA][:-1])


@dataclass(frozen=True)
class Months:
    """Files of one month each, in order, and the zone table that belongs to them; ``sha256`` stands for all of them."""

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
        Where the files belong, in a folder for each combination of rows, seed and version of the simulation.
    months
        Number of months from 2019-01.
    rows
        Trips in each month.
    seed
        Seed of the simulation.
    with_csv
        Whether each month is wanted as CSV too.
    processes
        Months made at once; each takes about 1 GB of memory.
    """
    folder = directory / f"rows-{rows}-seed-{seed}-model-{_model()[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    names = list(_month_names(months))
    parquet = [folder / f"yellow_tripdata_{name}.parquet" for name in names]
    csv = [path.with_suffix(".csv") for path in parquet] if with_csv else []
    if not all(path.exists() for path in [*map(_known, parquet), *csv]):
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            list(pool.map(partial(_prepare_month, rows=rows, seed=seed), parquet, names))
            list(pool.map(_prepare_csv, parquet, csv))
    digests = [str(json.loads(_known(path).read_text())["sha256"]) for path in parquet]
    zones = write_zones(folder / "zones.csv")
    return Months(
        tuple(parquet), tuple(csv), zones, rows * months, hashlib.sha256("".join(digests).encode()).hexdigest()
    )


def _month_names(count: int) -> Iterator[str]:
    for index in range(count):
        yield f"{FIRST_YEAR + index // 12}-{index % 12 + 1:02d}"


def _known(path: Path) -> Path:
    """Return where the SHA-256 of a month is kept; it is written when the month is complete."""
    return path.with_suffix(".json")


def _prepare_month(path: Path, month: str, *, rows: int, seed: int) -> None:
    """Write a month as Parquet, and its SHA-256 beside it, unless they are there."""
    if not _known(path).exists():
        trips = simulate_month("yellow", month, rows=rows, seed=seed)
        staging = _staging(path)
        trips = trips.rename_columns(SCHEMA.names).cast(SCHEMA)
        pq.write_table(trips, staging, row_group_size=ROW_GROUP_ROWS, compression="snappy")
        with staging.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        staging.replace(path)
        staging.write_text(json.dumps({"sha256": digest}))
        staging.replace(_known(path))


def _prepare_csv(parquet: Path, path: Path) -> None:
    """Write a month as CSV unless it is there: nulls are empty, nothing is quoted."""
    if not path.exists():
        staging = _staging(path)
        options = pa_csv.WriteOptions(quoting_style="none", quoting_header="none")
        with (
            pq.ParquetFile(parquet) as source,
            pa_csv.CSVWriter(staging, CSV_SCHEMA, write_options=options) as sink,
        ):
            for batch in source.iter_batches(columns=CSV_SCHEMA.names):
                sink.write_table(pa.Table.from_batches([batch]).cast(CSV_SCHEMA))
        staging.replace(path)


def _model() -> str:
    """Return a checksum of the source that the trips come from."""
    sources = [Path(__file__), *sorted(Path(next(iter(simulation.__path__))).glob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _staging(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")

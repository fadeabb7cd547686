"""What every variant's process has in common: its arguments, the shape of its answer, and the line that it prints.

Standard library only, so that it costs each variant the same.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.placement import ON_CPU, Placement, add_options, placement_of

Mean = list[float]  # trips, and the mean of their tip fractions
Answer = dict[str, dict[str, Mean]]

# The columns that the aggregates need, and all columns of the CSV files, with the types of their values.
NEEDED = (
    "tpep_pickup_datetime",
    "tpep_dropoff_datetime",
    "trip_distance",
    "PULocationID",
    "payment_type",
    "fare_amount",
    "tip_amount",
)
CSV_COLUMNS = {
    "VendorID": "integer",
    "tpep_pickup_datetime": "timestamp",
    "tpep_dropoff_datetime": "timestamp",
    "passenger_count": "integer",
    "trip_distance": "real",
    "RatecodeID": "integer",
    "store_and_fwd_flag": "text",
    "PULocationID": "integer",
    "DOLocationID": "integer",
    "payment_type": "integer",
    "fare_amount": "real",
    "extra": "real",
    "mta_tax": "real",
    "tip_amount": "real",
    "tolls_amount": "real",
    "improvement_surcharge": "real",
    "total_amount": "real",
    "congestion_surcharge": "real",
}
CARD = 1
MAXIMUM_FARE = 1_000
MAXIMUM_MILES = 200
MAXIMUM_HOURS = 6


@dataclass(frozen=True)
class Work:
    """What a variant is to do: aggregate the trips of the files; where there is an output, write the cleaned trips."""

    files: tuple[Path, ...]
    zones: Path
    threads: int
    output: Path | None
    placement: Placement = ON_CPU

    @property
    def csv(self) -> bool:
        """Whether the files are CSV; else they are Parquet."""
        return self.files[0].suffix == ".csv"


def answer(
    by_hour: Iterable[tuple[int, int, float]],
    by_weekday_hour: Iterable[tuple[int, int, int, float]],
    by_borough: Iterable[tuple[str | None, int, float]],
) -> Answer:
    """Return the answer from rows of key, trips and mean tip fraction; an empty borough is that of unknown zones."""
    return {
        "by_hour": {str(hour): [trips, mean] for hour, trips, mean in by_hour},
        "by_weekday_hour": {f"{weekday} {hour}": [trips, mean] for weekday, hour, trips, mean in by_weekday_hour},
        "by_borough": {borough or "": [trips, mean] for borough, trips, mean in by_borough},
    }


def main(compute: Callable[[Work], Answer], *, is_placed: bool = False) -> None:
    """Read the command line, compute, and print how long that took and the answer.

    Only a variant that ``is_placed`` has the options of `benchmarks.placement`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--zones", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", type=Path)
    if is_placed:
        add_options(parser)
    arguments: Any = parser.parse_args()
    placement = placement_of(arguments)
    work = Work(tuple(arguments.files), arguments.zones, arguments.threads, arguments.output, placement)
    start = time.perf_counter()
    found = compute(work)
    print(json.dumps({"compute_seconds": time.perf_counter() - start, "answer": found}))

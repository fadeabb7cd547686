"""What every variant that makes features has in common: its arguments, the rules of the work, its line of output.

The work: read 13 columns of numbers and 26 of categories, and write, with the number of each row, `KEY`, one or more
Parquet files without compression, in any order of the rows:

- a number: null becomes 0, negative becomes 0, then log(1 + x), less its mean, divided by its standard deviation (of
  the population), all in float64; float32 is written.
- a category: 1 if it is null, 2 if it occurs less than 5 times, or else 3, 4, ... by descending frequency, ties by
  ascending text; int32.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pydantic import JsonValue

from benchmarks.placement import ON_CPU, Placement, add_options, placement_of

KEY = "row_id"
CONTINUOUS = [f"I{number}" for number in range(1, 14)]
CATEGORICAL = [f"C{number}" for number in range(1, 27)]
THRESHOLD = 5
NULL, RARE = 1, 2


@dataclass(frozen=True)
class Work:
    """What a variant is to do: read ``files``, and write ``*.parquet`` to ``folder``."""

    events: Path
    threads: int
    folder: Path
    placement: Placement = ON_CPU

    @property
    def files(self) -> list[str]:
        """The Parquet files of the log, in order."""
        return sorted(map(str, self.events.glob("*.parquet")))


def main(make: Callable[[Work], None], *, is_placed: bool = False) -> None:
    """Read the command line, make the features, and print how long that took.

    Only a variant that ``is_placed`` has the options of `benchmarks.placement`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--memory-limit", type=int, help="bytes of data that the process may have (ulimit -d)")
    if is_placed:
        add_options(parser)
    arguments: Any = parser.parse_args()
    if arguments.memory_limit:
        resource.setrlimit(resource.RLIMIT_DATA, (arguments.memory_limit, arguments.memory_limit))
    work = Work(arguments.events, arguments.threads, arguments.folder, placement_of(arguments))
    work.folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    make(work)
    print(json.dumps({"compute_seconds": time.perf_counter() - start, "answer": None}))


def inspect(folder: Path) -> JsonValue:
    """Return sums of each column that depend on every value and on the row that it is in: exact ones of ids."""
    rows = 0
    numbers, ids = dict.fromkeys(CONTINUOUS, 0.0), dict.fromkeys(CATEGORICAL, 0)
    for path in sorted(folder.glob("*.parquet")):
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=[KEY, *CONTINUOUS, *CATEGORICAL])
            place = table[KEY].to_numpy() % 1009 + 1
            for name in CONTINUOUS:
                numbers[name] += float(place @ table[name].to_numpy().astype(np.float64))
            for name in CATEGORICAL:
                ids[name] += int(place @ table[name].to_numpy().astype(np.int64))
            rows += len(table)
    # Numbers are about 0 on average, so that their sum says nothing of its precision: the mean does.
    return {"rows": rows, "numbers": {name: each / rows for name, each in numbers.items()}, "ids": dict(ids)}

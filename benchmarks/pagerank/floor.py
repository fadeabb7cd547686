"""The floor of ranking a graph: what its Parquet files take to read and decode, by pyarrow, with nothing around it."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def main() -> None:
    """Read the command line, read all columns on all threads, and print the seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--edges", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    given: Any = parser.parse_args()
    pa.set_cpu_count(given.threads)
    started = time.perf_counter()
    pq.read_table(sorted(map(str, given.edges.glob("edges-*.parquet"))), columns=["source", "target"])
    print(json.dumps({"read_seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()

"""Parquet data sets partitioned by service, year and month of pickup, in Hive's layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from whitewater.devices import NULL_INTEGER, Array, Block, Device
from whitewater.taxi.calendar import FIRST_YEAR
from whitewater.taxi.schema import SERVICES

# Hive's own word for null, __HIVE_DEFAULT_PARTITION__, makes pandas fail to read the whole data set.
UNKNOWN = "year=0/month=0"


def partitions(block: Block, month: Array, device: Device) -> Iterator[tuple[str, Block]]:
    """Split a block by service and month index: the directory of each partition, and its rows in their order."""
    xp = device.xp
    codes = xp.maximum(block["service"].astype(xp.int64), 0) << 32 | (month.astype(xp.int64) + 1)
    present = device.to_host(xp.unique(codes))
    for code in present:
        service, index = int(code) >> 32, int(code & 0xFFFFFFFF) - 1
        rows = block if len(present) == 1 else {name: values[codes == code] for name, values in block.items()}
        yield directory(service, index), rows


def directory(service: int, month: int) -> str:
    """Return the relative directory of a partition; month index -1, no date, is year 0 and month 0."""
    name = SERVICES[service]
    if month == NULL_INTEGER:
        return f"service={name}/{UNKNOWN}"
    return f"service={name}/year={FIRST_YEAR + month // 12}/month={month % 12 + 1}"


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file beside its place and rename it, so that a task that runs twice cannot leave a torn one."""
    import os

    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    write(staging)
    staging.replace(path)


def remove_unfinished(data_set: Path) -> None:
    """Remove the hidden files that `write_whole` left where a worker was killed."""
    for path in data_set.rglob(".*"):
        path.unlink()


def rows_on_disk(data_set: Path) -> int:
    """Count the rows of a data set by the footers of its files."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in data_set.rglob("*.parquet"))


def host_columns(block: Block, device: Device) -> dict[str, Array]:
    """Return the columns of a block as NumPy arrays."""
    return {name: np.asarray(device.to_host(values)) for name, values in block.items()}

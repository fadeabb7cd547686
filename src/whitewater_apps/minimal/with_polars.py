"""The operations on tables of readings in Polars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain

import polars as pl
import pyarrow as pa

from whitewater.engines.workers import Workers
from whitewater.tables import with_polars as tables
from whitewater.tables.group_statistics import merge, nothing
from whitewater.tables.partitions import Partition
from whitewater.tables.quarantine import Split
from whitewater.tables.raw_files import Unit, UnitCounts
from whitewater_apps.minimal.readings import KEYS, READINGS


def read(units: Sequence[Unit], into: Split, *, rows: int, workers: Workers) -> Iterable[UnitCounts]:
    """Split units of raw files into readings and quarantine; see `operations.Operations`."""
    return workers.map(partial(tables.split_unit, into=into, rows=rows), units, label="read", ordered=True)


def wind_sums(partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
    """Return the sums of the wind speed by station and hour; see `operations.Operations`."""
    parts = workers.map(_wind_sums, partitions, label="aggregate")
    [sums] = merge(chain([nothing([KEYS])], parts))
    return sums


def _wind_sums(partition: Partition) -> list[pa.Table]:
    rows = tables.scan(partition, READINGS).with_columns(hour=pl.col("time").dt.hour())
    return tables.sums_by_bin(rows, [KEYS], "wind_speed")

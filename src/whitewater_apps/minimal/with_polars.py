"""Tables of readings in Polars."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from whitewater.engines.workers import Workers
from whitewater.tables import with_polars as tables
from whitewater.tables.group_statistics import merge
from whitewater.tables.partitions import Partition
from whitewater_apps.minimal.readings import KEYS, READINGS


def wind_sums(partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
    """Return the sums of the wind speed by station and hour; see `whitewater.tables.group_statistics`."""
    parts = workers.map(_wind_sums, partitions, label="aggregate")
    [sums] = merge(parts, [KEYS])
    return sums


def _wind_sums(partition: Partition) -> list[pa.Table]:
    rows = tables.scan(partition, READINGS).with_columns(hour=pl.col("time").dt.hour())
    return tables.sums_by_bin(rows, [KEYS], "wind_speed")

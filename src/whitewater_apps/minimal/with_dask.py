"""Tables of readings in Dask, on pandas or cuDF by its option ``dataframe.backend``; the same bytes as Polars leaves.

Functions on frames use only what pandas and cuDF have in common.
"""

from collections.abc import Sequence

import pyarrow as pa

from whitewater.engines.workers import Workers
from whitewater.tables import with_dask as tables
from whitewater.tables.partitions import Partition
from whitewater.tables.with_dask import Frame
from whitewater_apps.minimal.readings import KEYS, READINGS


def wind_sums(partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
    """Return the sums of the wind speed by station and hour; see `whitewater.tables.group_statistics`."""
    readings = tables.read(partitions, READINGS).map_partitions(_with_hour)
    [[sums]] = workers.compute(tables.group_statistics(readings, [KEYS], "wind_speed"))
    return sums


def _with_hour(readings: Frame) -> Frame:
    return readings.assign(hour=readings["time"].dt.hour)

"""Tables of readings in Dask, on pandas or cuDF by its option ``dataframe.backend``; Polars leaves the same bytes."""

from collections.abc import Sequence

import pyarrow as pa

from whitewater.engines.workers import Workers
from whitewater.tables import with_dask as tables
from whitewater.tables.partitions import Partition
from whitewater_apps.minimal.readings import KEYS, READINGS


def wind_sums(partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
    """Return the sums of the wind speed by station and hour; see `whitewater.tables.group_statistics`."""
    readings = tables.read(partitions, READINGS)
    by_hour = readings.assign(hour=readings["time"].dt.hour)
    [[sums]] = workers.compute(tables.group_statistics(by_hour, [KEYS], "wind_speed"))
    return sums

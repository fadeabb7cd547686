"""The operations on tables of readings in Dask; option ``dataframe.backend`` makes them run on pandas or cuDF.

Functions on frames use only what pandas and cuDF have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import dask
import pyarrow as pa
from dask.delayed import delayed

from whitewater.engines.workers import Workers
from whitewater.tables import with_dask as tables
from whitewater.tables.group_statistics import nothing
from whitewater.tables.partitions import Partition
from whitewater.tables.quarantine import Split
from whitewater.tables.raw_files import Unit, UnitCounts
from whitewater.tables.with_dask import Frame
from whitewater_apps.minimal.readings import KEYS, READINGS


def read(units: Sequence[Unit], into: Split, *, rows: int, workers: Workers) -> Iterable[UnitCounts]:
    """Split units of raw files into readings and quarantine; see `operations.Operations`."""
    backend = dask.config.get("dataframe.backend")
    return workers.compute(*map(delayed(partial(tables.split_unit, into=into, rows=rows, backend=backend)), units))


def wind_sums(partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
    """Return the sums of the wind speed by station and hour; see `operations.Operations`."""
    if not partitions:
        return nothing([KEYS])[0]
    readings = tables.read(partitions, READINGS).map_partitions(_with_hour)
    [[sums]] = workers.compute(tables.group_statistics(readings, [KEYS], "wind_speed"))
    return sums


def _with_hour(readings: Frame) -> Frame:
    return readings.assign(hour=readings["time"].dt.hour)

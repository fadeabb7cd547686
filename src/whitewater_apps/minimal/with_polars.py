"""The operations on tables of readings in Polars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from itertools import chain
from operator import add

import polars as pl
import pyarrow as pa

from whitewater.engines.workers import Workers
from whitewater.tables import with_polars as tables
from whitewater.tables.group_statistics import merge, nothing
from whitewater.tables.partitions import Partition
from whitewater.tables.raw_files import Unit, UnitCounts, arrow_blocks
from whitewater_apps.minimal.readings import KEYS, READINGS, Destination


def read(units: Sequence[Unit], into: Destination, *, rows: int, workers: Workers) -> Iterable[UnitCounts]:
    """Split units of raw files into readings and quarantine; see `operations.Operations`."""
    return workers.map(partial(_read_unit, into=into, rows=rows), units, label="read", ordered=True)


def _read_unit(unit: Unit, *, into: Destination, rows: int) -> UnitCounts:
    return reduce(
        add,
        (
            _write(pl.DataFrame(pl.from_arrow(raw)), malformed, unit, piece, into)
            for piece, (raw, malformed) in enumerate(arrow_blocks(unit, rows=rows))
        ),
        UnitCounts(),
    )


def _write(raw: pl.DataFrame, malformed: Sequence[str], unit: Unit, piece: int, into: Destination) -> UnitCounts:
    rows = tables.in_schema(raw.lazy(), unit.file.era, READINGS, {})
    checked = rows.with_columns(broken=tables.broken(into.rules, pl.col)).collect()
    block = checked.select(READINGS.names).to_arrow().cast(READINGS)
    return into.write(block, checked["broken"].to_numpy(), malformed, unit, piece)


def wind_sums(partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
    """Return the sums of the wind speed by station and hour; see `operations.Operations`."""
    parts = workers.map(_wind_sums, partitions, label="aggregate")
    [sums] = merge(chain([nothing([KEYS])], parts))
    return sums


def _wind_sums(partition: Partition) -> list[pa.Table]:
    rows = tables.scan(partition, READINGS).with_columns(hour=pl.col("time").dt.hour())
    return tables.sums_by_bin(rows, [KEYS], "wind_speed")

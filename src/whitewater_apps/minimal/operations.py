"""The operations on tables of readings, whichever engine runs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from whitewater.tables.partitions import Partition
from whitewater.tables.quarantine import Split
from whitewater.tables.raw_files import Unit, UnitCounts

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.workers import Workers


class Operations(Protocol):
    """What each of the modules ``with_polars`` and ``with_dask`` provides; both leave the same bytes."""

    def read(self, units: Sequence[Unit], into: Split, *, rows: int, workers: Workers) -> Iterable[UnitCounts]:
        """Split units of raw files, about ``rows`` rows at a time, into readings and quarantine; count rows by mask."""

    def wind_sums(self, partitions: Sequence[Partition], *, workers: Workers) -> pa.Table:
        """Return the sums of the wind speed by `KEYS`; see `whitewater.tables.group_statistics`."""


def operations(engine: Engine) -> Operations:
    """Return the module of an engine, imported only here because each takes time to load."""
    if engine == "local":
        from whitewater_apps.minimal import with_polars

        return with_polars
    from whitewater_apps.minimal import with_dask

    return with_dask

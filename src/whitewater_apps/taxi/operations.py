"""The operations on tables of trips, whichever engine runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from whitewater.engines import Array, Device
from whitewater.tables.partitions import Partition
from whitewater.tables.raw_files import Unit, UnitCounts
from whitewater.tables.rules import Rule
from whitewater_apps.taxi.partitions import DataSets, Tally
from whitewater_apps.taxi.tip_tables import TipSums
from whitewater_apps.taxi.trip_files import RowGroup

if TYPE_CHECKING:
    from whitewater.engines.choose import Engine
    from whitewater.engines.workers import Workers


class Operations(Protocol):
    """What each of the modules ``with_polars`` and ``with_dask`` provides."""

    def standardize(self, units: Sequence[Unit], workers: Workers, *, folder: Path, rows: int) -> Iterable[UnitCounts]:
        """Write units of raw files as parts of `STANDARDIZED`, at most about ``rows`` rows each; count them in order.

        Files are those of `whitewater.tables.with_polars.write_unit`, with the columns that the era has. Counts are by
        service and month of pickup.
        """

    def clean(
        self, partitions: Sequence[Partition], rules: Sequence[Rule], *, into: DataSets, workers: Workers
    ) -> Tally:
        """Write kept trips, and rejected ones with all their reasons, by service and month of pickup; count both.

        Each partition leaves one file, named as its first part, in each directory that it has rows for.
        """

    def tip_statistics(self, partitions: Sequence[Partition], *, workers: Workers) -> TipSums:
        """Return the sums of tip / fare by each key; see `whitewater_apps.taxi.tip_tables`.

        Raises InputError if a tip is 2**20 times the fare or more.
        """

    def read(
        self, group: RowGroup, names: Sequence[str], *, rows: int, device: Device
    ) -> Iterator[Mapping[str, Array]]:
        """Yield columns of the trips of a row group, so many rows at a time: see `whitewater_apps.taxi.features`.

        A column that the file lacks is all NaN.
        """


def operations(engine: Engine) -> Operations:
    """Return the module of an engine, imported only here because each takes time to load."""
    if engine == "local":
        from whitewater_apps.taxi import with_polars

        return with_polars
    from whitewater_apps.taxi import with_dask

    return with_dask

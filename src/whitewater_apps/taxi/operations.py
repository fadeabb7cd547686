"""The operations on tables of trips, whichever engine runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from whitewater.engines import Array, Device
from whitewater.tables.eras import Rule
from whitewater.tables.partitions import Partition
from whitewater.tables.raw_files import Counts, Unit
from whitewater_apps.taxi.partitions import DataSets, Tally
from whitewater_apps.taxi.tip_tables import TipSums
from whitewater_apps.taxi.trip_files import RowGroup

if TYPE_CHECKING:
    from whitewater.engines.config import Engine
    from whitewater.engines.workers import Workers


class Operations(Protocol):
    """The functions that both modules, ``with_polars`` and ``with_dask``, provide."""

    def standardize(self, *, folder: Path, rows: int) -> Callable[[Unit], Counts]:
        """Return what writes a unit of a raw file as parts of about ``rows`` rows at most, and counts its rows.

        Files are named as in `whitewater.tables.raw_files.write_unit`. They have those columns of
        `STANDARDIZED_SCHEMA` that their era has. Counts are by service and month of pickup.
        """

    def clean(
        self, partitions: Sequence[Partition], rules: Sequence[Rule], *, into: DataSets, workers: Workers
    ) -> Tally:
        """Write kept trips, and rejected ones with all their reasons, by service and month of pickup; count both.

        A partition writes one file, named after its first part, to each directory that it has rows for.
        """

    def tip_statistics(self, partitions: Sequence[Partition], *, workers: Workers) -> TipSums:
        """Return the sums of tip / fare for each key; see `whitewater_apps.taxi.tip_tables`.

        Raises InputError if a tip is 2**20 times the fare or more.
        """

    def read(
        self, group: RowGroup, names: Sequence[str], *, rows: int, device: Device
    ) -> Iterator[Mapping[str, Array]]:
        """Yield columns of a row group's trips, ``rows`` rows at a time; see `whitewater_apps.taxi.features`.

        A column that the file lacks is all NaN.
        """


def operations(engine: Engine) -> Operations:
    """Return an engine's module. Import only that one, because each takes time to load."""
    if engine == "local":
        from whitewater_apps.taxi import with_polars

        return with_polars
    from whitewater_apps.taxi import with_dask

    return with_dask

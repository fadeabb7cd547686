"""Files of cleaned trips: their row groups, each the work of one task, and the services that they hold trips of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.io.folder import Files
from whitewater_apps.taxi.schema import SERVICES, Service

TRIPS = Files(remedy="Get it again, or leave it out.")
REQUIRED = ("pickup_datetime", "dropoff_datetime", "fare_amount", "tip_amount")


@dataclass(frozen=True)
class RowGroup:
    """A row group, the ``number``-th of all and of place ``index`` in its Parquet file of trips.

    ``service`` is None where column ``service`` names that of each trip.
    """

    number: int
    path: Path
    index: int
    first_row: int
    rows: int
    names: frozenset[str]
    service: Service | None


def row_groups(trips: Path) -> list[RowGroup]:
    """List the row groups of cleaned trips, in the order of their paths.

    ``trips`` is a directory of Parquet files below ``service=.../``, or one file. A file outside such a directory has a
    column ``service`` of text.

    Raises InputError if there is no file, or one is not Parquet, lacks a column, or its service is unknown.
    """
    files = sorted(trips.rglob("*.parquet")) if trips.is_dir() else [trips]
    if not files:
        raise InputError(
            f"{trips} holds no Parquet file of trips. Give the directory `trips` that the step clean wrote."
        )
    found: list[RowGroup] = []
    for path in files:
        metadata = TRIPS.footer(path)
        names = frozenset(metadata.schema.to_arrow_schema().names)
        service, first_row = _service(path, names), 0
        for index in range(metadata.num_row_groups):
            rows = metadata.row_group(index).num_rows
            if rows:
                found.append(RowGroup(len(found), path, index, first_row, rows, names, service))
            first_row += rows
    return found


def services(groups: Sequence[RowGroup]) -> list[Service]:
    """Return the services that the row groups may hold trips of."""
    named = {group.service for group in groups}
    return [service for service in SERVICES if service in named or None in named]


def _service(path: Path, names: frozenset[str]) -> Service | None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InputError(
            f"{path}: not a file of cleaned trips: no column {', '.join(missing)}. Run standardise and clean."
        )
    named = [part.removeprefix("service=") for part in path.parts if part.startswith("service=")]
    if named:
        return _known(named[-1], path)
    if "service" not in names:
        raise InputError(f"{path}: the service of the trips is not known. Put the file below a directory such as "
                         "service=yellow, or add a column service.")  # fmt: skip
    for name in _names_in(path):
        if not name:
            raise InputError(f"{path}: a trip has no service. Fill the column service, or leave the trip out.")
        _known(name, path)
    return None


def _names_in(path: Path) -> set[str | None]:
    """Return the distinct texts of column ``service``."""
    with TRIPS.explained(path), pq.ParquetFile(path, read_dictionary=["service"]) as file:
        batches = file.iter_batches(columns=["service"])
        return {name for batch in batches for name in batch.column(0).unique().cast(pa.string()).to_pylist()}


def _known(name: str, path: Path) -> Service:
    for service in SERVICES:
        if service == name:
            return service
    raise InputError(f"{path}: service {name!r} is not known. Use one of {', '.join(SERVICES)}.")

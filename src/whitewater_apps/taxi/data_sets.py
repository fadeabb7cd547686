"""Data sets of trips, partitioned as Hive does, by service and month of pickup: how they are written and read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.io.folder import Files
from whitewater.tables.quarantine import write_rejected
from whitewater.tables.raw_files import Counts
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import KINDS, REQUIRED, SERVICES

# The first and last year of pickups; the month of any other is unknown: its clock was wrong.
YEARS = (2000, 2099)
# Written as year=0/month=0: with Hive's own name for null, __HIVE_DEFAULT_PARTITION__, pandas cannot read the data set.
UNKNOWN_MONTH = 0

TRIPS = Files(remedy="Get it again, or leave it out.")


@dataclass(frozen=True)
class Tally:
    """Counts of rows: ``rows`` by file, service, month of pickup and mask of reasons.

    ``pickups`` and ``dropoffs`` count them by file and location id. A null service or location is None.
    """

    rows: Counts = field(default_factory=Counts)
    pickups: Counts = field(default_factory=Counts)
    dropoffs: Counts = field(default_factory=Counts)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.rows + other.rows, self.pickups + other.pickups, self.dropoffs + other.dropoffs)

    def service_months(self, *, kept: bool) -> list[tuple[int, int]]:
        """List the service and month of all kept, or all rejected, rows; a null service counts as the first."""
        return sorted({(service or 0, month) for _, service, month, mask in self.rows if (mask == 0) == kept})


@dataclass(frozen=True)
class DataSets:
    """The folders that `clean` writes to; for quarantine, the reason of each bit and the origin of each file number."""

    trips: Path
    quarantine: Path
    reasons: Sequence[str]
    origins: Mapping[int, str]

    def reject(self, trips: pa.Table, mask: Array, file: Array, service_month: tuple[int, int], name: str) -> None:
        """Write rejected trips of one service and month; see `tables.quarantine.write_rejected`."""
        path = self.quarantine / directory(*service_month) / name
        write_rejected(trips, mask, [self.origins[each] for each in file.tolist()], path, reasons=self.reasons)


def month_number(year: int, month: int) -> int:
    """Return the number of a month, which is 1 to 12 in its year; months of all years are numbered in one sequence."""
    return year * 12 + month - 1


def month_name(number: int) -> str | None:
    """Return the month of a number as ``YYYY-MM``, or None for `UNKNOWN_MONTH`."""
    return None if number == UNKNOWN_MONTH else f"{number // 12:04d}-{number % 12 + 1:02d}"


def directory(service: int, month: int) -> str:
    """Return the directory, inside a data set, of the trips of a service and month."""
    month_of_year = 0 if month == UNKNOWN_MONTH else month % 12 + 1
    return f"service={SERVICES[service]}/year={month // 12}/month={month_of_year}"


@dataclass(frozen=True)
class RowGroup:
    """The trips of a service in row group ``index`` of a Parquet file, the ``number``-th row group of all.

    ``names`` are the columns of the file; ``service`` is among them where it tells the service of each trip.
    """

    path: Path
    index: int
    number: int
    first_row: int
    rows: int
    names: frozenset[str]
    service: Service


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
    groups: list[RowGroup] = []
    number = 0
    for path in files:
        metadata = TRIPS.footer(path)
        schema = metadata.schema.to_arrow_schema()
        services, names = _services(path, frozenset(schema.names))
        _check_types(path, schema)
        first_row = 0
        for index in range(metadata.num_row_groups):
            rows = metadata.row_group(index).num_rows
            groups += [RowGroup(path, index, number, first_row, rows, names, each) for each in services if rows]
            number, first_row = number + bool(rows), first_row + rows
    return groups


def services(groups: Iterable[RowGroup]) -> list[Service]:
    """Return the services that there are trips of."""
    return sorted({group.service for group in groups}, key=SERVICES.index)


def _services(path: Path, names: frozenset[str]) -> tuple[list[Service], frozenset[str]]:
    """Return the services of the trips in a file, and its columns; ``service`` only if that is what tells them."""
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InputError(
            f"{path}: not a file of cleaned trips: no column {', '.join(missing)}. Run standardize and clean."
        )
    of_path = [part.removeprefix("service=") for part in path.parts if part.startswith("service=")][-1:]
    if not of_path and "service" not in names:
        raise InputError(f"{path}: the service of the trips is not known. Put the file below a directory such as "
                         "service=yellow, or add a column service.")  # fmt: skip
    labels: Collection[str | None] = of_path
    if not labels:
        with TRIPS.explained(path), pq.ParquetFile(path, read_dictionary=["service"]) as file:
            batches = file.iter_batches(columns=["service"])  # not all at once
            labels = {name for batch in batches for name in batch.column(0).unique().cast(pa.string()).to_pylist()}
    for name in labels:
        if not name:
            raise InputError(f"{path}: a trip has no service. Fill the column service, or leave the trip out.")
        if name not in SERVICES:
            raise InputError(f"{path}: service {name!r} is not known. Use one of {', '.join(SERVICES)}.")
    return [service for service in SERVICES if service in labels], names - {"service"} if of_path else names


def _check_types(path: Path, schema: pa.Schema) -> None:
    """Refuse columns of the schema that are stored as text, or as times of some zone."""
    for name, type_ in zip(schema.names, schema.types, strict=True):
        if name == "service" or KINDS.get(name, "string") == "string" or pa.types.is_null(type_):
            continue
        if KINDS[name] == "timestamp":
            wanted, fits = "a time without zone", pa.types.is_timestamp(type_) and type_.tz is None
        else:
            plain = pa.types.is_primitive(type_) and not pa.types.is_temporal(type_)
            wanted, fits = "a number", plain or pa.types.is_decimal(type_)
        if not fits:
            raise InputError(f"{path}: column {name} is {type_}, not {wanted}. Convert it, or run standardize and "
                             "clean.")  # fmt: skip

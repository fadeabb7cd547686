"""Data sets of trips in Hive partitions by service and month of pickup."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.io.folder import Files
from whitewater.tables.quarantine import write_rejected
from whitewater.tables.raw_files import Counts
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import KINDS, REQUIRED, SERVICES

# The first and last year of pickups. In any other year the clock was wrong, and the month is unknown.
YEARS = (2000, 2099)
# Written as year=0/month=0, because pandas cannot read Hive's name for null, __HIVE_DEFAULT_PARTITION__.
UNKNOWN_MONTH = 0

TRIPS = Files(remedy="Get it again, or leave it out.")
# The files that step `standardize` read, from its files.json.
Catalog = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Tally:
    """Counts of rows; a null service or location is None."""

    rows: Counts = field(default_factory=Counts)  # by file, service, month of pickup and mask of reasons
    pickups: Counts = field(default_factory=Counts)  # by file and location id
    dropoffs: Counts = field(default_factory=Counts)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.rows + other.rows, self.pickups + other.pickups, self.dropoffs + other.dropoffs)

    def service_months(self, *, kept: bool) -> list[tuple[int, int]]:
        """List the services and months of the rows that are kept, or rejected; a null service counts as the first."""
        return sorted({(service or 0, month) for _, service, month, mask in self.rows if (mask == 0) == kept})


@dataclass(frozen=True)
class DataSets:
    """The folders that `clean` writes; for quarantine, the reason of each bit and the origin of each file number."""

    trips: Path
    quarantine: Path
    reasons: Sequence[str]
    origins: Mapping[int, str]

    def reject(self, trips: pa.Table, mask: Array, file: Array, service_month: tuple[int, int], name: str) -> None:
        """Write rejected trips of one service and month; see `tables.quarantine.write_rejected`."""
        path = self.quarantine / directory(*service_month) / name
        write_rejected(trips, mask, [self.origins[number] for number in file.tolist()], path, reasons=self.reasons)


def month_number(year: int, month: int) -> int:
    """Return the number of a month, 1 to 12, in one sequence over all years."""
    return year * 12 + month - 1


def month_name(number: int) -> str | None:
    """Return the month of a number as ``YYYY-MM``, or None for `UNKNOWN_MONTH`."""
    return None if number == UNKNOWN_MONTH else f"{number // 12:04d}-{number % 12 + 1:02d}"


def directory(service: int, month: int) -> str:
    """Return the directory in a data set for the trips of a service and month."""
    month_of_year = 0 if month == UNKNOWN_MONTH else month % 12 + 1
    return f"service={SERVICES[service]}/year={month // 12}/month={month_of_year}"


@dataclass(frozen=True)
class RowGroup:
    """The trips of a service in a row group of a Parquet file."""

    path: Path
    index: int  # of the row group in the file
    number: int  # of the row group in all files
    first_row: int
    rows: int
    names: frozenset[str]  # columns of the file, with ``service`` only if each trip has its own
    service: Service


def row_groups(trips: Path) -> list[RowGroup]:
    """List the row groups of cleaned trips, a Parquet file or a directory of them, sorted by path.

    Raises InputError if there is no file, or one is not Parquet, lacks a column, or has an unknown service.
    """
    files = sorted(trips.rglob("*.parquet")) if trips.is_dir() else [trips]
    if not files:
        raise InputError(f"{trips} holds no Parquet file of trips. Give the directory `trips` of the step clean.")
    groups: list[RowGroup] = []
    number = 0
    for path in files:
        footer = TRIPS.footer(path)
        schema = footer.schema.to_arrow_schema()
        services, names = _services(path, frozenset(schema.names))
        _check_types(path, schema)
        first_row = 0
        for index in range(footer.num_row_groups):
            rows = footer.row_group(index).num_rows
            groups += [RowGroup(path, index, number, first_row, rows, names, service) for service in services if rows]
            number, first_row = number + bool(rows), first_row + rows
    return groups


def services(groups: Iterable[RowGroup]) -> list[Service]:
    """Return the services that have trips."""
    return sorted({group.service for group in groups}, key=SERVICES.index)


def _services(path: Path, names: frozenset[str]) -> tuple[list[Service], frozenset[str]]:
    """Return the services of the trips in a file, and the columns of `RowGroup.names`."""
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InputError(f"{path}: not cleaned trips: no column {', '.join(missing)}. Run standardize and clean.")
    directories = [part for part in path.parts if part.startswith("service=")]
    if directories:
        labels, names = {directories[-1].removeprefix("service=")}, names - {"service"}
    elif "service" in names:
        with TRIPS.explain_errors(path), pq.ParquetFile(path, read_dictionary=["service"]) as file:
            batches = file.iter_batches(columns=["service"])  # not all at once
            labels = {name for batch in batches for name in batch.column(0).unique().cast(pa.string()).to_pylist()}
    else:
        raise InputError(f"{path}: the service of the trips is unknown. Put the file below a directory such as "
                         "service=yellow, or add a column service.")  # fmt: skip
    for name in labels:
        if not name:
            raise InputError(f"{path}: a trip has no service. Fill the column service, or leave the trip out.")
        if name not in SERVICES:
            raise InputError(f"{path}: service {name!r} is unknown. Use one of {', '.join(SERVICES)}.")
    return [service for service in SERVICES if service in labels], names


def _check_types(path: Path, schema: pa.Schema) -> None:
    """Refuse columns of the schema that are stored as text, or as times with a zone."""
    for column in schema:
        kind, type_ = KINDS.get(column.name, "string"), column.type
        if column.name == "service" or kind == "string" or pa.types.is_null(type_):
            continue
        if kind == "timestamp":
            expected, is_valid = "a time without zone", pa.types.is_timestamp(type_) and type_.tz is None
        else:
            is_number = pa.types.is_primitive(type_) and not pa.types.is_temporal(type_)
            expected, is_valid = "a number", is_number or pa.types.is_decimal(type_)
        if not is_valid:
            raise InputError(f"{path}: column {column.name} is {type_}, not {expected}. Convert it, or run standardize "
                             "and clean.")  # fmt: skip

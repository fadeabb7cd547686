"""Schemas and directories of data sets of trips, which are partitioned as Hive does, by service and month of pickup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from whitewater.engines import Array
from whitewater.tables.quarantine import write_rejected
from whitewater_apps.taxi.schema import KINDS, REQUIRED, SERVICES

# The month of a pickup outside these years is unknown: its clock was wrong.
FIRST_YEAR, LAST_YEAR = 2000, 2099
# Written as year=0/month=0: with Hive's own name for null, __HIVE_DEFAULT_PARTITION__, pandas cannot read the data set.
UNKNOWN_MONTH = 0

_TYPES = {name: pa.timestamp("us") if kind == "timestamp" else pa.type_for_alias(kind) for name, kind in KINDS.items()}
# Of the parts that `standardize` writes, less the columns that an era lacks; bit i of `issues` is for schema.ISSUES[i].
STANDARDIZED_SCHEMA = pa.schema({**_TYPES, "issues": pa.int32()})
# Columns that the rules and the counts need, even where an era lacks them.
RULE_COLUMNS = (
    *REQUIRED, "trip_distance", "passenger_count", "tolls_amount", "total_amount", "pickup_location_id",
    "dropoff_location_id",
)  # fmt: skip
# Of the files of kept trips; their service is in the path.
TRIP_SCHEMA = pa.schema({name: type_ for name, type_ in _TYPES.items() if name != "service"})
# Number of rows by what they have in common, such as file and location id.
RowCounts = Counter[tuple[Any, ...]]


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


@dataclass(frozen=True)
class Tally:
    """Counts of rows: ``rows`` by file, service, month of pickup and mask of reasons.

    ``pickups`` and ``dropoffs`` count them by file and location id. A null service or location is None.
    """

    rows: RowCounts = field(default_factory=Counter)
    pickups: RowCounts = field(default_factory=Counter)
    dropoffs: RowCounts = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.rows + other.rows, self.pickups + other.pickups, self.dropoffs + other.dropoffs)

    def service_months(self, *, kept: bool) -> list[tuple[int, int]]:
        """List the service and month of all kept, or all rejected, rows; a null service counts as the first."""
        return sorted({(service or 0, month or 0) for _, service, month, mask in self.rows if (mask == 0) == kept})


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

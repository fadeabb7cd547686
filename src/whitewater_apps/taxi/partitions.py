"""Data sets of trips partitioned by service, year and month of pickup, in Hive's layout: schemas and directories."""

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

# A pickup outside these years is of no month that is known: its clock was wrong.
FIRST_YEAR, LAST_YEAR = 2000, 2099
# Year 0, month 0 in Hive's layout, whose own word for null, __HIVE_DEFAULT_PARTITION__, makes pandas fail to read the
# whole data set.
UNKNOWN_MONTH = 0

_TYPES = {name: pa.timestamp("us") if kind == "timestamp" else pa.type_for_alias(kind) for name, kind in KINDS.items()}
# Of the parts that `standardize` writes, but for the columns that an era lacks; bit i of `issues`: schema.ISSUES[i].
STANDARDIZED = pa.schema({**_TYPES, "issues": pa.int32()})
# Columns that rules and counts ask for, whatever the era.
MEASURED = (
    *REQUIRED, "trip_distance", "passenger_count", "tolls_amount", "total_amount", "pickup_location_id",
    "dropoff_location_id",
)  # fmt: skip
# Of the files of kept trips; their service is in the path.
TRIP_SCHEMA = pa.schema({name: type_ for name, type_ in _TYPES.items() if name != "service"})
Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class DataSets:
    """Where `clean` writes, and the names of reasons and files that quarantine spells out."""

    trips: Path
    quarantine: Path
    reasons: Sequence[str]
    origins: Mapping[int, str]

    def reject(self, trips: pa.Table, mask: Array, file: Array, place: tuple[int, int], name: str) -> None:
        """Write trips of a service and month that were rejected; see `tables.quarantine.write_rejected`."""
        path = self.quarantine / directory(*place) / name
        write_rejected(trips, mask, file, path, reasons=self.reasons, origins=self.origins)


@dataclass(frozen=True)
class Tally:
    """Rows by file, service, month of pickup and mask of broken rules.

    ``pickups`` and ``dropoffs`` count them by file and location id. A service or a location that is null is None.
    """

    rows: Rows = field(default_factory=Counter)
    pickups: Rows = field(default_factory=Counter)
    dropoffs: Rows = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.rows + other.rows, self.pickups + other.pickups, self.dropoffs + other.dropoffs)

    def places(self, *, kept: bool) -> list[tuple[int, int]]:
        """Return service and month of the rows that were kept, or of the others; a service of None is as the first."""
        return sorted({(service or 0, month or 0) for _, service, month, mask in self.rows if (mask == 0) == kept})


def month_number(year: int, month: int) -> int:
    """Return the number of a month, 1 to 12, of a year."""
    return year * 12 + month - 1


def month_name(number: int) -> str | None:
    """Return ``YYYY-MM`` of a month, None of `UNKNOWN_MONTH`."""
    return None if number == UNKNOWN_MONTH else f"{number // 12:04d}-{number % 12 + 1:02d}"


def directory(service: int, month: int) -> str:
    """Return the relative directory of the trips of a service and month."""
    of_year = 0 if month == UNKNOWN_MONTH else month % 12 + 1
    return f"service={SERVICES[service]}/year={month // 12}/month={of_year}"

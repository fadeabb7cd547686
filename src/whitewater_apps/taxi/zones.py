"""The table of taxi zones: borough and name by LocationID."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from whitewater.errors import InputError
from whitewater.io.store import write_bytes

LOCATIONS = 265
COLUMNS = ("LocationID", "Borough", "Zone", "service_zone")
NOT_AVAILABLE = "N/A"


@dataclass(frozen=True)
class Zones:
    """Borough, name and service zone by LocationID from 0 to 265, None if missing; ``duplicates`` counts repeats."""

    boroughs: tuple[str | None, ...]
    names: tuple[str | None, ...]
    service_zones: tuple[str | None, ...]
    duplicates: int

    @property
    def borough_names(self) -> tuple[str, ...]:
        """The distinct boroughs, sorted."""
        return tuple(sorted({borough for borough in self.boroughs if borough is not None}))

    def within(self, borough: str) -> tuple[int, ...]:
        """Return the locations in a borough."""
        return tuple(location for location, name in enumerate(self.boroughs) if name == borough)


def read_zones(path: Path) -> Zones:
    """Read a CSV file with the columns LocationID, Borough, Zone and optionally service_zone, in any order and case.

    Other columns are ignored. Blank fields become ``N/A``, an ordinary text. Repeated rows are dropped.

    Raises InputError if the table cannot be read, lacks a column, or has a LocationID outside 1 to 265, or one with two
    meanings, which would multiply trips in a join.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [row for row in csv.reader(file, strict=True) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a readable table of zones: {error}. Check taxi.fetch.files.zones.") from error
    names = [name.strip().lower() for name in header]
    if repeated := [name for name in COLUMNS if names.count(name.lower()) > 1]:
        raise InputError(f"{path}: column {repeated[0]!r} appears twice. Remove one.")
    missing = [name for name in COLUMNS[:3] if name.lower() not in names]
    if missing or not rows:
        lacks = f"the column {' and '.join(missing)}" if missing else "rows"
        raise InputError(f"{path}: the table of zones lacks {lacks}. It needs LocationID, Borough and Zone.")
    zones: dict[int, list[str]] = {}
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InputError(f"{path}: row {number} has more or fewer fields than the header. Correct the row.")
        fields = dict(zip(names, row, strict=True))
        location, *zone = (fields.get(name.lower(), "").strip() or NOT_AVAILABLE for name in COLUMNS)
        if not (location.isdecimal() and 1 <= int(location) <= LOCATIONS):
            raise InputError(f"{path}: LocationID {location!r} is not in 1 to {LOCATIONS}. Correct or remove the row.")
        if zones.setdefault(int(location), zone) != zone:
            raise InputError(f"{path} gives more than one borough or zone to LocationID {location}. Keep one of them.")
    by_location = (zones.get(number, (None, None, None)) for number in range(LOCATIONS + 1))
    boroughs, zone_names, service_zones = zip(*by_location, strict=True)
    return Zones(boroughs, zone_names, service_zones, duplicates=len(rows) - len(zones))


def zones_csv(zones: Zones) -> str:
    """Return the table as CSV in TLC's layout."""
    text = io.StringIO()
    rows = zip(range(LOCATIONS + 1), zones.boroughs, zones.names, zones.service_zones, strict=True)
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *(row for row in rows if row[1] is not None)])
    return text.getvalue()


def write_unknown_zones(path: Path) -> Path:
    """Write a table with every location in the borough Unknown, for trips without a table of zones."""
    rows = [f"{number},Unknown,Location {number},{NOT_AVAILABLE}" for number in range(1, LOCATIONS + 1)]
    write_bytes(path, ("\n".join([",".join(COLUMNS), *rows]) + "\n").encode())
    return path

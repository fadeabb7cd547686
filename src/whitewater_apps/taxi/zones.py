"""The table of taxi zones: borough and name of each LocationID."""

from __future__ import annotations

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
    """Borough, name and service zone of each LocationID, from 0 to 265; None of those that the table lacks.

    ``duplicates`` are the rows that repeated another one.
    """

    boroughs: tuple[str | None, ...]
    names: tuple[str | None, ...]
    service_zones: tuple[str | None, ...]
    duplicates: int

    @property
    def borough_names(self) -> tuple[str, ...]:
        """The boroughs, each once, sorted."""
        return tuple(sorted({borough for borough in self.boroughs if borough is not None}))

    def within(self, borough: str) -> tuple[int, ...]:
        """Return the locations in a borough."""
        return tuple(location for location, of in enumerate(self.boroughs) if of == borough)


def read_zones(path: Path) -> Zones:
    """Read a table of zones.

    It is CSV with a header that names LocationID, Borough and Zone, and service_zone where it is known, in any order
    and case; other columns are ignored. ``N/A`` is a text like any other, and stands for a blank.

    Raises InputError if the table cannot be read, lacks a column, names a LocationID outside 1 to 265, or gives one two
    meanings: a join with such a table would multiply trips. Rows that repeat another one exactly are counted and
    dropped.
    """
    rows = _read(path)
    zones: dict[int, list[str]] = {}
    for location, *zone in rows:
        if not (location.isdecimal() and 1 <= int(location) <= LOCATIONS):
            raise InputError(f"{path}: LocationID {location!r} is not one of 1 to {LOCATIONS}. Correct or remove the "
                             "row.")  # fmt: skip
        if zones.setdefault(int(location), zone) != zone:
            raise InputError(f"{path} gives more than one borough or zone to LocationID {location}. Keep one row for "
                             "each.")  # fmt: skip
    every = (zones.get(number, (None, None, None)) for number in range(LOCATIONS + 1))
    boroughs, names, service_zones = zip(*every, strict=True)
    return Zones(boroughs, names, service_zones, duplicates=len(rows) - len(zones))


def zones_csv(zones: Zones) -> str:
    """Return the table as CSV in TLC's layout, one row for each LocationID that it has."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for number, zone in enumerate(zip(zones.boroughs, zones.names, zones.service_zones, strict=True)):
        if zone[0] is not None:
            rows.writerow((number, *zone))
    return text.getvalue()


def write_unknown_zones(path: Path) -> Path:
    """Write a table in which every location is in the borough Unknown, for trips whose table of zones is not given."""
    rows = [f"{number},Unknown,Location {number},{NOT_AVAILABLE}" for number in range(1, LOCATIONS + 1)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, ("\n".join([",".join(COLUMNS), *rows]) + "\n").encode())
    return path


def _read(path: Path) -> list[list[str]]:
    """Return the four columns of each row as text; the last one is N/A where the table lacks it."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [row for row in csv.reader(file, strict=True) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a readable table of zones: {error}. Check taxi.fetch.files.zones.") from error
    names = [name.strip().lower() for name in header]
    twice = [name for name in COLUMNS if names.count(name.lower()) > 1]
    if twice:
        raise InputError(f"{path}: column {twice[0]!r} is there twice. Remove one.")
    position = {name: number for number, name in enumerate(names)}
    missing = [name for name in COLUMNS[:3] if name.lower() not in position]
    if missing or not rows:
        lacks = f"the column {' and '.join(missing)}" if missing else "rows"
        raise InputError(f"{path}: the table of zones lacks {lacks}. It needs LocationID, Borough and Zone.")
    torn = next((number for number, row in enumerate(rows, start=2) if len(row) != len(header)), None)
    if torn:
        raise InputError(f"{path}: row {torn} has another number of fields than the header. Correct the row.")
    places = [position.get(name.lower()) for name in COLUMNS]
    return [
        [NOT_AVAILABLE if place is None else row[place].strip() or NOT_AVAILABLE for place in places] for row in rows
    ]

"""The table of taxi zones: borough and name of each LocationID."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whitewater.errors import InputError
from whitewater.io.store import write_bytes

LOCATIONS = 265
COLUMNS = ("LocationID", "Borough", "Zone", "service_zone")
NOT_AVAILABLE = "N/A"


@dataclass(frozen=True, eq=False)
class Zones:
    """Boroughs and names, indexed by LocationID; entry 0 and those that the table lacks are empty.

    ``borough_codes`` int8 (266,): index into ``boroughs``, which are sorted, or -1 where there is none;
    ``names`` and ``service_zones`` (266,): text or None; ``duplicates``: rows that repeated another one.
    """

    boroughs: tuple[str, ...]
    borough_codes: npt.NDArray[np.int8]
    names: tuple[str | None, ...]
    service_zones: tuple[str | None, ...]
    duplicates: int

    def within(self, borough: str) -> npt.NDArray[np.bool_]:
        """Return which locations are in the borough, bool (266,)."""
        inside: npt.NDArray[np.bool_] = np.zeros(LOCATIONS + 1, np.bool_)
        if borough in self.boroughs:
            inside = self.borough_codes == self.boroughs.index(borough)
        return inside


def read_zones(path: Path) -> Zones:
    """Read a table of zones.

    It is CSV with a header that names LocationID, Borough and Zone, and service_zone where it is known, in any order
    and case; other columns are ignored. ``N/A`` is a text like any other, and stands for a blank.

    Raises InputError if the table cannot be read, lacks a column, names a LocationID outside 1 to 265, or gives one two
    meanings: a join with such a table would multiply trips. Rows that repeat another one exactly are counted and
    dropped.
    """
    rows = _read(path)
    found: dict[int, tuple[str, str, str]] = {}
    conflicts: list[int] = []
    for location, *text in rows:
        number = _location(location, path=path)
        zone = (text[0], text[1], text[2])
        if found.setdefault(number, zone) != zone:
            conflicts.append(number)
    if conflicts:
        raise InputError(f"{path} gives more than one borough or zone to LocationID {', '.join(map(str, conflicts))}. "
                         "Keep one row for each.")  # fmt: skip
    return _zones(found, duplicates=len(rows) - len(found))


def zones_csv(zones: Zones) -> str:
    """Return the table as CSV in TLC's layout, one row for each LocationID that it has."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for number in np.flatnonzero(zones.borough_codes >= 0):
        borough = zones.boroughs[zones.borough_codes[number]]
        rows.writerow((number, borough, zones.names[number], zones.service_zones[number]))
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


def _location(text: str, *, path: Path) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= LOCATIONS):
        raise InputError(f"{path}: LocationID {text!r} is not one of 1 to {LOCATIONS}. Correct or remove the row.")
    return int(text)


def _zones(found: Mapping[int, Sequence[str]], *, duplicates: int) -> Zones:
    boroughs = tuple(sorted({zone[0] for zone in found.values()}))
    codes = np.full(LOCATIONS + 1, -1, np.int8)
    codes[list(found)] = [boroughs.index(zone[0]) for zone in found.values()]
    names, service_zones = (
        tuple(found[number][column] if number in found else None for number in range(LOCATIONS + 1))
        for column in (1, 2)
    )
    return Zones(boroughs, codes, names, service_zones, duplicates)

"""`quality.json`: what became of every row of every file, and the proof that none is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whitewater.devices import NULL_INTEGER
from whitewater.errors import IntegrityError
from whitewater.taxi.calendar import month_name
from whitewater.taxi.partitions import rows_on_disk
from whitewater.taxi.schema import SERVICES


@dataclass(frozen=True)
class Ids:
    """Location ids of one end of trips: how many are given and missing, and by id those that the table lacks."""

    given: int = 0
    missing: int = 0
    unknown: Counter[int] = field(default_factory=Counter)

    def __add__(self, other: Ids) -> Ids:
        return Ids(self.given + other.given, self.missing + other.missing, self.unknown + other.unknown)


@dataclass(frozen=True)
class Tally:
    """What became of the rows of a part: counts by (service, month), and of rejected ones by (service, month, mask)."""

    file: int
    rows: Counter[tuple[int, int]]
    rejected: Counter[tuple[int, int, int]]
    pickup: Ids = Ids()
    dropoff: Ids = Ids()


def summarise(
    catalogue: Sequence[Mapping[str, Any]], tallies: Sequence[Tally], reasons: Sequence[str]
) -> dict[str, Any]:
    """Return the content of `quality.json`.

    A row counts once under each of its reasons in ``by_reason``, and once in the funnel: under its first.

    Raises
    ------
    IntegrityError
        If a file's rows are not all accounted for.
    """
    files = [_file(entry, [tally for tally in tallies if tally.file == entry["file"]], reasons) for entry in catalogue]
    rejected = sum((tally.rejected for tally in tallies), Counter())
    rows_in, rows_out = (sum(file[key] for file in files) for key in ("rows_in", "rows_out"))
    return {
        "totals": {"rows_in": rows_in, "rows_out": rows_out, "quarantined": rows_in - rows_out},
        "funnel": _funnel(rows_in, rejected, reasons),
        "by_month": _by_month(tallies, rejected, reasons),
        "files": files,
    }


def check_written(summary: Mapping[str, Any], *, trips: Path, quarantine: Path) -> None:
    """Compare the rows that lie on disk with those that were counted.

    Raises
    ------
    IntegrityError
        If a row is missing or there twice.
    """
    for data_set, expected in ((trips, summary["totals"]["rows_out"]), (quarantine, summary["totals"]["quarantined"])):
        found = rows_on_disk(data_set)
        if found != expected:
            raise IntegrityError(f"{data_set} holds {found} rows where {expected} were written. Run the step again; "
                                 "if this stays, a disk or file system loses data.")  # fmt: skip


def _file(entry: Mapping[str, Any], tallies: Sequence[Tally], reasons: Sequence[str]) -> dict[str, Any]:
    rows_in = sum(sum(tally.rows.values()) for tally in tallies)
    rejected = sum((tally.rejected for tally in tallies), Counter())
    if rows_in != entry["rows"]:
        raise IntegrityError(f"{entry['path']}: {entry['rows']} rows were standardised, but {rows_in} were cleaned. "
                             "Run the steps `standardise` and `clean` again.")  # fmt: skip
    quarantined = sum(rejected.values())
    return {
        "path": entry["path"],
        "origin": entry["origin"],
        "service": entry["service"],
        "rows_in": rows_in,
        "rows_out": rows_in - quarantined,
        "quarantined": quarantined,
        "malformed": entry["malformed"],
        "by_reason": _by_reason(((mask, rows) for (*_, mask), rows in rejected.items()), reasons),
        "without_pickup_zone": sum(tally.pickup.missing for tally in tallies),
        "without_dropoff_zone": sum(tally.dropoff.missing for tally in tallies),
        "unknown_pickup_zones": _by_id(tally.pickup.unknown for tally in tallies),
        "unknown_dropoff_zones": _by_id(tally.dropoff.unknown for tally in tallies),
        "columns_not_carried": entry["columns_not_carried"],
    }


def _by_id(unknown: Iterable[Counter[int]]) -> dict[str, int]:
    """Return the trips of each location that the table of zones lacks."""
    return {str(location): trips for location, trips in sorted(sum(unknown, Counter()).items())}


def _by_reason(masks: Iterable[tuple[int, int]], reasons: Sequence[str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for mask, rows in masks:
        counts.update({reason: rows for bit, reason in enumerate(reasons) if mask >> bit & 1})
    return {reason: counts[reason] for reason in reasons if counts[reason]}


def _funnel(rows_in: int, rejected: Mapping[tuple[int, int, int], int], reasons: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows left after each rule in turn."""
    first: Counter[int] = Counter()
    for (*_, mask), rows in rejected.items():
        first[(mask & -mask).bit_length() - 1] += rows
    left, funnel = rows_in, [{"rule": "read", "rows": rows_in}]
    for bit, reason in enumerate(reasons):
        left -= first[bit]
        if first[bit] or not (reason.startswith("unreadable_") or reason.endswith("_nan")):
            funnel.append({"rule": reason, "rows": left})
    return funnel


def _by_month(
    tallies: Sequence[Tally], rejected: Mapping[tuple[int, int, int], int], reasons: Sequence[str]
) -> list[dict[str, Any]]:
    rows = sum((tally.rows for tally in tallies), Counter())
    entries = []
    for (service, month), rows_in in sorted(rows.items()):
        masks = [(mask, count) for (code, when, mask), count in rejected.items() if (code, when) == (service, month)]
        entries.append(
            {
                "service": SERVICES[max(service, 0)],
                "month": None if month == NULL_INTEGER else month_name(month),
                "rows_in": rows_in,
                "rows_out": rows_in - sum(count for _, count in masks),
                "by_reason": _by_reason(masks, reasons),
            }
        )
    return entries

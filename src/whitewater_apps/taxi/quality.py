"""`quality.json`: what became of every row of every file, and the proof that none is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whitewater.errors import IntegrityError
from whitewater.tables.quarantine import add_up, count_reasons, funnel
from whitewater_apps.taxi.partitions import month_name
from whitewater_apps.taxi.rules import UNREADABLE
from whitewater_apps.taxi.schema import SERVICES
from whitewater_apps.taxi.zones import Zones

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Tally:
    """Rows by file, service, month of pickup (`whitewater_apps.taxi.partitions`) and mask of broken rules.

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


def summarize(
    catalog: Sequence[Mapping[str, Any]], counts: Tally, reasons: Sequence[str], zones: Zones
) -> dict[str, Any]:
    """Return the content of `quality.json`.

    A row counts once under each of its reasons in ``by_reason``, and once in the funnel: under its first.

    Raises IntegrityError if a file's rows are not all accounted for.
    """
    by_file: dict[int, Counter[int]] = defaultdict(Counter)
    by_month: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for (file, service, month, mask), rows in counts.rows.items():
        by_file[file][mask] += rows
        by_month[-1 if service is None else service, month][mask] += rows
    files = [_file(entry, by_file[entry["file"]], counts, reasons, zones) for entry in catalog]
    return {
        "totals": add_up(files),
        "funnel": funnel(sum(by_file.values(), Counter()), reasons, rare=UNREADABLE),
        "by_month": [
            {"service": SERVICES[max(service, 0)], "month": month_name(month), **count_reasons(masks, reasons)}
            for (service, month), masks in sorted(by_month.items())
        ],
        "files": files,
    }


def unknown_zones(counts: Rows, zones: Zones, *, file: int | None = None) -> Counter[str]:
    """Count the trips, of a file or of all, by each location id that the table of zones lacks, in order."""
    unknown: Counter[str] = Counter()
    known = sorted((location, of, trips) for (of, location), trips in counts.items() if location is not None)
    for location, of, trips in known:
        if zones.boroughs[location] is None and file in (None, of):
            unknown[str(location)] += trips
    return unknown


def _file(
    entry: Mapping[str, Any], masks: Counter[int], counts: Tally, reasons: Sequence[str], zones: Zones
) -> dict[str, Any]:
    by_reason = count_reasons(masks, reasons)
    if by_reason["rows_in"] != entry["rows"]:
        raise IntegrityError(f"{entry['path']}: {entry['rows']} rows were standardized, but {by_reason['rows_in']} "
                             "were cleaned. Run the steps `standardize` and `clean` again.")  # fmt: skip
    ends = {"pickup": counts.pickups, "dropoff": counts.dropoffs}
    return {
        **{name: entry[name] for name in ("path", "origin", "service", "malformed", "columns_not_carried")},
        **by_reason,
        "quarantined": by_reason["rows_in"] - by_reason["rows_out"],
        **{f"without_{end}_zone": rows[entry["file"], None] for end, rows in ends.items()},
        **{f"unknown_{end}_zones": unknown_zones(rows, zones, file=entry["file"]) for end, rows in ends.items()},
    }

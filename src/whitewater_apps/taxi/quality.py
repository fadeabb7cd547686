"""`quality.json`: what became of every row of every file, and the proof that none is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whitewater.errors import IntegrityError
from whitewater.tables.blocks import NULL_INTEGER
from whitewater.tables.calendar import month_name
from whitewater.tables.parquet.opening import rows_on_disk
from whitewater_apps.taxi.schema import SERVICES


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
    """Rows of a part by (service, month, mask); bit *i* of the mask is set where reason *i* holds, and 0 means kept."""

    file: int
    rows: Counter[tuple[int, int, int]]
    pickup: Ids = Ids()
    dropoff: Ids = Ids()


def summarise(
    catalogue: Sequence[Mapping[str, Any]], tallies: Sequence[Tally], reasons: Sequence[str]
) -> dict[str, Any]:
    """Return the content of `quality.json`.

    A row counts once under each of its reasons in ``by_reason``, and once in the funnel: under its first.

    Raises IntegrityError if a file's rows are not all accounted for.
    """
    files = [_file(entry, [tally for tally in tallies if tally.file == entry["file"]], reasons) for entry in catalogue]
    rows = sum((tally.rows for tally in tallies), Counter())
    by_month: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for (service, month, mask), count in rows.items():
        by_month[service, month][mask] += count
    totals = {key: sum(file[key] for file in files) for key in ("rows_in", "rows_out", "quarantined")}
    return {
        "totals": totals,
        "funnel": _funnel(_masks(rows), reasons),
        "by_month": [
            {
                "service": SERVICES[max(service, 0)],
                "month": None if month == NULL_INTEGER else month_name(month),
                **_counts(masks, reasons),
            }
            for (service, month), masks in sorted(by_month.items())
        ],
        "files": files,
    }


def check_written(summary: Mapping[str, Any], *, trips: Path, quarantine: Path) -> None:
    """Compare the rows that lie on disk with those that were counted.

    Raises IntegrityError if a row is missing or there twice.
    """
    for data_set, expected in ((trips, summary["totals"]["rows_out"]), (quarantine, summary["totals"]["quarantined"])):
        found = rows_on_disk(data_set)
        if found != expected:
            raise IntegrityError(f"{data_set} holds {found} rows where {expected} were written. Run the step again; "
                                 "if this stays, a disk or file system loses data.")  # fmt: skip


def _file(entry: Mapping[str, Any], tallies: Sequence[Tally], reasons: Sequence[str]) -> dict[str, Any]:
    counts = _counts(_masks(sum((tally.rows for tally in tallies), Counter())), reasons)
    if counts["rows_in"] != entry["rows"]:
        raise IntegrityError(f"{entry['path']}: {entry['rows']} rows were standardised, but {counts['rows_in']} were "
                             "cleaned. Run the steps `standardise` and `clean` again.")  # fmt: skip
    pickup, dropoff = (sum((getattr(tally, end) for tally in tallies), Ids()) for end in ("pickup", "dropoff"))
    return {
        **{name: entry[name] for name in ("path", "origin", "service", "malformed", "columns_not_carried")},
        **counts,
        "quarantined": counts["rows_in"] - counts["rows_out"],
        "without_pickup_zone": pickup.missing,
        "without_dropoff_zone": dropoff.missing,
        "unknown_pickup_zones": {str(location): trips for location, trips in sorted(pickup.unknown.items())},
        "unknown_dropoff_zones": {str(location): trips for location, trips in sorted(dropoff.unknown.items())},
    }


def _masks(rows: Mapping[tuple[int, int, int], int]) -> Counter[int]:
    masks: Counter[int] = Counter()
    for (*_, mask), count in rows.items():
        masks[mask] += count
    return masks


def _counts(masks: Counter[int], reasons: Sequence[str]) -> dict[str, Any]:
    """Return the rows read and kept, and the rejected ones by reason."""
    held = {reason: sum(masks[mask] for mask in masks if mask >> bit & 1) for bit, reason in enumerate(reasons)}
    by_reason = {reason: rows for reason, rows in held.items() if rows}
    return {"rows_in": masks.total(), "rows_out": masks[0], "by_reason": by_reason}


def _funnel(masks: Counter[int], reasons: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows left after each rule in turn."""
    first: Counter[int] = Counter()
    for mask, rows in masks.items():
        first[(mask & -mask).bit_length() - 1] += rows
    left = masks.total()
    funnel: list[dict[str, Any]] = [{"rule": "read", "rows": left}]
    for bit, reason in enumerate(reasons):
        left -= first[bit]
        if first[bit] or not (reason.startswith("unreadable_") or reason.endswith("_nan")):
            funnel.append({"rule": reason, "rows": left})
    return funnel

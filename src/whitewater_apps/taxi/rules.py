"""The cleaning rules of trips, as data, in the order in which the funnel of `quality.json` lists them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whitewater.errors import InputError
from whitewater.tables.quarantine import MALFORMED
from whitewater.tables.rules import Rule
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.partitions import month_number
from whitewater_apps.taxi.schema import ISSUES, SERVICES, STRAY_MONTH
from whitewater_apps.taxi.zones import Zones

# The bits of column `issues`, in their order.
UNREADABLE = tuple(f"unreadable_{name}" for name in ISSUES)
# Bits of the mask of a trip where those of `issues`, and those of the rules, begin; bit 0 is that of malformed lines.
ISSUES_BIT, RULES_BIT = 1, 1 + len(UNREADABLE)
# What a value that breaks a bound compares as, in the order of the funnel.
BROKEN = {"above": operator.le, "at_least": operator.lt, "below": operator.ge, "at_most": operator.gt}
MAIN_SHARE, NEAR_MONTHS = 0.9, 12


def rules(settings: Clean, zones: Zones, catalog: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Return the rules for the files of a catalog, that of `standardize`.

    Raises InputError if a borough is excluded in which the table has no zone.
    """
    return (
        *(Rule(f"missing_{name}", name, "missing") for name in settings.required),
        *_stray_month(settings, catalog),
        *_boroughs("pickup", settings.exclude_pickup_boroughs, zones),
        *_boroughs("dropoff", settings.exclude_dropoff_boroughs, zones),
        *_ranges(settings),
        *([Rule("duplicate", "duplicate", operator.eq, True)] if settings.duplicates == "quarantine" else ()),
    )


def reasons(every: Iterable[Rule]) -> tuple[str, ...]:
    """Return the reasons by their bit in the mask of a trip."""
    return (MALFORMED, *UNREADABLE, *(rule.reason for rule in every))


def file_month(file: Any, service: Any, month: Any) -> Any:
    """Return one integer for a file, a service and a month of it; of integers, or of columns of any engine."""
    return (file * len(SERVICES) + service) * 2**16 + month


def usual_months(entry: Mapping[str, Any], minimum_share: float) -> list[int]:
    """Return, as `file_month`, the months that are not stray in a file of the catalog.

    A month is usual that holds ``minimum_share`` of a file's trips and is at most `NEAR_MONTHS` from one of the main
    months: the fewest that hold `MAIN_SHARE` of them together. Among few trips a single one is no small share, but
    that its clock was wrong is still seen.
    """
    usual: list[int] = []
    for service, months in entry["months"].items():
        counts = {month_number(*map(int, name.split("-"))): rows for name, rows in months.items()}
        total, main, covered = sum(counts.values()), [], 0
        for month in sorted(counts, key=lambda month: -counts[month]):
            if covered < MAIN_SHARE * total:
                main.append(month)
            covered += counts[month]
        usual += [
            file_month(entry["file"], SERVICES.index(service), month)
            for month, rows in counts.items()
            if rows >= minimum_share * total and any(abs(month - other) <= NEAR_MONTHS for other in main)
        ]
    return usual


def _stray_month(settings: Clean, catalog: Sequence[Mapping[str, Any]]) -> list[Rule]:
    usual = tuple(month for entry in catalog for month in usual_months(entry, settings.minimum_month_share))
    return [Rule(STRAY_MONTH, "file_month", "not in", usual)] if settings.minimum_month_share > 0 else []


def _boroughs(end: str, boroughs: Sequence[str], zones: Zones) -> list[Rule]:
    for borough in boroughs:
        if borough not in zones.boroughs:
            raise InputError(f"taxi.clean excludes {end}s in {borough}, but the table of zones has no zone there. "
                             "Name the right table in taxi.fetch.files.zones.")  # fmt: skip
    return [Rule(f"{end}_in_{each}", f"{end}_location_id", "in", zones.within(each)) for each in boroughs]


def _ranges(settings: Clean) -> list[Rule]:
    """Return a rule for each bound that is given."""
    ranges = settings.ranges.model_dump(exclude_none=True)
    return [
        Rule(f"{quantity}_not_{bound}_{bounds[bound]:g}", quantity, broken, bounds[bound])
        for quantity, bounds in ranges.items()
        for bound, broken in BROKEN.items()
        if bound in bounds
    ]

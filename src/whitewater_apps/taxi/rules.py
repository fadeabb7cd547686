"""The cleaning rules of trips, as data, in the order of the funnel in `quality.json`."""

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from whitewater.errors import InputError
from whitewater.tables.eras import Rule
from whitewater.tables.raw_files import MALFORMED
from whitewater_apps.taxi.config import Clean
from whitewater_apps.taxi.data_sets import Catalog, month_number
from whitewater_apps.taxi.schema import ISSUES, SERVICES, STRAY_MONTH
from whitewater_apps.taxi.zones import Zones

# The reason of each bit of the column `issues`, from bit 0 up.
UNREADABLE = tuple(f"unreadable_{name}" for name in ISSUES)
# First bits of `issues` and of the rules in a trip's mask. Bit 0 is for malformed lines.
ISSUES_BIT, RULES_BIT = 1, 1 + len(UNREADABLE)
# The test by which each kind of bound rejects a value, in the order of the funnel.
BOUND_TESTS = {"above": operator.le, "at_least": operator.lt, "below": operator.ge, "at_most": operator.gt}


def rules(settings: Clean, zones: Zones, catalog: Catalog) -> tuple[Rule, ...]:
    """Return the rules for the files in ``catalog``, the list that step `standardize` wrote.

    Raises InputError if an excluded borough has no zone.
    """
    usual_keys = tuple(key for entry in catalog for key in usual_months(entry, settings.minimum_month_share))
    boroughs = {"pickup": settings.exclude_pickup_boroughs, "dropoff": settings.exclude_dropoff_boroughs}
    excluded = [(end, borough) for end, names in boroughs.items() for borough in names]
    for end, borough in excluded:
        if borough not in zones.boroughs:
            raise InputError(f"taxi.clean excludes {end}s in {borough}, but the table of zones has no zone there. "
                             "Name the right table in taxi.fetch.files.zones.")  # fmt: skip
    return (
        *(Rule(f"missing_{name}", name, "missing") for name in settings.required),
        *([Rule(STRAY_MONTH, "file_month", "not in", usual_keys)] if settings.minimum_month_share > 0 else ()),
        *(Rule(f"{end}_in_{borough}", f"{end}_location_id", "in", zones.within(borough)) for end, borough in excluded),
        *(
            Rule(f"{quantity}_not_{bound}_{bounds[bound]:g}", quantity, test, bounds[bound])
            for quantity, bounds in settings.ranges.model_dump(exclude_none=True).items()
            for bound, test in BOUND_TESTS.items()
            if bound in bounds
        ),
        *([Rule("duplicate", "duplicate", operator.eq, True)] if settings.duplicates == "quarantine" else ()),
    )


def reasons(cleaning_rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the reason of each bit of a trip's mask, from bit 0 up."""
    return (MALFORMED, *UNREADABLE, *(rule.reason for rule in cleaning_rules))


def file_month(file: Any, service: Any, month: Any) -> Any:
    """Combine file, service and month, integers or columns of an engine, into one integer."""
    return (file * len(SERVICES) + service) * 2**16 + month


def usual_months(entry: Mapping[str, Any], minimum_share: float) -> list[int]:
    """Return the `file_month` of each month that is not stray in a file, an ``entry`` of the catalog.

    Such a month has at least ``minimum_share`` of the file's trips of a service, and is at most a year from one of the
    main months: the fewest that together have nine tenths of those trips. In a small file, one trip is a large share,
    but its distance from the main months still reveals a wrong clock.
    """
    keys: list[int] = []
    for service, months in entry["months"].items():
        counts = {month_number(*map(int, name.split("-"))): rows for name, rows in months.items()}
        total, main_months, covered = sum(counts.values()), [], 0
        for month in sorted(counts, key=lambda month: -counts[month]):
            if covered < 0.9 * total:
                main_months.append(month)
            covered += counts[month]
        keys += [
            file_month(entry["file"], SERVICES.index(service), month)
            for month, rows in counts.items()
            if rows >= minimum_share * total and any(abs(month - main) <= 12 for main in main_months)
        ]
    return keys

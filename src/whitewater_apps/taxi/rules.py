"""The cleaning rules: each names a reason and tells which trips of a block break it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.tables.blocks import NULL_TIMESTAMP, Block, slices
from whitewater.tables.calendar import month_index
from whitewater.tables.elementwise import Bounds, mark_outside
from whitewater_apps.taxi.blocks import column, quantity
from whitewater_apps.taxi.config import Clean, Range
from whitewater_apps.taxi.schema import ISSUES, STRAY_MONTH
from whitewater_apps.taxi.zones import Zones

MALFORMED = "malformed_line"


@dataclass(frozen=True)
class Rule:
    """Reasons to reject a trip: ``mark(block, mask, bit)`` sets bit ``bit + i`` of the mask where reason *i* holds."""

    reasons: tuple[str, ...]
    mark: Callable[[Block, Array, int], None]


def rules(settings: Clean, zones: Zones, device: Device, *, usual_months: Mapping[int, Array]) -> tuple[Rule, ...]:
    """Return the rules in the order in which the funnel of `quality.json` lists them.

    ``usual_months`` are, by code of service, bool (months + 1,): true where the month of pickup is not stray; the last
    entry stands for dates that no month is known of. Empty when the rule is off.
    """
    return (
        # The bits of `issues` are those of its columns, in the same order.
        Rule(
            tuple(f"unreadable_{name}" for name in ISSUES), lambda block, mask, bit: _mark(block["issues"], mask, bit)
        ),
        *_required(settings, device),
        *_usual_month(usual_months, device),
        *_boroughs(settings, zones, device),
        *_ranges(settings, device),
    )


def reasons(every: Sequence[Rule]) -> tuple[str, ...]:
    """Return the reasons by the bit that `broken` sets; bit 0 is that of malformed lines, which no rule sees."""
    return (MALFORMED, *(reason for rule in every for reason in rule.reasons))


def broken(block: Block, every: Sequence[Rule], device: Device) -> Array:
    """Return an int64 bit mask for each trip, the bits those of `reasons`; 0 means that the trip is kept.

    Works on slices that fit the device's cache, because each rule reads its columns once more.
    """
    mask: Array = device.xp.zeros(len(block["service"]), device.xp.int64)
    for part in slices({**block, "mask": mask}, device):
        bit = 1
        for rule in every:
            rule.mark(part, part["mask"], bit)
            bit += len(rule.reasons)
    return mask


def _required(settings: Clean, device: Device) -> list[Rule]:
    def missing(name: str) -> Callable[[Block], Array]:
        if name.endswith("_datetime"):
            return lambda block: column(name, block, device) == NULL_TIMESTAMP
        return lambda block: device.xp.isnan(column(name, block, device))

    return [_rule(f"missing_{name}", missing(name)) for name in settings.required]


def _usual_month(usual: Mapping[int, Array], device: Device) -> list[Rule]:
    if not usual:
        return []

    def stray(block: Block) -> Array:
        month = month_index(block["pickup_datetime"], device)
        known = block["pickup_datetime"] != NULL_TIMESTAMP
        result: Array = device.xp.zeros(len(month), bool)
        for service, months in usual.items():
            # Index -1, no month, takes the last entry.
            result |= (block["service"] == service) & ~months[month] & known
        return result

    return [_rule(STRAY_MONTH, stray)]


def _boroughs(settings: Clean, zones: Zones, device: Device) -> list[Rule]:
    def inside(location: str, borough: str) -> Callable[[Block], Array]:
        if borough not in zones.boroughs:
            raise InputError(f"taxi.clean excludes {location.partition('_')[0]}s in {borough}, but the table of zones "
                             "has no zone there. Name the right table in taxi.fetch.files.zones.")  # fmt: skip
        excluded = device.to_device(np.append(zones.within(borough), False))
        # Location -1, null, takes the last entry.
        return lambda block: excluded[column(location, block, device)]

    pairs = (
        ("pickup", settings.exclude_pickup_boroughs),
        ("dropoff", settings.exclude_dropoff_boroughs),
    )
    return [
        _rule(f"{end}_in_{borough}", inside(f"{end}_location_id", borough)) for end, each in pairs for borough in each
    ]


def _ranges(settings: Clean, device: Device) -> list[Rule]:
    given = {name: getattr(settings.ranges, name) for name in type(settings.ranges).model_fields}
    return [_range(name, limits, device) for name, limits in given.items() if limits is not None]


def _range(name: str, limits: Range, device: Device) -> Rule:
    """Return the rule of a quantity's bounds; a null is NaN, which breaks none."""
    given = limits.model_dump(exclude_none=True)
    bounds = Bounds(**given)
    # A bound that is not given breaks nothing; its reason is never used.
    names = tuple(f"{name}_not_{kind}_{given.get(kind, float('nan')):g}" for kind in Bounds._fields)
    return Rule(names, lambda block, mask, bit: mark_outside(quantity(name, block, device), bounds, mask, bit, device))


def _rule(reason: str, breaks: Callable[[Block], Array]) -> Rule:
    """Return a rule with one reason, from where it is broken."""
    return Rule((reason,), lambda block, mask, bit: _mark(breaks(block), mask, bit))


def _mark(bits: Array, mask: Array, bit: int) -> None:
    if bool(bits.any()):
        mask |= bits.astype("int64") << bit

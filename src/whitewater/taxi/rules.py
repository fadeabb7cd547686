"""The cleaning rules: each names a reason and tells which trips of a block break it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whitewater.config.taxi import Clean, Range
from whitewater.devices import NULL_TIMESTAMP, Array, Block, Device
from whitewater.errors import InputError
from whitewater.taxi.blocks import column, quantity, slices
from whitewater.taxi.calendar import month_index
from whitewater.taxi.schema import ISSUES
from whitewater.taxi.zones import Zones

MALFORMED = "malformed_line"
STRAY_MONTH = "stray_month"


@dataclass(frozen=True)
class Rule:
    """A reason to reject a trip: ``breaks(block)`` is a boolean array, true where the trip is rejected."""

    reason: str
    breaks: Callable[[Block], Array]


def rules(settings: Clean, zones: Zones, device: Device, *, usual_months: Mapping[int, Array]) -> tuple[Rule, ...]:
    """Return the rules in the order in which the funnel of `quality.json` lists them.

    Parameters
    ----------
    settings
        Section ``taxi.clean`` of the configuration.
    zones
        The zone table, for the rules on boroughs.
    device
        Where blocks are.
    usual_months
        By code of service: bool (months + 1,), true where the month of pickup is not stray; the last entry stands for
        dates that no month is known of. Empty when the rule is off.
    """
    return (
        *_readable(device),
        *_required(settings, device),
        *_usual_month(usual_months, device),
        *_boroughs(settings, zones, device),
        *_ranges(settings, device),
    )


def broken(block: Block, every: Sequence[Rule], device: Device) -> Array:
    """Return an int64 bit mask for each trip: bit *i + 1* is set where it breaks rule *i*; 0 means that it is kept.

    Bit 0 is left to malformed lines, which no rule sees.

    Works on slices that fit the device's cache, because each rule reads its columns once more.
    """
    xp = device.xp
    masks = []
    for part in slices(block, device):
        mask = xp.zeros(len(part["service"]), xp.int64)
        for bit, rule in enumerate(every):
            breaks = rule.breaks(part)
            if breaks.any():
                mask |= breaks.astype(xp.int64) << (bit + 1)
        masks.append(mask)
    result: Array = xp.concatenate(masks)
    return result


def _readable(device: Device) -> list[Rule]:
    def unreadable(bit: int) -> Callable[[Block], Array]:
        return lambda block: (block["issues"] >> bit & 1).astype(bool)

    return [Rule(f"unreadable_{name}", unreadable(bit)) for bit, name in enumerate(ISSUES)]


def _required(settings: Clean, device: Device) -> list[Rule]:
    def missing(name: str) -> Callable[[Block], Array]:
        if name.endswith("_datetime"):
            return lambda block: column(name, block, device) == NULL_TIMESTAMP
        return lambda block: device.xp.isnan(column(name, block, device))

    return [Rule(f"missing_{name}", missing(name)) for name in settings.required]


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

    return [Rule(STRAY_MONTH, stray)]


def _boroughs(settings: Clean, zones: Zones, device: Device) -> list[Rule]:
    def inside(location: str, borough: str) -> Callable[[Block], Array]:
        if borough not in zones.boroughs:
            raise InputError(f"taxi.clean excludes {location.partition('_')[0]}s in {borough}, but no zone of the table is "
                             "there. Name the right table in taxi.fetch.files.zones.")  # fmt: skip
        excluded = device.from_host(np.append(zones.within(borough), False))
        # Location -1, null, takes the last entry.
        return lambda block: excluded[column(location, block, device)]

    pairs = (
        ("pickup", settings.exclude_pickup_boroughs),
        ("dropoff", settings.exclude_dropoff_boroughs),
    )
    return [
        Rule(f"{end}_in_{borough}", inside(f"{end}_location_id", borough)) for end, each in pairs for borough in each
    ]


def _ranges(settings: Clean, device: Device) -> list[Rule]:
    given = {name: getattr(settings.ranges, name) for name in type(settings.ranges).model_fields}
    return [rule for name, bounds in given.items() if bounds is not None for rule in _bounds(name, bounds, device)]


def _bounds(name: str, bounds: Range, device: Device) -> list[Rule]:
    """Return a rule for each bound; a null is NaN, for which every comparison is false, and passes."""
    limits = bounds.model_dump(exclude_none=True)
    tests: dict[str, Callable[[Array, float], Array]] = {
        "above": lambda values, limit: values <= limit,
        "at_least": lambda values, limit: values < limit,
        "below": lambda values, limit: values >= limit,
        "at_most": lambda values, limit: values > limit,
    }

    def outside(kind: str) -> Callable[[Block], Array]:
        return lambda block: tests[kind](quantity(name, block, device), limits[kind])

    return [Rule(f"{name}_not_{kind}_{limit:g}", outside(kind)) for kind, limit in limits.items()]

"""Statistics of tip fractions by every group that the tips tables have, in one pass over the trips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from whitewater.devices import NULL_INTEGER, Array, Block, Device, GroupStatistics, Kind
from whitewater.devices.blocks import gathered
from whitewater.devices.group_kernels import LIMIT
from whitewater.errors import InputError
from whitewater.taxi.blocks import column, slices, tip_is_recorded
from whitewater.taxi.calendar import HOURS_OF_WEEK, MONTHS, hour_of_week, month_index

LARGEST_PASSENGER_COUNT = 9
ALL_MONTHS = range(MONTHS)
NEEDED: dict[str, Kind] = {
    "pickup_datetime": "timestamp",
    "payment_type": "int8",
    "passenger_count": "int16",
    "pickup_location_id": "int16",
    "fare_amount": "float64",
    "tip_amount": "float64",
}


@dataclass(frozen=True)
class TipStatistics:
    """Statistics of a service's trips by one key.

    ``all_trips`` int64 (groups,): counts of all trips. ``plain``: fractions of the trips with tip > 0 and fare > 0.
    ``recorded``: fractions of the trips with a recorded tip, with medians.
    """

    all_trips: Array
    plain: GroupStatistics
    recorded: GroupStatistics

    @classmethod
    def nothing(cls, groups: int) -> TipStatistics:
        """Return the statistics of no trips at all."""
        return cls(np.zeros(groups, np.int64), GroupStatistics.nothing(groups), GroupStatistics.nothing(groups))

    def __add__(self, other: TipStatistics) -> TipStatistics:
        return TipStatistics(self.all_trips + other.all_trips, self.plain + other.plain, self.recorded + other.recorded)

    def gathered(self, members: Array, groups: int) -> TipStatistics:
        """Sum groups up into coarser ones, of which ``members`` tells the one of each group."""
        return TipStatistics(
            gathered(self.all_trips, members, groups),
            self.plain.gathered(members, groups),
            self.recorded.gathered(members, groups),
        )


def group_sizes(months: range = ALL_MONTHS) -> dict[str, int]:
    """Return the number of groups of each key; the last group of each is null.

    ``months`` are the indices (`whitewater.taxi.calendar.month_index`) that get a group of their own; memory grows with
    them. More than nine passengers, which no taxi seats, count as null.
    """
    return {
        "hour_of_week": HOURS_OF_WEEK + 1,
        "month": len(months) + 1,
        "payment_type": 7 + 1,
        "passenger_count": LARGEST_PASSENGER_COUNT + 1 + 1,
        "location": 265 + 1 + 1,
    }


def tip_statistics(blocks: Iterable[Block], device: Device, *, months: range = ALL_MONTHS) -> dict[str, TipStatistics]:
    """Gather the statistics of tip / fare by each key of `group_sizes` over blocks of one service.

    The fraction of a trip counts when its tip was recorded (card or app) and its fare is above 0.

    Raises
    ------
    InputError
        If a tip is `LIMIT` times the fare or more.
    """
    sizes = group_sizes(months)
    recorded = device.group_accumulator(list(sizes.values()))
    plain = device.group_accumulator(list(sizes.values()), medians=False)
    all_trips: list[Array] = [np.zeros(size, np.int64) for size in sizes.values()]
    for block in blocks:
        for part in slices(block, device):
            keys = group_keys(part, device, months=months)
            fraction = _tip_fraction(part, device)
            recorded.add(keys, fraction, tip_is_recorded(part, device) & (fraction >= 0))
            plain.add(keys, fraction, fraction > 0)
            all_trips = [
                counts + device.to_host(device.xp.bincount(key, minlength=len(counts)))
                for counts, key in zip(all_trips, keys, strict=True)
            ]
    parts = zip(all_trips, plain.result(), recorded.result(), strict=True)
    return {name: TipStatistics(*each) for name, each in zip(sizes, parts, strict=True)}


def _tip_fraction(block: Block, device: Device) -> Array:
    fraction = device.ratio(block["tip_amount"], block["fare_amount"])
    absurd = int((fraction >= LIMIT).sum())
    if absurd:
        raise InputError(f"{absurd} trips have a tip_amount of {LIMIT:,.0f} times their fare_amount or more. Send such "
                         "trips to quarantine with an upper bound in taxi.clean.ranges.tip_fraction.")  # fmt: skip
    return fraction


def group_keys(block: Block, device: Device, *, months: range = ALL_MONTHS) -> list[Array]:
    """Return the group of each trip under each key, as int32 arrays; null is the last group."""
    xp = device.xp
    passengers = column("passenger_count", block, device)
    passengers = xp.where(passengers > LARGEST_PASSENGER_COUNT, NULL_INTEGER, passengers)
    month = month_index(block["pickup_datetime"], device)
    known = (month >= months.start) & (month < months.stop)
    keys = (
        hour_of_week(block["pickup_datetime"], device),
        xp.where(known, month - months.start, NULL_INTEGER),
        column("payment_type", block, device),
        passengers,
        column("pickup_location_id", block, device),
    )
    return [
        xp.where(key == NULL_INTEGER, size - 1, key).astype(xp.int32)
        for key, size in zip(keys, group_sizes(months).values(), strict=True)
    ]

"""Statistics of tip fractions by every group that the tips tables have, in one pass over the trips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from whitewater.devices import NULL_INTEGER, Array, Block, Device, GroupStatistics, Kind
from whitewater.devices.group_statistics import BINS
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

    ``all_trips`` and ``plain_trips`` int64 (groups,), ``plain_total`` float64 (groups,): counts of all trips, and of
    those with tip > 0 and fare > 0, and the sum of their fractions. ``recorded``: trips with a recorded tip.
    """

    all_trips: Array
    plain_trips: Array
    plain_total: Array
    recorded: GroupStatistics

    @classmethod
    def nothing(cls, groups: int) -> TipStatistics:
        """Return the statistics of no trips at all."""
        counts = np.zeros(groups, np.int64)
        totals = np.zeros(groups)
        return cls(counts, counts, totals, GroupStatistics(counts, totals, totals, np.zeros((groups, BINS), np.int64)))

    def __add__(self, other: TipStatistics) -> TipStatistics:
        return TipStatistics(
            self.all_trips + other.all_trips,
            self.plain_trips + other.plain_trips,
            self.plain_total + other.plain_total,
            self.recorded + other.recorded,
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
    """
    names = list(group_sizes(months))
    sizes = list(group_sizes(months).values())
    recorded = device.group_accumulator(sizes)
    plain = [[np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size)] for size in sizes]
    for block in blocks:
        for part in slices(block, device):
            keys = group_keys(part, device, months=months)
            fraction = device.ratio(part["tip_amount"], part["fare_amount"])
            counted = tip_is_recorded(part, device) & (fraction >= 0)
            recorded.add(keys, fraction, counted)
            _add_plain(plain, keys, fraction, device)
    return {
        name: TipStatistics(all_trips, tipped, total, statistics)
        for name, (all_trips, tipped, total), statistics in zip(names, plain, recorded.result(), strict=True)
    }


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


def _add_plain(plain: list[list[Array]], keys: list[Array], fraction: Array, device: Device) -> None:
    xp = device.xp
    weights = xp.where(fraction > 0, fraction, 0.0)
    tipped = weights > 0
    for counts, key in zip(plain, keys, strict=True):
        size = len(counts[0])
        counts[0] += device.to_host(xp.bincount(key, minlength=size))
        counts[1] += device.to_host(xp.bincount(key[tipped], minlength=size))
        counts[2] += device.to_host(xp.bincount(key, weights=weights, minlength=size))

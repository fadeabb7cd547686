"""The faults of published records, and how often the model makes them.

Sources: shares counted in published green months of 2023-12 and 2024-01 (nulls together in 6 to 8 %, rate code 99,
absurd distances, negative amounts, pickups of other months, locations 264 and 265), rounded; the others are widely
reported for yellow months and set to a believable size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whitewater_apps.taxi.schema import DISPUTE, NO_CHARGE, NULL_RATE_CODE
from whitewater_apps.taxi.synthetic.city import OUTSIDE, UNKNOWN, Mask
from whitewater_apps.taxi.synthetic.tariff import MICROSECONDS
from whitewater_apps.taxi.synthetic.trips import CHARGES, Trips

DAY = 86_400 * MICROSECONDS
AMOUNTS = (*CHARGES, "total_amount", "black_car_fund", "sales_tax")
COORDINATES = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
WRONG_CLOCK = np.datetime64("2009-01-01", "us").astype(np.int64)


@dataclass(frozen=True)
class Dirt:
    """Share of the trips, or of the lines of a CSV file, that have each fault."""

    dispatched: float = 0.05  # no passengers, rate code, payment, flag or surcharge: not hailed, but sent by an app
    refunded: float = 0.003  # followed by the same trip with negative amounts
    repeated: float = 0.0005  # the same record twice
    without_distance: float = 0.008
    absurd_distance: float = 0.00005  # up to 200,000 miles
    wrong_clock: float = 0.0004  # picked up in another month, or in 2009
    reversed: float = 0.001  # dropped off before being picked up
    left_running: float = 0.002  # meter stopped almost a day later
    unknown_rate_code: float = 0.0008  # 99
    unknown_zone: float = 0.006  # location 264 or 265
    without_passengers: float = 0.018
    without_position: float = 0.015  # coordinates 0, 0
    torn_lines: float = 0.0001  # lines cut off in the middle, besides the trips; at least 3 in a file


DIRT = Dirt()


def soil(trips: Trips, *, dispatched: bool, random: np.random.Generator) -> Trips:
    """Return as many trips with faults; ``dispatched`` says whether there are trips sent by an app among them.

    The result has one more column, ``dispatched``, that marks them.
    """
    count = len(trips["pickup_datetime"])

    def hit(share: float) -> Mask:
        return random.random(count) < share

    trips = {name: values.copy() for name, values in trips.items()}
    trips["dispatched"] = hit(DIRT.dispatched if dispatched else 0.0)
    _soil_times(trips, hit(DIRT.reversed), hit(DIRT.left_running), hit(DIRT.wrong_clock), random=random)
    trips["trip_distance"][hit(DIRT.without_distance)] = 0
    absurd = hit(DIRT.absurd_distance)
    trips["trip_distance"][absurd] = np.round(np.exp(random.uniform(np.log(300), np.log(200_000), absurd.sum())), 2)
    for location in ("pickup_location_id", "dropoff_location_id"):
        unknown = hit(DIRT.unknown_zone)
        trips[location][unknown] = np.where(random.random(unknown.sum()) < 0.7, UNKNOWN, OUTSIDE)
    if "passenger_count" in trips:
        trips["passenger_count"][hit(DIRT.without_passengers)] = 0
        trips["rate_code"][hit(DIRT.unknown_rate_code)] = NULL_RATE_CODE
        lost = hit(DIRT.without_position)
        for name in COORDINATES:
            trips[name][lost] = 0
    _follow(trips, hit(DIRT.repeated))
    refunds = _follow(trips, hit(DIRT.refunded))
    if "total_amount" in trips:
        trips["total_amount"][refunds] -= trips["tip_amount"][refunds]
        trips["payment_type"][refunds] = random.choice((NO_CHARGE, DISPUTE), refunds.sum())
    trips["tip_amount"][refunds] = 0
    for name in trips.keys() & set(AMOUNTS):
        trips[name][refunds] *= -1
    return trips


def _soil_times(trips: Trips, backwards: Mask, left_running: Mask, wrong: Mask, *, random: np.random.Generator) -> None:
    pickup, dropoff = trips["pickup_datetime"], trips["dropoff_datetime"]
    dropoff[left_running] = pickup[left_running] + DAY - random.integers(1, 600, left_running.sum()) * MICROSECONDS
    pickup[backwards], dropoff[backwards] = dropoff[backwards], pickup[backwards].copy()
    length, moved = dropoff[wrong] - pickup[wrong], pickup[wrong]
    elsewhere = [WRONG_CLOCK + moved % DAY, moved + 31 * DAY, moved - 31 * DAY]
    pickup[wrong] = np.choose(random.integers(0, 3, wrong.sum()), elsewhere)
    dropoff[wrong] = pickup[wrong] + length


def _follow(trips: Trips, chosen: Mask) -> Mask:
    """Put a copy of each chosen trip in the place of the one after it; return which trips are copies."""
    copies = np.zeros_like(chosen)
    copies[1:] = chosen[:-1]
    for values in trips.values():
        values[copies] = values[:-1][chosen[:-1]]
    return copies

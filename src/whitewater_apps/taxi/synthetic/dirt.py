"""The faults of published records, and how often the model makes them.

Sources: shares counted in published green months of 2023-12 and 2024-01 (nulls together in 6 to 8 %, rate code 99,
absurd distances, negative amounts, pickups of other months, locations 264 and 265), rounded; the others are widely
reported for yellow months and set to a believable size.
"""

from __future__ import annotations

import numpy as np

from whitewater_apps.taxi.schema import NULL_RATE_CODE
from whitewater_apps.taxi.synthetic.city import OUTSIDE, UNKNOWN, Mask
from whitewater_apps.taxi.synthetic.trips import CHARGES, HOUR, MICROSECONDS, Trips

DAY = 24 * HOUR
AMOUNTS = {*CHARGES, "tip_amount", "total_amount", "black_car_fund", "sales_tax", "driver_pay"}
WRONG_CLOCK = np.datetime64("2009-01-01", "us").astype(np.int64)


# Share of the trips, or of the lines of a CSV file, that have each fault.
DIRT = {
    "dispatched": 0.05,  # no passengers, rate code, payment, flag or surcharge: not hailed, but sent by an app
    "refunded": 0.003,  # followed by the same trip with negative amounts
    "repeated": 0.0005,  # the same record twice
    "without_distance": 0.008,
    "absurd_distance": 0.00005,  # up to 200,000 miles
    "wrong_clock": 0.0004,  # picked up in another month, or in 2009
    "reversed": 0.001,  # dropped off before being picked up
    "left_running": 0.002,  # meter stopped almost a day later
    "unknown_rate_code": 0.0008,  # 99
    "unknown_zone": 0.006,  # location 264 or 265
    "without_passengers": 0.018,
    "torn_line": 0.0001,  # cut off in the middle, besides the trips
}


def soil(trips: Trips, *, dispatched: bool, random: np.random.Generator) -> Trips:
    """Return as many trips with faults; ``dispatched`` says whether there are trips sent by an app among them.

    The result has one more column, ``dispatched``, that marks them.
    """
    count = len(trips["pickup_datetime"])

    def draw(fault: str) -> Mask:
        return random.random(count) < DIRT[fault]

    trips = {name: values.copy() for name, values in trips.items()}
    trips["dispatched"] = draw("dispatched") & dispatched
    pickup, dropoff = trips["pickup_datetime"], trips["dropoff_datetime"]
    left_running, backwards, wrong = draw("left_running"), draw("reversed"), draw("wrong_clock")
    dropoff[left_running] = pickup[left_running] + DAY - random.integers(1, 600, left_running.sum()) * MICROSECONDS
    pickup[backwards], dropoff[backwards] = dropoff[backwards], pickup[backwards]
    back = random.choice((31 * DAY, -31 * DAY, (pickup[0] - WRONG_CLOCK) // DAY * DAY), wrong.sum())
    pickup[wrong] -= back
    dropoff[wrong] -= back
    trips["trip_distance"][draw("without_distance")] = 0
    absurd = draw("absurd_distance")
    trips["trip_distance"][absurd] = np.round(np.exp(random.uniform(np.log(300), np.log(200_000), absurd.sum())), 2)
    for location in ("pickup_location_id", "dropoff_location_id"):
        unknown = draw("unknown_zone")
        trips[location][unknown] = random.choice((UNKNOWN, OUTSIDE), unknown.sum(), p=(0.7, 0.3))
    if "passenger_count" in trips:
        trips["passenger_count"][draw("without_passengers")] = 0
        trips["rate_code"][draw("unknown_rate_code")] = NULL_RATE_CODE
    _follow(trips, draw("repeated"))
    refunds = _follow(trips, draw("refunded"))
    for name in trips.keys() & AMOUNTS:
        trips[name][refunds] *= -1
    return trips


def _follow(trips: Trips, chosen: Mask) -> Mask:
    """Put a copy of each chosen trip in the place of the one after it; return which trips are copies."""
    copies = np.zeros_like(chosen)
    copies[1:] = chosen[:-1]
    for values in trips.values():
        values[copies] = values[:-1][chosen[:-1]]
    return copies

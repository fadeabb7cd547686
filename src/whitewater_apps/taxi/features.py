"""What the tip model sees of a trip: one number for each feature, NaN for null; see `whitewater.learn.features`.

Categories are hour 0 to 23, weekday 0 (Monday) to 6, rate code 1 to 6, and the position of a borough. Duration is in
minutes, speed in mph. One-hot hours hold the baseline, the mean of each hour, as a special case; the logarithm of
numbers is there because fares, distances and durations are skewed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whitewater.engines import Array, Device
from whitewater.learn.features import Features
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import CARD, RATIOS, TARGET, columns_of
from whitewater_apps.taxi.zones import Zones

# Columns of trips by name, as arrays of the device: float64 (trips,), NaN for null; times in microseconds since
# 1970-01-01, local time, which float64 holds exactly up to the year 2255.
Columns = Mapping[str, Array]
HOUR, DAY = 3_600_000_000, 86_400_000_000

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
RATES = ("standard", "JFK", "Newark", "Nassau or Westchester", "negotiated", "group")
_READ: Mapping[str, tuple[str, ...]] = {
    "hour": ("pickup_datetime",),
    "weekday": ("pickup_datetime",),
    "pickup_borough": ("pickup_location_id",),
    "dropoff_borough": ("dropoff_location_id",),
}


@dataclass(frozen=True)
class FeatureSet(Features):
    """The features of a model, and the boroughs that it knows, both in the order of its numbers.

    ``zones`` tell the borough of a location; they may name boroughs in another order, or others.
    """

    boroughs: tuple[str, ...]
    zones: Zones
    never_null = frozenset({"hour", "weekday", "fare_amount"})

    def levels(self, feature: str) -> Mapping[float, str]:
        names: dict[str, Sequence[str]] = {
            "hour": [f"{hour:02d}" for hour in range(24)],
            "weekday": WEEKDAYS,
            "rate_code": RATES,
            "pickup_borough": self.boroughs,
            "dropoff_borough": self.boroughs,
        }
        first = 1 if feature == "rate_code" else 0
        return {float(number): name for number, name in enumerate(names.get(feature, ()), start=first)}


def columns_read(features: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the schema that the features are made of."""
    return tuple(dict.fromkeys(name for feature in features for name in _READ.get(feature, columns_of(feature))))


def known_tip_fraction(trips: Columns, service: Service, device: Device) -> Array:
    """Return tip / fare as float64, NaN where no model can learn from it: no recorded tip, or a fare not above 0.

    Tips are recorded of trips that were paid by card, and of all of fhvhv, which are paid in the app. Cash tips are not
    recorded: their `tip_amount` of 0 means missing, not zero.
    """
    fraction = _quantity(TARGET, trips, device)
    known = device.xp.isfinite(fraction)
    if service != "fhvhv":
        known &= trips["payment_type"] == CARD
    return _where(known, fraction, device)


def feature_matrix(trips: Columns, which: FeatureSet, device: Device) -> Array:
    """Return the features of trips: float64 (trips, features), NaN for null and what is not finite."""
    xp = device.xp
    matrix: Array = xp.empty((len(trips["pickup_datetime"]), len(which.features)), xp.float64)
    for position, feature in enumerate(which.features):
        values = _values(feature, trips, which, device)
        matrix[:, position] = _where(xp.isfinite(values), values, device)
    return matrix


def _values(feature: str, trips: Columns, which: FeatureSet, device: Device) -> Array:
    pickup = trips["pickup_datetime"]
    if feature == "hour":
        hours: Array = device.xp.floor(pickup / HOUR)
        return hours % 24
    if feature == "weekday":
        days: Array = device.xp.floor(pickup / DAY)
        return (days + 3) % 7  # 1970-01-01 was a Thursday
    if feature.endswith("_borough"):
        return _boroughs(trips[feature.replace("_borough", "_location_id")], which, device)
    values = _quantity("minutes" if feature == "duration" else feature, trips, device)
    return _where((values >= 1) & (values <= len(RATES)), values, device) if feature == "rate_code" else values


def _boroughs(locations: Array, which: FeatureSet, device: Device) -> Array:
    """Return the position in ``which.boroughs`` of the borough of each location."""
    position = {borough: float(number) for number, borough in enumerate(which.boroughs)}
    of_location = device.to_device(
        np.array([position.get(borough or "", float("nan")) for borough in which.zones.boroughs])
    )
    within = (locations >= 0) & (locations < len(of_location))
    return _where(within, of_location[device.xp.where(within, locations, 0.0).astype(np.int64)], device)


def _quantity(name: str, trips: Columns, device: Device) -> Array:
    """Return a column, or a quantity that follows from columns."""
    if name == "duration":  # seconds
        return (trips["dropoff_datetime"] - trips["pickup_datetime"]) / 1e6
    if name not in RATIOS:
        return trips[name]
    dividend, divisor = RATIOS[name]
    values = _quantity(dividend, trips, device)
    if not isinstance(divisor, str):
        return values / divisor
    by = _quantity(divisor, trips, device)
    return _where(by > 0, values / device.xp.where(by > 0, by, 1.0), device)


def _where(known: Array, values: Array, device: Device) -> Array:
    """Return the values that are known, NaN for the others."""
    result: Array = device.xp.where(known, values, float("nan"))
    return result

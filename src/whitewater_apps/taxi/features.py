"""What the tip model sees of a trip: one number for each feature, and the forms in which models take it.

The *feature matrix* is float64 (trips, features), NaN for null. It is small, so it travels to the workers once; a model
makes its own form from it:

========= ============================================== ====================================== ==================
feature   number in the feature matrix                   linear model                           forest
========= ============================================== ====================================== ==================
category  hour 0 to 23, weekday 0 (Monday) to 6,         one column for each level (one-hot),   the number; -1 for
          rate code 1 to 6, position of the borough      all 0 for null                         null
number    its value; duration in minutes, speed in mph   sign(x) log(1 + abs(x)), 0 for null    the value; -1 for
                                                                                                null
========= ============================================== ====================================== ==================

A column "<feature> is null" lets the linear model tell null from 0. No vocabulary and no null policy depends on the
data, so a trip has the same features in whichever sample, fold or partition it is. One-hot hours hold the baseline, the
mean of each hour, as a special case; the logarithm is there because fares, distances and durations are skewed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whitewater.engines import Array, Device
from whitewater.tables.blocks import Block, Kind
from whitewater.tables.calendar import hour_of_week
from whitewater_apps.taxi.blocks import column, quantity, tip_is_recorded
from whitewater_apps.taxi.schema import KINDS
from whitewater_apps.taxi.zones import Zones

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
RATES = ("standard", "JFK", "Newark", "Nassau or Westchester", "negotiated", "group")
NULL_LEVEL = -1.0
_READ: Mapping[str, tuple[str, ...]] = {
    "hour": ("pickup_datetime",),
    "weekday": ("pickup_datetime",),
    "duration": ("pickup_datetime", "dropoff_datetime"),
    "speed": ("pickup_datetime", "dropoff_datetime", "trip_distance"),
    "pickup_borough": ("pickup_location_id",),
    "dropoff_borough": ("dropoff_location_id",),
}
_NEVER_NULL = frozenset({"hour", "weekday", "fare_amount"})


@dataclass(frozen=True)
class FeatureSet:
    """The features of a model, and the boroughs that it knows, both in the order of its numbers."""

    features: tuple[str, ...]
    boroughs: tuple[str, ...]

    def linear_columns(self) -> tuple[str, ...]:
        """Return the names of the columns of `linear`."""
        names: list[str] = []
        for feature in self.features:
            levels = _levels(feature, self)
            names += [f"{feature} {name}" for name in levels.values()] or [feature]
            names += [] if feature in _NEVER_NULL else [f"{feature} is null"]
        return tuple(names)

    def linear(self, features: Array, device: Device) -> Array:
        """Return the form of a feature matrix that linear models take.

        It is float64 (trips, columns) in Fortran order, finite; the columns are those of `linear_columns`.
        """
        xp = device.xp
        result: Array = xp.empty((len(features), len(self.linear_columns())), xp.float64, order="F")
        filled = 0
        for position, feature in enumerate(self.features):
            values = xp.ascontiguousarray(features[:, position])
            null = xp.isnan(values)
            for level in _levels(feature, self):
                result[:, filled] = values == level
                filled += 1
            if not _levels(feature, self):
                result[:, filled] = xp.where(null, 0.0, xp.copysign(xp.log1p(xp.abs(values)), values))
                filled += 1
            if feature not in _NEVER_NULL:
                result[:, filled] = null
                filled += 1
        return result

    def tree(self, features: Array, device: Device) -> Array:
        """Return the form of a feature matrix that forests take: float32 (trips, features) in C order, null as -1."""
        xp = device.xp
        result: Array = xp.where(xp.isnan(features), NULL_LEVEL, features).astype(xp.float32)
        return result


def columns_read(features: Sequence[str]) -> dict[str, Kind]:
    """Return the columns of the schema that the features are made of, and the kind of each."""
    return {name: KINDS[name] for feature in features for name in _READ.get(feature, (feature,))}


def known_tip_fraction(block: Block, device: Device) -> Array:
    """Return tip / fare as float64, NaN where no model can learn from it: no recorded tip, or a fare not above 0."""
    xp = device.xp
    fraction = quantity("tip_fraction", block, device)
    known = tip_is_recorded(block, device) & xp.isfinite(fraction)
    result: Array = xp.where(known, fraction, float("nan"))
    return result


def feature_matrix(block: Block, which: FeatureSet, zones: Zones, device: Device) -> Array:
    """Return the features of the trips of a block: float64 (trips, features), NaN for null and what is not finite.

    A column that the block lacks is null throughout. ``zones`` may name its boroughs in another order, or others.
    """
    xp = device.xp
    matrix: Array = xp.empty((len(block["pickup_datetime"]), len(which.features)), xp.float64)
    for position, feature in enumerate(which.features):
        values = _values(feature, block, which, zones, device)
        matrix[:, position] = xp.where(xp.isfinite(values), values, float("nan"))
    return matrix


def _values(feature: str, block: Block, which: FeatureSet, zones: Zones, device: Device) -> Array:
    if feature in ("hour", "weekday"):
        hours = hour_of_week(block["pickup_datetime"], device)
        return _known(hours % 24 if feature == "hour" else hours // 24, hours >= 0, device)
    if feature.endswith("_borough"):
        locations = column(feature.replace("_borough", "_location_id"), block, device)
        return _boroughs(locations, which, zones, device)
    values = quantity(feature, block, device)
    if feature == "duration":
        return values / 60
    if feature == "rate_code":
        return _known(values, (values >= 1) & (values <= len(RATES)), device)
    return values


def _boroughs(locations: Array, which: FeatureSet, zones: Zones, device: Device) -> Array:
    """Return the position in ``which.boroughs`` of the borough of each location."""
    position = {borough: float(number) for number, borough in enumerate(which.boroughs)}
    of_code = [position.get(borough, float("nan")) for borough in zones.boroughs] + [float("nan")]
    # Code -1, a location that the table lacks, takes the last entry.
    of_location = device.to_device(np.array(of_code)[zones.borough_codes])
    within = (locations >= 0) & (locations < len(of_location))
    return _known(of_location[device.xp.where(within, locations, 0)], within, device)


def _known(values: Array, known: Array, device: Device) -> Array:
    result: Array = device.xp.where(known, values.astype(device.xp.float64), float("nan"))
    return result


def _levels(feature: str, which: FeatureSet) -> dict[float, str]:
    """Return the numbers of a category and their names; empty for a number."""
    names: dict[str, Sequence[str]] = {
        "hour": [f"{hour:02d}" for hour in range(24)],
        "weekday": WEEKDAYS,
        "rate_code": RATES,
        "pickup_borough": which.boroughs,
        "dropoff_borough": which.boroughs,
    }
    first = 1 if feature == "rate_code" else 0
    return {float(number): name for number, name in enumerate(names.get(feature, ()), start=first)}

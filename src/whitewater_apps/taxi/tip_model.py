"""The features of the tip model, the sample of trips that it is trained on, and its files.

A feature is a number, NaN for null; see `whitewater.learn.features`. Categories are hour 0 to 23, weekday 0 (Monday) to
6, rate code 1 to 6, and the position of a borough. Duration is in minutes, speed in mph. With one-hot hours, the linear
model contains the baseline, the mean of each hour. Fares, distances and durations are skewed, hence the logarithms.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whitewater.engines import Array, Device
from whitewater.engines.workers import Workers
from whitewater.io.folder import Format
from whitewater.learn import sample, trained
from whitewater.learn.features import Features
from whitewater.learn.sample import Sample
from whitewater.learn.trained import Models
from whitewater.step import Run
from whitewater.tables.hashing import hash_int64
from whitewater_apps.taxi.config import Model, Service
from whitewater_apps.taxi.data_sets import RowGroup
from whitewater_apps.taxi.schema import APP, CARD, DURATIONS, RATIOS, SERVICES, TARGET, columns_of
from whitewater_apps.taxi.zones import Zones

# Columns of trips on the device: float64 (trips,), NaN for null; times in microseconds since 1970-01-01, local time,
# which are exact up to the year 2255.
Columns = Mapping[str, Array]
HOUR, DAY = 3_600_000_000, 86_400_000_000
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
RATES = ("standard", "JFK", "Newark", "Nassau or Westchester", "negotiated", "group")
_FEATURE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "hour": ("pickup_datetime",),
    "weekday": ("pickup_datetime",),
    "pickup_borough": ("pickup_location_id",),
    "dropoff_borough": ("dropoff_location_id",),
}
RULE = (
    "the trips of the smallest hash (XXH64 of pickup and drop-off time, pickup and drop-off zone, fare in cents and "
    "distance in thousandths of a mile) among those with a pickup time, a recorded tip and a fare above 0"
)
_NULL = -(2**63)
# The columns to hash, with the integer for null, and a factor. Their product is rounded, because parsers of decimals
# differ in the last bit.
_HASH_COLUMNS = {
    "pickup_datetime": (_NULL, 1),
    "dropoff_datetime": (_NULL, 1),
    "pickup_location_id": (-1, 1),
    "dropoff_location_id": (-1, 1),
    "fare_amount": (_NULL, 100),
    "trip_distance": (_NULL, 1000),
}
FORMAT = Format("model.json", 2, "tip model", remedy="Run the step model again.")
PREDICTED = "tip_amount / fare_amount of trips with a recorded tip"
FRACTIONS = ("observed", "ridge", "forest")
PREDICTIONS = pa.schema({"pickup_datetime": pa.timestamp("us"), **dict.fromkeys(FRACTIONS, pa.float64())})


@dataclass(frozen=True)
class FeatureSet(Features):
    """The features of a model."""

    boroughs: tuple[str, ...]  # in the order of their codes
    zones: Zones  # may have other boroughs than the model
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
    """Return the columns of trips that the features are computed from."""
    names = (name for feature in features for name in _FEATURE_COLUMNS.get(feature, columns_of(feature)))
    return tuple(dict.fromkeys(names))


def recorded_tip_fraction(trips: Columns, service: Service, device: Device) -> Array:
    """Return tip / fare as float64, NaN without a recorded tip, with a tip below 0, or with a fare not above 0.

    Tips are recorded if a trip was paid by card or, as all of fhvhv, in an app. A cash trip has a `tip_amount` of 0,
    which means missing, not zero.
    """
    fraction = _quantity(TARGET, trips, device)
    is_recorded = device.xp.isfinite(fraction) & (fraction >= 0)
    if service != SERVICES[APP]:
        is_recorded &= trips["payment_type"] == CARD
    return device.xp.where(is_recorded, fraction, np.nan)


def feature_matrix(trips: Columns, feature_set: FeatureSet, device: Device) -> Array:
    """Return the features of trips: float64 (trips, features), NaN for null and values that are not finite."""
    xp = device.xp
    matrix: Array = xp.empty((len(trips["pickup_datetime"]), len(feature_set.features)), xp.float64)
    for position, feature in enumerate(feature_set.features):
        values = _compute_feature(feature, trips, feature_set, device)
        matrix[:, position] = xp.where(xp.isfinite(values), values, np.nan)
    return matrix


def _compute_feature(feature: str, trips: Columns, feature_set: FeatureSet, device: Device) -> Array:
    xp, pickup = device.xp, trips["pickup_datetime"]
    if feature == "hour":
        return xp.floor(pickup / HOUR) % 24
    if feature == "weekday":
        return (xp.floor(pickup / DAY) + 3) % 7  # 1970-01-01 was a Thursday
    if feature.endswith("_borough"):
        codes = {borough: float(code) for code, borough in enumerate(feature_set.boroughs)}
        # Location 0 is not a zone: NaN.
        code_of_location = np.array([codes.get(borough or "", np.nan) for borough in feature_set.zones.boroughs])
        locations = trips[feature.replace("_borough", "_location_id")]
        is_zone = (locations > 0) & (locations < len(code_of_location))
        return device.to_device(code_of_location)[xp.where(is_zone, locations, 0.0).astype(np.int64)]
    values = _quantity("minutes" if feature == "duration" else feature, trips, device)
    return xp.where((values >= 1) & (values <= len(RATES)), values, np.nan) if feature == "rate_code" else values


def _quantity(name: str, trips: Columns, device: Device) -> Array:
    """Return a column, or a quantity computed from columns."""
    if name in DURATIONS:
        return (trips["dropoff_datetime"] - trips["pickup_datetime"]) / 1e6 / DURATIONS[name]
    if name in RATIOS:
        dividend, divisor = (_quantity(operand, trips, device) for operand in RATIOS[name])
        return dividend / device.xp.where(divisor > 0, divisor, np.nan)
    return trips[name]


def read_trips(group: RowGroup, names: Iterable[str], *, rows: int, run: Run[Any]) -> Iterator[Columns]:
    """Yield columns of a row group's trips, ``rows`` rows at a time; a missing column is all NaN."""
    if run.engine == "local":
        from whitewater_apps.taxi.with_polars import read
    else:
        from whitewater_apps.taxi.with_dask import read
    return read(group, tuple(dict.fromkeys(names)), rows=rows, device=run.device)


def draw_sample(
    groups: Sequence[RowGroup], service: Service, *, feature_set: FeatureSet, run: Run[Model], workers: Workers
) -> Sample:
    """Return the ``max_rows`` trips of a service with the smallest hashes; see `whitewater.learn.sample`."""
    groups, limit = [group for group in groups if group.service == service], run.settings.max_rows

    def read(largest: np.uint64) -> Iterable[Sample]:
        work = partial(_sample_row_group, feature_set=feature_set, largest=largest, run=run)
        return workers.map(work, groups, label=f"{service}: sample")

    rows, features = sum(group.rows for group in groups), len(feature_set.features)
    return sample.draw(read, rows=rows, limit=limit, features=features, what=service)


def _sample_row_group(group: RowGroup, *, feature_set: FeatureSet, largest: np.uint64, run: Run[Model]) -> Sample:
    """Return the trips of a row group with a hash up to ``largest``, at most twice ``max_rows``."""
    names = (*_HASH_COLUMNS, *columns_read(feature_set.features), "payment_type", *columns_of(TARGET))
    slices = read_trips(group, names, rows=run.device.slice_rows, run=run)
    samples = (_sample(trips, group.service, feature_set, largest, run.device) for trips in slices)
    return sample.merge_samples(samples, len(feature_set.features), limit=run.settings.max_rows)


def _sample(trips: Columns, service: Service, feature_set: FeatureSet, largest: np.uint64, device: Device) -> Sample:
    xp = device.xp
    target = recorded_tip_fraction(trips, service, device)
    is_eligible = xp.isfinite(target) & xp.isfinite(trips["pickup_datetime"])
    hashes = trip_hashes(trips, device)
    rows = xp.flatnonzero(is_eligible & (hashes <= largest))
    trips = {name: values[rows] for name, values in trips.items()}
    return Sample(
        device.to_host(hashes[rows]),
        device.to_host(trips["pickup_datetime"].astype(xp.int64)),
        device.to_host(target[rows]),
        device.to_host(feature_matrix(trips, feature_set, device)),
        int(is_eligible.sum()),
    )


def trip_hashes(trips: Columns, device: Device) -> Array:
    """Return the hash of each trip's content, uint64 (trips,); see `RULE`."""
    xp, columns = device.xp, []
    for name, (null, factor) in _HASH_COLUMNS.items():
        integer = xp.rint(trips[name] * factor) if factor > 1 else trips[name]
        is_valid = xp.abs(integer) < 2.0**53
        columns.append(xp.where(is_valid, xp.where(is_valid, integer, 0.0).astype(xp.int64), null))
    return hash_int64(xp, *columns)


def save(feature_set: FeatureSet, models: Mapping[str, Models], directory: Path) -> None:
    """Write the models of the services into a directory, `model.json` last."""
    features, boroughs = feature_set.features, feature_set.boroughs
    description = {"target": PREDICTED, "features": features, "boroughs": boroughs, "services": list(models)}
    trained.save(models, directory, form=FORMAT, described=description, columns=feature_set.linear_columns())


def load(directory: Path, zones: Zones) -> tuple[FeatureSet, dict[str, Models]]:
    """Read the features and the models of each service that `save` wrote, after `Format.read_signed` checked them."""
    description = FORMAT.read_signed(directory)
    services, files = [name for name in SERVICES if name in description["services"]], description["files"]
    models: dict[str, Models] = {name: trained.load(directory, name, form=FORMAT, files=files) for name in services}
    return FeatureSet(tuple(description["features"]), tuple(description["boroughs"]), zones), models

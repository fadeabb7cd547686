"""The tip model: what it sees of a trip, the trips that it learns from, and its files.

It sees one number for each feature, NaN for null; see `whitewater.learn.features`. Categories are hour 0 to 23, weekday
0 (Monday) to 6, rate code 1 to 6, and the position of a borough. Duration is in minutes, speed in mph. One-hot hours
hold the baseline, the mean of each hour, as a special case; the logarithm of numbers is there because fares, distances
and durations are skewed.

It learns from the trips of the smallest hash of their content; see `whitewater.learn.sample`. Its files are
`model.json`, and those of each service; see `whitewater.learn.trained`.
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
from whitewater.learn import trained
from whitewater.learn.features import Features
from whitewater.learn.sample import Sample, together
from whitewater.learn.sample import draw as draw_smallest
from whitewater.learn.trained import Models
from whitewater.step import Run
from whitewater.tables.hashing import hash_int64
from whitewater_apps.taxi.config import Model, Service
from whitewater_apps.taxi.data_sets import RowGroup
from whitewater_apps.taxi.schema import CARD, DURATIONS, RATIOS, SERVICES, TARGET, columns_of
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
RULE = (
    "the trips of the smallest hash (XXH64 of pickup and drop-off time, pickup and drop-off zone, fare in cents and "
    "distance in thousandths of a mile) among those with a pickup time, a recorded tip and a fare above 0"
)
_NULL = -(2**63)
# The columns that are hashed, with the integer that stands for null, and how many units of the hash are in one of
# theirs: amounts are rounded, as parsers of decimals differ in the last bit.
_HASHED = {
    "pickup_datetime": (_NULL, 1),
    "dropoff_datetime": (_NULL, 1),
    "pickup_location_id": (-1, 1),
    "dropoff_location_id": (-1, 1),
    "fare_amount": (_NULL, 100),
    "trip_distance": (_NULL, 1000),
}
_LARGEST = 2.0**53
FORMAT = Format("model.json", 2, "tip model", remedy="Run the step model again.")
PREDICTED = "tip_amount / fare_amount of trips with a recorded tip"
FRACTIONS = ("observed", "ridge", "forest")
PREDICTIONS = pa.schema({"pickup_datetime": pa.timestamp("us"), **dict.fromkeys(FRACTIONS, pa.float64())})


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
    return device.xp.where(known, fraction, np.nan)


def feature_matrix(trips: Columns, which: FeatureSet, device: Device) -> Array:
    """Return the features of trips: float64 (trips, features), NaN for null and what is not finite."""
    xp = device.xp
    matrix: Array = xp.empty((len(trips["pickup_datetime"]), len(which.features)), xp.float64)
    for position, feature in enumerate(which.features):
        values = _values(feature, trips, which, device)
        matrix[:, position] = xp.where(xp.isfinite(values), values, np.nan)
    return matrix


def _values(feature: str, trips: Columns, which: FeatureSet, device: Device) -> Array:
    xp, pickup = device.xp, trips["pickup_datetime"]
    if feature == "hour":
        return xp.floor(pickup / HOUR) % 24
    if feature == "weekday":
        return (xp.floor(pickup / DAY) + 3) % 7  # 1970-01-01 was a Thursday
    if feature.endswith("_borough"):
        position = {borough: float(number) for number, borough in enumerate(which.boroughs)}
        # Location 0 is not a zone: NaN.
        of_location = [position.get(borough or "", np.nan) for borough in which.zones.boroughs]
        locations = trips[feature.replace("_borough", "_location_id")]
        within = (locations > 0) & (locations < len(of_location))
        return device.to_device(np.array(of_location))[xp.where(within, locations, 0.0).astype(np.int64)]
    values = _quantity("minutes" if feature == "duration" else feature, trips, device)
    return xp.where((values >= 1) & (values <= len(RATES)), values, np.nan) if feature == "rate_code" else values


def _quantity(name: str, trips: Columns, device: Device) -> Array:
    """Return a column, or a quantity that follows from columns."""
    if name in DURATIONS:
        return (trips["dropoff_datetime"] - trips["pickup_datetime"]) / 1e6 / DURATIONS[name]
    if name in RATIOS:
        dividend, divisor = (_quantity(operand, trips, device) for operand in RATIOS[name])
        return dividend / device.xp.where(divisor > 0, divisor, np.nan)
    return trips[name]


def read_trips(group: RowGroup, names: Iterable[str], *, rows: int, run: Run[Any]) -> Iterator[Columns]:
    """Yield columns of a row group's trips, ``rows`` rows at a time; a column that the file lacks is all NaN."""
    if run.engine == "local":
        from whitewater_apps.taxi.with_polars import read
    else:
        from whitewater_apps.taxi.with_dask import read
    return read(group, tuple(dict.fromkeys(names)), rows=rows, device=run.device)


def draw(
    groups: Sequence[RowGroup], service: Service, *, which: FeatureSet, run: Run[Model], workers: Workers
) -> Sample:
    """Return the ``max_rows`` trips of a service that have the smallest hash, see `whitewater.learn.sample`."""
    own, limit = [group for group in groups if group.service == service], run.settings.max_rows

    def read(largest: np.uint64) -> Iterable[Sample]:
        work = partial(_sample_row_group, which=which, largest=largest, run=run)
        return workers.map(work, own, label=f"{service}: sample")

    rows, features = sum(group.rows for group in own), len(which.features)
    return draw_smallest(read, rows=rows, limit=limit, features=features, what=service)


def _sample_row_group(group: RowGroup, *, which: FeatureSet, largest: np.uint64, run: Run[Model]) -> Sample:
    """Return those of a row group's trips whose hash is at most ``largest``, or the smallest of them."""
    names = (*_HASHED, *columns_read(which.features), "payment_type", *columns_of(TARGET))
    slices = read_trips(group, names, rows=run.device.slice_rows, run=run)
    samples = (_sample(trips, group.service, which=which, largest=largest, device=run.device) for trips in slices)
    return together(samples, len(which.features), limit=run.settings.max_rows)


def _sample(trips: Columns, service: Service, *, which: FeatureSet, largest: np.uint64, device: Device) -> Sample:
    """Return those of a service's trips whose hash is at most ``largest``."""
    xp = device.xp
    target = known_tip_fraction(trips, service, device)
    eligible = xp.isfinite(target) & xp.isfinite(trips["pickup_datetime"])
    hashes = trip_hashes(trips, device)
    rows = xp.flatnonzero(eligible & (hashes <= largest))
    chosen = {name: values[rows] for name, values in trips.items()}
    return Sample(
        device.to_host(hashes[rows]),
        device.to_host(chosen["pickup_datetime"].astype(xp.int64)),
        device.to_host(target[rows]),
        device.to_host(feature_matrix(chosen, which, device)),
        int(eligible.sum()),
    )


def trip_hashes(trips: Columns, device: Device) -> Array:
    """Return the stable hash of each trip's content as uint64 (trips,); see `RULE`."""
    xp, columns = device.xp, []
    for name, (null, units) in _HASHED.items():
        whole = xp.rint(trips[name] * units) if units > 1 else trips[name]
        known = xp.abs(whole) < _LARGEST
        columns.append(xp.where(known, xp.where(known, whole, 0.0).astype(xp.int64), null))
    return hash_int64(xp, *columns)


def save(which: FeatureSet, models: Mapping[str, Models], directory: Path) -> None:
    """Write the models of the services into a directory, `model.json` last."""
    described = {"target": PREDICTED, "features": which.features, "boroughs": which.boroughs, "services": list(models)}
    trained.save(models, directory, form=FORMAT, described=described, columns=which.linear_columns())


def load(directory: Path, zones: Zones) -> tuple[FeatureSet, dict[str, Models]]:
    """Read what `save` wrote, for trips between such zones: what the models see of a trip, and those of each service.

    Every byte is checked before it is interpreted: see `Format.read_signed`.
    """
    described = FORMAT.read_signed(directory)
    services = [each for each in SERVICES if each in described["services"]]
    models: dict[str, Models] = {
        each: trained.load(directory, each, form=FORMAT, files=described["files"]) for each in services
    }
    return FeatureSet(tuple(described["features"]), tuple(described["boroughs"]), zones), models

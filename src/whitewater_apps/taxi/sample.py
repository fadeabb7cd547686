"""The trips that a model learns from: those of the smallest hash of their content, see `whitewater.learn.sample`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from whitewater.engines import Array, Device
from whitewater.engines.config import Engine
from whitewater.engines.workers import Workers
from whitewater.learn.sample import Sample, together
from whitewater.learn.sample import draw as draw_smallest
from whitewater.tables.hashing import hash_int64
from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.features import Columns, FeatureSet, columns_read, feature_matrix, known_tip_fraction
from whitewater_apps.taxi.operations import operations
from whitewater_apps.taxi.schema import TARGET, columns_of
from whitewater_apps.taxi.trip_files import RowGroup

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


def draw(
    groups: Sequence[RowGroup],
    service: Service,
    *,
    which: FeatureSet,
    max_rows: int,
    engine: Engine,
    device: Device,
    workers: Workers,
) -> Sample:
    """Return the ``max_rows`` trips of a service that have the smallest hash, see `whitewater.learn.sample`."""
    own = [group for group in groups if group.service == service]

    def read(largest: np.uint64) -> Iterable[Sample]:
        work = partial(_sample_row_group, which=which, largest=largest, limit=max_rows, engine=engine, device=device)
        return workers.map(work, own, label=f"{service}: sample")

    rows, features = sum(group.rows for group in own), len(which.features)
    return draw_smallest(read, rows=rows, limit=max_rows, features=features, what=service)


def _sample_row_group(
    group: RowGroup, *, which: FeatureSet, largest: np.uint64, limit: int, engine: Engine, device: Device
) -> Sample:
    names = dict.fromkeys((*_HASHED, *columns_read(which.features), "payment_type", *columns_of(TARGET)))
    slices = operations(engine).read(group, tuple(names), rows=device.slice_rows, device=device)
    samples = (_sample(trips, group.service, which=which, largest=largest, device=device) for trips in slices)
    return together(samples, len(which.features), limit=limit)


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
    return hash_int64(device.xp, *(_whole(trips[name], *units, device) for name, units in _HASHED.items()))


def _whole(values: Array, null: int, units: int, device: Device) -> Array:
    xp = device.xp
    whole = xp.rint(values * units) if units > 1 else values
    known = xp.abs(whole) < _LARGEST
    result: Array = xp.where(known, xp.where(known, whole, 0.0).astype(xp.int64), null)
    return result

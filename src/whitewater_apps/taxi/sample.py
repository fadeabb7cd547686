"""The trips that a model learns from: those of the smallest hash of their content, see `whitewater.learn.sample`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from whitewater.engines import Array, Device
from whitewater.learn.sample import Sample, threshold, together
from whitewater.learn.sample import draw as smallest_hashes
from whitewater.learn.search import RunTasks
from whitewater.tables.blocks import NULL_TIMESTAMP, Block, slices
from whitewater.tables.hashing import hash_int64
from whitewater_apps.taxi.blocks import RowGroup, blocks, column
from whitewater_apps.taxi.features import FeatureSet, columns_read, feature_matrix, known_tip_fraction
from whitewater_apps.taxi.schema import KINDS, SERVICES, Service
from whitewater_apps.taxi.zones import Zones

logger = logging.getLogger(__name__)

RULE = (
    "the trips of the smallest hash (XXH64 of pickup and drop-off time, pickup and drop-off zone, fare in cents and "
    "distance in thousandths of a mile) among those with a pickup time, a recorded tip and a fare above 0"
)
HASHED = (
    "pickup_datetime",
    "dropoff_datetime",
    "pickup_location_id",
    "dropoff_location_id",
    "fare_amount",
    "trip_distance",
)
_UNITS = {"fare_amount": 100, "trip_distance": 1000}
_LARGEST = 2.0**53


def draw(
    groups: Sequence[RowGroup],
    service: Service,
    *,
    which: FeatureSet,
    zones: Zones,
    device: Device,
    max_rows: int,
    run_tasks: RunTasks,
) -> Sample:
    """Return the ``max_rows`` trips of a service that have the smallest hash, see `whitewater.learn.sample.draw`."""
    own = [group for group in groups if group.service in (None, service)]
    work = partial(sample_row_group, service=service, which=which, zones=zones, device=device, limit=max_rows)
    return smallest_hashes(
        lambda share: run_tasks(partial(work, share=share), own, label=f"{service}: sample"),
        rows=sum(group.rows for group in own),
        limit=max_rows,
        features=len(which.features),
        what=service,
    )


def sample_row_group(
    group: RowGroup, *, service: Service, which: FeatureSet, zones: Zones, device: Device, share: float, limit: int
) -> Sample:
    """Return the trips of one row group whose hash is in the lowest ``share`` of all hashes, ``limit`` at most."""
    columns = (*HASHED, *columns_read(which.features), "payment_type", "tip_amount")
    found = (
        sample_block(part, service=service, which=which, zones=zones, device=device, share=share)
        for block in blocks(group, {name: KINDS[name] for name in columns}, device)
        for part in slices(block, device)
    )
    return together(found, len(which.features), limit=limit)


def sample_block(
    block: Block, *, service: Service, which: FeatureSet, zones: Zones, device: Device, share: float
) -> Sample:
    """Return the trips of one block whose hash is in the lowest ``share`` of all hashes."""
    xp = device.xp
    target = known_tip_fraction(block, device)
    eligible = xp.isfinite(target) & (block["pickup_datetime"] != NULL_TIMESTAMP)
    eligible &= block["service"] == SERVICES.index(service)
    hashes = trip_hashes(block, device)
    rows = xp.flatnonzero(eligible & (hashes <= threshold(share)))
    chosen = {name: values[rows] for name, values in block.items()}
    return Sample(
        device.to_host(hashes[rows]),
        device.to_host(chosen["pickup_datetime"]),
        device.to_host(target[rows]),
        device.to_host(feature_matrix(chosen, which, zones, device)),
        int(eligible.sum()),
    )


def trip_hashes(block: Block, device: Device) -> Array:
    """Return the stable hash of each trip's content as uint64 (trips,); see `RULE`."""
    return hash_int64(device.xp, *(_whole(name, block, device) for name in HASHED))


def _whole(name: str, block: Block, device: Device) -> Array:
    """Return a column as int64; amounts are rounded, as parsers of decimals differ in the last bit."""
    xp = device.xp
    values = column(name, block, device)
    if name in _UNITS:
        units = xp.rint(values * _UNITS[name])
        known = xp.abs(units) < _LARGEST
        values = xp.where(known, xp.where(known, units, 0.0).astype(xp.int64), NULL_TIMESTAMP)
    return values.astype(xp.int64)

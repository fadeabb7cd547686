"""The trips that a model learns from: those of the smallest row hash, so that the sample is a property of the data.

A trip's hash is made of its content alone, so the sample does not depend on files, partitions, row order, device or a
seed, and a larger sample contains a smaller one. Bottom-k sampling by hash: E. Cohen and H. Kaplan, "Summarizing data
using bottom-k sketches", PODC 2007.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.tables.blocks import NULL_TIMESTAMP, Block
from whitewater.tables.stable_hash import hash_int64
from whitewater_apps.taxi.blocks import RowGroup, blocks, column, slices
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
# The first pass lets through this many times the rows that are wanted, as some trips have no recorded tip.
_MARGIN = 2.0

# Applies a function to tasks, on workers or here, under a label, and yields the results in any order.
RunTasks = Callable[..., Iterator[Any]]


@dataclass(frozen=True)
class Sample:
    """Trips to learn from, on the host, and the number that they were drawn from.

    ``hashes`` uint64 (trips,); ``pickup`` int64 (trips,), microseconds; ``target`` float64 (trips,), tip / fare;
    ``features`` float64 (trips, features).
    """

    hashes: npt.NDArray[np.uint64]
    pickup: npt.NDArray[np.int64]
    target: npt.NDArray[np.float64]
    features: npt.NDArray[np.float64]
    eligible: int

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, rows: Array) -> Sample:
        """Return the given rows, by position or as a mask."""
        return Sample(self.hashes[rows], self.pickup[rows], self.target[rows], self.features[rows], self.eligible)

    def smallest(self, limit: int) -> Sample:
        """Return the ``limit`` trips of the smallest hash, in the order of their hash."""
        return self.take(_canonical_order(self)[:limit])


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
    """Return the ``max_rows`` trips of a service that have the smallest hash, or all when there are fewer.

    Memory is bounded: a pass keeps only trips whose hash is below a threshold, which is chosen so that about
    ``max_rows`` remain. The threshold comes from the number of rows in the footers; where too few of them turn out to
    have a recorded tip, a second pass has the threshold from the number that was counted.

    The sample is in the order of the hash, and so in a random order that is the same in every run.
    """
    own = [group for group in groups if group.service in (None, service)]
    share = _MARGIN * max_rows / max(1, sum(group.rows for group in own))
    while True:
        work = partial(
            sample_row_group, service=service, which=which, zones=zones, device=device, share=share, limit=max_rows
        )
        kept = together(run_tasks(work, own, label=f"{service}: sample"), which, limit=max_rows)
        if len(kept) >= min(max_rows, kept.eligible):
            return kept.smallest(max_rows)
        share = max(2 * share, (max_rows + 6 * math.sqrt(max_rows)) / kept.eligible)
        logger.info("%s: few tips are recorded, so the trips are read again with a wider threshold", service)


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
    return together(found, which, limit=limit)


def sample_block(
    block: Block, *, service: Service, which: FeatureSet, zones: Zones, device: Device, share: float
) -> Sample:
    """Return the trips of one block whose hash is in the lowest ``share`` of all hashes."""
    xp = device.xp
    target = known_tip_fraction(block, device)
    eligible = xp.isfinite(target) & (block["pickup_datetime"] != NULL_TIMESTAMP)
    eligible &= block["service"] == SERVICES.index(service)
    hashes = trip_hashes(block, device)
    rows = xp.flatnonzero(eligible & (hashes <= np.uint64(_threshold(share))))
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


def together(samples: Iterable[Sample], which: FeatureSet, *, limit: int) -> Sample:
    """Join samples; when more than twice ``limit`` trips come together, those of the ``limit`` smallest hashes stay."""
    kept = [_empty(which)]
    for sample in samples:
        kept.append(sample)
        if sum(map(len, kept)) > 2 * limit:
            kept = [_joined(kept).smallest(limit)]
    return _joined(kept)


def _whole(name: str, block: Block, device: Device) -> Array:
    """Return a column as int64; amounts are rounded, as parsers of decimals differ in the last bit."""
    xp = device.xp
    values = column(name, block, device)
    if name in _UNITS:
        units = xp.rint(values * _UNITS[name])
        known = xp.abs(units) < _LARGEST
        values = xp.where(known, xp.where(known, units, 0.0).astype(xp.int64), NULL_TIMESTAMP)
    return values.astype(xp.int64)


def _threshold(share: float) -> int:
    return min(2**64 - 1, int(share * 2.0**64))


def _joined(samples: Sequence[Sample]) -> Sample:
    arrays = zip(*((each.hashes, each.pickup, each.target, each.features) for each in samples), strict=True)
    hashes, pickup, target, features = map(np.concatenate, arrays)
    return Sample(hashes, pickup, target, features, sum(each.eligible for each in samples))


def _empty(which: FeatureSet) -> Sample:
    return Sample(
        np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0), np.empty((0, len(which.features))), eligible=0
    )


def _canonical_order(sample: Sample) -> Array:
    """Return the rows by hash; rows of one hash by content, so that a tie leaves only rows that are equal."""
    order = np.argsort(sample.hashes, kind="stable")
    hashes = sample.hashes[order]
    repeated = hashes[1:] == hashes[:-1]
    tied = np.flatnonzero(np.append(repeated, False) | np.append(False, repeated))
    if len(tied):
        rows = order[tied]
        keys = (*sample.features[rows].T, sample.target[rows], sample.pickup[rows], sample.hashes[rows])
        order[tied] = rows[np.lexsort(keys)]
    return order

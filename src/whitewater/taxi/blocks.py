"""Columns of a block of trips, those that its era lacks included, and quantities derived from them."""

from __future__ import annotations

from collections.abc import Iterator

from whitewater.devices import NULL_INTEGER, NULL_TIMESTAMP, Array, Block, Device
from whitewater.taxi.schema import CARD, KINDS, SERVICES


def column(name: str, block: Block, device: Device) -> Array:
    """Return a column of the schema; one that the block's era lacks is null throughout."""
    if name in block:
        return block[name]
    xp, kind = device.xp, KINDS[name]
    rows = len(next(iter(block.values())))
    null = {"float64": float("nan"), "timestamp": NULL_TIMESTAMP}.get(kind, NULL_INTEGER)
    missing: Array = xp.full(rows, null, "int64" if kind == "timestamp" else kind)
    return missing


def quantity(name: str, block: Block, device: Device) -> Array:
    """Return a column or a derived quantity as float64 with NaN for null: duration (s), speed (mph), tip_fraction."""
    if name == "duration":
        pickup, dropoff = (column(f"{end}_datetime", block, device) for end in ("pickup", "dropoff"))
        return device.seconds(pickup, dropoff)
    if name == "speed":
        return device.ratio(column("trip_distance", block, device), quantity("duration", block, device) / 3600)
    if name == "tip_fraction":
        return device.ratio(column("tip_amount", block, device), column("fare_amount", block, device))
    values = column(name, block, device)
    if values.dtype.kind == "f":
        return values
    known: Array = device.xp.where(values != NULL_INTEGER, values.astype("float64"), float("nan"))
    return known


def tip_is_recorded(block: Block, device: Device) -> Array:
    """Return where a trip's tip was recorded: paid by card, or a high-volume for-hire trip, which is paid in the app.

    Cash tips are not recorded: their `tip_amount` of 0 means missing, not zero.
    """
    paid_in_app = block["service"] == SERVICES.index("fhvhv")
    by_card = column("payment_type", block, device) == CARD
    recorded: Array = (by_card | paid_in_app) & ~device.xp.isnan(column("tip_amount", block, device))
    return recorded


def slices(block: Block, device: Device) -> Iterator[Block]:
    """Cut a block into views that fit the device's cache."""
    rows = len(next(iter(block.values())))
    for start in range(0, rows, device.slice_rows):
        yield {name: values[start : start + device.slice_rows] for name, values in block.items()}

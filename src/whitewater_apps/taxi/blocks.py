"""Cleaned trips by row group, each the work of one task, and the columns and derived quantities of their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from whitewater.engines import Array, Device
from whitewater.tables.blocks import Block, Kind, as_float, column_or_null
from whitewater.tables.elementwise import ratio, seconds
from whitewater.tables.parquet.blocks import row_group_blocks
from whitewater_apps.taxi.schema import CARD, KINDS, SERVICES
from whitewater_apps.taxi.trip_files import RowGroup

BLOCK_ROWS = 250_000


def blocks(group: RowGroup, columns: Mapping[str, Kind], device: Device) -> Iterator[Block]:
    """Read the given columns of the schema that the file has, and the code of the service as int8."""
    present = {name: kind for name, kind in columns.items() if name in group.names}
    for raw in row_group_blocks(device, group.path, group.index, present, block_rows=BLOCK_ROWS):
        block = cast(Block, raw)
        code = SERVICES.index(group.service)
        block["service"] = device.xp.full(len(next(iter(block.values()))), code, device.xp.int8)
        yield block


def column(name: str, block: Block, device: Device) -> Array:
    """Return a column of the schema; one that the block's era lacks is null throughout."""
    return column_or_null(name, KINDS[name], block, device)


def quantity(name: str, block: Block, device: Device) -> Array:
    """Return a column or a derived quantity as float64 with NaN for null: duration (s), speed (mph), tip_fraction."""
    if name == "duration":
        pickup, dropoff = (column(f"{end}_datetime", block, device) for end in ("pickup", "dropoff"))
        return seconds(pickup, dropoff, device)
    if name == "speed":
        return ratio(column("trip_distance", block, device), quantity("duration", block, device) / 3600, device)
    if name == "tip_fraction":
        return ratio(column("tip_amount", block, device), column("fare_amount", block, device), device)
    return as_float(column(name, block, device), device)


def tip_is_recorded(block: Block, device: Device) -> Array:
    """Return where a trip's tip was recorded: paid by card, or a high-volume for-hire trip, which is paid in the app.

    Cash tips are not recorded: their `tip_amount` of 0 means missing, not zero.
    """
    paid_in_app = block["service"] == SERVICES.index("fhvhv")
    by_card = column("payment_type", block, device) == CARD
    recorded: Array = (by_card | paid_in_app) & ~device.xp.isnan(column("tip_amount", block, device))
    return recorded

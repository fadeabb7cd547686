"""Cleaned trips by row group, each the work of one task, and the columns and derived quantities of their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from whitewater.engines import Array, Device
from whitewater.errors import InputError
from whitewater.io.folder import Files
from whitewater.tables.blocks import Block, Encoded, Kind, as_float, column_or_null
from whitewater.tables.elementwise import ratio, seconds
from whitewater.tables.parquet.blocks import row_group_blocks
from whitewater_apps.taxi.schema import CARD, KINDS, SERVICES, Service

BLOCK_ROWS = 250_000
TRIPS = Files(remedy="Get it again, or leave it out.")
REQUIRED = ("pickup_datetime", "dropoff_datetime", "fare_amount", "tip_amount")


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file of trips; ``service`` is None where each row names its own."""

    path: Path
    index: int
    rows: int
    names: frozenset[str]
    service: Service | None


def row_groups(trips: Path) -> list[RowGroup]:
    """List the row groups of cleaned trips, in the order of their paths.

    ``trips`` is a directory of Parquet files below ``service=.../``, or one file. A file outside such a directory has a
    column ``service`` of text.

    Raises InputError if there is no file, or one is not Parquet, lacks a column, or its service is unknown.
    """
    files = sorted(trips.rglob("*.parquet")) if trips.is_dir() else [trips]
    if not files:
        raise InputError(
            f"{trips} holds no Parquet file of trips. Give the directory `trips` that the step clean wrote."
        )
    found: list[RowGroup] = []
    for path in files:
        metadata = TRIPS.footer(path)
        names = frozenset(metadata.schema.to_arrow_schema().names)
        service = _service(path, names)
        found += [
            RowGroup(path, index, metadata.row_group(index).num_rows, names, service)
            for index in range(metadata.num_row_groups)
            if metadata.row_group(index).num_rows
        ]
    return found


def services(groups: Sequence[RowGroup]) -> list[Service]:
    """Return the services that the row groups may hold trips of."""
    named = {group.service for group in groups}
    return [service for service in SERVICES if service in named or None in named]


def blocks(group: RowGroup, columns: Mapping[str, Kind], device: Device) -> Iterator[Block]:
    """Read the given columns of the schema that the file has, and the code of the service as int8."""
    present = {name: kind for name, kind in columns.items() if name in group.names}
    read = present if group.service else {**present, "service": "text"}
    for raw in row_group_blocks(device, group.path, group.index, read, block_rows=BLOCK_ROWS):
        named = raw.pop("service", None)
        block = cast(Block, raw)
        block["service"] = _codes(named, group, len(next(iter(block.values()))), device)
        yield block


def _service(path: Path, names: frozenset[str]) -> Service | None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InputError(
            f"{path}: not a file of cleaned trips: no column {', '.join(missing)}. Run standardise and clean."
        )
    named = [part.removeprefix("service=") for part in path.parts if part.startswith("service=")]
    if named:
        return _known(named[-1], path)
    if "service" not in names:
        raise InputError(f"{path}: the service of the trips is not known. Put the file below a directory such as "
                         "service=yellow, or add a column service.")  # fmt: skip
    return None


def _codes(named: Array | Encoded | None, group: RowGroup, rows: int, device: Device) -> Array:
    xp = device.xp
    if not isinstance(named, Encoded):
        code: Array = xp.full(rows, SERVICES.index(group.service or "yellow"), xp.int8)
        return code
    order = [SERVICES.index(_known(name, group.path)) for name in named.vocabulary]
    if rows and (named.codes < 0).any():
        raise InputError(f"{group.path}: a trip has no service. Fill the column service, or leave the trip out.")
    codes: Array = device.to_device(np.array(order or [0], np.int8))[named.codes]
    return codes


def _known(name: str, path: Path) -> Service:
    for service in SERVICES:
        if service == name:
            return service
    raise InputError(f"{path}: service {name!r} is not known. Use one of {', '.join(SERVICES)}.")


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

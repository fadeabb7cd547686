"""Parquet data sets partitioned by service, year and month of pickup, in Hive's layout, the quarantine among them.

The quarantine holds every column as standardised, all reasons, the file, and the line where it was text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.engines import Array, Device
from whitewater.io.store import write_whole
from whitewater.tables.blocks import NULL_INTEGER, NULL_TIMESTAMP, Block, Kind
from whitewater.tables.calendar import FIRST_YEAR, month_index
from whitewater_apps.taxi.rules import MALFORMED
from whitewater_apps.taxi.schema import KINDS, SERVICES

if TYPE_CHECKING:
    import pyarrow as pa

# Hive's own word for null, __HIVE_DEFAULT_PARTITION__, makes pandas fail to read the whole data set.
UNKNOWN = "year=0/month=0"


def partitions(block: Block, month: Array, device: Device) -> Iterator[tuple[str, Block]]:
    """Split a block by service and month index: the directory of each partition, and its rows in their order."""
    xp = device.xp
    codes = xp.maximum(block["service"].astype(xp.int64), 0) << 32 | (month.astype(xp.int64) + 1)
    present = device.to_host(xp.unique(codes))
    for code in present:
        service, index = int(code) >> 32, int(code & 0xFFFFFFFF) - 1
        rows = block if len(present) == 1 else {name: values[codes == code] for name, values in block.items()}
        yield directory(service, index), rows


def directory(service: int, month: int) -> str:
    """Return the relative directory of a partition; month index -1, no date, is year 0 and month 0."""
    name = SERVICES[service]
    if month == NULL_INTEGER:
        return f"service={name}/{UNKNOWN}"
    return f"service={name}/year={FIRST_YEAR + month // 12}/month={month % 12 + 1}"


def write_rejected(
    block: Block, mask: Array, *, reasons: Sequence[str], origin: str, device: Device, quarantine: Path, name: str
) -> None:
    """Write rejected trips into their partitions.

    Bit *i* of ``mask``, int64, is set where a trip has ``reasons[i]``; ``origin`` is what the user named the file by,
    and ``name`` that of the file in each partition of the data set ``quarantine``.
    """
    month = month_index(block["pickup_datetime"], device)
    for place, rows in partitions({**block, "mask": mask}, month, device):
        columns = {column: np.asarray(device.to_host(values)) for column, values in rows.items()}
        table = _table(columns, len(columns["mask"]), _reasons(columns["mask"], reasons), origin=origin, lines=None)
        write_whole(quarantine / place / name, partial(_write, table))


def write_malformed(lines: Sequence[str], *, service: int, origin: str, quarantine: Path, name: str) -> None:
    """Write lines that could not be parsed: all columns null, the line in ``raw_line``."""
    table = _table({}, len(lines), [[MALFORMED]] * len(lines), origin=origin, lines=lines)
    write_whole(quarantine / directory(service, NULL_INTEGER) / name, partial(_write, table))


def _table(
    columns: dict[str, Array], rows: int, reasons: Sequence[Sequence[str]], *, origin: str, lines: Sequence[str] | None
) -> pa.Table:
    import pyarrow as pa

    data: dict[str, Any] = {
        name: _arrow(columns[name], kind) if name in columns else pa.nulls(rows, _type(kind))
        for name, kind in KINDS.items()
        if name != "service"
    }
    data["reasons"] = pa.array(reasons, pa.list_(pa.string()))
    data["source_file"] = pa.array([origin] * rows, pa.string()).dictionary_encode().cast(pa.string())
    data["raw_line"] = pa.nulls(rows, pa.string()) if lines is None else pa.array(lines, pa.string())
    return pa.table(data)


def _arrow(values: Array, kind: Kind) -> pa.Array:
    import pyarrow as pa

    if kind == "float64":
        return pa.array(values, mask=np.isnan(values))
    null = NULL_TIMESTAMP if kind == "timestamp" else NULL_INTEGER
    return pa.array(values, mask=values == null).cast(_type(kind))


def _type(kind: Kind) -> pa.DataType:
    import pyarrow as pa

    return pa.timestamp("us") if kind == "timestamp" else pa.type_for_alias(kind)


def _reasons(masks: Array, reasons: Sequence[str]) -> list[list[str]]:
    """Return the names of the set bits; distinct masks are few, so each is spelled out once."""
    distinct, place = np.unique(masks, return_inverse=True)
    names = [[reason for bit, reason in enumerate(reasons) if mask >> bit & 1] for mask in distinct.tolist()]
    return [names[each] for each in place.tolist()]


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd", compression_level=1)

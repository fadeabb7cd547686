"""Columns of frames in what pandas and cuDF have in common: as arrays and back, looked up by merges, summed in groups.

Rows are numbered from 0 in each frame. A null of a column of floats is NaN; pandas has other types for integers and
booleans of which some are null. What is summed are integers, so that no sum depends on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater.features.categories.byte_strings import ByteStrings
from whitewater.features.columns.column import Numbers

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

Frame = Any
Series = Any
# Bits of the second half of a number that is summed in halves.
HALF = 31
LOWER = (1 << HALF) - 1
_PLACE = "place"


@dataclass(frozen=True)
class Text:
    """A column of text of a frame, beside the columns of `whitewater.features.columns.column`."""

    series: Series

    def __len__(self) -> int:
        return len(self.series)

    @property
    def valid(self) -> Array:
        """Whether a text is not null, bool (rows,)."""
        valid: Array = self.series.notna().astype("bool").values
        return valid

    def hashes(self, seed: int, null: int, device: Device) -> Array:
        """Return XXH64 of each text, and ``null`` of a null one: uint64 (rows,) on the device."""
        known = self.series.notna()
        if hasattr(self.series, "hash_values"):  # cuDF's own, of the same bits
            found: Array = self.series.hash_values(method="xxhash64", seed=seed).where(known, null).values
            return found
        hashes = np.full(len(self), np.uint64(null))
        texts = table_of(self.series[known].to_frame("text"))["text"].cast(pa.large_string())
        hashes[known.to_numpy()] = ByteStrings.of(texts.combine_chunks()).hashes(seed)
        return device.to_device(hashes)


def frame_class(device: Device) -> type:
    """Return the class of the frames of a device."""
    from whitewater.tables.with_dask import library

    frames: type = library(device.frames).DataFrame
    return frames


def is_integer(series: Series) -> bool:
    """Return whether a column has integers or booleans."""
    return getattr(series.dtype, "kind", "O") in "biu"


def is_list(series: Series) -> bool:
    """Return whether a column has lists."""
    return str(series.dtype).lower().startswith("list")


def column_of(series: Series) -> Any:
    """Return a column of numbers as arrays, NumPy's of pandas and CuPy's of cuDF, and one of text as `Text`."""
    kind = getattr(series.dtype, "kind", "O")
    if kind == "f":
        return Numbers(series.fillna(np.nan).values)
    if not is_integer(series):
        return Text(series)
    known = series.notna()
    if bool(known.all()):
        return Numbers(series.astype(_plain(series)).values)
    values = series.fillna(False if kind == "b" else 0).astype(_plain(series))
    return Numbers(values.values, known.astype("bool").values)


def series_of(column: Any, frame: Frame) -> Series:
    """Return `Numbers` or `Text` as a column of frames such as this one."""
    if isinstance(column, Text):
        return column.series
    if column.valid is None:
        return type(frame)({"values": column.values})["values"]
    made = type(frame)({"values": column.values, "valid": column.valid})
    values = made["values"]
    if is_integer(values) and not hasattr(values, "hash_values"):
        values = values.astype(nullable(str(values.dtype)))
    return values.where(made["valid"])


def nullable(dtype: str) -> str:
    """Return the name of the dtype in which pandas has integers or booleans of which some are null."""
    return {"b": "boolean", "u": dtype.replace("ui", "UI")}.get(dtype[0], dtype.capitalize())


def _plain(series: Series) -> str:
    return str(series.dtype).lower().replace("boolean", "bool")


def any_known(keys: Frame) -> Series:
    """Return whether any key of a row is not null."""
    first, *others = (keys[name].notna() for name in list(keys.columns))
    for other in others:
        first = first | other
    return first


def look_up(keys: Frame, table: Frame, *, device: Device) -> Series:
    """Return the ``number`` of the row of a table that has a row's keys, null where there is none: a left join."""
    placed = keys.assign(**{_PLACE: device.xp.arange(len(keys))})
    found = placed.merge(table, how="left", on=list(keys.columns))
    # Neither library promises an order of rows.
    return found.sort_values(_PLACE).reset_index(drop=True)["number"]


def sum_by_keys(cells: Frame) -> Frame:
    """Return the sums of the other columns by those named ``key_...``, of null ones as well, in no order."""
    keys = [name for name in list(cells.columns) if name.startswith("key_")]
    return cells.groupby(keys, sort=False, dropna=False).sum().reset_index()


def halves(values: Array, exponent: int, device: Device) -> tuple[Array, Array]:
    """Return ``values * 2**exponent``, float64 (rows,) below 2**62, as integers in two halves whose sums are exact.

    A number is ``first * 2**HALF + second``, both int64 (rows,); that of NaN is 0.
    """
    xp = device.xp
    whole = xp.rint(xp.ldexp(xp.where(xp.isnan(values), 0.0, values), exponent)).astype(xp.int64)
    return whole >> HALF, whole & LOWER


def whole(first: Array, second: Array, exponent: int) -> Array:
    """Return sums of `halves` as float64."""
    sums: Array = np.ldexp(first * 2.0**HALF + second, -exponent)
    return sums


def table_of(frame: Frame) -> pa.Table:
    """Return a frame as a table on the host."""
    if hasattr(frame, "to_arrow"):
        table: pa.Table = frame.to_arrow(preserve_index=False)
        return table
    return pa.Table.from_pandas(frame, preserve_index=False)


def frame_of(table: pa.Table, kind: type) -> Frame:
    """Return a table as a frame of a class."""
    if hasattr(kind, "to_arrow"):
        return kind.from_arrow(table)  # type: ignore[attr-defined]
    from pandas import ArrowDtype
    from pandas.api.types import pandas_dtype

    def dtype_of(type_: pa.DataType) -> Any:
        if pa.types.is_list(type_):
            return ArrowDtype(type_)
        return pandas_dtype(nullable(str(type_))) if pa.types.is_integer(type_) or pa.types.is_boolean(type_) else None

    return kind({
        name: column.to_pandas(types_mapper=dtype_of if column.null_count or pa.types.is_list(column.type) else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    })  # fmt: skip

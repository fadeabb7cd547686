"""Operations on frames with the API that pandas and cuDF share: conversion to arrays and back, joins, sums by keys.

The index of every frame is 0, 1, 2, ... A null in a column of floats is NaN; pandas has nullable types for integers and
booleans. Only integers are summed, so that no sum depends on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater.features.columns.byte_strings import ByteStrings
from whitewater.features.columns.column import Numbers

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

Frame = Any
Series = Any
# Bits of the second half of a number, see `halves`.
HALF = 31
LOWER = (1 << HALF) - 1
_ORDER = "order"


@dataclass(frozen=True)
class Text:
    """A text column of a frame, in addition to the column types of `whitewater.features.columns.column`."""

    series: Series

    def __len__(self) -> int:
        return len(self.series)

    @property
    def valid(self) -> Array:
        """Whether each text is not null, bool (rows,)."""
        valid: Array = self.series.notna().astype("bool").values
        return valid

    def hashes(self, seed: int, null: int, device: Device) -> Array:
        """Return XXH64 of each text, and ``null`` for a null: uint64 (rows,) on the device."""
        valid = self.series.notna()
        if hasattr(self.series, "hash_values"):  # cuDF's own, with the same bits
            device_hashes: Array = self.series.hash_values(method="xxhash64", seed=seed).where(valid, null).values
            return device_hashes
        hashes = np.full(len(self), np.uint64(null))
        texts = table_of(self.series[valid].to_frame("text"))["text"].cast(pa.large_string())
        hashes[valid.to_numpy()] = ByteStrings.of(texts.combine_chunks()).hashes(seed)
        return device.to_device(hashes)


def frame_class(device: Device) -> type:
    """Return the DataFrame class of a device: pandas' or cuDF's."""
    from whitewater.tables.with_dask import backend_module

    frames: type = backend_module(device.frames).DataFrame
    return frames


def is_integer(series: Series) -> bool:
    """Return whether a column has integers or booleans."""
    return getattr(series.dtype, "kind", "O") in "biu"


def is_list(series: Series) -> bool:
    """Return whether a column has lists."""
    return str(series.dtype).lower().startswith("list")


def column_of_series(series: Series) -> Any:
    """Return a series of numbers as `Numbers`, with the arrays of its library (NumPy or CuPy), and text as `Text`."""
    kind = getattr(series.dtype, "kind", "O")
    if kind == "f":
        return Numbers(series.fillna(np.nan).values)
    if not is_integer(series):
        return Text(series)
    valid = series.notna()
    if bool(valid.all()):
        return Numbers(series.astype(_numpy_dtype(series)).values)
    values = series.fillna(False if kind == "b" else 0).astype(_numpy_dtype(series))
    return Numbers(values.values, valid.astype("bool").values)


def series_of(column: Any, frame: Frame) -> Series:
    """Return `Numbers` or `Text` as a series of the same library as this frame."""
    if isinstance(column, Text):
        return column.series
    if column.valid is None:
        return type(frame)({"values": column.values})["values"]
    columns = type(frame)({"values": column.values, "valid": column.valid})
    values = columns["values"]
    if is_integer(values) and not hasattr(values, "hash_values"):
        values = values.astype(nullable_dtype(str(values.dtype)))
    return values.where(columns["valid"])


def nullable_dtype(dtype: str) -> str:
    """Return the name of pandas' nullable dtype for integers or booleans of this dtype."""
    return {"b": "boolean", "u": dtype.replace("ui", "UI")}.get(dtype[0], dtype.capitalize())


def _numpy_dtype(series: Series) -> str:
    return str(series.dtype).lower().replace("boolean", "bool")


def any_valid(keys: Frame) -> Series:
    """Return a series that tells for each row whether any of its keys is not null."""
    first, *others = (keys[name].notna() for name in list(keys.columns))
    for other in others:
        first = first | other
    return first


def look_up(keys: Frame, table: Frame, *, device: Device) -> Series:
    """Return the ``number`` of the table's row that has the same keys, null if none has: a left join."""
    left = keys.assign(**{_ORDER: device.xp.arange(len(keys))})
    merged = left.merge(table, how="left", on=list(keys.columns))
    # Neither library guarantees the order of merged rows.
    return merged.sort_values(_ORDER).reset_index(drop=True)["number"]


def sum_by_keys(cells: Frame) -> Frame:
    """Return the sums of all other columns by those named ``key_...``, null keys included, in no particular order."""
    keys = [name for name in list(cells.columns) if name.startswith("key_")]
    return cells.groupby(keys, sort=False, dropna=False).sum().reset_index()


def halves(values: Array, exponent: int, device: Device) -> tuple[Array, Array]:
    """Return ``values * 2**exponent``, float64 (rows,) below 2**62, as integers in two halves whose sums are exact.

    The integer is ``first * 2**HALF + second``, both int64 (rows,), and 0 for NaN.
    """
    xp = device.xp
    integers = xp.rint(xp.ldexp(xp.where(xp.isnan(values), 0.0, values), exponent)).astype(xp.int64)
    return integers >> HALF, integers & LOWER


def sums_of_halves(first: Array, second: Array, exponent: int) -> Array:
    """Return sums of `halves` put together, as float64."""
    sums: Array = np.ldexp(first * 2.0**HALF + second, -exponent)
    return sums


def table_of(frame: Frame) -> pa.Table:
    """Return a frame as an Arrow table, on the host."""
    if hasattr(frame, "to_arrow"):
        table: pa.Table = frame.to_arrow(preserve_index=False)
        return table
    return pa.Table.from_pandas(frame, preserve_index=False)


def frame_of(table: pa.Table, frame_type: type) -> Frame:
    """Return an Arrow table as a frame of this class."""
    if hasattr(frame_type, "to_arrow"):
        return frame_type.from_arrow(table)  # type: ignore[attr-defined]
    from pandas import ArrowDtype
    from pandas.api.types import pandas_dtype

    def dtype_of(type_: pa.DataType) -> Any:
        if pa.types.is_list(type_):
            return ArrowDtype(type_)
        needs_nullable = pa.types.is_integer(type_) or pa.types.is_boolean(type_)
        return pandas_dtype(nullable_dtype(str(type_))) if needs_nullable else None

    return frame_type({
        name: column.to_pandas(types_mapper=dtype_of if column.null_count or pa.types.is_list(column.type) else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    })  # fmt: skip

"""Columns of a block of rows: numbers, categories and lists, and their conversion from and to Arrow and frames.

Blocks are on the host, but `Numbers` may have CuPy arrays, from frames of cuDF. Frames are used through the API that
pandas and cuDF share, and have the index 0, 1, 2, ... A null is NaN in floats; pandas has nullable types for integers
and booleans.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array, Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.schema import plain_type
from whitewater.tables.arrow_arrays import one_array, to_arrow

Frame = Any
Series = Any
# pandas' nullable dtypes
_NULLABLE = {"bool": "boolean"} | {
    f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_MOST_VALUES = 2**31 - 1


@dataclass(frozen=True)
class Numbers:
    """``values`` (rows,) of an integer, floating or boolean dtype.

    ``valid``, bool (rows,), is False for nulls; None means no nulls. NaN is also null. Values at nulls have no meaning.
    """

    values: Array
    valid: Array | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Categories:
    """Row *i* is ``dictionary[codes[i]]``, or null where the code is -1.

    ``codes`` are int32 (rows,). ``dictionary`` is an Arrow array without nulls: string, int64, or binary (combinations
    of columns). Its entries may repeat or be unused.
    """

    codes: Array
    dictionary: pa.Array

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Lists:
    """Row *i* is ``values[offsets[i]:offsets[i + 1]]``; ``offsets`` are int64 (rows + 1,). A null list is empty."""

    offsets: Array
    values: Numbers | Categories

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Text:
    """A text column of a frame, on the device."""

    series: Series

    def __len__(self) -> int:
        return len(self.series)

    @property
    def valid(self) -> Array:
        """Whether each text is not null, bool (rows,)."""
        return self.series.notna().astype("bool").values

    def on_host(self) -> Categories:
        texts = table_of(self.series.to_frame("text"))["text"]  # has Arrow's null type if all are null
        return cast("Categories", column_of(texts.cast(pa.large_string())))


Column = Numbers | Categories | Lists
Block = Mapping[str, Column]


def take_rows(column: Numbers | Categories, rows: Array | slice) -> Numbers | Categories:
    """Return rows of a column without lists."""
    if isinstance(column, Categories):
        return Categories(column.codes[rows], column.dictionary)
    return Numbers(column.values[rows], None if column.valid is None else column.valid[rows])


def as_floats(column: Column, xp: ModuleType = np) -> Array:
    """Return numbers as float64 (rows,) of NumPy or CuPy, with NaN for nulls, and without a copy if possible."""
    numbers = cast("Numbers", column)
    floats = numbers.values.astype(np.float64, copy=False)
    return floats if numbers.valid is None else xp.where(numbers.valid, floats, np.nan)


def column_of(column: pa.ChunkedArray | pa.Array) -> Column:
    """Convert a column of Arrow; raises ValueError as `plain_type`."""
    values = one_array(column)
    type_ = plain_type(values.type)
    if pa.types.is_dictionary(values.type):
        return categories_of(values) if pa.types.is_string(type_) else column_of(values.dictionary_decode())
    if pa.types.is_string(type_):
        # Arrow has no dictionaries of views.
        text = values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values
        return categories_of(text.dictionary_encode())
    if pa.types.is_list(type_):
        ends = np.cumsum(_filled(pc.list_value_length(values), 0), dtype=np.int64)
        return Lists(np.append(0, ends), cast("Numbers | Categories", column_of(values.flatten())))
    return _numbers(values)


def categories_of(values: pa.DictionaryArray) -> Categories:
    """Return a dictionary-encoded array of text or int64 as categories."""
    if values.dictionary.null_count:
        # Arrow allows null as an entry of a dictionary.
        dictionary = values.dictionary.drop_null()
        codes = pc.index_in(values.dictionary, dictionary, skip_nulls=True)
        values = pa.DictionaryArray.from_arrays(codes.take(values.indices), dictionary)
    return Categories(_filled(values.indices.cast(pa.int32()), -1), values.dictionary.cast(plain_type(values.type)))


def _numbers(values: pa.Array) -> Numbers:
    type_ = values.type
    if pa.types.is_null(type_):
        return Numbers(np.full(len(values), np.nan))
    if pa.types.is_floating(type_):
        return Numbers(_filled(values.cast(pa.float32()) if pa.types.is_float16(type_) else values, np.nan))
    valid = _numbers(values.is_valid()).values if values.null_count else None
    if pa.types.is_boolean(type_):
        return Numbers(_filled(values.cast(pa.int8()), 0).view(bool), valid)
    return Numbers(_filled(values, 0), valid)


def _filled(values: pa.Array, null: float) -> Array:
    """Return numbers as a NumPy array with nulls filled; Arrow's `fill_null` would import pandas."""
    if values.null_count:
        values = pc.coalesce(values, to_arrow(np.array([null], values.type.to_pandas_dtype()))[0])
    return np.from_dlpack(values)


def arrow_of(column: Column, type_: pa.DataType) -> pa.Array:
    """Convert a column to an Arrow type, with NaN for nulls of floats; raises ValueError if values do not fit."""
    if isinstance(column, Lists):
        if int(column.offsets[-1]) > _MOST_VALUES:
            raise ValueError(f"lists of more than {_MOST_VALUES} values in all do not fit one block")
        items = arrow_of(column.values, type_.value_type)
        return pa.ListArray.from_arrays(to_arrow(column.offsets.astype(np.int32)), items, type=type_)
    if isinstance(column, Categories):
        array = column.dictionary.take(_with_nulls(column.codes, column.codes >= 0))
    else:
        array = _arrow_numbers(column, type_)
    if not pa.types.is_null(type_):
        return array.cast(type_)
    if array.null_count < len(array):
        raise ValueError("it has values")
    return pa.nulls(len(array))


def _arrow_numbers(column: Numbers, type_: pa.DataType) -> pa.Array:
    values, valid = column.values, column.valid
    if pa.types.is_floating(type_):
        floats = values.astype(type_.to_pandas_dtype(), copy=False)
        return to_arrow(floats if valid is None else np.where(valid, floats, floats.dtype.type(np.nan)))
    if values.dtype.kind == "f":
        present = ~np.isnan(values)
        valid = present if valid is None else valid & present
    return _with_nulls(values, valid)


def _with_nulls(values: Array, valid: Array | None) -> pa.Array:
    numbers = to_arrow(values.view(np.int8)).cast(pa.bool_()) if values.dtype == np.bool_ else to_arrow(values)
    if valid is None or valid.all():
        return numbers
    return pc.if_else(_with_nulls(valid, None), numbers, pa.nulls(1, numbers.type)[0])


def as_categories(column: Column) -> Categories:
    """Return a column as categories; integers and booleans become int64.

    Raises ConfigError for lists and for floats, unless all are NaN (a column of nulls); InputError for a value above
    2**63 - 1.
    """
    if isinstance(column, Categories):
        return column
    if isinstance(column, Numbers) and column.values.dtype.kind == "f" and np.isnan(as_floats(column)).all():
        return Categories(np.full(len(column), -1, np.int32), pa.array([], pa.string()))
    return categories_of(arrow_of(as_integers(column), pa.int64()).dictionary_encode())


def as_integers(column: Column) -> Numbers:
    """Return integers or booleans as int64; see `as_categories`."""
    if not isinstance(column, Numbers) or column.values.dtype.kind not in "iub":
        kind = column.values.dtype.name if isinstance(column, Numbers) else "lists or text"
        raise ConfigError(f"a category is a text or an integer, not one of {kind}. Give other columns, or Bucketize.")
    values = column.values
    if values.dtype == np.uint64 and len(column) and int(values.max()) > np.iinfo(np.int64).max:
        raise InputError("categories are integers of 64 bits with sign: a value is above 2**63 - 1. Store it as text.")
    return Numbers(values.astype(np.int64, copy=False), column.valid)


def frame_class(device: Device) -> type:
    """Return the DataFrame class of a device: pandas' or cuDF's."""
    from whitewater.tables.with_dask import backend_module

    return backend_module(device.frames).DataFrame


def is_integer(series: Series) -> bool:
    """Return whether a column has integers or booleans."""
    return getattr(series.dtype, "kind", "O") in "biu"


def column_of_series(series: Series) -> Any:
    """Return a series of numbers as `Numbers`, with the arrays of its library (NumPy or CuPy), and text as `Text`."""
    kind = getattr(series.dtype, "kind", "O")
    if kind == "f":
        return Numbers(series.fillna(np.nan).values)
    if not is_integer(series):
        return Text(series)
    valid = series.notna()
    # pandas' nullable types differ from NumPy's in case only.
    dtype = str(series.dtype).lower().replace("boolean", "bool")
    values = series.fillna(False if kind == "b" else 0).astype(dtype).values
    return Numbers(values, None if bool(valid.all()) else valid.astype("bool").values)


def series_of(column: Any, frame: Frame) -> Series:
    """Return `Numbers` or `Text` as a series of the same library as this frame."""
    if isinstance(column, Text):
        return column.series
    if column.valid is None:
        return type(frame)({"values": column.values})["values"]
    columns = type(frame)({"values": column.values, "valid": column.valid})
    values = columns["values"]
    if is_integer(values) and not hasattr(values, "hash_values"):
        values = values.astype(_NULLABLE[str(values.dtype)])
    return values.where(columns["valid"])


def table_of(frame: Frame) -> pa.Table:
    """Return a frame as an Arrow table, on the host."""
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow(preserve_index=False)
    return pa.Table.from_pandas(frame, preserve_index=False)


def frame_of(table: pa.Table, device: Device) -> Frame:
    """Return an Arrow table as a frame of a device."""
    frames: Any = frame_class(device)
    if hasattr(frames, "to_arrow"):
        return frames.from_arrow(table)
    from pandas import ArrowDtype
    from pandas.api.types import pandas_dtype

    def dtype_of(type_: pa.DataType) -> Any:
        if pa.types.is_list(type_):
            return ArrowDtype(type_)
        return pandas_dtype(_NULLABLE[str(type_)]) if str(type_) in _NULLABLE else None

    return frames({
        name: column.to_pandas(types_mapper=dtype_of if column.null_count or pa.types.is_list(column.type) else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    })  # fmt: skip

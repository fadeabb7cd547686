"""Columns of a block of rows, numbers, categories and lists; and columns of Arrow as such, and back.

Blocks are the host's. Operators that compute numbers from numbers take `Numbers` of CuPy's arrays too: the columns of a
frame of cuDF. What a category *is*, a text or an integer, is kept once in a dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array
from whitewater.tables.arrow_arrays import one_array

_NULL = -1
_MOST_VALUES = 2**31 - 1


@dataclass(frozen=True)
class Numbers:
    """``values`` (rows,) of an integer, floating or boolean dtype.

    ``valid``, bool (rows,), is False where the value is null, which it is nowhere if ``valid`` is None. A
    NaN is null as well, with or without ``valid``; what stands at a null has no meaning.
    """

    values: Array
    valid: Array | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Categories:
    """Row *i* is ``dictionary[codes[i]]``, or null where the code is -1.

    ``codes`` are int32 (rows,). ``dictionary`` is an Arrow array without nulls: string,
    int64, or binary (combinations of columns). Its entries may repeat, and need not all occur.
    """

    codes: Array
    dictionary: pa.Array

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Lists:
    """Row *i* is ``values[offsets[i]:offsets[i + 1]]``; ``offsets`` are int64 (rows + 1,), from 0.

    A null list is an empty one.
    """

    offsets: Array
    values: Numbers | Categories

    def __len__(self) -> int:
        return len(self.offsets) - 1


Column = Numbers | Categories | Lists
Block = Mapping[str, Column]


def take_rows(column: Numbers | Categories, rows: Array | slice) -> Numbers | Categories:
    """Return some rows of a column without lists."""
    if isinstance(column, Categories):
        return Categories(column.codes[rows], column.dictionary)
    return Numbers(column.values[rows], None if column.valid is None else column.valid[rows])


def column_of(column: pa.ChunkedArray | pa.Array) -> Column:
    """Return a column of Arrow as one of ours.

    Raises ValueError if it is of a type that is neither numbers nor text nor lists of them; the message completes a
    sentence about the column.
    """
    values = one_array(column)
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return categories_of(values) if is_text(type_.value_type) else column_of(values.dictionary_decode())
    if is_text(type_):
        # Arrow has no dictionaries of views.
        text = values.cast(pa.large_string()) if pa.types.is_string_view(type_) else values
        return categories_of(text.dictionary_encode())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _lists(values)
    return _numbers(values)


def is_text(type_: pa.DataType) -> bool:
    """Tell whether a type is text, or a dictionary of text."""
    if pa.types.is_dictionary(type_):
        return is_text(type_.value_type)
    return any(each(type_) for each in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def categories_of(values: pa.DictionaryArray) -> Categories:
    """Return a dictionary of text or int64, and its indices, as categories."""
    codes = _filled(values.indices.cast(pa.int32()), _NULL)
    dictionary = values.dictionary.cast(pa.string()) if is_text(values.type) else values.dictionary
    if dictionary.null_count == 0:
        return Categories(codes, dictionary)
    # A dictionary may name null as a value.
    present = _present(dictionary)
    table = np.append(np.where(present, np.cumsum(present) - 1, _NULL), _NULL).astype(np.int32)
    return Categories(table[codes], dictionary.drop_null())


def _lists(values: pa.Array) -> Lists:
    items = column_of(values.flatten())
    if isinstance(items, Lists):
        raise ValueError("is of lists of lists, which no operator takes; flatten it")
    lengths = _filled(pc.list_value_length(values), 0)
    return Lists(np.append(0, np.cumsum(lengths, dtype=np.int64)), items)


def _numbers(values: pa.Array) -> Numbers:
    type_ = values.type
    if pa.types.is_null(type_):
        return Numbers(np.full(len(values), np.nan))
    if pa.types.is_floating(type_):
        return Numbers(_filled(values.cast(pa.float32()) if pa.types.is_float16(type_) else values, np.nan))
    valid = _present(values) if values.null_count else None
    if pa.types.is_boolean(type_):
        return Numbers(_filled(values.cast(pa.int8()), 0).view(bool), valid)
    if not pa.types.is_integer(type_):
        raise ValueError(f"is of type {type_}; columns are of numbers, text, or lists of them: convert it")
    return Numbers(_filled(values, 0), valid)


def _filled(values: pa.Array, null: float) -> Array:
    """Return numbers as NumPy's; Arrow's own `fill_null` would import pandas."""
    if values.null_count == 0:
        return np.from_dlpack(values)
    _, data = values.buffers()
    plain = pa.Array.from_buffers(values.type, len(values), [None, data], offset=values.offset)
    numbers = np.from_dlpack(plain)
    return np.where(_present(values), numbers, np.array(null).astype(numbers.dtype))


def _present(values: pa.Array) -> Array:
    return np.from_dlpack(values.is_valid().cast(pa.int8())).view(bool)


def arrow_of(column: Column, type_: pa.DataType) -> pa.Array:
    """Return a column of the host as an Arrow array of a type, with nulls as nulls, but NaN in floats.

    Raises ValueError if its values cannot be of the type.
    """
    if isinstance(column, Lists):
        if int(column.offsets[-1]) > _MOST_VALUES:
            raise ValueError(f"lists of more than {_MOST_VALUES} values in all do not fit one block")
        items = arrow_of(column.values, type_.value_type)
        offsets = _plain(column.offsets.astype(np.int32), None)
        return pa.ListArray.from_arrays(offsets, items, type=type_)
    if isinstance(column, Categories):
        made = column.dictionary.take(_plain(np.ascontiguousarray(column.codes), column.codes >= 0))
    else:
        made = _arrow_numbers(column, type_)
    if not pa.types.is_null(type_):
        return made.cast(type_)
    if made.null_count < len(made):
        raise ValueError("it has values")
    return pa.nulls(len(made))


def _arrow_numbers(column: Numbers, type_: pa.DataType) -> pa.Array:
    values, valid = column.values, column.valid
    if pa.types.is_floating(type_):
        floats = values.astype(type_.to_pandas_dtype(), copy=False)
        return _plain(floats if valid is None else np.where(valid, floats, floats.dtype.type(np.nan)), None)
    if values.dtype.kind == "f":
        present = ~np.isnan(values)
        valid = present if valid is None else valid & present
    if valid is not None:
        values = np.where(valid, values, values.dtype.type(0))
    return _plain(values, valid)


def _plain(values: Array, valid: Array | None) -> pa.Array:
    nulls = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if values.dtype == np.bool_:
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [nulls, bits])
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [nulls, data])

"""Columns as a Parquet file that is quick to load: plain values, neither encoded nor compressed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.engines.device import Device
from whitewater.errors import InputError
from whitewater.tables.columns import Categories, Column, Lists, Numbers, moved

# One page for each column chunk, up to 1 GiB.
_LARGE_PAGES = {"data_page_size": 1 << 30, "max_rows_per_page": 1 << 30, "write_batch_size": 1 << 16}

_MOST_VALUES = 2**31 - 1


def write_columns(
    block: Mapping[str, Column], path: Path, types: Mapping[str, pa.DataType], device: Device, *, row_group_rows: int
) -> None:
    """Write columns of one length as a Parquet file of plain pages; those of a GPU go over the host.

    The host's writer is as fast as the disk.

    ``types`` are those of the columns to write, in the order of the file: integers, floats, bool, string, or a list of
    these. Numbers are converted; a null of a float is written as NaN. Raises InputError if the values of a column
    cannot be of its type.
    """
    arrays = [_array(moved(block[name], device.to_host), name, type_) for name, type_ in types.items()]
    # Columns without nulls are required ones: their pages are the values and nothing else, at the speed of the disk.
    fields = [
        pa.field(name, type_, array.null_count > 0) for (name, type_), array in zip(types.items(), arrays, strict=True)
    ]
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path, row_group_size=row_group_rows, compression="none",
        use_dictionary=False, write_statistics=False, store_schema=False, **_LARGE_PAGES
    )  # fmt: skip


def _array(column: Column, name: str, type_: pa.DataType) -> pa.Array:
    try:
        return arrow_of(column, type_)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"column {name!r} cannot be written as {type_}: {error}.") from error


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
    if pa.types.is_null(type_):
        return _only_nulls(column)
    if isinstance(column, Categories):
        indices = _plain(np.ascontiguousarray(column.codes), column.codes >= 0)
        return column.dictionary.take(indices).cast(type_)
    return _numbers(column, type_)


def _only_nulls(column: Numbers | Categories) -> pa.Array:
    """Return a column as one of Arrow's nulls."""
    if isinstance(column, Categories):
        null = column.codes < 0
    else:
        null = np.isnan(np.from_dlpack(_numbers(column, pa.float64())))
    if not null.all():
        raise ValueError("it has values")
    return pa.nulls(len(column))


def _numbers(column: Numbers, type_: pa.DataType) -> pa.Array:
    values, valid = column.values, column.valid
    if pa.types.is_floating(type_):
        floats = values.astype(type_.to_pandas_dtype(), copy=False)
        return _plain(floats if valid is None else np.where(valid, floats, floats.dtype.type(np.nan)), None)
    if values.dtype.kind == "f":
        present = ~np.isnan(values)
        valid = present if valid is None else valid & present
    if valid is not None:
        values = np.where(valid, values, values.dtype.type(0))
    return _plain(values, valid).cast(type_)


def _plain(values: Array, valid: Array | None) -> pa.Array:
    nulls = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if values.dtype == np.bool_:
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [nulls, bits])
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [nulls, data])

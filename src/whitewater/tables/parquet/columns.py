"""Columns of a Parquet file as they are stored: numbers, categories and lists.

The dictionary of a column of text stays a dictionary, so that a row costs one code, and no text becomes an object of
Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from io import SEEK_END, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.tables.arrow_kinds import one_array
from whitewater.tables.columns import Categories, Column, Lists, Numbers, moved, taken
from whitewater.tables.parquet.blocks import faults_of, opened, position_of
from whitewater.tables.parquet.chunk import described
from whitewater.tables.parquet.column_chunk import read_chunk

if TYPE_CHECKING:
    import cudf

_NULL = -1
# The last bytes of a file: the length of its footer, and four letters.
_END = b"\0\0\0\0PAR1"
_CUDF_FLOATS = (pa.float32(), pa.float64())


def cpu_read_columns(
    path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
) -> dict[str, Column]:
    """Read columns of one row group; see `whitewater.engines.device.Device.read_columns`."""
    columns: dict[str, Column] = {}
    with _opened(path) as data:
        footer, schema = _footer(path, data)
        total = footer.row_group(row_group).num_rows
        wanted = range(total)[start : None if rows is None else start + rows]
        for name in names:
            with faults_of(path, row_group, name):
                position = position_of(schema, name)
                chunk = described(footer, row_group, position, schema.field(position))
                if chunk is None or pa.types.is_timestamp(chunk.type):
                    columns[name] = _read_by_arrow(path, row_group, name, wanted)
                else:
                    columns[name] = read_chunk(data, chunk, wanted)
    return columns


def _opened(path: Path) -> FileIO:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. Get it again, or leave it out.") from error


def _footer(path: Path, data: FileIO) -> tuple[pq.FileMetaData, pa.Schema]:
    """Return what a file's footer says, which is parsed once for all reads: it grows with row groups times columns."""
    size = data.seek(0, SEEK_END)
    data.seek(max(0, size - len(_END)))
    end = data.read(len(_END))
    length = int.from_bytes(end[:4], "little") + len(_END) if end[4:] == _END[4:] else 0
    data.seek(max(0, size - length))
    return _parsed(path, data.read(length))


@lru_cache(maxsize=16)
def _parsed(path: Path, _: bytes) -> tuple[pq.FileMetaData, pa.Schema]:
    with opened(path) as file:
        return file.metadata, file.schema_arrow


def _read_by_arrow(path: Path, row_group: int, name: str, wanted: range) -> Column:
    with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
        column = file.read_row_group(row_group, [name], use_threads=False).column(0)
    return column_of(column.slice(wanted.start, len(wanted)))


def column_of(column: pa.ChunkedArray | pa.Array) -> Column:
    """Return a column of Arrow as one of ours.

    Raises ValueError if it is of a type that is neither numbers nor text nor lists of them; the message completes a
    sentence about the column.
    """
    values = one_array(column)
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return _categories(values) if _is_text(type_.value_type) else column_of(values.dictionary_decode())
    if _is_text(type_):
        # Arrow has no dictionaries of views.
        text = values.cast(pa.large_string()) if pa.types.is_string_view(type_) else values
        return _categories(text.dictionary_encode())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _lists(values)
    return _numbers(values)


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    return any(each(type_) for each in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _categories(values: pa.DictionaryArray) -> Categories:
    codes = _filled(values.indices.cast(pa.int32()), _NULL)
    dictionary = values.dictionary.cast(pa.string())
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


def gpu_read_columns(
    path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
) -> dict[str, Column]:
    """Read columns of one row group with cuDF; see `cpu_read_columns`. The GPU holds the whole row group."""
    import cudf

    direct = _read_by_cudf(path, row_group, names)
    columns: dict[str, Column] = {}
    try:
        if direct:
            # By default cuDF reads columns off the names of directories, and fails at Hive's name for null.
            unpartitioned = {"partitioning": None}
            frame = cudf.read_parquet(path, columns=list(direct), row_groups=[row_group], dataset_kwargs=unpartitioned)
            columns = {name: _part(_of_series(frame[name], type_), start, rows) for name, type_ in direct.items()}
    except RuntimeError:
        # libcudf has one error for everything. The host's reader names the column, if it is the file that is at fault.
        cpu_read_columns(path, row_group, names)
        raise
    others = [name for name in names if name not in direct]
    for name, column in cpu_read_columns(path, row_group, others, start=start, rows=rows).items():
        columns[name] = moved(column, _copied)
    return {name: columns[name] for name in names}


def _read_by_cudf(path: Path, row_group: int, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the columns that cuDF reads as they are stored; the others take the way over the host."""
    with opened(path) as file:
        schema = file.schema_arrow
    direct: dict[str, pa.DataType] = {}
    for name in names:
        with faults_of(path, row_group, name):
            type_ = schema.types[position_of(schema, name)]
            values = type_.value_type if pa.types.is_list(type_) else type_
            number = pa.types.is_integer(values) or pa.types.is_boolean(values) or values in _CUDF_FLOATS
            if number or pa.types.is_string(values) or pa.types.is_large_string(values):
                direct[name] = type_
    return direct


def _of_series(series: cudf.Series, type_: pa.DataType) -> Column:
    """Return a column of cuDF, whose type in Arrow is given."""
    import cupy

    if pa.types.is_list(type_):
        lengths = series.list.len().fillna(0).to_cupy()
        offsets = cupy.zeros(len(lengths) + 1, "int64")
        offsets[1:] = cupy.cumsum(lengths.astype("int64"))
        return Lists(offsets, _values_of_series(series.list.leaves, type_.value_type))
    return _values_of_series(series, type_)


def _values_of_series(series: cudf.Series, type_: pa.DataType) -> Numbers | Categories:
    import cupy

    if _is_text(type_):
        codes, words = series.factorize()
        return Categories(codes.astype("int32"), words.to_arrow().cast(pa.string()))
    nulls = series.isna().to_cupy()
    values = series.fillna(False if pa.types.is_boolean(type_) else 0).to_cupy()
    if not bool(nulls.any()):
        return Numbers(values)
    if pa.types.is_floating(type_):
        values[nulls] = cupy.nan
        return Numbers(values)
    return Numbers(values, ~nulls)


def _part(column: Column, start: int, rows: int | None) -> Column:
    """Return some rows of a column."""
    wanted = range(len(column))[start : None if rows is None else start + rows]
    if not isinstance(column, Lists):
        return taken(column, slice(wanted.start, wanted.stop))
    offsets = column.offsets[wanted.start : wanted.stop + 1]
    return Lists(offsets - offsets[0], taken(column.values, slice(int(offsets[0]), int(offsets[-1]))))


def _copied(array: Any) -> Array:
    import cupy

    on_gpu: Array = cupy.asarray(array)
    return on_gpu

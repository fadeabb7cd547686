"""Blocks of Parquet files on a GPU: cuDF reads and writes; a type that it would read otherwise goes over the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import cudf
import cupy
import numpy as np
import pyarrow as pa

from whitewater.engines import Array
from whitewater.tables.arrow_kinds import (
    NULL_ID,
    encoded,
    microseconds_of,
    narrow_floats,
    narrow_integers,
    null_of,
)
from whitewater.tables.blocks import NULL_INTEGER, Encoded, Kind, RawBlock
from whitewater.tables.parquet import blocks_cpu
from whitewater.tables.parquet.blocks_cpu import COMPRESSION, is_null, to_arrow
from whitewater.tables.parquet.opening import UNPARTITIONED, faults_of, index_columns, opened, position_of

# Rows or bytes after which cuDF begins another row group: never.
_ALL = 2**31 - 1


def row_group_blocks(path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int) -> Iterator[RawBlock]:
    """Read columns of one row group with cuDF; the GPU holds the whole row group."""
    direct = _read_by_cudf(path, row_group, columns)
    arrays: RawBlock = {}
    try:
        if direct:
            frame = cudf.read_parquet(
                path, columns=direct, row_groups=[row_group], use_pandas_metadata=False, dataset_kwargs=UNPARTITIONED
            )
            for name in direct:
                with faults_of(path, row_group, name):
                    arrays[name] = _from_series(frame[name], columns[name])
    except RuntimeError:
        # libcudf has one error for everything. The host's reader names the column, if it is the file that is at fault.
        for _ in blocks_cpu.row_group_blocks(path, row_group, columns, block_rows=block_rows):
            pass
        raise
    others = {name: kind for name, kind in columns.items() if name not in direct}
    for start, block in zip(
        count(0, block_rows), blocks_cpu.row_group_blocks(path, row_group, others, block_rows=block_rows), strict=False
    ):
        stop = start + block_rows
        yield {name: _part(arrays[name], start, stop) if name in direct else _on_gpu(block[name]) for name in columns}


def _read_by_cudf(path: Path, row_group: int, columns: Mapping[str, Kind]) -> list[str]:
    """Return the columns that cuDF reads as their kind; the others take the way over the host."""
    direct: list[str] = []
    with opened(path) as file:
        schema = file.schema_arrow
    index = index_columns(schema)
    for name, kind in columns.items():
        with faults_of(path, row_group, name):
            if _is_direct(schema.field(position_of(schema, name)).type, kind) and name not in index:
                direct.append(name)
    return direct


def _is_direct(type_: pa.DataType, kind: Kind) -> bool:
    if pa.types.is_timestamp(type_):
        return kind == "timestamp" and type_.tz is None
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return kind == "text"
    if kind == "id":
        return bool(pa.types.is_signed_integer(type_))
    return kind != "timestamp" and bool(pa.types.is_signed_integer(type_) or pa.types.is_floating(type_))


def _from_series(series: Any, kind: Kind) -> Array | Encoded:
    """Return a column of cuDF, which has nulls, as an array of the kind."""
    if kind == "text":
        codes, words = series.factorize()
        text = encoded(words.to_arrow())
        table = cupy.asarray(np.append(text.codes, np.int32(NULL_INTEGER)))
        return Encoded(cupy.take(table, codes), text.vocabulary)
    nulls = series.isna().to_cupy()
    if kind == "id":
        if bool(nulls.any()):
            raise ValueError(NULL_ID)
        found: Array = series.astype("int64").to_cupy()
        return found
    if kind == "timestamp":
        unit, _ = np.datetime_data(series.dtype)
        found = microseconds_of(series.astype("int64").fillna(0).to_cupy(), unit)
    else:
        values = series.fillna(0).to_cupy()
        narrow = narrow_floats if values.dtype.kind == "f" else narrow_integers
        found = values.astype(np.float64) if kind == "float64" else narrow(cupy, values, np.dtype(kind))
    found[nulls] = null_of(kind)
    return found


def _part(values: Array | Encoded, start: int, stop: int) -> Array | Encoded:
    if isinstance(values, Encoded):
        return Encoded(values.codes[start:stop], values.vocabulary)
    return values[start:stop]


def _on_gpu(values: Array | Encoded) -> Array | Encoded:
    if isinstance(values, Encoded):
        return Encoded(cupy.asarray(values.codes), values.vocabulary)
    array: Array = cupy.asarray(values)
    return array


def write_parquet(block: Mapping[str, Array | Encoded], path: Path, kinds: Mapping[str, Kind]) -> None:
    """Write a block with cuDF, as one row group."""
    frame = cudf.DataFrame({name: _to_series(block[name], kind) for name, kind in kinds.items()})
    frame.to_parquet(
        path,
        index=False,
        compression=COMPRESSION,
        row_group_size_rows=_ALL,
        row_group_size_bytes=_ALL,
        # As on the CPU: else a column is required in a file that has no null of it, and optional in the next one.
        force_nullable_schema=True,
    )


def _to_series(values: Array | Encoded, kind: Kind) -> Any:
    if isinstance(values, Encoded):
        return cudf.Series.from_arrow(to_arrow(Encoded(cupy.asnumpy(values.codes), values.vocabulary), kind))
    series = cudf.Series(values)
    if kind == "timestamp":
        series = series.astype("datetime64[us]")
    return series.mask(cudf.Series(is_null(cupy, values, kind)))

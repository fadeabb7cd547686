"""Columns of Parquet files on a GPU: cuDF reads numbers, text and lists of them; other columns go over the host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cudf
import cupy
import pyarrow as pa

from whitewater.features.columns import parquet_cpu
from whitewater.features.columns.arrow import is_text
from whitewater.features.columns.column import Categories, Column, Lists, Numbers, moved, taken
from whitewater.features.columns.opening import UNPARTITIONED, faults_of, index_columns, opened, position_of

_CUDF_FLOATS = (pa.float32(), pa.float64())


def read_columns(
    path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
) -> dict[str, Column]:
    """Read columns of one row group with cuDF; the GPU holds the whole row group."""
    direct = _read_by_cudf(path, row_group, names)
    columns: dict[str, Column] = {}
    try:
        if direct:
            frame = cudf.read_parquet(
                path,
                columns=list(direct),
                row_groups=[row_group],
                use_pandas_metadata=False,
                dataset_kwargs=UNPARTITIONED,
            )
            columns = {name: _part(_of_series(frame[name], type_), start, rows) for name, type_ in direct.items()}
    except RuntimeError:
        # libcudf has one error for everything. The host's reader names the column, if it is the file that is at fault.
        parquet_cpu.read_columns(path, row_group, names)
        raise
    others = [name for name in names if name not in direct]
    for name, column in parquet_cpu.read_columns(path, row_group, others, start=start, rows=rows).items():
        columns[name] = moved(column, cupy.asarray)
    return {name: columns[name] for name in names}


def _read_by_cudf(path: Path, row_group: int, names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the columns that cuDF reads as they are stored; the others take the way over the host."""
    with opened(path) as file:
        schema = file.schema_arrow
    index = index_columns(schema)
    direct: dict[str, pa.DataType] = {}
    for name in names:
        with faults_of(path, row_group, name):
            type_ = schema.types[position_of(schema, name)]
            values = type_.value_type if pa.types.is_list(type_) else type_
            number = pa.types.is_integer(values) or pa.types.is_boolean(values) or values in _CUDF_FLOATS
            text = pa.types.is_string(values) or pa.types.is_large_string(values)
            if (number or text) and name not in index:
                direct[name] = type_
    return direct


def _of_series(series: cudf.Series, type_: pa.DataType) -> Column:
    """Return a column of cuDF, whose type in Arrow is given."""
    if pa.types.is_list(type_):
        lengths = series.list.len().fillna(0).to_cupy()
        offsets = cupy.zeros(len(lengths) + 1, "int64")
        offsets[1:] = cupy.cumsum(lengths.astype("int64"))
        return Lists(offsets, _values_of_series(series.list.leaves, type_.value_type))
    return _values_of_series(series, type_)


def _values_of_series(series: cudf.Series, type_: pa.DataType) -> Numbers | Categories:
    if is_text(type_):
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

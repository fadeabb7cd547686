"""Columns of a Parquet file as they are stored: numbers, categories and lists.

The dictionary of a column of text stays a dictionary, so that a row costs one code, and no text becomes an object of
Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines.device import Device
from whitewater.errors import InputError
from whitewater.features.columns.arrow import arrow_of
from whitewater.features.columns.column import Column, moved

# One page for each column chunk, up to 1 GiB.
_LARGE_PAGES = {"data_page_size": 1 << 30, "max_rows_per_page": 1 << 30, "write_batch_size": 1 << 16}


def read_columns(
    device: Device, path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
) -> dict[str, Column]:
    """Read columns of one row group of a Parquet file, or of ``rows`` rows from ``start`` on, as they are stored.

    Text and dictionaries become `Categories`, of which what is not dictionary encoded has each of its values; numbers
    and booleans `Numbers` of their width, lists `Lists`. Arrow's null type is float64, all NaN. A GPU holds the whole
    row group while it reads.

    Raises InputError where the file is damaged, or a column is missing or of another type.
    """
    if device.name == "gpu":
        from whitewater.features.columns import parquet_gpu

        return parquet_gpu.read_columns(path, row_group, names, start=start, rows=rows)
    from whitewater.features.columns import parquet_cpu

    return parquet_cpu.read_columns(path, row_group, names, start=start, rows=rows)


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

"""Columns of a Parquet file as they are stored: numbers, categories and lists.

The dictionary of a column of text stays a dictionary, so that a row costs one code, and no text becomes an object of
Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whitewater.engines.device import Device
from whitewater.features.columns.column import Column


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

"""Columns of a Parquet file as they are stored: flat ones by our own decoder, others by pyarrow.

The dictionary of a column of text stays a dictionary, so that a row costs one code, and no text becomes an object of
Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import SEEK_END, FileIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.features.columns.arrow import column_of
from whitewater.features.columns.column import Column, take_rows
from whitewater.io.folder import open_parquet

# The last bytes of a file: the length of its footer, and four letters.
_END = b"\0\0\0\0PAR1"
_FAULTS = (OSError, ValueError, pa.ArrowException)


def read_columns(
    path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
) -> dict[str, Column]:
    """Read columns of one row group of a Parquet file, or of ``rows`` rows from ``start`` on, as they are stored.

    Text and dictionaries become `Categories`, of which what is not dictionary encoded has each of its values; numbers
    and booleans `Numbers` of their width, lists `Lists`. Arrow's null type is float64, all NaN.

    Raises InputError where the file is damaged, or a column is missing or of another type.
    """
    # Numba, which takes a third of a second to import, only where columns are decoded.
    from whitewater.features.columns.chunk import read_chunk

    columns: dict[str, Column] = {}
    try:
        data = path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. Get it again, or leave it out.") from error
    with data:
        footer, schema = _footer(path, data)
        wanted = range(footer.row_group(row_group).num_rows)[start : None if rows is None else start + rows]
        for name in names:
            with faults_of(path, row_group, name):
                position = _position_of(schema, name)
                column = read_chunk(data, footer, row_group, position, schema.field(position))
                if column is None:
                    columns[name] = _read_by_arrow(path, row_group, name, wanted)
                else:
                    is_all = len(wanted) == len(column)
                    columns[name] = column if is_all else take_rows(column, slice(wanted.start, wanted.stop))
    return columns


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
    with open_parquet(path) as file:
        return file.metadata, file.schema_arrow


def _read_by_arrow(path: Path, row_group: int, name: str, wanted: range) -> Column:
    with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
        column = file.read_row_group(row_group, [name], use_threads=False).column(0)
    # What is not UTF-8 is read as well.
    column.validate(full=True)
    return column_of(column.slice(wanted.start, len(wanted)))


@contextmanager
def faults_of(path: Path, row_group: int, column: str) -> Iterator[None]:
    """Raise what goes wrong with a column as InputError that names it."""
    try:
        yield
    except _FAULTS as error:
        raise InputError(
            f"{path}, row group {row_group}: column {column!r} {error}. Get the file again, or leave it out."
        ) from error


def _position_of(schema: pa.Schema, name: str) -> int:
    """Return the index of a column by its name; raises ValueError unless there is exactly one."""
    names = schema.names
    if names.count(name) != 1:
        problem = "is there more than once" if name in names else "is not there"
        raise ValueError(f"{problem}; the columns are {', '.join(names)}")
    return int(names.index(name))

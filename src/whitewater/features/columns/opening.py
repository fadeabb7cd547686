"""A Parquet file opened, its columns found by name, and faults as errors that name the file and the column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError

_FAULTS = (OSError, ValueError, pa.ArrowException)


def opened(path: Path) -> pq.ParquetFile:
    """Return a Parquet file; raises InputError if it is not one, or cut off."""
    try:
        return pq.ParquetFile(path)
    except _FAULTS as error:
        raise InputError(f"{path} is not a whole Parquet file: {error}. Get it again, or leave it out.") from error


@contextmanager
def faults_of(path: Path, row_group: int, column: str) -> Iterator[None]:
    """Raise what goes wrong with a column as InputError that names it."""
    try:
        yield
    except _FAULTS as error:
        raise InputError(
            f"{path}, row group {row_group}: column {column!r} {error}. Get the file again, or leave it out."
        ) from error


def position_of(schema: pa.Schema, name: str) -> int:
    """Return the index of a column by its name; raises ValueError unless there is exactly one."""
    names = schema.names
    if names.count(name) != 1:
        problem = "is there more than once" if name in names else "is not there"
        raise ValueError(f"{problem}; the columns are {', '.join(names)}")
    return int(names.index(name))

"""Folders of numbered Parquet files, ``documents-00000.parquet`` and so on: written file by file, read by row group."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError

COMPRESSION = "zstd"


def numbered(path: Path, stem: str, number: int) -> Path:
    """Return the path of a file of the folder ``path``."""
    return path / f"{stem}-{number:05d}.parquet"


def numbered_files(path: Path, stem: str) -> list[Path]:
    """Return the files of a folder, in the order of their numbers."""
    return sorted(path.glob(f"{stem}-*.parquet"), key=lambda file: int(file.stem.rpartition("-")[2]))


def write_table(table: pa.Table, path: Path, *, group_rows: int) -> None:
    """Write a file at once: beside its place, then renamed, so that a task that runs twice leaves the same file."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        pq.write_table(table, beside, row_group_size=group_rows, compression=COMPRESSION)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def row_groups(files: Sequence[Path]) -> list[tuple[Path, int, int]]:
    """Return file, number and rows of each row group. Raises InputError if a file is none of Parquet."""
    found = []
    for path in files:
        with _explained(path):
            footer = pq.read_metadata(path)
            found += [(path, group, footer.row_group(group).num_rows) for group in range(footer.num_row_groups)]
    return found


def read_row_group(path: Path, group: int, columns: Sequence[str] | None) -> pa.Table:
    """Read a row group. Raises InputError if it cannot be read or lacks a column."""
    with _explained(path), pq.ParquetFile(path) as file:
        lacking = set(columns or ()) - set(file.schema_arrow.names)
        if lacking:
            raise ValueError(f"it has no column {', '.join(sorted(lacking))}")
        return file.read_row_group(group, columns=None if columns is None else list(columns))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. Run the step that writes it again.") from error

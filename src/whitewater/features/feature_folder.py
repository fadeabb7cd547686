"""A folder of features: what a workflow made of a log, ready to be loaded in batches.

``features.json``, written last, makes a folder one of features: columns with type, tags and properties, files in order,
and whether their rows are shuffled, with which seed. The Parquet files have plain pages, neither encoded nor
compressed, so that a loader maps them. `files_of` tells where the numbers are;
what a footer says is checked against the file before any number is read.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater.engines.device import Array
from whitewater.errors import InputError, IntegrityError
from whitewater.features.columns.opening import position_of
from whitewater.features.schema import Field, Schema, described, field_of
from whitewater.io.folder import Format, RowGroup
from whitewater.tables.arrow_arrays import to_numpy

FORMAT = Format("features.json", 1, "features", remedy="Run the step features again.")
_AGAIN = "Run the step features again"
_STORED = {"BOOLEAN": np.dtype(bool), "INT32": np.dtype("<i4"), "INT64": np.dtype("<i8"), "FLOAT": np.dtype("<f4"),
           "DOUBLE": np.dtype("<f8")}  # fmt: skip
# A page header takes at most so many bytes without statistics and checksum, and two of them more.
_ONE_HEADER = 29


@dataclass(frozen=True)
class FeatureFile:
    """A file of the folder: its name, and its rows."""

    name: str
    rows: int


@dataclass(frozen=True)
class FeatureFolder:
    """An open folder of features."""

    path: Path
    # The columns in the order of the files, with their tags: that of their group of features, or label, or key
    schema: Schema
    files: tuple[FeatureFile, ...]  # the files, in order; none of them is empty
    seed: int | None  # seed of the order of the rows; None where they are in the order of the log

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the rows; see `Format.row_groups`."""
        return [group for file in self.files for group in FORMAT.row_groups(self.path / file.name, rows=file.rows)]


def open_features(path: Path) -> FeatureFolder:
    """Open a folder of features. Raises InputError if it is none, is of another format, or lacks a file."""
    folder = FORMAT.read(path, _folder)
    FORMAT.check_files(path, [file.name for file in folder.files])
    return folder


def write_features(path: Path, schema: Schema, files: Sequence[FeatureFile], *, seed: int | None) -> None:
    """Write the file that makes a folder of Parquet files one of features; ``seed`` is None where rows are in order."""
    value = {
        "rows": sum(file.rows for file in files),
        "shuffled": seed is not None,
        "seed": seed,
        "columns": [described(field) for field in schema],
        "files": [asdict(file) for file in files],
    }
    FORMAT.write(path, value)


def file_name(number: int) -> str:
    """Return the name of a file by its place."""
    return f"part-{number:05d}.parquet"


def _folder(
    path: Path, *, columns: list[Any], files: list[Any], rows: int, seed: int | None, **_: Any
) -> FeatureFolder:
    schema = Schema(tuple(map(field_of, columns)))
    folder = FeatureFolder(path, schema, tuple(FeatureFile(**each) for each in files), seed)
    if folder.rows != rows:
        raise ValueError(f"its files have {folder.rows} rows, not {rows}")
    return folder


@dataclass(frozen=True)
class Values:
    """Where the numbers of a column of a row group begin in the file, their type, and how many each row has."""

    start: int
    dtype: np.dtype[Any]
    length: int

    def place(self, first: int, rows: int) -> slice:
        """Return which bytes of the file have the numbers of some rows; Parquet packs booleans to bits."""
        bits = 1 if self.dtype == bool else 8 * self.dtype.itemsize * self.length
        return slice(self.start + first * bits // 8, self.start - (-(first + rows) * bits // 8))

    def read(self, data: Array, first: int, rows: int) -> Array:
        """Return the numbers of some rows, (rows, length), of the bytes of the file, uint8."""
        stored = data[self.place(first, rows)]
        if self.dtype == bool:
            return np.unpackbits(stored, bitorder="little")[first % 8 :][:rows, None]
        return stored.view(self.dtype).reshape(rows, self.length)


@dataclass(frozen=True)
class MappedFile:
    """A file to map, as it was when its footer was read: ``signature`` is its size and the time of its last change."""

    path: Path
    footer: pq.FileMetaData
    signature: tuple[int, int]

    def mapped(self) -> mmap.mmap:
        """Map the file. Raises InputError if it cannot be read, and IntegrityError if it is no longer the same."""
        with FORMAT.explained(self.path), self.path.open("rb") as file:
            if _signature(os.fstat(file.fileno())) != self.signature:
                raise IntegrityError(f"{self.path} was changed while it was loaded. Open the folder again.")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def values(self, data: Array, row_group: int, field: Field) -> Values:
        """Return where the numbers of a column of a row group are in ``data``, uint8, the bytes of the file.

        Raises InputError if it is missing, damaged, not as a folder of features has it, or has a null.
        """
        try:
            return self._values(data, row_group, field)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{self.path}, row group {row_group}: column {field.name!r} {error}.") from error

    def _values(self, data: Array, row_group: int, field: Field) -> Values:
        position = position_of(self.footer.schema.to_arrow_schema(), field.name)
        chunk, rows = self.footer.row_group(row_group).column(position), self.footer.row_group(row_group).num_rows
        is_list = pa.types.is_list(field.type)
        stored = _physical(field.type.value_type if is_list else field.type)
        is_plain = chunk.compression == "UNCOMPRESSED" and set(chunk.encodings) <= {"PLAIN", "RLE"}
        if chunk.physical_type != stored or not is_plain:
            raise ValueError(
                f"is stored as {chunk.physical_type}, {chunk.compression.lower()}, and not as plain {stored}. {_AGAIN}"
            )
        length = field.properties["length"] if is_list else 1
        size = Values(0, _STORED[stored], length).place(0, rows).stop
        values = Values(chunk.data_page_offset + chunk.total_compressed_size - size, _STORED[stored], length)
        if self.footer.schema.column(position).max_definition_level:
            _compare(self._read(row_group, field.name), values.read(data, 0, rows), length=length)
        elif not 0 < chunk.total_compressed_size - size <= _ONE_HEADER:
            raise ValueError(f"is not stored as one plain page. {_AGAIN}")
        return values

    def _read(self, row_group: int, name: str) -> pa.ChunkedArray:
        with pq.ParquetFile(self.path, metadata=self.footer, page_checksum_verification=True) as file:
            return file.read_row_group(row_group, columns=[name], use_threads=False).column(0)


def files_of(folder: FeatureFolder) -> tuple[list[MappedFile], Array]:
    """Return the files of a folder, and its row groups with any rows in order: file, number and rows, int64 (n, 3).

    Raises
    ------
    InputError
        If a file is missing, or none of Parquet.
    IntegrityError
        If a file has other rows than it should have, or more or fewer bytes.
    """
    groups = [each for each in folder.row_groups() if each.rows]
    numbers = {path: number for number, path in enumerate(dict.fromkeys(group.path for group in groups))}
    files = [_file(path) for path in numbers]
    return files, np.array([(numbers[path], group, rows) for path, group, rows in groups], np.int64).reshape(-1, 3)


def _file(path: Path) -> MappedFile:
    footer, signature = FORMAT.footer(path), _signature(path.stat())
    last = footer.row_group(footer.num_row_groups - 1).column(footer.num_columns - 1)
    # A footer ends with its own length and four letters.
    if last.data_page_offset + last.total_compressed_size + footer.serialized_size + 8 != signature[0]:
        raise IntegrityError(f"{path} was changed or cut: its columns take more or fewer bytes. {_AGAIN}.")
    return MappedFile(path, footer, signature)


def _signature(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _physical(type_: pa.DataType) -> str:
    """Return how Parquet stores a number of a type that `whitewater.features.loader` loads."""
    wide = {pa.bool_(): "BOOLEAN", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.int64(): "INT64"}
    return wide.get(type_, "INT32")


def _compare(column: pa.ChunkedArray, values: Array, *, length: int) -> None:
    """Compare a column with levels ahead of its values, as Arrow reads it, with the values, (rows, length)."""
    if pa.types.is_list(column.type):
        lengths = pc.list_value_length(column)
        column = pc.list_flatten(column)
        if lengths.null_count or column.null_count or not pc.all(pc.equal(lengths, length)).as_py():
            raise ValueError(f"has lists of other lengths than {length}, or with nulls. {_AGAIN}")
    if column.null_count:
        raise ValueError(
            f"has {column.null_count} nulls, for which there is no number. Fill them: FillMissing, FillMedian"
        )
    found = to_numpy(column.cast(pa.from_numpy_dtype(values.dtype)))
    if not np.array_equal(found, values.ravel(), equal_nan=values.dtype.kind == "f"):
        raise ValueError(f"is not stored as one plain page. {_AGAIN}")

"""Where the numbers of a folder of features are in its files, so that they are read where they stand.

The files have one plain, uncompressed page for each column of a row group (`FeatureFolder`), in which a row is found by
arithmetic. What a footer and a page header say is checked against the file before any number is read.
"""

from __future__ import annotations

import mmap
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.devices import parquet_pages
from whitewater.devices.parquet import position_of
from whitewater.devices.parquet_pages import ABSENT
from whitewater.devices.protocol import Array
from whitewater.errors import InputError, IntegrityError
from whitewater.recsys.feature_folder import FeatureFolder
from whitewater.recsys.loading_kernels import BIT, COPIED, FLOAT64, INT32, INT64
from whitewater.recsys.schema import Field

_AGAIN = "Run the step features again"
_SIZES = {"BOOLEAN": 0, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}
_STORED = {"INT32": INT32, "INT64": INT64, "DOUBLE": FLOAT64}
# Where a number as it is stored is one of the matrix.
_AS_THEY_ARE = {("FLOAT", "float32"), ("INT32", "int32"), ("INT64", "int64")}


@dataclass(frozen=True)
class MappedFile:
    """The bytes of a file, uint8, and the mapping to be told which of them will be read."""

    path: Path
    data: Array
    mapping: mmap.mmap

    def will_read(self, start: int, stop: int) -> None:
        """Have the system read bytes ahead."""
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        self.mapping.madvise(mmap.MADV_WILLNEED, first, stop - first)


@dataclass(frozen=True)
class FeatureFile:
    """A file as it was when its footer was read: ``signature`` is its size and the time of its last change."""

    path: Path
    footer: pq.FileMetaData
    signature: tuple[int, int]

    def mapped(self) -> MappedFile:
        """Map the file.

        Raises
        ------
        InputError
            If it cannot be read.
        IntegrityError
            If it is no longer the same.
        """
        try:
            with self.path.open("rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                signature = _signature(os.fstat(file.fileno()))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path} cannot be read: {error}. {_AGAIN}.") from error
        if signature != self.signature:
            raise IntegrityError(f"{self.path} was changed while it was loaded. Open the folder again.")
        return MappedFile(self.path, np.frombuffer(mapping, np.uint8), mapping)

    def places(self, data: Array, row_group: int, field: Field, dtype: np.dtype[Any], length: int | None) -> Array:
        """Return where the numbers of a column of one row group are.

        Parameters
        ----------
        data
            uint8, the bytes of the file.
        row_group
            Number of the row group, which has rows.
        field
            The column: numbers, booleans, or lists of them.
        dtype
            What the numbers are to become: float32, or int32 or int64 that holds the column's integers.
        length
            Of each list; None where the column has one number a row.

        Returns
        -------
        array
            int64 (1 or ``length``, 3), as `whitewater.recsys.loading_kernels.place_rows` takes them.

        Raises
        ------
        InputError
            If the column is missing, damaged, not as a folder of features has it, or has a null.
        """
        try:
            return self._places(data, row_group, field, dtype, length)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{self.path}, row group {row_group}: column {field.name!r} {error}.") from error

    def _places(self, data: Array, row_group: int, field: Field, dtype: np.dtype[Any], length: int | None) -> Array:
        position = position_of(self.footer.schema.to_arrow_schema(), field.name)
        group = self.footer.row_group(row_group)
        chunk = group.column(position)
        stored = _physical(field.type if length is None else field.type.value_type)
        if chunk.physical_type != stored or chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page:
            raise ValueError(
                f"is stored as {chunk.physical_type}, {chunk.compression.lower()}, and not as plain {stored}. {_AGAIN}"
            )
        size, count = _SIZES[stored], group.num_rows * (length or 1)
        page, at = _only_page(data, chunk.data_page_offset, chunk.total_compressed_size, count)
        if length is None:
            start = _values_of_rows(page, count, optional=self.footer.schema.column(position).max_definition_level > 0)
        else:
            start = _values_of_lists(page, count, length, size=size)
        if len(page) - start < (size * count or -(-count // 8)):
            raise ValueError(f"has a page that is too short for its values. {_AGAIN}")
        if stored == "BOOLEAN":
            return np.array([[8 * (at + start), 1, BIT]])
        kind = COPIED if (stored, dtype.name) in _AS_THEY_ARE else _STORED[stored]
        return np.array([[at + start + size * item, size * (length or 1), kind] for item in range(length or 1)])


def files_of(folder: FeatureFolder) -> tuple[list[FeatureFile], Array]:
    """Return the files of a folder, and its row groups with any rows in order: file, number and rows, int64 (n, 3).

    Raises
    ------
    InputError
        If a file is missing, or none of Parquet.
    IntegrityError
        If a file has other rows than it should have.
    """
    groups = [each for each in folder.row_groups() if each[2]]
    numbers = {path: number for number, path in enumerate(dict.fromkeys(path for path, _, _ in groups))}
    files = [FeatureFile(path, pq.read_metadata(path), _signature(path.stat())) for path in numbers]
    return files, np.array([(numbers[path], group, rows) for path, group, rows in groups], np.int64).reshape(-1, 3)


def _signature(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _physical(type_: pa.DataType) -> str:
    """Return how Parquet stores a number of a type that `whitewater.recsys.loading` loads."""
    if pa.types.is_boolean(type_):
        return "BOOLEAN"
    if pa.types.is_floating(type_):
        return "DOUBLE" if type_ == pa.float64() else "FLOAT"
    return "INT64" if type_ == pa.int64() else "INT32"


def _only_page(data: Array, offset: int, size: int, count: int) -> tuple[Array, int]:
    """Return the only page of a column chunk, uint8, which has ``count`` values, and where in the file it is."""
    chunk = data[offset : offset + size]
    headers = np.empty((2, parquet_pages.FIELDS), np.int64)
    found, taken = parquet_pages.find_pages(chunk, headers)
    header = headers[0].tolist()
    if len(chunk) != size or found < 1 or taken < 0:
        raise ValueError(f"has a malformed page header, or is cut off. {_AGAIN}")
    is_plain = header[parquet_pages.KIND] == parquet_pages.DATA and header[parquet_pages.ENCODING] == 0
    if found != 1 or taken != size or not is_plain:
        raise ValueError(f"is not stored as one plain page. {_AGAIN}")
    if header[parquet_pages.VALUES] != count:
        raise ValueError(f"has {header[parquet_pages.VALUES]} values, and not {count}. {_AGAIN}")
    at = header[parquet_pages.BODY]
    page = chunk[at : at + header[parquet_pages.COMPRESSED]]
    checksum = header[parquet_pages.CHECKSUM]
    if checksum != ABSENT and zlib.crc32(page.data) != checksum & 0xFFFFFFFF:
        raise ValueError(f"has a page whose checksum is wrong. {_AGAIN}")
    return page, offset + at


def _values_of_rows(page: Array, rows: int, *, optional: bool) -> int:
    """Return where the values of a page begin; each row has one."""
    if not optional:
        return 0
    count, start = parquet_pages.definition_levels(page, ABSENT, np.empty(rows, np.uint32))
    if start < 0:
        raise ValueError(f"has malformed definition levels. {_AGAIN}")
    if count != rows:
        raise ValueError(f"has {rows - count} nulls, for which there is no number. Fill them: FillMissing, FillMedian")
    return int(start)


def _values_of_lists(page: Array, count: int, length: int, *, size: int) -> int:
    """Return where the items of lists of one length begin: repetition and definition levels are ahead of them."""
    continued = np.empty(count, np.uint32)
    _, start = parquet_pages.definition_levels(page, ABSENT, continued)
    if start < 0 or len(page) - start < 4:
        raise ValueError(f"has malformed repetition levels. {_AGAIN}")
    start += 4 + int.from_bytes(page[start : start + 4].tobytes(), "little")
    if len(page) - start != size * count or not (continued.reshape(-1, length) == (np.arange(length) > 0)).all():
        raise ValueError(f"has lists of other lengths than {length}, or with nulls. {_AGAIN}")
    return start

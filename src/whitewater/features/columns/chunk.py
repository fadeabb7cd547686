"""A column chunk of a Parquet file, read page by page.

Covered is what writers make of flat columns of numbers and text: data pages of version 1 and 2, plain or dictionary
encoded, compressed with Snappy, Zstandard, gzip, Brotli or not at all. `described` tells what is not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.features.columns import pages as parquet_pages
from whitewater.features.columns.pages import ABSENT, DATA, DATA_V2, DICTIONARY, KIND, VALUES
from whitewater.tables.arrow_arrays import empty

PHYSICAL: dict[str, np.dtype[Any]] = {
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FLOAT": np.dtype("<f4"),
    "DOUBLE": np.dtype("<f8"),
}
_STORED_AS = {
    pa.int8(): "INT32",
    pa.int16(): "INT32",
    pa.int32(): "INT32",
    pa.int64(): "INT64",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "BYTE_ARRAY",
    pa.large_string(): "BYTE_ARRAY",
}
_UNCOMPRESSED = "UNCOMPRESSED"
# Not LZ4, a name that Parquet gives to two formats.
_CODECS = {_UNCOMPRESSED, "SNAPPY", "ZSTD", "GZIP", "BROTLI"}
_ENCODINGS = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_INDICES = (parquet_pages.PLAIN_DICTIONARY, parquet_pages.RLE_DICTIONARY)
# A dictionary page calls its own plain encoding by either name.
_VALUES = (parquet_pages.PLAIN, parquet_pages.PLAIN_DICTIONARY)
_WINDOW_BYTES = 1 << 20
_PAGES_OF_A_WINDOW = 256


class ChunkError(ValueError):
    """The bytes of a column chunk are not what a writer writes; the message completes a sentence about the column."""


@dataclass(frozen=True)
class Chunk:
    """Where a column chunk is, and what its footer says of it."""

    offset: int
    size: int
    rows: int
    codec: str
    optional: bool
    physical: str
    type: pa.DataType


class Page(NamedTuple):
    """A page, uncompressed. ``levels`` is the size of its definition levels in bytes, or `ABSENT`."""

    kind: int
    rows: int
    levels: int
    has_indices: bool
    body: bytes | memoryview


def describe_chunk(footer: pq.FileMetaData, row_group: int, column: int, field: pa.Field) -> Chunk | None:
    """Return what a footer says of a column chunk, or None where it is of a form that only pyarrow reads.

    ``column`` is the index of the column in Arrow's schema, and ``field`` what it has there.
    """
    leaf = _leaf(footer.schema, column, field.name)
    if leaf is None:
        return None
    group = footer.row_group(row_group)
    chunk = group.column(leaf)
    declared = footer.schema.column(leaf)
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    flat = declared.max_repetition_level == 0 and declared.max_definition_level <= 1
    covered = flat and set(chunk.encodings) <= _ENCODINGS and chunk.compression in _CODECS
    if not covered or _STORED_AS.get(type_) != declared.physical_type:
        return None
    starts = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
    return Chunk(
        min(starts, default=0),
        chunk.total_compressed_size,
        group.num_rows,
        chunk.compression,
        declared.max_definition_level == 1,
        declared.physical_type,
        type_,
    )


def _leaf(schema: pq.ParquetSchema, column: int, name: str) -> int | None:
    """Return the index of a flat column among the leaves of the schema: a struct before it has several, or none."""
    places = [column, *range(len(schema))] if column < len(schema) else range(len(schema))
    return next((place for place in places if schema.column(place).path == name), None)


def unsigned(values: Array) -> Array:
    """Return numbers as unsigned ones of their width, for which the kernels are compiled."""
    return values.view(f"u{values.dtype.itemsize}")


def texts_of(body: bytes | memoryview, count: int) -> pa.Array:
    """Return plainly encoded texts of a page as an Arrow array of string; raises ValueError if they are malformed."""
    data = np.frombuffer(body, np.uint8)
    if count > len(data):
        raise ChunkError("has a page that is too short for its texts")
    offsets, text = np.empty(count + 1, np.int32), np.empty(len(data), np.uint8)
    if not parquet_pages.split_byte_arrays(data, offsets, text):
        raise ChunkError("has a malformed page of texts")
    values = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    values.validate(full=True)
    return values


def pages_of(data: FileIO, chunk: Chunk, wanted: range | None = None) -> Iterator[Page]:
    """Yield the pages of a chunk, holding a window of its bytes at a time.

    Data pages without any of the ``wanted`` rows of the chunk, all by default, are not uncompressed.
    """
    first = 0
    window = _WINDOW_BYTES
    headers = np.empty((_PAGES_OF_A_WINDOW, parquet_pages.FIELDS), np.int64)
    done = 0
    while done < chunk.size:
        buffer = empty(min(window, chunk.size - done), np.dtype(np.uint8))
        data.seek(chunk.offset + done)
        if data.readinto(buffer.data) != len(buffer):
            raise ChunkError("is cut off")
        found, taken = parquet_pages.find_pages(buffer, headers)
        if taken < 0 or (found == 0 and done + len(buffer) == chunk.size):
            raise ChunkError("has a malformed page header, or is cut off")
        window = window if found else 2 * window
        for header in headers[:found].tolist():
            rows = header[VALUES] if header[KIND] in (DATA, DATA_V2) else 0
            is_wanted = wanted is None or rows == 0 or (first + rows > wanted.start and first < wanted.stop)
            yield _page(header, buffer.data, chunk.codec, is_wanted=is_wanted)
            first += rows
        done += taken


def _page(header: list[int], data: memoryview, codec: str, *, is_wanted: bool) -> Page:
    """Return a page by its header, a row of the table of `parquet_pages.find_pages`."""
    kind, size, compressed, checksum, rows, encoding, levels, is_compressed, start = header
    body = data[start : start + compressed]
    if checksum != ABSENT and zlib.crc32(body) != checksum & 0xFFFFFFFF:
        raise ChunkError("has a page whose checksum is wrong")
    has_indices = kind != DICTIONARY and encoding in _INDICES
    if not has_indices and encoding not in _VALUES:
        raise ChunkError(f"has a page of encoding {encoding}, which its footer does not name")
    if is_wanted:
        body = _uncompressed(body, codec if is_compressed else _UNCOMPRESSED, size, max(levels, 0))
    return Page(kind, rows, levels, has_indices, body)


def _uncompressed(body: memoryview, codec: str, size: int, levels: int) -> memoryview:
    """Return a page of ``size`` bytes, of which definition levels of version 2 are not compressed."""
    if levels > min(len(body), size):
        raise ChunkError("has a malformed page header")
    if codec == _UNCOMPRESSED:
        if len(body) != size:
            raise ChunkError("has a page of another size than its header says")
        return body
    page = np.empty(size, np.uint8)
    page.data[:levels] = body[:levels]
    if size > levels:
        _decompress(body[levels:], codec, page[levels:])
    return page.data


def _decompress(body: memoryview, codec: str, target: Array) -> None:
    """Fill ``target`` with what ``body`` holds."""
    if codec != "SNAPPY":
        target[:] = np.frombuffer(pa.Codec(codec.lower()).decompress(body, len(target)), np.uint8)
        return
    # Twice as fast as pyarrow, and most of the time that a column of timestamps takes.
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_into(body, target.data)
    except cramjam.DecompressionError as error:
        raise ChunkError(f"has a page that Snappy cannot decompress ({error})") from error
    if size != len(target):
        raise ChunkError("has a page of another size than its header says")

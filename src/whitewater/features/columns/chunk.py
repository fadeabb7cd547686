"""A column chunk of a Parquet file, read page by page as it is stored.

The entries of a dictionary stay entries of a dictionary: a row of text is a code, and a row of numbers one look-up.

Covered is what writers make of flat columns of numbers and text: data pages of version 1 and 2, plain or dictionary
encoded, compressed with Snappy, Zstandard, gzip, Brotli or not at all. `describe_chunk` tells what is not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.features.columns import pages as parquet_pages
from whitewater.features.columns.column import Categories, Numbers
from whitewater.features.columns.pages import ABSENT
from whitewater.tables.arrow_arrays import empty

# How types are stored: texts as byte arrays, others as numbers of these types.
_STORED_AS: dict[pa.DataType, tuple[str, str | None]] = {
    pa.int8(): ("INT32", "<i4"),
    pa.int16(): ("INT32", "<i4"),
    pa.int32(): ("INT32", "<i4"),
    pa.int64(): ("INT64", "<i8"),
    pa.float32(): ("FLOAT", "<f4"),
    pa.float64(): ("DOUBLE", "<f8"),
    pa.string(): ("BYTE_ARRAY", None),
    pa.large_string(): ("BYTE_ARRAY", None),
}
_UNCOMPRESSED = "UNCOMPRESSED"
# Not LZ4, a name that Parquet gives to two formats.
_CODECS = {_UNCOMPRESSED, "SNAPPY", "ZSTD", "GZIP", "BROTLI"}
_ENCODINGS = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8
# A dictionary page calls its own plain encoding by either name.
_VALUES = (_PLAIN, _PLAIN_DICTIONARY)
_MOST_BYTES = 2**31 - 1
# Fields of the header of a page are numbered up to 8; those that are not there have a value that none can have.
_NUMBERS, _MISSING = 9, -(2**62)


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
    stored: np.dtype[Any] | None  # its type as stored; None for text
    type: pa.DataType


class Page(NamedTuple):
    """A page, uncompressed. ``levels`` is the size of its definition levels in bytes, or `ABSENT`."""

    is_dictionary: bool
    rows: int
    levels: int
    has_indices: bool
    body: Array


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
    physical, stored = _STORED_AS.get(type_, (None, None))
    if not covered or physical != declared.physical_type:
        return None
    starts = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
    return Chunk(
        min(starts, default=0),
        chunk.total_compressed_size,
        group.num_rows,
        chunk.compression,
        declared.max_definition_level == 1,
        None if stored is None else np.dtype(stored),
        type_,
    )


def _leaf(schema: pq.ParquetSchema, column: int, name: str) -> int | None:
    """Return the index of a flat column among the leaves of the schema: a struct before it has several, or none."""
    places = [column, *range(len(schema))] if column < len(schema) else range(len(schema))
    return next((place for place in places if schema.column(place).path == name), None)


def _texts_of(data: Array, count: int) -> pa.Array:
    """Return plainly encoded texts of a page as an Arrow array of string; raises ValueError if they are malformed."""
    if count > len(data):
        raise ChunkError("has a page that is too short for its texts")
    offsets, text = np.empty(count + 1, np.int32), np.empty(len(data), np.uint8)
    if not parquet_pages.split_byte_arrays(data, offsets, text):
        raise ChunkError("has a malformed page of texts")
    values = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    values.validate(full=True)
    return values


def _pages(data: FileIO, chunk: Chunk) -> Iterator[Page]:
    """Yield the pages of a chunk."""
    stored = empty(chunk.size, np.dtype(np.uint8))
    data.seek(chunk.offset)
    if data.readinto(stored.data) != len(stored):
        raise ChunkError("is cut off")
    fields = np.empty((parquet_pages.DEPTHS, _NUMBERS), np.int64)
    position = 0
    while position < chunk.size:
        fields.fill(_MISSING)
        position = parquet_pages.read_header(stored, position, fields)
        header, of_kind = fields[:2].tolist()
        size, compressed = header[2:4]
        if position < 0 or not (0 <= size <= _MOST_BYTES and 0 <= compressed <= chunk.size - position):
            raise ChunkError("has a malformed page header, or is cut off")
        body = stored[position : position + compressed]
        position += compressed
        if header[4] != _MISSING and zlib.crc32(body.data) != header[4] & 0xFFFFFFFF:
            raise ChunkError("has a page whose checksum is wrong")
        if header[1] in (_DATA, _DICTIONARY, _DATA_V2):
            yield _page(header[1], of_kind, body, size, chunk.codec)


def _page(kind: int, header: Sequence[int], body: Array, size: int, codec: str) -> Page:
    """Return a page, given the part of its header for pages of its kind, and its bytes as they are stored."""
    is_second = kind == _DATA_V2
    rows, encoding, levels = header[1], header[4 if is_second else 2], header[5] if is_second else ABSENT
    has_indices = kind != _DICTIONARY and encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
    if not has_indices and encoding not in _VALUES:
        raise ChunkError(f"has a page of encoding {encoding}, which its footer does not name")
    if rows < 0 or levels < ABSENT or levels > min(len(body), size):
        raise ChunkError("has a malformed page header")
    if codec == _UNCOMPRESSED or (is_second and not header[7]):
        if len(body) != size:
            raise ChunkError("has a page of another size than its header says")
        return Page(kind == _DICTIONARY, rows, levels, has_indices, body)
    # Definition levels of version 2 are not compressed.
    page, start = np.empty(size, np.uint8), max(levels, 0)
    page[:start] = body[:start]
    if size > start:
        _decompress(body[start:], codec, page[start:])
    return Page(kind == _DICTIONARY, rows, levels, has_indices, page)


def _decompress(body: Array, codec: str, target: Array) -> None:
    """Fill ``target`` with what ``body`` holds."""
    if codec != "SNAPPY":
        target[:] = np.frombuffer(pa.Codec(codec.lower()).decompress(body.data, len(target)), np.uint8)
        return
    # Twice as fast as pyarrow, and most of the time that a column of timestamps takes.
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_into(body.data, target.data)
    except cramjam.DecompressionError as error:
        raise ChunkError(f"has a page that Snappy cannot decompress ({error})") from error
    if size != len(target):
        raise ChunkError("has a page of another size than its header says")


def read_chunk(data: FileIO, chunk: Chunk) -> Numbers | Categories:
    """Return the rows of a column chunk.

    Raises ChunkError if the chunk is cut off or malformed; OSError or ValueError if the file cannot be read, its bytes
    cannot be decompressed, or a text is not UTF-8.
    """
    stored = _Stored(chunk.stored)
    # Numbers are moved as unsigned ones of their width, for which the kernels are compiled.
    values = empty(chunk.rows, stored.null.dtype)
    table, valid, first = stored.null, None, 0
    for page in _pages(data, chunk):
        if page.is_dictionary:
            table = np.append(stored.values(page.body, page.rows), stored.null)
            continue
        rows = slice(first, first + page.rows)
        if rows.stop > chunk.rows:
            break
        present = _decode(page, stored, table, values[rows], optional=chunk.optional)
        if present is not None:
            valid = np.ones(chunk.rows, np.bool_) if valid is None else valid
            valid[rows] = present
        first = rows.stop
    if first != chunk.rows:
        raise ChunkError(f"has other rows than the {chunk.rows} of its row group")
    if stored.is_text:
        return Categories(values.view(np.int32), stored.dictionary())
    numbers = values.view(stored.dtype).astype(chunk.type.to_pandas_dtype(), copy=False)
    return Numbers(numbers, None if stored.dtype.kind == "f" else valid)


class _Stored:
    """Plainly encoded values of a chunk: numbers, or texts, which become codes of a dictionary of all of them."""

    def __init__(self, dtype: np.dtype[Any] | None) -> None:
        self.is_text, self.dtype = dtype is None, np.dtype(np.int32) if dtype is None else dtype
        null = np.array([-1 if self.is_text else np.nan if self.dtype.kind == "f" else 0], self.dtype)
        self.null = null.view(f"u{self.dtype.itemsize}")
        self._texts, self._count = [pa.nulls(0, pa.string())], 0

    def values(self, body: Array, count: int) -> Array:
        """Return the values that begin a page, with the bits of their type as unsigned integers."""
        if not self.is_text:
            if len(body) < count * self.dtype.itemsize:
                raise ChunkError("has a page that is too short for its values")
            return np.frombuffer(body, self.null.dtype, count)
        self._texts.append(_texts_of(body, count))
        self._count += count
        return np.arange(self._count - count, self._count, dtype=self.null.dtype)

    def dictionary(self) -> pa.Array:
        """Return all texts."""
        filled = [texts for texts in self._texts if len(texts)] or self._texts
        return filled[0] if len(filled) == 1 else pa.concat_arrays(filled)


def _decode(page: Page, stored: _Stored, table: Array, values: Array, *, optional: bool) -> Array | None:
    """Fill the values of a page; return which rows have one, 1 or 0, uint32 (rows,), or None if all have."""
    present = np.empty(page.rows if optional else 0, np.uint32)
    if page.has_indices:
        nulls = parquet_pages.look_up(page.body, page.levels, present, table, values)
        if nulls < 0:
            raise ChunkError("has a malformed page of dictionary indices")
        return present if nulls else None
    count, start = parquet_pages.definition_levels(page.body, page.levels, present) if optional else (page.rows, 0)
    if start < 0:
        raise ChunkError("has malformed definition levels")
    values[page.rows - count :] = stored.values(page.body[start:], count)
    if count == page.rows:
        return None
    parquet_pages.spread(values, present, count, stored.null[0])
    return present

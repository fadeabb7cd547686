"""A column chunk of a Parquet file, read page by page as it is stored.

The entries of a dictionary stay entries of a dictionary: a row of text is a code, and a row of numbers one look-up.

Covered is what writers make of flat columns of numbers and text: data pages of version 1 and 2, plain or dictionary
encoded, compressed with Snappy, Zstandard, gzip, Brotli or not at all. `describe_chunk` tells what is not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
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
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
# Of the header of a page: the field that tells of a page of its kind.
_OF_KIND = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8
# A dictionary page calls its own plain encoding by either name.
_VALUES = (_PLAIN, _PLAIN_DICTIONARY)
_MOST_BYTES = 2**31 - 1
# Thrift's compact types: the integers are of 16, 32 and 64 bits.
_TRUE, _FALSE, _INTEGERS, _BINARY, _STRUCT = 1, 2, (4, 5, 6), 8, 12
# The code of a null, -1, as kernels see it.
_NULL_CODE = 2**32 - 1


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

    is_dictionary: bool
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


def _unsigned(values: Array) -> Array:
    """Return numbers as unsigned ones of their width, for which the kernels are compiled."""
    return values.view(f"u{values.dtype.itemsize}")


def _texts_of(body: bytes | memoryview, count: int) -> pa.Array:
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


def _pages(data: FileIO, chunk: Chunk) -> Iterator[Page]:
    """Yield the pages of a chunk."""
    stored = empty(chunk.size, np.dtype(np.uint8))
    data.seek(chunk.offset)
    if data.readinto(stored.data) != len(stored):
        raise ChunkError("is cut off")
    position = 0
    while position < chunk.size:
        try:
            header, position = _read_struct(stored.data, position)
            page = _page(header, stored.data[position:], chunk.codec)
        except (IndexError, KeyError, TypeError, RecursionError):
            raise ChunkError("has a malformed page header, or is cut off") from None
        if page is not None:
            yield page
        position += header[3]


def _page(header: Mapping[int, Any], data: memoryview, codec: str) -> Page | None:
    """Return the page that begins the data, by its header, or None of a kind that has no rows."""
    kind, size, compressed = (header[number] for number in (1, 2, 3))
    if not (0 <= size <= _MOST_BYTES and 0 <= compressed <= len(data)):
        raise ChunkError("has a malformed page header, or is cut off")
    body = data[:compressed]
    if 4 in header and zlib.crc32(body) != header[4] & 0xFFFFFFFF:
        raise ChunkError("has a page whose checksum is wrong")
    if kind not in _OF_KIND:
        return None
    of_kind = header[_OF_KIND[kind]]
    is_second = kind == _DATA_V2
    rows, encoding, levels = of_kind[1], of_kind[4 if is_second else 2], of_kind[5] if is_second else ABSENT
    has_indices = kind != _DICTIONARY and encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
    if not has_indices and encoding not in _VALUES:
        raise ChunkError(f"has a page of encoding {encoding}, which its footer does not name")
    if rows < 0 or levels < ABSENT:
        raise ChunkError("has a malformed page header")
    is_compressed = not is_second or of_kind.get(7, True)
    body = _uncompressed(body, codec if is_compressed else _UNCOMPRESSED, size, max(levels, 0))
    return Page(kind == _DICTIONARY, rows, levels, has_indices, body)


def _read_struct(data: memoryview, position: int) -> tuple[dict[int, Any], int]:
    """Return what is in a struct of Thrift's compact protocol, by number of field, and the position after it.

    Texts are left out. Raises IndexError if the data end before the struct, ChunkError if it is malformed.
    """
    fields: dict[int, Any] = {}
    number = 0
    while kind := data[position] & 15:
        step = data[position] >> 4
        position += 1
        if step:
            number += step
        else:
            value, position = _read_varint(data, position)
            number = value >> 1
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        elif kind == _STRUCT:
            fields[number], position = _read_struct(data, position)
        elif kind in _INTEGERS:
            value, position = _read_varint(data, position)
            fields[number] = (value >> 1) ^ -(value & 1)
        elif kind == _BINARY:
            size, position = _read_varint(data, position)
            position += size
        else:
            raise ChunkError("has a malformed page header")
    return fields, position + 1


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number of up to 63 bits, and the position after it."""
    value = 0
    for shift in range(0, 63, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ChunkError("has a malformed page header")


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


def read_chunk(data: FileIO, chunk: Chunk) -> Numbers | Categories:
    """Return the rows of a column chunk.

    Raises ChunkError if the chunk is cut off or malformed; OSError or ValueError if the file cannot be read, its bytes
    cannot be decompressed, or a text is not UTF-8.
    """
    decoder = _Texts(chunk) if chunk.physical == "BYTE_ARRAY" else _Numbers(chunk)
    values = empty(chunk.rows, decoder.dtype)
    valid: Array | None = None
    first = 0
    for page in _pages(data, chunk):
        if page.is_dictionary:
            decoder.begin(page)
            continue
        rows = slice(first, first + page.rows)
        if rows.stop > chunk.rows:
            break
        present = decoder.decode(page, values[rows])
        if present is not None:
            valid = np.ones(chunk.rows, np.bool_) if valid is None else valid
            valid[rows] = present
        first = rows.stop
    if first != chunk.rows:
        raise ChunkError(f"has other rows than the {chunk.rows} of its row group")
    return decoder.column(values, valid)


class _Texts:
    """Decodes pages of text into codes, uint32; a text outside the chunk's dictionary gets an entry of its own."""

    dtype = np.dtype(np.uint32)

    def __init__(self, chunk: Chunk) -> None:
        self._optional = chunk.optional
        self._dictionaries = [pa.nulls(0, pa.string())]
        self._entries = 0
        self._table = np.array([_NULL_CODE], self.dtype)

    def begin(self, page: Page) -> None:
        """Take the dictionary."""
        self._add(_texts_of(page.body, page.rows))
        self._table = np.append(np.arange(self._entries, dtype=self.dtype), self.dtype.type(_NULL_CODE))

    def _add(self, texts: pa.Array) -> None:
        self._dictionaries.append(texts)
        self._entries += len(texts)

    def decode(self, page: Page, codes: Array) -> None:
        """Fill the codes of a page."""
        if page.has_indices:
            _look_up(page, self._optional, self._table, codes)
            return
        count, start, present = _levels(page, self._optional)
        first = self._entries
        self._add(_texts_of(memoryview(page.body)[start:], count))
        codes[:] = np.cumsum(present, dtype=np.int64) + (first - 1)
        codes[present == 0] = _NULL_CODE

    def column(self, codes: Array, _: Array | None) -> Categories:
        """Return the column, given all codes."""
        filled = [texts for texts in self._dictionaries if len(texts)] or self._dictionaries
        return Categories(codes.view(np.int32), filled[0] if len(filled) == 1 else pa.concat_arrays(filled))


class _Numbers:
    """Decodes pages of numbers into values of their physical type; null is NaN, or 0 and told apart."""

    def __init__(self, chunk: Chunk) -> None:
        self.dtype = PHYSICAL[chunk.physical]
        self._type = np.dtype(chunk.type.to_pandas_dtype())
        self._optional = chunk.optional
        self._is_float = self.dtype.kind == "f"
        self._null = np.array([np.nan if self._is_float else 0], self.dtype)
        self._table = self._null

    def begin(self, page: Page) -> None:
        """Take the dictionary."""
        self._table = np.concatenate([self._stored(page.body, page.rows), self._null])

    def _stored(self, body: bytes | memoryview, count: int) -> Array:
        if len(body) < count * self.dtype.itemsize:
            raise ChunkError("has a page that is too short for its values")
        return np.frombuffer(body, self.dtype, count)

    def decode(self, page: Page, values: Array) -> Array | None:
        """Fill the values of a page; return which rows have one, 1 or 0, if any has none and nulls are not NaN."""
        if page.has_indices:
            nulls, present = _look_up(page, self._optional, _unsigned(self._table), _unsigned(values))
            return present if nulls and not self._is_float else None
        count, start, present = _levels(page, self._optional)
        values[page.rows - count :] = self._stored(memoryview(page.body)[start:], count)
        if count == page.rows:
            return None
        parquet_pages.spread(_unsigned(values), present, count, _unsigned(self._null)[0])
        return None if self._is_float else present

    def column(self, values: Array, valid: Array | None) -> Numbers:
        """Return the column, given all values."""
        return Numbers(values.astype(self._type, copy=False), valid)


def _look_up(page: Page, optional: bool, table: Array, values: Array) -> tuple[int, Array]:
    """Look up the indices of a page in a table, null last; return how many are null, and which rows are not."""
    data, present = np.frombuffer(page.body, np.uint8), np.empty(page.rows if optional else 0, np.uint32)
    nulls: int = parquet_pages.look_up(data, page.levels, present, table, values)
    if nulls < 0:
        raise ChunkError("has a malformed page of dictionary indices")
    return nulls, present


def _levels(page: Page, optional: bool) -> tuple[int, int, Array]:
    """Return how many rows have a value, where the values begin, and which rows they are: 1 or 0, uint32 (rows,)."""
    if not optional:
        return page.rows, 0, np.ones(page.rows, np.uint32)
    present = np.empty(page.rows, np.uint32)
    count, start = parquet_pages.definition_levels(np.frombuffer(page.body, np.uint8), page.levels, present)
    if start < 0:
        raise ChunkError("has malformed definition levels")
    return count, start, present

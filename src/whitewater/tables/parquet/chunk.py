"""A column chunk of a Parquet file, read page by page into arrays of a kind.

What a value becomes is worked out once for each entry of the dictionary, so that a row costs one look-up in a table.
Covered is what writers make of flat columns of numbers, timestamps and text: data pages of version 1 and 2, plain or
dictionary encoded, compressed with Snappy, Zstandard, gzip, Brotli or not at all. `chunk_reader` tells what is not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.tables.arrow_kinds import MICROSECONDS, NULL_ID, dtype_of, empty, from_arrow, null_of
from whitewater.tables.blocks import NULL_INTEGER, Encoded, Kind
from whitewater.tables.parquet import pages as parquet_pages
from whitewater.tables.parquet.pages import ABSENT, DATA, DATA_V2, DICTIONARY, KIND, VALUES

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
# Types whose values are those of the kind, which saves the way through Arrow.
_AS_THEY_ARE = ((pa.float64(), "float64"), (MICROSECONDS, "timestamp"), (pa.int64(), "id"))
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_UNCOMPRESSED = "UNCOMPRESSED"
# Not LZ4, a name that Parquet gives to two formats.
_CODECS = {_UNCOMPRESSED, "SNAPPY", "ZSTD", "GZIP", "BROTLI"}
_ENCODINGS = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_INDICES = (parquet_pages.PLAIN_DICTIONARY, parquet_pages.RLE_DICTIONARY)
# A dictionary page calls its own plain encoding by either name.
_VALUES = (parquet_pages.PLAIN, parquet_pages.PLAIN_DICTIONARY)
_WINDOW_BYTES = 1 << 20
_PAGES_OF_A_WINDOW = 256
# Rows looked up at once: their pages stay in the cache of a core.
_BATCH_ROWS = 1 << 17


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


def chunk_reader(data: FileIO, file: pq.ParquetFile, row_group: int, column: int, kind: Kind) -> ChunkReader | None:
    """Return a reader of one column chunk, or None where it is of a form that only pyarrow reads."""
    chunk = described(file.metadata, row_group, column, file.schema_arrow.field(column))
    return None if chunk is None else ChunkReader(data, chunk, kind)


def described(footer: pq.FileMetaData, row_group: int, column: int, field: pa.Field) -> Chunk | None:
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
    if not covered or not _is_stored_plainly(type_, declared):
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


def _is_stored_plainly(type_: pa.DataType, declared: pq.ColumnSchema) -> bool:
    """Return whether the bytes of a value are the value of this type, in this unit."""
    stored: str = declared.physical_type
    if not pa.types.is_timestamp(type_):
        return _STORED_AS.get(type_) == stored
    unit: str = json.loads(declared.logical_type.to_json()).get("timeUnit", "")
    return stored == "INT64" and unit == _UNITS.get(type_.unit)


class ChunkReader:
    """Reads the rows of one column chunk in order."""

    def __init__(self, data: FileIO, chunk: Chunk, kind: Kind) -> None:
        self._chunk = chunk
        self._kind = kind
        self._dtype = dtype_of(kind)
        # Tables and values looked up are of 4 or 8 bytes, so that kernels are compiled for two widths and not for four.
        wide = np.dtype(np.int32) if self._dtype.itemsize < 4 else self._dtype
        self._null = np.array([null_of(kind)], wide)
        self._vocabulary: dict[str, int] = {}
        # What each entry of the dictionary becomes, and the null last.
        self._table = self._null
        self._carried = np.empty(0, self._dtype)
        self._pages = self._data_pages(data)
        self._next: Page | None = None

    def read(self, rows: int) -> Array | Encoded:
        """Return the next ``rows`` rows.

        Raises ChunkError if the chunk is cut off or malformed; ValueError if a value cannot become the kind; and
        OSError if the file cannot be read, or its bytes cannot be decompressed.
        """
        values = empty(rows, self._dtype)
        filled = min(rows, len(self._carried))
        values[:filled] = self._carried[:filled]
        self._carried = self._carried[filled:]
        while filled < rows:
            filled += self._fill(values[filled:])
        return Encoded(values, tuple(self._vocabulary)) if self._kind == "text" else values

    def _fill(self, values: Array) -> int:
        """Decode some pages into ``values``; return the rows filled, and carry what did not fit."""
        batch = self._batch(len(values))
        rows = sum(page.rows for page in batch)
        target = values[:rows] if rows <= len(values) else np.empty(rows, self._dtype)
        if batch[0].has_indices:
            self._look_up(batch, target)
        else:
            self._decode_plain(batch[0], target)
        if rows > len(values):
            values[:] = target[: len(values)]
            self._carried = target[len(values) :]
        return min(rows, len(values))

    def _batch(self, rows: int) -> list[Page]:
        """Take one page, or several pages of indices that fit."""
        batch = [self._page()]
        taken = batch[0].rows
        while batch[0].has_indices and taken < min(rows, _BATCH_ROWS):
            page = self._page()
            taken += page.rows
            if not page.has_indices or taken > min(rows, _BATCH_ROWS):
                self._next = page
                break
            batch.append(page)
        return batch

    def _page(self) -> Page:
        page, self._next = self._next or next(self._pages, None), None
        if page is None:
            raise ChunkError(f"ends before the {self._chunk.rows} rows of its row group")
        return page

    def _look_up(self, batch: list[Page], target: Array) -> None:
        data = np.frombuffer(batch[0].body if len(batch) == 1 else b"".join([page.body for page in batch]), np.uint8)
        ends = list(accumulate(len(page.body) for page in batch))
        places = [(end - len(page.body), end, page.rows, page.levels) for end, page in zip(ends, batch, strict=True)]
        present = np.empty(max(page.rows for page in batch) if self._chunk.optional else 0, np.uint32)
        values = target if target.dtype == self._table.dtype else np.empty(len(target), self._table.dtype)
        nulls = parquet_pages.look_up(data, np.array(places), present, unsigned(self._table), unsigned(values))
        if nulls < 0:
            raise ChunkError("has a malformed page of dictionary indices")
        self._refuse_null_ids(nulls)
        if values is not target:
            target[:] = values

    def _decode_plain(self, page: Page, target: Array) -> None:
        if not self._chunk.optional:
            target[:] = self._converted(page.body, page.rows)
            return
        present = np.empty(page.rows, np.uint32)
        count, start = parquet_pages.definition_levels(np.frombuffer(page.body, np.uint8), page.levels, present)
        if start < 0:
            raise ChunkError("has malformed definition levels")
        self._refuse_null_ids(page.rows - count)
        converted = self._converted(memoryview(page.body)[start:], count)
        if count == page.rows:
            target[:] = converted
            return
        values = np.empty(page.rows, self._table.dtype)
        values[page.rows - count :] = converted
        parquet_pages.spread(unsigned(values), present, count, unsigned(self._null)[0])
        target[:] = values

    def _refuse_null_ids(self, nulls: int) -> None:
        if nulls and self._kind == "id":
            raise ValueError(NULL_ID)

    def _data_pages(self, data: FileIO) -> Iterator[Page]:
        """Yield the data pages; a dictionary page, which comes ahead of them, becomes the table."""
        rows = 0
        for page in pages_of(data, self._chunk):
            if page.kind == DICTIONARY:
                self._table = np.concatenate([self._converted(page.body, page.rows), self._null])
            elif page.kind in (DATA, DATA_V2):
                rows += page.rows
                if rows > self._chunk.rows:
                    break
                yield page
        if rows != self._chunk.rows:
            raise ChunkError(f"has other rows than the {self._chunk.rows} of its row group")

    def _converted(self, body: bytes | memoryview, count: int) -> Array:
        """Return plainly encoded values as what they become."""
        if self._chunk.physical == "BYTE_ARRAY":
            values = texts_of(body, count)
        else:
            dtype = PHYSICAL[self._chunk.physical]
            if len(body) < count * dtype.itemsize:
                raise ChunkError("has a page that is too short for its values")
            numbers = np.frombuffer(body, dtype, count)
            if (self._chunk.type, self._kind) in _AS_THEY_ARE:
                return numbers
            type_ = self._chunk.type if pa.types.is_timestamp(self._chunk.type) else pa.from_numpy_dtype(dtype)
            values = pa.Array.from_buffers(type_, count, [None, pa.py_buffer(numbers)])
        converted = from_arrow(values, self._kind)
        return self._renumbered(converted) if isinstance(converted, Encoded) else converted

    def _renumbered(self, text: Encoded) -> Array:
        """Return the codes of a text in the vocabulary of the chunk."""
        codes = [self._vocabulary.setdefault(word, len(self._vocabulary)) for word in text.vocabulary]
        return np.array([*codes, NULL_INTEGER], np.int32)[text.codes]


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

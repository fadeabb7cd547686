"""A column chunk of a Parquet file, read page by page into arrays of a kind.

What a value becomes is worked out once for each entry of the dictionary, so a row costs one look-up in a table. Covered
is what writers make of flat columns of numbers, timestamps and text: data pages of version 1 and 2, plain or dictionary
encoded, compressed with Snappy, Zstandard, gzip, Brotli or not at all. `chunk_reader` tells what is not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.devices import parquet_pages
from whitewater.devices.arrow_kinds import dtype_of, from_arrow, null_of
from whitewater.devices.parquet_pages import (
    BODY,
    CHECKSUM,
    COMPRESSED,
    DATA,
    DATA_V2,
    DICTIONARY,
    ENCODING,
    FIELDS,
    IS_COMPRESSED,
    KIND,
    LEVELS,
    UNCOMPRESSED,
    VALUES,
)
from whitewater.devices.protocol import Array, Encoded, Kind

_PHYSICAL = {"INT32": np.dtype("<i4"), "INT64": np.dtype("<i8"), "FLOAT": np.dtype("<f4"), "DOUBLE": np.dtype("<f8")}
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
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# Not LZ4, a name under which Parquet has two formats.
_CODECS = {"UNCOMPRESSED", "SNAPPY", "ZSTD", "GZIP", "BROTLI"}
_ENCODINGS = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_WINDOW_BYTES = 1 << 20
_PAGES_OF_A_WINDOW = 256
# Rows decoded at once: their indices stay in the cache of a core.
_BATCH_ROWS = 1 << 16


class ChunkError(ValueError):
    """The bytes of a column chunk are not what a writer writes."""


@dataclass(frozen=True)
class _Chunk:
    """Where a column chunk is, and what its footer says of it."""

    offset: int
    size: int
    rows: int
    codec: pa.Codec | None
    optional: bool
    physical: str
    type: pa.DataType


@dataclass(frozen=True)
class _Page:
    header: Array
    body: bytes | memoryview

    @property
    def rows(self) -> int:
        return int(self.header[VALUES])

    @property
    def is_dictionary_encoded(self) -> bool:
        return self.header[ENCODING] in {parquet_pages.PLAIN_DICTIONARY, parquet_pages.RLE_DICTIONARY}


def chunk_reader(data: BinaryIO, file: pq.ParquetFile, row_group: int, column: int, kind: Kind) -> ChunkReader | None:
    """Return a reader of one column chunk, or None where it is of a form that only pyarrow reads.

    Parameters
    ----------
    data
        The file's bytes, seekable; one reader after the other may use them.
    file
        The same file, whose footer tells about the chunk.
    row_group, column
        Indices of the chunk.
    kind
        What the values become.
    """
    chunk = file.metadata.row_group(row_group).column(column)
    declared = file.schema.column(column)
    type_ = file.schema_arrow.field(column).type
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    flat = declared.max_repetition_level == 0 and declared.max_definition_level <= 1
    covered = flat and set(chunk.encodings) <= _ENCODINGS and chunk.compression in _CODECS
    if not covered or not _is_stored_plainly(type_, declared):
        return None
    starts = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
    codec = None if chunk.compression == "UNCOMPRESSED" else pa.Codec(chunk.compression.lower())
    optional = declared.max_definition_level == 1
    rows = file.metadata.row_group(row_group).num_rows
    where = _Chunk(min(starts), chunk.total_compressed_size, rows, codec, optional, declared.physical_type, type_)
    return ChunkReader(data, where, kind)


def _is_stored_plainly(type_: pa.DataType, declared: pq.ColumnSchema) -> bool:
    if not pa.types.is_timestamp(type_):
        return bool(_STORED_AS.get(type_) == declared.physical_type)
    logical = json.loads(declared.logical_type.to_json())
    return declared.physical_type == "INT64" and logical.get("timeUnit") == _UNITS.get(type_.unit)


class ChunkReader:
    """Reads the rows of one column chunk in order."""

    def __init__(self, data: BinaryIO, chunk: _Chunk, kind: Kind) -> None:
        self._chunk = chunk
        self._kind = kind
        self._null = null_of(kind)
        self._dtype = dtype_of(kind)
        self._vocabulary: dict[str, int] = {}
        self._table = np.empty(0, self._dtype)
        self._carried = np.empty(0, self._dtype)
        self._pages = self._data_pages(data)
        self._next: _Page | None = None

    def read(self, rows: int) -> Array | Encoded:
        """Return the next ``rows`` rows.

        Raises
        ------
        ChunkError
            If the chunk is cut off or malformed.
        ValueError
            If a value cannot become the kind.
        """
        values = np.empty(rows, self._dtype)
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
        if batch[0].is_dictionary_encoded:
            self._decode_dictionary_encoded(batch, target)
        else:
            self._decode_plain(batch[0], target)
        if rows > len(values):
            values[:] = target[: len(values)]
            self._carried = target[len(values) :]
        return min(rows, len(values))

    def _batch(self, rows: int) -> list[_Page]:
        """Take one page, or several dictionary-encoded ones that fit."""
        batch = [self._page()]
        taken = batch[0].rows
        while batch[0].is_dictionary_encoded and taken < min(rows, _BATCH_ROWS):
            page = self._page()
            taken += page.rows
            if not page.is_dictionary_encoded or taken > min(rows, _BATCH_ROWS):
                self._next = page
                break
            batch.append(page)
        return batch

    def _page(self) -> _Page:
        page, self._next = self._next, None
        page = page or next(self._pages, None)
        if page is None:
            raise ChunkError(f"ends before row {self._chunk.rows}")
        return page

    def _decode_dictionary_encoded(self, batch: list[_Page], target: Array) -> None:
        data = np.frombuffer(b"".join([page.body for page in batch]), np.uint8)
        starts = np.cumsum([0] + [len(page.body) for page in batch])
        indices = np.empty(len(target), np.int64)
        present = np.empty(max(page.rows for page in batch), np.uint8)
        headers = np.stack([page.header for page in batch])
        entries = len(self._table) - 1
        if entries < 0 or not parquet_pages.dictionary_indices(
            data, starts, headers, self._chunk.optional, entries, present, indices
        ):
            raise ChunkError("has a malformed page of dictionary indices")
        np.take(self._table, indices, out=target, mode="clip")

    def _decode_plain(self, page: _Page, target: Array) -> None:
        values, start, present = len(target), 0, np.empty(0, np.uint8)
        if self._chunk.optional:
            data = np.frombuffer(page.body, np.uint8)
            size = int(page.header[LEVELS]) if page.header[KIND] == DATA_V2 else -1
            present = np.empty(len(target), np.uint8)
            values, start = parquet_pages.definition_levels(data, 0, len(data), size, present)
        if start < 0:
            raise ChunkError("has malformed definition levels")
        converted = self._converted(memoryview(page.body)[start:], values)
        if values == len(target):
            target[:] = converted
            return
        indices = np.arange(values - len(target), values)
        parquet_pages.spread(indices, present, values, values)
        np.take(np.append(converted, self._null), indices, out=target, mode="clip")

    def _data_pages(self, data: BinaryIO) -> Iterator[_Page]:
        """Yield the data pages; a dictionary page, which comes first, becomes the table that its indices look up."""
        rows = 0
        for page in _pages_of(data, self._chunk):
            if page.header[KIND] == DICTIONARY:
                converted = self._converted(page.body, page.rows)
                self._table = np.append(converted, np.asarray(self._null, self._dtype))
            elif page.header[KIND] in {DATA, DATA_V2}:
                rows += page.rows
                if rows > self._chunk.rows:
                    raise ChunkError(f"has more rows than the {self._chunk.rows} of its row group")
                yield page
        if rows < self._chunk.rows:
            raise ChunkError(f"has {rows} rows where its row group has {self._chunk.rows}")

    def _converted(self, body: bytes | memoryview, count: int) -> Array:
        """Return plainly encoded values as what they become."""
        if self._chunk.physical == "BYTE_ARRAY":
            values = _texts(body, count)
        else:
            dtype = _PHYSICAL[self._chunk.physical]
            if len(body) < count * dtype.itemsize:
                raise ChunkError("has a page that is too short for its values")
            values = pa.array(np.frombuffer(body, dtype, count))
            values = values.view(self._chunk.type) if pa.types.is_timestamp(self._chunk.type) else values
        converted = from_arrow(values, self._kind)
        return self._renumbered(converted) if isinstance(converted, Encoded) else converted

    def _renumbered(self, text: Encoded) -> Array:
        """Return the codes of a text in the vocabulary of the chunk."""
        codes = [self._vocabulary.setdefault(word, len(self._vocabulary)) for word in text.vocabulary]
        return np.array([*codes, self._null], np.int32)[text.codes]


def _texts(body: bytes | memoryview, count: int) -> pa.Array:
    data = np.frombuffer(body, np.uint8)
    offsets, text = np.empty(min(count, len(data)) + 1, np.int32), np.empty(len(data), np.uint8)
    if count > len(data) or not parquet_pages.split_byte_arrays(data, 0, len(data), offsets, text):
        raise ChunkError("has a page that is too short for its texts")
    values = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    values.validate(full=True)
    return values


def _pages_of(data: BinaryIO, chunk: _Chunk) -> Iterator[_Page]:
    """Yield the pages of a chunk, uncompressed, holding a window of its bytes at a time."""
    window = _WINDOW_BYTES
    table = np.empty((_PAGES_OF_A_WINDOW, FIELDS), np.int64)
    done = 0
    while done < chunk.size:
        size = min(window, chunk.size - done)
        buffer = np.empty(size, np.uint8)
        data.seek(chunk.offset + done)
        if data.readinto(memoryview(buffer)) != size:
            raise ChunkError("is cut off")
        found, taken = parquet_pages.find_pages(buffer, size, table)
        if taken < 0 or (found == 0 and size == chunk.size - done):
            raise ChunkError("has a malformed page header, or is cut off")
        window = window if found else 2 * window
        for header in table[:found].copy():
            yield _Page(header, _uncompressed(memoryview(buffer), header, chunk.codec))
        done += taken


def _uncompressed(window: memoryview, header: Array, codec: pa.Codec | None) -> bytes | memoryview:
    body = window[header[BODY] : header[BODY] + header[COMPRESSED]]
    levels = int(header[LEVELS])
    size = int(header[UNCOMPRESSED])
    if header[CHECKSUM] != parquet_pages.NO_CHECKSUM and zlib.crc32(body) != header[CHECKSUM] & 0xFFFFFFFF:
        raise ChunkError("has a page whose checksum is wrong")
    if levels > min(len(body), size):
        raise ChunkError("has a malformed page header")
    if codec is not None and header[IS_COMPRESSED]:
        values: Any = codec.decompress(body[levels:], size - levels, asbytes=True) if size > levels else b""
        body = b"".join((body[:levels], values)) if levels else values
    if len(body) != size:
        raise ChunkError("has a page of another size than its header says")
    return body

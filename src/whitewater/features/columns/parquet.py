"""Columns of a Parquet file: flat ones by our own decoder, page by page, and others by pyarrow.

Dictionaries are kept, so that a row of text is a code. The decoder covers flat columns of numbers and text in pages of
version 1 and 2, plain or dictionary encoded, uncompressed or compressed with Snappy, Zstandard, gzip or Brotli.
"""

import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import SEEK_END, FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.features.columns import pages
from whitewater.features.columns.column import Categories, Column, Numbers, column_of, take_rows
from whitewater.features.columns.pages import ABSENT
from whitewater.io.folder import open_parquet
from whitewater.tables.arrow_arrays import empty

# The last bytes of a file: the length of its footer, and four letters.
_END = b"\0\0\0\0PAR1"
_TEXT = "BYTE_ARRAY"
# The physical types, and the dtypes of rows; rows of text are codes.
_STORED_AS: dict[pa.DataType, tuple[str, str]] = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), ("INT32", "<i4")),
    pa.int64(): ("INT64", "<i8"),
    pa.float32(): ("FLOAT", "<f4"),
    pa.float64(): ("DOUBLE", "<f8"),
    **dict.fromkeys((pa.string(), pa.large_string()), (_TEXT, "<i4")),
}
_UNCOMPRESSED = "UNCOMPRESSED"
# Not LZ4, which names two formats in Parquet.
_CODECS = {_UNCOMPRESSED, "SNAPPY", "ZSTD", "GZIP", "BROTLI"}
_ENCODINGS = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
# A dictionary page may name its plain encoding by either of the first two.
_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8
# Fields of a page header are numbered up to 8; missing ones have a value that no field can have.
_NUMBERS, _MISSING = 9, -(2**62)
_OTHER_ROWS = "has other rows than its row group"
_OTHER_SIZE = "has a page of another size than its header says"


def read_columns(
    path: Path, row_group: int, names: Sequence[str], *, start: int = 0, rows: int | None = None
) -> dict[str, Column]:
    """Read columns of a row group of a Parquet file, or ``rows`` rows of it from ``start`` on.

    Text and dictionaries become `Categories` with the stored dictionary, or one entry per value; numbers and booleans
    `Numbers` of their width; lists `Lists`. Arrow's null type becomes float64, all NaN. Raises InputError if the file
    is damaged, or a column is missing or of an unsupported type.
    """
    columns: dict[str, Column] = {}
    try:
        data = path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. Get it again, or leave it out.") from error
    with data:
        footer, schema = _footer(path, data)
        span = range(footer.row_group(row_group).num_rows)[start : None if rows is None else start + rows]
        for name in names:
            try:
                column = _read_chunk(data, footer, schema, row_group, name)
                if column is None:
                    columns[name] = _read_by_arrow(path, row_group, name, span)
                else:
                    columns[name] = take_rows(column, slice(span.start, span.stop))
            except (OSError, ValueError, pa.ArrowException) as error:
                raise InputError(
                    f"{path}, row group {row_group}: column {name!r} {error}. Get the file again, or leave it out."
                ) from error
    return columns


def _footer(path: Path, data: FileIO) -> tuple[pq.FileMetaData, pa.Schema]:
    """Return the footer of a file and its schema; parsed once: its size is row groups times columns."""
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


def _read_by_arrow(path: Path, row_group: int, name: str, span: range) -> Column:
    with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
        column = file.read_row_group(row_group, [name], use_threads=False).column(0)
    # Arrow also reads text that is not UTF-8.
    column.validate(full=True)
    return column_of(column.slice(span.start, len(span)))


class Page(NamedTuple):
    """A page, uncompressed. ``levels`` is the size of its definition levels in bytes, or `ABSENT`."""

    is_dictionary: bool
    rows: int
    levels: int
    has_indices: bool
    body: Array


def _read_chunk(
    data: FileIO, footer: pq.FileMetaData, schema: pa.Schema, row_group: int, name: str
) -> Numbers | Categories | None:
    """Return the rows of a column chunk, or None if pyarrow has to read it.

    Raises OSError or ValueError if the column is missing, or the chunk is damaged or not UTF-8. Callers put the column
    before the message.
    """
    covered = _covered_leaf(footer, schema, row_group, name)
    if covered is None:
        return None
    leaf, type_ = covered
    leaf_schema, chunk = footer.schema.column(leaf), footer.row_group(row_group).column(leaf)
    is_text, dtype = leaf_schema.physical_type == _TEXT, np.dtype(_STORED_AS[type_][1])
    # Kernels are compiled for unsigned integers of each width.
    null = np.array([-1 if is_text else np.nan if dtype.kind == "f" else 0], dtype).view(f"u{dtype.itemsize}")
    values = empty(footer.row_group(row_group).num_rows, null.dtype)
    table, valid, first = null, None, 0
    texts: list[pa.Array] | None = [] if is_text else None
    for page in _pages(data, chunk):
        if page.is_dictionary:
            table = np.append(_plain_values(page.body, page.rows, null.dtype, texts), null)
            continue
        rows = slice(first, first + page.rows)
        if rows.stop > len(values):
            raise ValueError(_OTHER_ROWS)
        present = np.empty(page.rows if leaf_schema.max_definition_level else 0, np.uint32)
        if _fill(values[rows], page, present, table, texts):
            valid = np.ones(len(values), np.bool_) if valid is None else valid
            valid[rows] = present
        first = rows.stop
    if first != len(values):
        raise ValueError(_OTHER_ROWS)
    if texts is not None:
        dictionary = texts[0] if len(texts) == 1 else pa.concat_arrays([pa.nulls(0, pa.string()), *texts])
        return Categories(values.view(np.int32), dictionary)
    numbers = values.view(dtype).astype(type_.to_pandas_dtype(), copy=False)
    return Numbers(numbers, None if dtype.kind == "f" else valid)


def _covered_leaf(
    footer: pq.FileMetaData, schema: pa.Schema, row_group: int, name: str
) -> tuple[int, pa.DataType] | None:
    """Return the leaf index of a column and its type, or None if the decoder does not cover it."""
    names, leaves = schema.names, range(len(footer.schema))
    if names.count(name) != 1:
        problem = "is there more than once" if name in names else "is not there"
        raise ValueError(f"{problem}; the columns are {', '.join(names)}")
    type_ = schema.field(name).type
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    # Structs before it have several leaves, or none.
    for leaf in (*leaves[names.index(name) :], *leaves):
        if (leaf_schema := footer.schema.column(leaf)).path == name:
            chunk = footer.row_group(row_group).column(leaf)
            is_flat = leaf_schema.max_repetition_level == 0 and leaf_schema.max_definition_level <= 1
            is_read = leaf_schema.physical_type == _STORED_AS.get(type_, ("", ""))[0] and chunk.compression in _CODECS
            return (leaf, type_) if is_flat and is_read and set(chunk.encodings) <= _ENCODINGS else None
    return None


def _pages(data: FileIO, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    starts = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
    stored = empty(chunk.total_compressed_size, np.dtype(np.uint8))
    data.seek(min(starts, default=0))
    if data.readinto(stored.data) != len(stored):
        raise ValueError("is cut off")
    fields = np.empty((pages.DEPTHS, _NUMBERS), np.int64)
    position = 0
    while position < len(stored):
        fields.fill(_MISSING)
        position = pages.read_header(stored, position, fields)
        header, of_kind = fields[:2].tolist()
        kind, size, compressed, checksum = header[1:5]
        if position < 0 or not (0 <= size < 2**31 and 0 <= compressed <= len(stored) - position):
            raise ValueError("has a malformed page header, or is cut off")
        body = stored[position : position + compressed]
        position += compressed
        if checksum != _MISSING and zlib.crc32(body.data) != checksum & 0xFFFFFFFF:
            raise ValueError("has a page whose checksum is wrong")
        if kind in (_DATA, _DICTIONARY, _DATA_V2):
            yield _page(kind, of_kind, body, size, chunk.compression)


def _page(kind: int, header: Sequence[int], body: Array, size: int, codec: str) -> Page:
    """Return a page, given the part of its header for its kind, and its stored bytes."""
    is_second = kind == _DATA_V2
    rows, encoding, levels = header[1], header[4 if is_second else 2], header[5] if is_second else ABSENT
    has_indices = kind != _DICTIONARY and encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
    if not has_indices and encoding not in (_PLAIN, _PLAIN_DICTIONARY):
        raise ValueError(f"has a page of encoding {encoding}, which its footer does not name")
    if rows < 0 or levels < ABSENT or levels > min(len(body), size):
        raise ValueError("has a malformed page header")
    if codec != _UNCOMPRESSED and (not is_second or header[7]):
        # Definition levels of version 2 are not compressed.
        stored, body, start = body, np.empty(size, np.uint8), max(levels, 0)
        body[:start] = stored[:start]
        if size > start:
            _decompress(stored[start:], codec, body[start:])
    if len(body) != size:
        raise ValueError(_OTHER_SIZE)
    return Page(kind == _DICTIONARY, rows, levels, has_indices, body)


def _decompress(body: Array, codec: str, target: Array) -> None:
    if codec != "SNAPPY":
        target[:] = np.frombuffer(pa.Codec(codec.lower()).decompress(body.data, len(target)), np.uint8)
        return
    # Twice as fast as pyarrow, and most of the time of a column of timestamps.
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_into(body.data, target.data)
    except cramjam.DecompressionError as error:
        raise ValueError(f"has a page that Snappy cannot decompress ({error})") from error
    if size != len(target):
        raise ValueError(_OTHER_SIZE)


def _plain_values(body: Array, count: int, dtype: np.dtype[Any], texts: list[pa.Array] | None) -> Array:
    """Return the first values of a page as unsigned integers; text is appended to ``texts``, and codes returned."""
    if len(body) < count * (1 if texts is not None else dtype.itemsize):
        raise ValueError("has a page that is too short for its values")
    if texts is None:
        return np.frombuffer(body, dtype, count)
    offsets, text = np.empty(count + 1, np.int32), np.empty(len(body), np.uint8)
    if not pages.split_byte_arrays(body, offsets, text):
        raise ValueError("has a malformed page of texts")
    first = sum(map(len, texts))
    texts.append(pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text)))
    texts[-1].validate(full=True)
    return np.arange(first, first + count, dtype=dtype)


def _fill(values: Array, page: Page, present: Array, table: Array, texts: list[pa.Array] | None) -> int:
    """Decode a data page into ``values`` and ``present`` (empty for required columns); return the number of nulls."""
    count, start = page.rows, 0
    if len(present):
        count, start = pages.definition_levels(page.body, page.levels, present)
    if start < 0:
        raise ValueError("has malformed definition levels")
    nulls, body = page.rows - count, page.body[start:]
    if not page.has_indices:
        values[nulls:] = _plain_values(body, count, values.dtype, texts)
    # The first byte is the width of the indices in bits.
    elif count and not (len(body) and pages.look_up(body, 1, int(body[0]), table, values[nulls:])):
        raise ValueError("has a malformed page of dictionary indices")
    if nulls:
        pages.spread(values, present, count, table[-1])
    return nulls

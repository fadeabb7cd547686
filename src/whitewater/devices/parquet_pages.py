"""The kernels that read Parquet pages: headers, definition levels, dictionary indices.

No byte of a file is trusted: each read is checked against the end of its page, and each index against the dictionary.
The format: https://parquet.apache.org/docs/file-format/ (page headers in Thrift's compact protocol; definition levels
and dictionary indices in the hybrid of runs and bit packing).
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import kernel
from whitewater.devices.protocol import Array

# What is kept of a page's header: columns of a table (int64) with a row for each page.
KIND, UNCOMPRESSED, COMPRESSED, CHECKSUM, VALUES, ENCODING, LEVELS, IS_COMPRESSED, BODY, FIELDS = range(10)
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
NO_CHECKSUM = -1
INCOMPLETE, MALFORMED = -1, -2

# Which column a number goes to: [field of the header that holds the number's struct, or 0; field]; -1: not kept.
_KEPT = np.full((9, 9), -1)
_KEPT[0, [1, 2, 3, 4]] = KIND, UNCOMPRESSED, COMPRESSED, CHECKSUM
_KEPT[5, [1, 2]] = VALUES, ENCODING
_KEPT[7, [1, 2]] = VALUES, ENCODING
_KEPT[8, [1, 4, 5, 7]] = VALUES, ENCODING, LEVELS, IS_COMPRESSED
_DEPTH = 8
# Thrift's compact types.
_TRUE, _FALSE, _BYTE, _INT64, _BINARY, _STRUCT = 1, 2, 3, 6, 8, 12


@kernel
def find_pages(data: Array, end: int, pages: Array) -> tuple[int, int]:
    """Fill a row of ``pages`` for each page that lies whole in ``data[:end]``.

    Parameters
    ----------
    data
        uint8, of which the first ``end`` bytes are part of a column chunk that starts with a page header.
    end
        Bytes of ``data`` that are valid.
    pages
        int64 (pages at most, `FIELDS`); filled.

    Returns
    -------
    tuple of int
        The number of pages, and the bytes that they take, or `MALFORMED`.
    """
    start = 0
    for found in range(len(pages)):
        page = pages[found]
        body = _header(data, start, end, page)
        if body == INCOMPLETE:
            return found, start
        if body == MALFORMED or min(page[COMPRESSED], page[UNCOMPRESSED], page[VALUES], page[LEVELS]) < 0:
            return found, MALFORMED
        if page[COMPRESSED] > end - body:
            return found, start
        page[BODY] = body
        start = body + page[COMPRESSED]
    return len(pages), start


@kernel
def _header(data: Array, position: int, end: int, page: Array) -> int:
    """Read a page header into a row of the table; return the position after it, or a fault."""
    page[:] = 0
    page[CHECKSUM] = NO_CHECKSUM
    page[IS_COMPRESSED] = 1
    field = np.zeros(_DEPTH, np.int64)
    depth = 0
    while depth >= 0:
        if position >= end:
            return INCOMPLETE
        head = np.int64(data[position])
        kind = head & 15
        if kind == 0:
            depth -= 1
            position += 1
            continue
        field[depth], position = _field(data, position, end, field[depth])
        if kind == _STRUCT and depth + 1 < _DEPTH:
            depth += 1
            field[depth] = 0
        elif position >= 0:
            value, position = _value(data, position, end, kind)
            _keep(page, field, depth, value)
        if position < 0:
            return position
    return position


@kernel
def _field(data: Array, position: int, end: int, previous: int) -> tuple[int, int]:
    delta = np.int64(data[position]) >> 4
    if delta:
        return previous + delta, position + 1
    value, position = _varint(data, position + 1, end)
    return value >> 1, position


@kernel
def _value(data: Array, position: int, end: int, kind: int) -> tuple[int, int]:
    """Return the number (0 where it is none) and the position after it, or a fault as position."""
    if kind in {_TRUE, _FALSE}:
        return np.int64(kind == _TRUE), position
    if kind == _BYTE:
        return 0, position + 1
    if kind > _BINARY or kind == _INT64 + 1:
        return 0, MALFORMED
    value, position = _varint(data, position, end)
    if position < 0 or kind != _BINARY:
        return (value >> 1) ^ -(value & 1), position
    return 0, INCOMPLETE if value > end - position else position + value


@kernel
def _keep(page: Array, field: Array, depth: int, value: int) -> None:
    parent = field[0] if depth == 1 else 0
    if depth <= 1 and parent < len(_KEPT) and field[depth] < len(_KEPT) and _KEPT[parent, field[depth]] >= 0:
        page[_KEPT[parent, field[depth]]] = value


@kernel
def _varint(data: Array, position: int, end: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the position after it, or a fault as position."""
    value = np.int64(0)
    for shift in range(0, 63, 7):
        if position >= end:
            return value, INCOMPLETE
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    return value, MALFORMED


@kernel
def definition_levels(data: Array, start: int, end: int, size: int, present: Array) -> tuple[int, int]:
    """Read which rows of a page have a value.

    Parameters
    ----------
    data
        uint8, the page's bytes.
    start, end
        Where the levels begin and the page ends.
    size
        Bytes of the levels; negative where four bytes ahead of them tell.
    present
        uint8 (rows); filled with 1 for a value and 0 for a null.

    Returns
    -------
    tuple of int
        The number of values and where they begin, or `MALFORMED`.
    """
    if size < 0:
        if end - start < 4:
            return 0, MALFORMED
        size = _little_endian(data, start, 4)
        start += 4
    if size > end - start or not hybrid(data, start, start + size, 1, 2, present):
        return 0, MALFORMED
    values = 0
    for row in range(len(present)):
        values += present[row]
    return values, start + size


@kernel
def spread(indices: Array, present: Array, values: int, null: int) -> None:
    """Move the last ``values`` of the indices to the rows that have one, in order; the other rows get ``null``."""
    source = len(indices) - values
    for row in range(len(indices)):
        if present[row]:
            indices[row] = indices[source]
            source += 1
        else:
            indices[row] = null


@kernel
def dictionary_indices(
    data: Array, starts: Array, pages: Array, optional: bool, entries: int, present: Array, indices: Array
) -> bool:
    """Read the dictionary index of each row of some pages; a null gets index ``entries``.

    Parameters
    ----------
    data
        uint8, the uncompressed pages.
    starts
        int64 (pages,), where each page begins in ``data``.
    pages
        int64 (pages, `FIELDS`).
    optional
        Whether the pages have definition levels.
    entries
        Length of the dictionary.
    present
        uint8, scratch as long as the longest page.
    indices
        int64 (rows of all pages,); filled.

    Returns
    -------
    bool
        False if the bytes are malformed.
    """
    first = 0
    for index in range(len(pages)):
        page = pages[index]
        rows = page[VALUES]
        start, end = starts[index], starts[index] + page[UNCOMPRESSED]
        values = rows
        if optional:
            size = page[LEVELS] if page[KIND] == DATA_V2 else -1
            values, start = definition_levels(data, start, end, size, present[:rows])
        if start < 0 or (
            values and not _indices(data, start, end, entries, indices[first + rows - values : first + rows])
        ):
            return False
        if values < rows:
            spread(indices[first : first + rows], present[:rows], values, entries)
        first += rows
    return True


@kernel
def _indices(data: Array, start: int, end: int, entries: int, indices: Array) -> bool:
    return start < end and hybrid(data, start + 1, end, np.int64(data[start]), entries, indices)


@kernel
def hybrid(data: Array, position: int, end: int, width: int, limit: int, values: Array) -> bool:
    """Read runs and bit-packed groups of ``width`` bits until ``values`` is full; False if one reaches ``limit``."""
    filled = 0
    while filled < len(values):
        head, position = _varint(data, position, end)
        if position < 0 or width > 32 or head >> 36:
            return False
        run = values[filled : filled + ((head >> 1) * 8 if head & 1 else head >> 1)]
        size = (len(run) * width + 7) >> 3 if head & 1 else (width + 7) >> 3
        if len(run) == 0 or size > end - position:
            return False
        largest = unpack(data, position, width, run) if head & 1 else _repeat(data, position, size, run)
        if largest >= limit:
            return False
        filled += len(run)
        position += size
    return True


@kernel
def _repeat(data: Array, position: int, size: int, run: Array) -> int:
    value = _little_endian(data, position, size)
    run[:] = value
    return value


@kernel
def unpack(data: Array, start: int, width: int, run: Array) -> int:
    """Unpack numbers of ``width`` bits and return the largest.

    A number is cut from the eight bytes that it begins in; their loads become one instruction.
    """
    mask = np.uint64((1 << width) - 1)
    largest = np.uint64(0)
    # Groups of eight numbers take whole bytes. The last ones are read byte by byte, because eight might end outside.
    groups = max(0, min(len(run) // 8, (len(data) - start - 8) // max(width, 1)))
    for group in range(groups):
        base = np.uint64(start + group * width)
        for index in range(8):
            bit = np.uint64(index) * np.uint64(width)
            word = np.uint64(0)
            for byte in range(8):
                word |= np.uint64(data[base + (bit >> np.uint64(3)) + np.uint64(byte)]) << np.uint64(8 * byte)
            value = (word >> (bit & np.uint64(7))) & mask
            largest = max(largest, value)
            run[8 * group + index] = value
    for index in range(8 * groups, len(run)):
        bit = index * width
        word = np.uint64(_little_endian(data, start + (bit >> 3), min(8, len(data) - start - (bit >> 3))))
        value = (word >> np.uint64(bit & 7)) & mask
        largest = max(largest, value)
        run[index] = value
    return np.int64(largest)


@kernel
def _little_endian(data: Array, start: int, size: int) -> int:
    value = np.int64(0)
    for byte in range(size):
        value |= np.int64(data[start + byte]) << (8 * byte)
    return value


@kernel
def split_byte_arrays(data: Array, position: int, end: int, offsets: Array, text: Array) -> bool:
    """Copy byte arrays that are preceded by their length into ``text``; ``offsets`` (int32, arrays + 1) tells where."""
    written = 0
    offsets[0] = 0
    for index in range(len(offsets) - 1):
        if end - position < 4:
            return False
        size = _little_endian(data, position, 4)
        position += 4
        if size > end - position:
            return False
        text[written : written + size] = data[position : position + size]
        written += size
        position += size
        offsets[index + 1] = written
    return True

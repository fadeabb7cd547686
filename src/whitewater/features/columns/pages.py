"""The kernels that read Parquet pages: headers, definition levels, dictionary indices.

No byte of a file is trusted: each read is checked against the end of its page, and each index against the dictionary.
The format: https://parquet.apache.org/docs/file-format/ (page headers in Thrift's compact protocol; definition levels
and dictionary indices in the hybrid of runs and bit packing).
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, part, short_kernel, uint64
from whitewater.features.categories.xxh64 import eight_bytes

# What is kept of a page's header: columns of a table (int64) with a row for each page.
KIND, UNCOMPRESSED, COMPRESSED, CHECKSUM, VALUES, ENCODING, LEVELS, IS_COMPRESSED, BODY, FIELDS = range(10)
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
# Stands for a checksum where a page has none, and for the size of levels where it stands ahead of them.
ABSENT = -1
INCOMPLETE, MALFORMED = -1, -2

# Which column a number goes to: [field of the header that holds the number's struct, or 0; field]; -1: not kept.
_KEPT = np.full((9, 9), -1)
_KEPT[0, [1, 2, 3, 4]] = KIND, UNCOMPRESSED, COMPRESSED, CHECKSUM
_KEPT[5, [1, 2]] = VALUES, ENCODING
_KEPT[7, [1, 2]] = VALUES, ENCODING
_KEPT[8, [1, 4, 5, 7]] = VALUES, ENCODING, LEVELS, IS_COMPRESSED
_DEPTH = 8
# Definition levels are looked up as indices are: 0, 1, and an entry for null that they never reach.
_LEVELS = np.array([0, 1, 0], np.uint32)
# Thrift's compact types.
_TRUE, _FALSE, _BYTE, _INT64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 6, 7, 8, 12
_MOST_BITS = 32


@short_kernel
def find_pages(data: Array, pages: Array) -> tuple[int, int]:
    """Fill a row of ``pages`` for each page that lies whole in ``data``.

    ``data``, uint8, is a part of a column chunk that begins with a page header; ``pages`` is int64 (pages at most,
    `FIELDS`). Returns the number of pages, and the bytes that they take, or `MALFORMED`.
    """
    start = 0
    for found in range(len(pages)):
        page = pages[found]
        body = _header(data, start, page)
        if body == INCOMPLETE:
            return found, start
        if body == MALFORMED or min(page[COMPRESSED], page[UNCOMPRESSED], page[VALUES]) < 0 or page[LEVELS] < ABSENT:
            return found, MALFORMED
        if page[COMPRESSED] > len(data) - body:
            return found, start
        page[BODY] = body
        start = body + page[COMPRESSED]
    return len(pages), start


@kernel
def _header(data: Array, position: int, page: Array) -> int:
    """Read a page header into a row of the table; return the position after it, or a fault."""
    for column in range(FIELDS):
        page[column] = 0
    page[CHECKSUM] = page[LEVELS] = ABSENT
    page[IS_COMPRESSED] = 1
    # The last field read at each depth; below the two depths that are kept it is of no use.
    field = np.zeros(_DEPTH, np.int64)
    depth = 0
    while depth >= 0:
        if position >= len(data):
            return INCOMPLETE
        kind = int64(data[position]) & 15
        if kind == 0:
            depth -= 1
            position += 1
            continue
        field[depth], position = _field(data, position, field[depth])
        if kind == _STRUCT and depth + 1 < _DEPTH:
            depth += 1
            field[depth] = 0
        elif position >= 0:
            value, position = _value(data, position, kind)
            _keep(page, field, depth, value)
        if position < 0:
            return position
    return position


@part
def _field(data: Array, position: int, previous: int) -> tuple[int, int]:
    """Return the number of a field and the position after its head, or a fault as position."""
    delta = int64(data[position]) >> 4
    if delta:
        return previous + delta, position + 1
    value, position = _varint(data, position + 1)
    return value >> 1, position


@part
def _value(data: Array, position: int, kind: int) -> tuple[int, int]:
    """Return a field's number (0 where it is not one) and the position after it, or a fault as position."""
    if kind in (_TRUE, _FALSE):
        return int64(kind == _TRUE), position
    if kind == _BYTE:
        return int64(0), position + 1
    if kind == _DOUBLE or kind > _BINARY:
        return int64(0), MALFORMED
    value, position = _varint(data, position)
    if position < 0 or kind != _BINARY:
        return (value >> 1) ^ -(value & 1), position
    return int64(0), INCOMPLETE if value > len(data) - position else position + value


@part
def _keep(page: Array, field: Array, depth: int, value: int) -> None:
    parent = field[0] if depth == 1 else 0
    if depth <= 1 and parent < len(_KEPT) and field[depth] < len(_KEPT) and _KEPT[parent, field[depth]] >= 0:
        page[_KEPT[parent, field[depth]]] = value


@part
def _varint(data: Array, position: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the position after it, or a fault as position."""
    value = int64(0)
    for shift in range(0, 63, 7):
        if position >= len(data):
            return value, INCOMPLETE
        byte = int64(data[position])
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    return value, MALFORMED


@short_kernel
def definition_levels(page: Array, size: int, present: Array) -> tuple[int, int]:
    """Read which rows of a page have a value.

    ``page``, uint8, is uncompressed and begins with the levels, of ``size`` bytes, or `ABSENT` where the first four
    bytes tell; ``present``, uint32 (rows,), is filled with 1 for a value and 0 for a null. Returns the number of values
    and where they begin, or `MALFORMED`.
    """
    start = 0
    if size == ABSENT:
        if len(page) < 4:
            return 0, MALFORMED
        size = _little_endian(page, 0, 4)
        start = 4
    if size > len(page) - start or not _hybrid(page[: start + size], start, 1, _LEVELS, present):
        return 0, MALFORMED
    values = 0
    for row in range(len(present)):
        values += int64(present[row])
    return values, start + size


@kernel
def spread(values: Array, present: Array, count: int, null: int) -> None:
    """Move the last ``count`` values to the rows that have one, in order; the other rows get ``null``."""
    source, last = len(values) - count, len(values) - 1
    for row in range(len(values)):
        value = values[min(source, last)]
        values[row] = value if present[row] else null
        source += int64(present[row])


@kernel
def look_up(page: Array, size: int, present: Array, table: Array, values: Array) -> int:
    """Read the dictionary indices of a page and look each up.

    ``page``, uint8, is uncompressed, and ``size`` the bytes of its levels or `ABSENT`; ``present``, uint32 (rows,), is
    scratch, empty if the page has no definition levels; ``table``, uint32 or uint64 (entries of the dictionary + 1,),
    has the null last; ``values``, as the table (rows,), is filled. Returns the number of nulls, or `MALFORMED`.
    """
    count, start = len(values), 0
    if len(present):
        count, start = definition_levels(page, size, present)
    nulls = len(values) - count
    if start < 0 or (count and not _indices(page, start, table, values[nulls:])):
        return MALFORMED
    if nulls:
        spread(values, present, count, table[-1])
    return nulls


@part
def _indices(page: Array, start: int, table: Array, values: Array) -> bool:
    return start < len(page) and _hybrid(page, start + 1, int64(page[start]), table, values)


@kernel
def _hybrid(data: Array, position: int, width: int, table: Array, values: Array) -> bool:
    """Look up indices of ``width`` bits, in runs or packed, until ``values`` is full; False if they are malformed."""
    filled = 0
    while filled < len(values):
        head, position = _varint(data, position)
        if position < 0 or width > _MOST_BITS or head >> (_MOST_BITS + 4):
            return False
        packed = head & 1
        count = min((head >> 1) * 8 if packed else head >> 1, len(values) - filled)
        size = (count * width + 7) >> 3 if packed else (width + 7) >> 3
        if count == 0 or size > len(data) - position:
            return False
        run = values[filled : filled + count]
        largest = _unpack(data, position, width, table, run) if packed else _repeat(data, position, size, table, run)
        if largest >= len(table) - 1:
            return False
        filled += count
        position += size
    return True


@part
def _repeat(data: Array, position: int, size: int, table: Array, run: Array) -> int:
    index = _little_endian(data, position, size)
    value = table[min(index, len(table) - 1)]
    for row in range(len(run)):
        run[row] = value
    return index


@part
def _unpack(data: Array, start: int, width: int, table: Array, run: Array) -> int:
    """Look up packed indices of ``width`` bits and return the largest.

    An index is cut from the eight bytes that it begins in; their loads become one instruction. Groups of eight indices
    take whole bytes. The last ones are read byte by byte, because eight bytes might reach beyond the data.
    """
    if width == 1:
        return _unpack_bits(data, start, table, run)
    mask, end = uint64((1 << width) - 1), uint64(len(table) - 1)
    largest = uint64(0)
    groups = max(0, min(len(run) // 8, (len(data) - start - 8) // max(width, 1)))
    for group in range(groups):
        base = uint64(start + group * width)
        for place in range(8):
            bit = uint64(place) * uint64(width)
            index = (eight_bytes(data, base + (bit >> uint64(3))) >> (bit & uint64(7))) & mask
            largest = max(largest, index)
            run[8 * group + place] = table[min(index, end)]
    for place in range(8 * groups, len(run)):
        first = start + (place * width >> 3)
        word = uint64(_little_endian(data, first, min(8, len(data) - first)))
        index = (word >> uint64(place * width & 7)) & mask
        largest = max(largest, index)
        run[place] = table[min(index, end)]
    return int64(largest)


@part
def _unpack_bits(data: Array, start: int, table: Array, run: Array) -> int:
    """Look up packed indices of one bit, which definition levels are as well: a choice, which runs on vectors."""
    low, high = table[0], table[min(1, len(table) - 1)]
    some = 0
    for group in range(len(run) // 8):
        byte = int64(data[start + group])
        some |= byte
        for place in range(8):
            run[8 * group + place] = high if (byte >> place) & 1 else low
    for place in range(len(run) // 8 * 8, len(run)):
        bit = (int64(data[start + (place >> 3)]) >> (place & 7)) & 1
        some |= bit
        run[place] = high if bit else low
    return int64(some != 0)


@part
def _little_endian(data: Array, start: int, size: int) -> int:
    value = int64(0)
    for byte in range(size):
        value |= int64(data[start + byte]) << (8 * byte)
    return value


@kernel
def split_byte_arrays(data: Array, offsets: Array, text: Array) -> bool:
    """Copy byte arrays that are preceded by their length into ``text``; ``offsets`` (int32, arrays + 1) tells where."""
    position = written = 0
    offsets[0] = 0
    for index in range(len(offsets) - 1):
        if len(data) - position < 4:
            return False
        size = _little_endian(data, position, 4)
        position += 4
        if size > len(data) - position:
            return False
        for byte in range(size):
            text[written + byte] = data[position + byte]
        written += size
        position += size
        offsets[index + 1] = written
    return True

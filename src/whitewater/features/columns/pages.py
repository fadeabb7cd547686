"""Kernels that decode Parquet pages: headers, definition levels, dictionary indices, texts.

No byte of a file is trusted: reads are checked against the end of the page, and indices against the dictionary. Levels
and indices use the hybrid of runs and bit packing of https://parquet.apache.org/docs/file-format/.
"""

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.features.columns.byte_strings import eight_bytes, little_endian

# The size of levels is stored before them.
ABSENT = -1
MALFORMED = -2
# Definition levels are decoded as indices of this table: 0, 1, and the null, which is never reached.
_LEVELS = np.array([0, 1, 0], np.uint32)
_MOST_BITS = 32
# Thrift's compact types: the integers are of 16, 32 and 64 bits.
_STOP, _TRUE, _FALSE, _INTEGERS, _BINARY, _STRUCT = 0, 1, 2, (4, 5, 6), 8, 12
# A header has nested structs.
DEPTHS = 3


@part
def _varint(data: Array, position: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the position after it, or `MALFORMED` as position."""
    value = int64(0)
    for shift in range(0, 63, 7):
        if not 0 <= position < len(data):
            return value, MALFORMED
        byte = int64(data[position])
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    return value, MALFORMED


@kernel
def read_header(data: Array, position: int, fields: Array) -> int:
    """Read the header of a page, a struct of Thrift's compact protocol; return its end, or `MALFORMED`.

    ``fields``, int64 (`DEPTHS`, numbers), are filled with integers and booleans by depth of the struct and number of
    the field. Column 0 is scratch.
    """
    depth, fields[0, 0] = 0, 0
    while 0 <= position < len(data):
        head = int64(data[position])
        kind, number = head & 15, fields[depth, 0] + (head >> 4)
        position += 1
        if head == _STOP:
            depth -= 1
            if depth < 0:
                return position
            continue
        if head < 16:
            number, position = _varint(data, position)
            number >>= 1
        fields[depth, 0] = number
        if kind == _STRUCT:
            depth += 1
            if depth == len(fields):
                return MALFORMED
            fields[depth, 0] = 0
            continue
        value, position = _value(data, position, kind)
        if 0 < number < fields.shape[1]:
            fields[depth, number] = value
    return MALFORMED


@part
def _value(data: Array, position: int, kind: int) -> tuple[int, int]:
    """Return a boolean, an integer or the length of a text, and the position after it, or `MALFORMED`."""
    if kind in (_TRUE, _FALSE):
        return int64(kind == _TRUE), position
    value, position = _varint(data, position)
    if kind == _BINARY:
        return value, position + value if 0 <= position <= len(data) - value else MALFORMED
    return (value >> 1) ^ -(value & 1), position if kind in _INTEGERS else MALFORMED


@kernel
def definition_levels(page: Array, size: int, present: Array) -> tuple[int, int]:
    """Fill ``present``, uint32 (rows,), with 1 for a value and 0 for a null.

    ``page``, uint8, is uncompressed and begins with ``size`` bytes of levels; if `ABSENT`, the size is its first four
    bytes. Returns the number of values and their start, or `MALFORMED`.
    """
    start = 0
    if size == ABSENT:
        if len(page) < 4:
            return 0, MALFORMED
        size = int64(little_endian(page, uint64(0), uint64(4)))
        start = 4
    if size > len(page) - start or not look_up(page[: start + size], start, 1, _LEVELS, present):
        return 0, MALFORMED
    values = 0
    for row in range(len(present)):
        values += int64(present[row])
    return values, start + size


@kernel
def spread(values: Array, present: Array, count: int, null: int) -> None:
    """Move the last ``count`` values to the rows that are ``present``; other rows get ``null``."""
    source, last = uint64(len(values) - count), uint64(len(values) - 1)
    for row in range(len(values)):
        # Without branches, which would be mispredicted at nulls.
        is_value = uint64(present[row])
        mask = uint64(0) - is_value
        values[row] = (uint64(values[min(source, last)]) & mask) | (uint64(null) & ~mask)
        source += is_value


@kernel
def look_up(data: Array, position: int, width: int, table: Array, values: Array) -> bool:
    """Look up indices of ``width`` bits, in runs or packed, until ``values`` is full; return False if malformed.

    ``data``, uint8, is an uncompressed page; ``table``, uint32 or uint64 (dictionary entries + 1,), ends with the null.
    """
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
    index = int64(little_endian(data, uint64(position), uint64(position + size))) if size else int64(0)
    value = table[min(index, len(table) - 1)]
    for row in range(len(run)):
        run[row] = value
    return index


@part
def _unpack(data: Array, start: int, width: int, table: Array, run: Array) -> int:
    """Look up packed indices of ``width`` bits and return the largest.

    An index is cut from the eight bytes that it begins in, which are loaded by one instruction. The last indices are
    read byte by byte, because eight bytes might extend beyond the data.
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
        word = little_endian(data, uint64(start + (place * width >> 3)), uint64(len(data)))
        index = (word >> uint64(place * width & 7)) & mask
        largest = max(largest, index)
        run[place] = table[min(index, end)]
    return int64(largest)


@part
def _unpack_bits(data: Array, start: int, table: Array, run: Array) -> int:
    """Look up packed indices of one bit, such as definition levels: a choice between two values, which vectorizes."""
    low, high = table[0], table[min(1, len(table) - 1)]
    seen_bits = 0
    for group in range(len(run) // 8):
        byte = int64(data[start + group])
        seen_bits |= byte
        for place in range(8):
            run[8 * group + place] = high if (byte >> place) & 1 else low
    for place in range(len(run) // 8 * 8, len(run)):
        bit = (int64(data[start + (place >> 3)]) >> (place & 7)) & 1
        seen_bits |= bit
        run[place] = high if bit else low
    return int64(seen_bits != 0)


@kernel
def split_byte_arrays(data: Array, offsets: Array, text: Array) -> bool:
    """Copy byte arrays preceded by their lengths into ``text``, and fill ``offsets``, int32 (arrays + 1,)."""
    position = written = 0
    offsets[0] = 0
    for index in range(len(offsets) - 1):
        if len(data) - position < 4:
            return False
        size = int64(little_endian(data, uint64(position), uint64(position + 4)))
        position += 4
        if size > len(data) - position:
            return False
        end = written + size
        # Copy eight bytes at a time if both arrays have room for some too many.
        if size <= 64 and position + 64 <= len(data):
            for first in range(0, size, 8):
                word = eight_bytes(data, uint64(position + first))
                for byte in range(8):
                    text[uint64(written + first + byte)] = word >> uint64(8 * byte)
        else:
            text[written:end] = data[position : position + size]
        written += size
        position += size
        offsets[index + 1] = written
    return True

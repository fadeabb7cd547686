"""The kernels that load batches: an order that looks random, and rows put where it says."""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel, part, uint64
from whitewater.devices.protocol import Array
from whitewater.devices.xxh64 import mixed

# How a number is stored, where it is not just copied; and the columns of a table of places.
COPIED, INT32, INT64, FLOAT64, BIT = range(5)
OFFSET, STRIDE, STORED, PLACE = range(4)
# Rows put together before they are written: 128 of 40 numbers stay in the nearest cache of a core.
_TILE = 128
_GOLDEN = 0x9E3779B97F4A7C15


@kernel
def permutation(length: int, key: int) -> Array:
    """Return the numbers below ``length``, less than 2**31, in an order that depends on ``key`` only: int32 (length,).

    Source: the shuffle of R. Durstenfeld (Communications of the ACM 7, 1964), with splitmix64 (G. L. Steele, D. Lea and
    C. H. Flood, OOPSLA 2014) for random numbers. No library's generator, which a new version may change.
    """
    order = np.arange(length).astype(np.int32)
    state = uint64(key)
    for last in range(length - 1, 0, -1):
        state = uint64(state + uint64(_GOLDEN))
        chosen = int64(((mixed(state) >> uint64(32)) * uint64(last + 1)) >> uint64(32))
        order[last], order[chosen] = order[chosen], order[last]
    return order


@kernel
def place_rows(data: Array, columns: Array, places: Array, words: Array, values: Array) -> None:
    """Write rows, read column by column, as rows of a matrix.

    Parameters
    ----------
    data
        uint8, the bytes of a file.
    columns
        int64 (columns, `PLACE`): for each column of the matrix where the number of the first row is, how far it is from
        one row to the next, both in bytes (bits of a `BIT`), and how numbers are stored. All must lie within ``data``.
    places
        int32 (rows,), the row of the matrix where each is written.
    words, values
        The matrix, as unsigned integers and as numbers: the same memory.
    """
    tile = np.empty((_TILE, len(columns)), values.dtype)
    tile_words = tile.view(words.dtype)
    for start in range(0, len(places), _TILE):
        rows = min(_TILE, len(places) - start)
        for column in range(len(columns)):
            _fill(data, columns[column], start, tile_words[:rows, column], tile[:rows, column])
        for row in range(rows):
            place = places[start + row]
            for column in range(len(columns)):
                words[place, column] = tile_words[row, column]


@part
def _fill(data: Array, column: Array, start: int, words: Array, values: Array) -> None:
    """Read numbers of a column from row ``start`` on."""
    # Indices without a sign need no look at it, which would keep the loads of bytes apart.
    stride, stored = uint64(column[STRIDE]), column[STORED]
    position = uint64(column[OFFSET]) + stride * uint64(start)
    if stored == COPIED:
        for row in range(len(words)):
            words[row] = _word(data, position + stride * uint64(row), words.itemsize)
    elif stored == FLOAT64:
        for row in range(len(values)):
            values[row] = np.uint64(_word(data, position + stride * uint64(row), 8)).view(np.float64)
    else:
        for row in range(len(values)):
            values[row] = _integer(data, position + stride * uint64(row), stored)


@part
def _integer(data: Array, position: int, stored: int) -> int:
    if stored == BIT:
        return (int64(data[position >> uint64(3)]) >> int64(position & uint64(7))) & 1
    if stored == INT32:
        return int64(_word(data, position, 4) ^ uint64(1 << 31)) - (1 << 31)
    return int64(_word(data, position, 8))


@part
def _word(data: Array, position: int, size: int) -> int:
    """Return bytes, at any address, as an unsigned integer; their loads become one instruction."""
    word = uint64(0)
    for byte in range(4):
        word |= uint64(data[position + uint64(byte)]) << uint64(8 * byte)
    if size == 8:
        for byte in range(4, 8):
            word |= uint64(data[position + uint64(byte)]) << uint64(8 * byte)
    return word

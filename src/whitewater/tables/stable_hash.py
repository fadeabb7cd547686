"""XXH64 of rows of integers, in array expressions: the same 64 bits on every device, version and byte order.

Hashes choose samples and folds here, so that they depend on the content of a row alone: not on its place in a file, on
the partition, or on a seed of NumPy's or CuPy's, whose random streams differ.

The same of bytes, and the source: `whitewater.tables.xxh64`.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from whitewater.engines import Array
from whitewater.tables.xxh64 import PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5

_LANES = 4
_ROTATIONS = (1, 7, 12, 18)


def hash_int64(xp: ModuleType, *columns: Array, seed: int = 0) -> Array:
    """Return XXH64 of the little-endian bytes of each row of integers.

    The columns are int64 arrays of one length (rows,); a row's bytes are its values in this order, 8 bytes each. The
    result is uint64 (rows,).

    >>> hash_int64(np, np.array([0, 1]))
    array([ 3803688792395291579, 11468921228449061269], dtype=uint64)
    """
    lanes = [column.astype(xp.uint64) for column in columns]
    stripes = len(lanes) // _LANES * _LANES
    state: Array = _stripes(xp, lanes[:stripes], seed) if stripes else xp.full(len(lanes[0]), _sum(seed, PRIME_5))
    state = state + np.uint64(8 * len(lanes))
    for lane in lanes[stripes:]:
        state = _rotate(state ^ _round(lane * PRIME_2), 27) * PRIME_1 + PRIME_4
    return _avalanche(state)


def _stripes(xp: ModuleType, lanes: list[Array], seed: int) -> Array:
    """Consume lanes by fours: 32 bytes at a time, one lane to each of four accumulators."""
    starts = _sum(seed, PRIME_1, PRIME_2), _sum(seed, PRIME_2), _sum(seed), _sum(seed, -int(PRIME_1))
    accumulators = [xp.full(len(lanes[0]), start) for start in starts]
    for position, lane in enumerate(lanes):
        accumulators[position % _LANES] = _round(accumulators[position % _LANES] + lane * PRIME_2)
    state: Array = xp.zeros(len(lanes[0]), xp.uint64)
    for accumulator, bits in zip(accumulators, _ROTATIONS, strict=True):
        state = state + _rotate(accumulator, bits)
    for accumulator in accumulators:
        state = (state ^ _round(accumulator * PRIME_2)) * PRIME_1 + PRIME_4
    return state


def _sum(*numbers: int) -> np.uint64:
    return np.uint64(sum(map(int, numbers)) % 2**64)


def _round(state: Array) -> Array:
    return _rotate(state, 31) * PRIME_1


def _rotate(values: Array, bits: int) -> Array:
    rotated: Array = values << np.uint64(bits) | values >> np.uint64(64 - bits)
    return rotated


def _avalanche(state: Array) -> Array:
    state = (state ^ state >> np.uint64(33)) * PRIME_2
    state = (state ^ state >> np.uint64(29)) * PRIME_3
    hashed: Array = state ^ state >> np.uint64(32)
    return hashed

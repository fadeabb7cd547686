"""XXH64 of rows of integers: the same 64 bits on every device, version and byte order.

Samples and folds are chosen by these hashes, so they depend only on the content of a row: not on its position in a
file, the partition, or a random seed, for which NumPy and CuPy give different numbers.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64.
"""

from types import ModuleType

import numpy as np

from whitewater.engines import Array

PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = map(np.uint64, PRIMES)
_LANES = 4


def hash_int64(xp: ModuleType, *columns: Array, seed: int = 0) -> Array:
    """Return the XXH64 of each row as uint64 (rows,).

    The columns are int64 (rows,). The bytes of a row are its values in this order, 8 bytes each, little-endian.

    Examples
    --------
    >>> hash_int64(np, np.array([0, 1]))
    array([ 3803688792395291579, 11468921228449061269], dtype=uint64)
    """
    lanes = [column.astype(xp.uint64) for column in columns]
    striped = len(lanes) // _LANES * _LANES
    start: Array = xp.full(len(lanes[0]), seed % 2**64, xp.uint64)
    state = start + _PRIME_5
    if striped:
        # 32 bytes at a time, one lane to each of four accumulators.
        accumulators = [start + _PRIME_1 + _PRIME_2, start + _PRIME_2, start, start - _PRIME_1]
        for position, lane in enumerate(lanes[:striped]):
            accumulators[position % _LANES] = _round(accumulators[position % _LANES] + lane * _PRIME_2)
        state = sum(map(_rotate, accumulators, (1, 7, 12, 18)), start=xp.zeros_like(start))
        for accumulator in accumulators:
            state = (state ^ _round(accumulator * _PRIME_2)) * _PRIME_1 + _PRIME_4
    state += np.uint64(8 * len(lanes))
    for lane in lanes[striped:]:
        state = _rotate(state ^ _round(lane * _PRIME_2), 27) * _PRIME_1 + _PRIME_4
    state = (state ^ state >> np.uint64(33)) * _PRIME_2
    state = (state ^ state >> np.uint64(29)) * _PRIME_3
    return state ^ state >> np.uint64(32)


def _round(state: Array) -> Array:
    return _rotate(state, 31) * _PRIME_1


def _rotate(values: Array, bits: int) -> Array:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)

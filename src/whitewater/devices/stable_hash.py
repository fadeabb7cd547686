"""XXH64 of rows of integers, in array expressions: the same 64 bits on every device, version and byte order.

Hashes choose samples and folds here, so that they depend on the content of a row alone: not on its place in a file, on
the partition, or on a seed of NumPy's or CuPy's, whose random streams differ.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from whitewater.devices.blocks import Array

_PRIME_1 = 0x9E3779B185EBCA87
_PRIME_2 = 0xC2B2AE3D27D4EB4F
_PRIME_3 = 0x165667B19E3779F9
_PRIME_4 = 0x85EBCA77C2B2AE63
_PRIME_5 = 0x27D4EB2F165667C5
_MASK = 2**64 - 1
_LANES = 4
# The four accumulators of a stripe when the seed is 0.
_ACCUMULATORS = ((_PRIME_1 + _PRIME_2) & _MASK, _PRIME_2, 0, -_PRIME_1 & _MASK)
_ROTATIONS = (1, 7, 12, 18)


def hash_int64(xp: ModuleType, *columns: Array) -> Array:
    """Return XXH64, seed 0, of the little-endian bytes of each row of integers.

    Parameters
    ----------
    xp
        The array namespace: numpy or cupy.
    *columns
        One or more int64 arrays of one length (rows,). A row's bytes are its values in this order, 8 bytes each.

    Returns
    -------
    Array
        uint64 (rows,).

    Examples
    --------
    >>> import numpy as np
    >>> hash_int64(np, np.array([0, 1]))
    array([ 3803688792395291579, 11468921228449061269], dtype=uint64)
    """
    lanes = [column.astype(xp.uint64) for column in columns]
    stripes = len(lanes) // _LANES * _LANES
    state: Array = _stripes(xp, lanes[:stripes]) if stripes else xp.full(len(lanes[0]), np.uint64(_PRIME_5))
    state = state + np.uint64(8 * len(lanes))
    for lane in lanes[stripes:]:
        state = _rotate(state ^ _round(xp.zeros_like(lane), lane), 27) * np.uint64(_PRIME_1) + np.uint64(_PRIME_4)
    return _avalanche(state)


def _stripes(xp: ModuleType, lanes: list[Array]) -> Array:
    """Consume lanes by fours: 32 bytes at a time, one lane to each of four accumulators."""
    accumulators = [xp.full(len(lanes[0]), np.uint64(start)) for start in _ACCUMULATORS]
    for position, lane in enumerate(lanes):
        accumulators[position % _LANES] = _round(accumulators[position % _LANES], lane)
    state: Array = xp.zeros(len(lanes[0]), xp.uint64)
    for accumulator, bits in zip(accumulators, _ROTATIONS, strict=True):
        state = state + _rotate(accumulator, bits)
    for accumulator in accumulators:
        state = (state ^ _round(xp.zeros_like(accumulator), accumulator)) * np.uint64(_PRIME_1) + np.uint64(_PRIME_4)
    return state


def _round(accumulator: Array, lane: Array) -> Array:
    return _rotate(accumulator + lane * np.uint64(_PRIME_2), 31) * np.uint64(_PRIME_1)


def _rotate(values: Array, bits: int) -> Array:
    rotated: Array = values << np.uint64(bits) | values >> np.uint64(64 - bits)
    return rotated


def _avalanche(state: Array) -> Array:
    state = (state ^ state >> np.uint64(33)) * np.uint64(_PRIME_2)
    state = (state ^ state >> np.uint64(29)) * np.uint64(_PRIME_3)
    mixed: Array = state ^ state >> np.uint64(32)
    return mixed

"""Hashes with the same 64 bits on every device, version and byte order: XXH64 of rows of integers, and of bytes.

They choose samples and folds, which so depend on the content of a row alone: not on its place in a file, on the
partition, or on a seed of NumPy's or CuPy's, whose random streams differ. Rows are hashed in array expressions; XXH64
of bytes and the finalizer of SplitMix64 are parts of kernels.

Sources: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64; G. L. Steele, D. Lea, C. H. Flood,
"Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import part, uint64

PRIME_1 = uint64(0x9E3779B185EBCA87)
PRIME_2 = uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = uint64(0x165667B19E3779F9)
PRIME_4 = uint64(0x85EBCA77C2B2AE63)
PRIME_5 = uint64(0x27D4EB2F165667C5)
FACTOR_1, FACTOR_2 = uint64(0xBF58476D1CE4E5B9), uint64(0x94D049BB133111EB)
_STRIPE, _LANE, _HALF, _ONE = uint64(32), uint64(8), uint64(4), uint64(1)
_LANES = 4
_ROTATIONS = (1, 7, 12, 18)


def hash_int64(xp: ModuleType, *columns: Array, seed: int = 0) -> Array:
    """Return XXH64 of the little-endian bytes of each row of integers.

    The columns are int64 arrays of one length (rows,); a row's bytes are its values in this order, 8 bytes each. The
    result is uint64 (rows,).

    Examples
    --------
    >>> hash_int64(np, np.array([0, 1]))
    array([ 3803688792395291579, 11468921228449061269], dtype=uint64)
    """
    lanes = [column.astype(xp.uint64) for column in columns]
    stripes = len(lanes) // _LANES * _LANES
    state: Array = _array_stripes(xp, lanes[:stripes], seed) if stripes else xp.full(len(lanes[0]), _sum(seed, PRIME_5))
    state = state + np.uint64(8 * len(lanes))
    for lane in lanes[stripes:]:
        state = _array_rotate(state ^ _array_round(lane * PRIME_2), 27) * PRIME_1 + PRIME_4
    return _avalanche(state)


def _array_stripes(xp: ModuleType, lanes: list[Array], seed: int) -> Array:
    """Consume lanes by fours: 32 bytes at a time, one lane to each of four accumulators."""
    starts = _sum(seed, PRIME_1, PRIME_2), _sum(seed, PRIME_2), _sum(seed), _sum(seed, -int(PRIME_1))
    accumulators = [xp.full(len(lanes[0]), start) for start in starts]
    for position, lane in enumerate(lanes):
        accumulators[position % _LANES] = _array_round(accumulators[position % _LANES] + lane * PRIME_2)
    state: Array = xp.zeros(len(lanes[0]), xp.uint64)
    for accumulator, bits in zip(accumulators, _ROTATIONS, strict=True):
        state = state + _array_rotate(accumulator, bits)
    for accumulator in accumulators:
        state = (state ^ _array_round(accumulator * PRIME_2)) * PRIME_1 + PRIME_4
    return state


def _sum(*numbers: int) -> np.uint64:
    return np.uint64(sum(map(int, numbers)) % 2**64)


def _array_round(state: Array) -> Array:
    return _array_rotate(state, 31) * PRIME_1


def _array_rotate(values: Array, bits: int) -> Array:
    rotated: Array = values << np.uint64(bits) | values >> np.uint64(64 - bits)
    return rotated


def _avalanche(state: Array) -> Array:
    state = (state ^ state >> np.uint64(33)) * PRIME_2
    state = (state ^ state >> np.uint64(29)) * PRIME_3
    hashed: Array = state ^ state >> np.uint64(32)
    return hashed


@part
def xxh64(data: Array, begin: int, end: int, seed: int) -> int:
    """Return XXH64 of ``data[begin:end]``, uint8; all numbers are uint64."""
    position = begin
    state = seed + PRIME_5
    if end - begin >= _STRIPE:
        state, position = _stripes(data, begin, end, seed)
    state += end - begin
    while position + _LANE <= end:
        state = _rotate(state ^ _round(uint64(0), eight_bytes(data, position)), 27) * PRIME_1 + PRIME_4
        position += _LANE
    if position + _HALF <= end:
        state = _rotate(state ^ (_four_bytes(data, position) * PRIME_1), 23) * PRIME_2 + PRIME_3
        position += _HALF
    while position < end:
        state = _rotate(state ^ (uint64(data[position]) * PRIME_5), 11) * PRIME_1
        position += _ONE
    state = (state ^ (state >> uint64(33))) * PRIME_2
    state = (state ^ (state >> uint64(29))) * PRIME_3
    return state ^ (state >> uint64(32))


@part
def _stripes(data: Array, position: int, end: int, seed: int) -> tuple[int, int]:
    """Consume 32 bytes at a time, eight to each of four accumulators; return the state and the position."""
    first, second, third, fourth = seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1
    while position + _STRIPE <= end:
        first = _round(first, eight_bytes(data, position))
        second = _round(second, eight_bytes(data, position + uint64(8)))
        third = _round(third, eight_bytes(data, position + uint64(16)))
        fourth = _round(fourth, eight_bytes(data, position + uint64(24)))
        position += _STRIPE
    state = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
    for accumulator in (first, second, third, fourth):
        state = (state ^ _round(uint64(0), accumulator)) * PRIME_1 + PRIME_4
    return state, position


@part
def _round(accumulator: int, lane: int) -> int:
    return _rotate(accumulator + lane * PRIME_2, 31) * PRIME_1


@part
def _rotate(value: int, bits: int) -> int:
    return (value << uint64(bits)) | (value >> uint64(64 - bits))


@part
def eight_bytes(data: Array, position: int) -> int:
    """Return a little-endian word; ``position`` is uint64, so that the loads become one instruction."""
    word = uint64(0)
    for byte in range(8):
        word |= uint64(data[position + uint64(byte)]) << uint64(8 * byte)
    return word


@part
def _four_bytes(data: Array, position: int) -> int:
    word = uint64(0)
    for byte in range(4):
        word |= uint64(data[position + uint64(byte)]) << uint64(8 * byte)
    return word


@part
def mixed(value: int) -> int:
    """Return the finalizer of SplitMix64 of a number, uint64."""
    value = (value ^ (value >> uint64(30))) * FACTOR_1
    value = (value ^ (value >> uint64(27))) * FACTOR_2
    return value ^ (value >> uint64(31))

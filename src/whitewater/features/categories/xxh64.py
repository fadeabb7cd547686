"""XXH64 of bytes as parts of kernels; `whitewater.tables.hashing` has that of rows of integers, and its source."""

from __future__ import annotations

from whitewater.engines import Array
from whitewater.engines.kernel import part, uint64
from whitewater.tables.hashing import PRIMES

PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = map(uint64, PRIMES)
_STRIPE, _LANE, _HALF, _ONE = uint64(32), uint64(8), uint64(4), uint64(1)


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

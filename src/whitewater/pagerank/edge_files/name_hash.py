"""Ids of names that are spans of text: those of `whitewater.pagerank.vertex_ids`, without a Python object for each.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64.
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel, part, uint64
from whitewater.devices.protocol import Array
from whitewater.pagerank.edge_files.text_kernels import LENGTH

_PRIME_1 = uint64(0x9E3779B185EBCA87)
_PRIME_2 = uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = uint64(0x165667B19E3779F9)
_PRIME_4 = uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = uint64(0x27D4EB2F165667C5)
_STRIPE, _LANE, _HALF = 32, 8, 4


def hash_names(data: Array, spans: Array) -> Array:
    """Return the ids of names: uint8 text, int64 spans (names,) of it -> int64 (names,)."""
    ids = np.empty(len(spans), np.int64)
    _hash_spans(data, spans, ids)
    return ids


@kernel
def _hash_spans(data: Array, spans: Array, ids: Array) -> None:
    for row in range(len(spans)):
        begin = spans[row] >> 32
        ids[row] = int64(_hash(data, begin, begin + (spans[row] & LENGTH)))


@part
def _hash(data: Array, begin: int, end: int) -> int:
    """Return XXH64, seed 0, of some bytes."""
    position = begin
    state = _PRIME_5
    if end - begin >= _STRIPE:
        state, position = _stripes(data, begin, end)
    state += uint64(end - begin)
    while position + _LANE <= end:
        state = _rotate(state ^ _round(uint64(0), _word(data, position, _LANE)), 27) * _PRIME_1 + _PRIME_4
        position += _LANE
    if position + _HALF <= end:
        state = _rotate(state ^ (_word(data, position, _HALF) * _PRIME_1), 23) * _PRIME_2 + _PRIME_3
        position += _HALF
    while position < end:
        state = _rotate(state ^ (uint64(data[position]) * _PRIME_5), 11) * _PRIME_1
        position += 1
    state = (state ^ (state >> uint64(33))) * _PRIME_2
    state = (state ^ (state >> uint64(29))) * _PRIME_3
    return state ^ (state >> uint64(32))


@part
def _stripes(data: Array, position: int, end: int) -> tuple[int, int]:
    """Consume 32 bytes at a time, eight to each of four accumulators; return the state and the position."""
    first, second, third, fourth = _PRIME_1 + _PRIME_2, _PRIME_2, uint64(0), uint64(0) - _PRIME_1
    while position + _STRIPE <= end:
        first = _round(first, _word(data, position, _LANE))
        second = _round(second, _word(data, position + 8, _LANE))
        third = _round(third, _word(data, position + 16, _LANE))
        fourth = _round(fourth, _word(data, position + 24, _LANE))
        position += _STRIPE
    state = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
    for accumulator in (first, second, third, fourth):
        state = (state ^ _round(uint64(0), accumulator)) * _PRIME_1 + _PRIME_4
    return state, position


@part
def _round(accumulator: int, lane: int) -> int:
    return _rotate(accumulator + lane * _PRIME_2, 31) * _PRIME_1


@part
def _rotate(value: int, bits: int) -> int:
    return (value << uint64(bits)) | (value >> uint64(64 - bits))


@part
def _word(data: Array, position: int, size: int) -> int:
    word = uint64(0)
    for byte in range(size):
        word |= uint64(data[position + byte]) << uint64(8 * byte)
    return word

"""The values of a dictionary as byte strings (UTF-8 of text, 8 bytes of an integer), and their hash table.

The table uses open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4). A
slot has the upper half of a digest and the number of the string plus 1; 0 is empty. Its place is the upper bits of the
digest, so that a table grows in order and without new digests. Hashes that leave the process are XXH64; its source is
in `whitewater.tables.hashing`. Kernels take read-only arrays and int64 offsets, so that each is compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.tables.arrow_arrays import to_arrow
from whitewater.tables.hashing import PRIMES

_MOST_BYTES = 2**31 - 1
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
# Bytes and offsets, and for `Hashed` their hashes or slots.
Strings = tuple[Array, Array]
Hashed = tuple[Array, Array, Array]
_NUMBER, _TAG, _WORD = uint64(0xFFFFFFFF), uint64(0xFFFFFFFF00000000), uint64(0xFFFFFFFFFFFFFFFF)
_ZERO, _ONE, _HALF, _LANE, _STRIPE = map(uint64, (0, 1, 4, 8, 32))
PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = map(uint64, PRIMES)
# Strings whose memory is loaded ahead.
_AHEAD = 1024


@dataclass(frozen=True)
class ByteStrings:
    """String *i* is ``data[offsets[i]:offsets[i + 1]]``; ``data`` is uint8, ``offsets`` are int64 (strings + 1,)."""

    data: Array
    offsets: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def spans(self) -> tuple[Array, Array]:
        """The strings as kernels take them."""
        return self.data, self.offsets

    @classmethod
    def of(cls, dictionary: pa.Array) -> ByteStrings:
        """View an Arrow array of string, binary (large or not) or int64 without nulls."""
        if pa.types.is_int64(dictionary.type):
            data = np.from_dlpack(dictionary).view(np.uint8)
            return cls(read_only(data), np.arange(0, len(data) + 1, 8))
        _, offsets, data = dictionary.buffers()
        kind = np.int64 if dictionary.type in LARGE.values() else np.int32
        ends = np.frombuffer(offsets, kind)[dictionary.offset :][: len(dictionary) + 1] if len(dictionary) else [0]
        text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        return cls(read_only(text), np.array(ends, np.int64))

    def hashes(self, seed: int) -> Array:
        """Return XXH64 of each string, uint64 (strings,)."""
        hashes = np.empty(len(self), np.uint64)
        hash_strings(self.spans, uint64(seed), hashes)
        return hashes

    def as_arrow(self, type_: pa.DataType) -> pa.Array:
        """Return an Arrow array of string, binary or int64; of the large type beyond 2 GiB."""
        if pa.types.is_int64(type_):
            return to_arrow(self.data[: self.offsets[-1]].view(np.int64))
        small = type_ in LARGE and int(self.offsets[-1]) <= _MOST_BYTES
        offsets = self.offsets.astype(np.int32) if small else self.offsets
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(type_ if small else LARGE.get(type_, type_), len(self), buffers)


def read_only(values: Array) -> Array:
    """Return a contiguous, read-only view or copy, as kernels take it."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


@kernel
def hash_strings(strings: Strings, seed: int, hashes: Array) -> None:
    """Fill ``hashes``, uint64 (strings,), with XXH64 of each string; the seed is uint64."""
    data, offsets = strings
    for row in range(len(hashes)):
        hashes[row] = xxh64(data, uint64(offsets[row]), uint64(offsets[row + 1]), seed)


@kernel
def digest_strings(strings: Strings, digests: Array) -> None:
    """Fill ``digests``, uint64 (strings,), for hash tables; XXH64 takes three times as long."""
    data, offsets = strings
    for row in range(len(digests)):
        position, end = uint64(offsets[row]), uint64(offsets[row + 1])
        state = (end - position) * PRIME_2
        while position < end:
            state = (state ^ little_endian(data, position, end)) * PRIME_1
            state ^= state >> uint64(32)
            position += _LANE
        digests[row] = state * PRIME_1


@kernel
def place_slots(filled: Array, slots: Array) -> None:
    """Insert slots into an empty table, whose size is a power of two and at least twice their number."""
    mask, shift = uint64(len(slots) - 1), _shift(slots)
    for slot in filled:
        if slot:
            place = slot >> shift
            while slots[place]:
                place = (place + _ONE) & mask
            slots[place] = slot


@part
def _shift(slots: Array) -> int:
    """Return the right shift that turns a hash into a place of the table."""
    bits = 1
    while (1 << bits) < len(slots):
        bits += 1
    return uint64(64 - bits)


@kernel
def find(strings: Hashed, table: Hashed, size: int, learning: bool, numbers: Array) -> tuple[int, int]:
    """Fill ``numbers``, int64 (strings,), with the number of each string in a table of ``size`` strings, or -1.

    ``strings`` come with digests. ``table`` is the known strings and their slots, at most half of them filled. If
    ``learning``, unknown strings are added. Returns how many strings were processed before the table was full, and the
    new size.
    """
    (data, offsets, hashes), (known, known_offsets, slots) = strings, table
    mask, shift, room = uint64(len(slots) - 1), _shift(slots), min(len(known_offsets) - 1, len(slots) // 2)
    touched = 0
    for row in range(len(hashes)):
        if row == touched:
            touched = min(row + _AHEAD, len(hashes))
            _touch(hashes[row:touched], table, shift, numbers[row:touched])
        begin, end, tag = uint64(offsets[row]), uint64(offsets[row + 1]), hashes[row] & _TAG
        place = hashes[row] >> shift
        slot = slots[place]
        while slot and not ((slot & _TAG) == tag and _is((data, begin, end), known, known_offsets, slot & _NUMBER)):
            place = (place + _ONE) & mask
            slot = slots[place]
        if slot == _ZERO and learning:
            first = known_offsets[size]
            if size == room or first + int64(end - begin) > len(known):
                return row, size
            for byte in range(int64(end - begin)):
                known[first + byte] = data[begin + uint64(byte)]
            size += 1
            known_offsets[size] = first + int64(end - begin)
            slot = tag | uint64(size)
            slots[place] = slot
        numbers[row] = int64(slot & _NUMBER) - 1
    return len(hashes), size


@part
def _touch(hashes: Array, table: Hashed, shift: int, out: Array) -> None:
    """Load the strings to compare with into the cache; the values of ``out`` are not used.

    Without branches, dozens of cache misses overlap, which halves the time of look-ups in large tables.
    """
    known, known_offsets, slots = table
    for row in range(len(hashes)):
        number = slots[hashes[row] >> shift] & _NUMBER
        out[row] = known[max(known_offsets[number] - 1, 0)]


@part
def _is(string: tuple[Array, int, int], known: Array, known_offsets: Array, number: int) -> bool:
    """Return whether a string equals the known one of a number, from 1."""
    data, begin, end = string
    first, last = uint64(known_offsets[number - _ONE]), uint64(known_offsets[number])
    if last - first != end - begin:
        return False
    while begin < end:
        if little_endian(data, begin, end) != little_endian(known, first, last):
            return False
        begin += _LANE
        first += _LANE
    return True


@part
def little_endian(data: Array, position: int, end: int) -> int:
    """Return the little-endian word of ``data[position:end]``, not empty, or of its first eight bytes, all uint64."""
    word, size = uint64(0), min(end - position, _LANE)
    if position + _LANE <= uint64(len(data)):
        return eight_bytes(data, position) & (_WORD >> (uint64(8) * (_LANE - size)))
    for byte in range(int64(size)):
        word |= uint64(data[position + uint64(byte)]) << uint64(8 * byte)
    return word


@part
def xxh64(data: Array, begin: int, end: int, seed: int) -> int:
    """Return XXH64 of ``data[begin:end]``, uint8; all numbers are uint64."""
    position, state = begin, seed + PRIME_5
    if end - begin >= _STRIPE:
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
    state += end - begin
    while position + _LANE <= end:
        state = _rotate(state ^ _round(uint64(0), eight_bytes(data, position)), 27) * PRIME_1 + PRIME_4
        position += _LANE
    if position + _HALF <= end:
        state = _rotate(state ^ (little_endian(data, position, position + _HALF) * PRIME_1), 23) * PRIME_2 + PRIME_3
        position += _HALF
    while position < end:
        state = _rotate(state ^ (uint64(data[position]) * PRIME_5), 11) * PRIME_1
        position += _ONE
    state = (state ^ (state >> uint64(33))) * PRIME_2
    state = (state ^ (state >> uint64(29))) * PRIME_3
    return state ^ (state >> uint64(32))


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

"""Tables of byte strings: hashed, found, learned, cut and joined.

Strings are spans of one array of bytes: string *i* is ``data[offsets[i]:offsets[i + 1]]``, as in Arrow. What is only
read is given without permission to write, and offsets as int64, so that each kernel is compiled once.

A table of slots is open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
A slot is the upper half of a string's hash, then its number plus 1; 0 is empty. Its place is the upper bits of
the hash, so that a table grows without hashing anything again, and in order.
"""

from __future__ import annotations

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.features.categories.xxh64 import eight_bytes, xxh64

# Bytes and offsets; and with a third array, of hashes or of slots.
Strings = tuple[Array, Array]
Hashed = tuple[Array, Array, Array]
_NUMBER = uint64(0xFFFFFFFF)
_TAG = uint64(0xFFFFFFFF00000000)
_ZERO, _ONE, _LANE = uint64(0), uint64(1), uint64(8)
# What comes before the bytes of a part of a combination: its kind, and its length in four bytes.
HEAD_BYTES = 5
# Strings whose look-ups are begun together.
_AHEAD = 1024


@kernel
def hash_strings(strings: Strings, seed: int, hashes: Array) -> None:
    """Fill ``hashes``, uint64 (strings,), with XXH64 of each string; the seed is uint64."""
    data, offsets = strings
    for row in range(len(hashes)):
        hashes[row] = xxh64(data, uint64(offsets[row]), uint64(offsets[row + 1]), seed)


@kernel
def place_slots(filled: Array, slots: Array) -> None:
    """Put slots, uint64, into an empty table of at least twice as many, a power of two."""
    mask, shift = uint64(len(slots) - 1), _shift(slots)
    for slot in filled:
        if slot:
            place = slot >> shift
            while slots[place]:
                place = (place + _ONE) & mask
            slots[place] = slot


@part
def _shift(slots: Array) -> int:
    """Return by how much a hash is shifted right to be a place of the table."""
    bits = 1
    while (1 << bits) < len(slots):
        bits += 1
    return uint64(64 - bits)


@kernel
def find(strings: Hashed, table: Hashed, size: int, learning: bool, numbers: Array) -> tuple[int, int]:
    """Find strings, given with their hashes, among known ones, of which there are ``size``.

    ``table`` are the known strings, with room for more where ``learning``, and their slots, no more than half of them
    filled; if ``learning``, a string that is not known becomes so, with the next number. ``numbers``, int64 (strings,),
    are filled with the number of each, -1 where it is not known. Returns how many strings were found before the room
    was used up, and how many are known now.
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
    """Load what strings will be compared with, so that their misses of the cache overlap; what is filled is of no use.

    Without branches a core has dozens of these loads under way at once: look-ups in large tables take half the time.
    """
    known, known_offsets, slots = table
    for row in range(len(hashes)):
        number = slots[hashes[row] >> shift] & _NUMBER
        out[row] = known[max(known_offsets[number] - 1, 0)]


@part
def _is(string: tuple[Array, int, int], known: Array, known_offsets: Array, number: int) -> bool:
    """Tell whether a string is the known one of a number, counted from 1."""
    data, begin, end = string
    first = uint64(known_offsets[number - _ONE])
    if uint64(known_offsets[number]) - first != end - begin:
        return False
    while begin + _LANE <= end:
        if eight_bytes(data, begin) != eight_bytes(known, first):
            return False
        begin += _LANE
        first += _LANE
    while begin < end:
        if data[begin] != known[first]:
            return False
        begin += _ONE
        first += _ONE
    return True


@kernel
def write_parts(strings: Strings, kind: int, entries: Array, ends: Array, joined: Array) -> None:
    """Append a part to each combination, where it ends so far in ``joined``, uint8; ``ends`` are moved.

    ``strings`` and ``kind`` are those of the part's column; ``entries``, int64 (combinations,), are the string of each
    combination, plus 1; 0 is null.
    """
    data, offsets = strings
    for row in range(len(entries)):
        end, entry = ends[row], entries[row]
        if entry == 0:
            joined[end] = 0
            ends[row] = end + 1
            continue
        begin, size = offsets[entry - 1], offsets[entry] - offsets[entry - 1]
        joined[end] = kind
        for byte in range(4):
            joined[end + 1 + byte] = (size >> (8 * byte)) & 255
        for byte in range(size):
            joined[end + HEAD_BYTES + byte] = data[begin + byte]
        ends[row] = end + HEAD_BYTES + size


@kernel
def add_up_runs(values: Array, starts: Array, totals: Array) -> None:
    """Add up the values of each run from its first on, so that nothing of another run, or of later, is in a total.

    Run *i* is ``values[starts[i]:starts[i + 1]]``; ``totals``, float64 (values,), are filled with the sum of the run up
    to and with the value.
    """
    for run in range(len(starts) - 1):
        total = 0.0
        for place in range(starts[run], starts[run + 1]):
            total += values[place]
            totals[place] = total

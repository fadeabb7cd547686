"""The values of categorical columns: numbered in order of appearance, counted, and hashed.

Hashes are the same on every device, in every version, and for one row as for a billion. Values are hashed by XXH64; the
finalizer of SplitMix64 combines the columns of a row in order.

Sources: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64; G. L. Steele, D. Lea, C. H. Flood,
"Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from whitewater.engines.device import Array, Device
from whitewater.engines.kernel import int64, kernel
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.features.columns.byte_strings import ByteStrings, digest_strings, find, place_slots, read_only
from whitewater.features.columns.column import Categories, Column, Text, as_integers
from whitewater.features.operator import Value
from whitewater.tables.hashing import hash_int64

_LEAST_ROOM, _LEAST_BYTES = 1 << 9, 1 << 12
# A slot has room for a number of 32 bits.
MOST_VALUES = 1 << 31
_WORD = 2**64 - 1
# The golden ratio, as in SplitMix64; mixed with the seed it is the hash of null.
_GOLDEN = 0x9E3779B97F4A7C15


def scalar(value: Value, name: str) -> Any:
    """Return a text or integer, and None for None and NaN; raises InputError for integers above 2**63 - 1."""
    # NaN alone is not equal to itself.
    if value is None or value != value:  # noqa: PLR0124
        return None
    if isinstance(value, int) and value > np.iinfo(np.int64).max:
        raise InputError(f"column {name}: {value} is above 2**63 - 1, and so no category. Store it as text.")
    return value


class CategoryCounter:
    """Numbers distinct values of Arrow's string, binary or int64 in order of appearance, by their bytes."""

    def __init__(self, type_: pa.DataType, *, room: int = _LEAST_ROOM) -> None:
        self._type = type_
        self.size = 0
        self._slots = np.zeros(1 << (2 * max(room, _LEAST_ROOM) - 1).bit_length(), np.uint64)
        self._offsets = np.zeros(len(self._slots) // 2 + 1, np.int64)
        # Not empty, because the kernel reads a byte even for empty strings.
        self._data = np.empty(_LEAST_BYTES, np.uint8)

    def add(self, dictionary: pa.Array) -> npt.NDArray[np.int64]:
        """Return the number of each entry, int64 (entries,); new values get the next numbers."""
        return self.look_up(dictionary, learning=True)

    def look_up(self, dictionary: pa.Array, *, learning: bool = False) -> npt.NDArray[np.int64]:
        """Return the number of each entry, int64 (entries,), -1 for unknown values unless ``learning``."""
        strings = ByteStrings.of(dictionary)
        hashes, numbers, done = hashes_of(strings), np.empty(len(strings), np.int64), 0
        while done < len(strings):
            rest = strings.data, strings.offsets[done:], hashes[done:]
            table = self._data, self._offsets, self._slots
            count, self.size = find(rest, table, self.size, learning, numbers[done:])
            done += count
            if done < len(strings):
                self._grow(int(strings.offsets[done + 1] - strings.offsets[done]))
        return numbers

    def _grow(self, bytes_needed: int) -> None:
        """Double the capacity for values or for bytes."""
        if self.size >= MOST_VALUES:
            raise ResourceError(
                f"{self.size:,} categories are as many as can be told apart, and there are more. Use HashBucket."
            )
        if self.size == len(self._offsets) - 1:
            filled, self._slots = self._slots, np.zeros(2 * len(self._slots), np.uint64)
            place_slots(filled, self._slots)
            self._offsets = _longer(self._offsets, len(self._slots) // 2 + 1)
        else:
            self._data = _longer(self._data, max(2 * len(self._data), int(self._offsets[self.size]) + bytes_needed))

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + self._offsets.nbytes + self._data.nbytes

    def values(self) -> pa.Array:
        """Return the values in the order of their numbers, as Arrow's large type beyond 2 GiB of text."""
        return ByteStrings(self._data, self._offsets[: self.size + 1]).as_arrow(self._type)


def hashes_of(strings: ByteStrings) -> Array:
    """Return the digests of strings for hash tables, uint64 (strings,)."""
    hashes = np.empty(len(strings), np.uint64)
    digest_strings(strings.spans, hashes)
    return hashes


def _longer(values: Array, length: int) -> Array:
    longer = np.empty(length, values.dtype)
    longer[: len(values)] = values
    return longer


def count_codes(codes: Array, size: int) -> Array:
    """Count each code below ``size``, int32 (rows,) -> int64 (size,), except -1; raises IntegrityError for others."""
    counts = np.zeros(size, np.int64)
    if outside := fill_counts(read_only(codes), counts):
        raise IntegrityError(f"{outside} rows have a code that is not below {size}. This is an error of the program.")
    return counts


@kernel
def fill_counts(codes: Array, counts: Array) -> int:
    """Add the count of each code, int32, to ``counts``, int64; return the number of codes beyond its size."""
    outside = int64(0)
    for code in codes:
        if code >= len(counts):
            outside += 1
        elif code >= 0:
            counts[code] += 1
    return outside


def hash_value(value: str | int | bytes, seed: int) -> int:
    """Return XXH64 of the UTF-8 bytes of a text, of bytes, or of the 8 little-endian bytes of an int64."""
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, int):
        value = value.to_bytes(8, "little", signed=True)
    return xxhash.xxh64_intdigest(value, seed & _WORD)


def hash_values(dictionary: pa.Array, seed: int) -> Array:
    """Return `hash_value` of each entry of an Arrow array of string, binary or int64 without nulls: uint64."""
    return ByteStrings.of(dictionary).hashes(seed & _WORD)


def mix(values: Any) -> Any:
    """Return the finalizer of SplitMix64 of an integer of 64 bits, or of each of an array, uint64 (rows,)."""
    word = int if isinstance(values, int) else np.uint64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ values >> word(shift)) * word(factor) & word(_WORD)
    return values ^ values >> word(31)


def row_hash_one(values: Sequence[str | int | bytes | None], seed: int) -> int:
    """Return `row_hash` of one row; a None is null."""
    state: int = mix(seed + _GOLDEN & _WORD)
    for value in values:
        hashed = _null(seed) if value is None else hash_value(value, seed)
        state = mix((state ^ hashed) + _GOLDEN & _WORD)
    return state


def row_hash(columns: Sequence[Column | Text], seed: int, device: Device) -> Array:
    """Return a hash of each row, uint64 (rows,) on the device, from its values in order and the seed, at least 0.

    Columns are of categories or integers, and an integer has the same hash in both; raises ConfigError for others.
    """
    state: Array = device.xp.full(len(columns[0]), np.uint64(mix(seed + _GOLDEN & _WORD)))
    for column in columns:
        state = mix((state ^ value_hashes(column, seed, device)) + np.uint64(_GOLDEN))
    return state


def value_hashes(column: Column | Text, seed: int, device: Device) -> Array:
    """Return the hashes of the rows' values, uint64 (rows,), on the device."""
    xp, null = device.xp, np.uint64(_null(seed))
    if isinstance(column, Text):
        if hasattr(column.series, "hash_values"):  # cuDF's own, with the same bits
            hashes = column.series.hash_values(method="xxhash64", seed=seed)
            return hashes.where(column.series.notna(), int(null)).values
        column = column.on_host()
    if isinstance(column, Categories):
        return device.to_device(np.append(hash_values(column.dictionary, seed), null)[column.codes])
    integers = as_integers(column)
    hashes = hash_int64(xp, integers.values, seed=seed)
    return hashes if integers.valid is None else xp.where(integers.valid, hashes, null)


def _null(seed: int) -> int:
    return mix((seed ^ _GOLDEN) & _WORD)

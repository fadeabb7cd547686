"""Hashes that are the same on every device, in every version, and for one row as for a billion.

Values are hashed by XXH64; those of the columns of a row are combined, in order, by the finalizer of SplitMix64.

Sources: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64; G. L. Steele, D. Lea, C. H. Flood,
"Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xxhash

from whitewater.features.categories.byte_strings import ByteStrings
from whitewater.features.categories.values import as_integers
from whitewater.features.columns.column import Categories, Column
from whitewater.features.frames import Text
from whitewater.tables.hashing import hash_int64

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

_WORD = 2**64 - 1
_FACTOR_1, _FACTOR_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# What stands for the hash of a null, mixed with the seed: the golden ratio, as SplitMix64 has it.
_GOLDEN = 0x9E3779B97F4A7C15
_INTEGER_BYTES = 8


def hash_value(value: str | int | bytes, seed: int) -> int:
    """Return XXH64 of the UTF-8 bytes of a text, of bytes, or of the 8 little-endian bytes of an int64.

    Examples
    --------
    >>> hash_value("", 0)
    17241709254077376921
    """
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, int):
        value = value.to_bytes(_INTEGER_BYTES, "little", signed=True)
    digest: int = xxhash.xxh64_intdigest(value, seed & _WORD)
    return digest


def hash_values(dictionary: pa.Array, seed: int) -> Array:
    """Return `hash_value` of each entry of an Arrow array of string, binary or int64 without nulls: uint64."""
    return ByteStrings.of(dictionary).hashes(seed & _WORD)


def mix_one(value: int) -> int:
    """Return the finalizer of SplitMix64 of a number of 64 bits."""
    value = (value ^ value >> 30) * _FACTOR_1 & _WORD
    value = (value ^ value >> 27) * _FACTOR_2 & _WORD
    return value ^ value >> 31


def mix(values: Array) -> Array:
    """Return `mix_one` of each number, uint64 (rows,), on the device that they are on."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(_FACTOR_1)
    values = (values ^ values >> np.uint64(27)) * np.uint64(_FACTOR_2)
    mixed: Array = values ^ values >> np.uint64(31)
    return mixed


def row_hash_one(values: Sequence[str | int | bytes | None], seed: int) -> int:
    """Return `row_hash` of one row; a None is null."""
    state = mix_one(seed + _GOLDEN & _WORD)
    for value in values:
        hashed = _null(seed) if value is None else hash_value(value, seed)
        state = mix_one((state ^ hashed) + _GOLDEN & _WORD)
    return state


def row_hash(columns: Sequence[Column | Text], seed: int, device: Device) -> Array:
    """Return a hash of each row, which depends on the values, their order and the seed, and on nothing else.

    Hashes are uint64 (rows,), on the device. Columns are of categories or integers; an integer is the same in either,
    and a null has a hash of its own. The seed is 0 or more.

    Raises ConfigError if a column is of floats or lists.
    """
    state: Array = device.xp.full(len(columns[0]), np.uint64(mix_one(seed + _GOLDEN & _WORD)))
    for column in columns:
        state = mix((state ^ value_hashes(column, seed, device)) + np.uint64(_GOLDEN))
    return state


def value_hashes(column: Column | Text, seed: int, device: Device) -> Array:
    """Return the hashes of the rows' values, uint64 (rows,), on the device."""
    xp, null = device.xp, np.uint64(_null(seed))
    if isinstance(column, Text):
        return column.hashes(seed, int(null), device)
    if isinstance(column, Categories):
        hashes: Array = np.append(hash_values(column.dictionary, seed), null)[column.codes]
        return device.to_device(hashes)
    integers = as_integers(column)
    known = hash_int64(xp, integers.values, seed=seed)
    return known if integers.valid is None else xp.where(integers.valid, known, null)


def _null(seed: int) -> int:
    return mix_one((seed ^ _GOLDEN) & _WORD)

"""The texts of categories: eight hexadecimal digits, as Criteo publishes them, and a few that are awkward.

The digits of a column's values are a bijective hash of 32 bits (the finaliser of MurmurHash3), so no two are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

AWKWARD = ("", " ", "null", "0", "été à Łódź", "日本語 ☕", 'with "quotes", a comma\tand a tab', "long " * 1000)
"""Values of every fourth column, at `FIRST_AWKWARD` and following; the empty text is a value, and no null."""
FIRST_AWKWARD = 12
_EVERY = 4
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_SHIFTS = np.arange(28, -1, -4, dtype=np.uint32)


def is_awkward(column: int) -> bool:
    """Return whether a column, counted from 0, has awkward values, if it has values enough."""
    return column % _EVERY == 1


def texts_of(values: npt.NDArray[np.int64], *, column: int, seed: int) -> pa.Array:
    """Return the texts of ascending values of a column as an Arrow array of strings."""
    codes = _mix(values.astype(np.uint32) ^ _key(column, seed))
    digits = _DIGITS[(codes[:, None] >> _SHIFTS) & np.uint32(15)]
    offsets = np.arange(0, 8 * len(values) + 1, 8, dtype=np.int32)
    hexadecimal = pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(digits))
    first, stop = np.searchsorted(values, (FIRST_AWKWARD, FIRST_AWKWARD + len(AWKWARD)))
    if not is_awkward(column) or first == stop:
        return hexadecimal
    awkward = _strings([AWKWARD[value - FIRST_AWKWARD].encode() for value in values[first:stop]])
    return pa.concat_arrays([hexadecimal[:first], awkward, hexadecimal[stop:]])


def _strings(texts: Sequence[bytes]) -> pa.StringArray:
    # pyarrow.array would import pandas.
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))


def _key(column: int, seed: int) -> np.uint32:
    return np.uint32(np.random.SeedSequence((seed, 2, column)).generate_state(1)[0])


def _mix(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    codes ^= codes >> 16
    codes *= np.uint32(0x85EBCA6B)
    codes ^= codes >> 13
    codes *= np.uint32(0xC2B2AE35)
    codes ^= codes >> 16
    return codes

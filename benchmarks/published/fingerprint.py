"""A number for all rows of a join, whatever their order, that is another one if any row is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

# Odd, so that each multiplication modulo 2**64 loses nothing: 2**64 by the golden ratio, and the two of SplitMix64
# (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
FACTORS = tuple(np.uint64(factor) for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
SLICE_ROWS = 1 << 20
BITS = 64


def fingerprint(key: npt.NDArray[np.int64], first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> int:
    """Return the sum over the rows, modulo 2**64, of a hash of the bits of the key and of both values.

    Integers are added, so that the order of the rows does not count, and nothing is rounded. The columns of values are
    told apart: rows whose values are interchanged have another sum.
    """
    sums = (
        _hashes(key[start : start + SLICE_ROWS], first[start : start + SLICE_ROWS], second[start : start + SLICE_ROWS])
        for start in range(0, len(key), SLICE_ROWS)
    )
    return added(int(hashes.sum(dtype=np.uint64)) for hashes in sums)


def added(fingerprints: Iterable[int]) -> int:
    """Return the fingerprint of all rows of parts, given that of each."""
    return sum(fingerprints) % (1 << BITS)


def _hashes(key: Any, first: Any, second: Any) -> npt.NDArray[np.uint64]:
    mixed: npt.NDArray[np.uint64] = key.astype(np.uint64)
    for factor, values in zip(FACTORS[:2], (first, second), strict=True):
        mixed *= factor
        mixed ^= mixed >> np.uint64(29)
        mixed += np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    mixed *= FACTORS[2]
    mixed ^= mixed >> np.uint64(32)
    return mixed

"""Search in ascending ids: their high bits lead to a bucket of about one id, where a binary search goes on.

Ids that are hashes, or have gaps, are found in two steps to memory instead of the twenty-odd of a binary search.
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel, uint64
from whitewater.devices.protocol import Array


def bucket_shift(ids: Array) -> int:
    """Return how many low bits of the distance to the first id do not count, for about as many buckets as ids."""
    span = int(ids[-1]) - int(ids[0])
    return max(0, span.bit_length() - len(ids).bit_length())


def bucket_starts(ids: Array, shift: int) -> Array:
    """Return where the ids of each bucket begin, and the last one's end: int64 (buckets + 1,)."""
    starts = np.zeros(((int(ids[-1]) - int(ids[0])) >> shift) + 2, np.int64)
    _count(ids, shift, starts)
    return np.cumsum(starts)


@kernel
def _count(ids: Array, shift: int, starts: Array) -> None:
    for place in range(len(ids)):
        starts[int64((uint64(ids[place]) - uint64(ids[0])) >> uint64(shift)) + 1] += 1


@kernel
def find(ids: Array, shift: int, starts: Array, wanted: Array, places: Array) -> None:
    """Fill in the place of each wanted id (int64), or -1."""
    for row in range(len(wanted)):
        key = wanted[row]
        places[row] = -1
        if key < ids[0] or key > ids[-1]:
            continue
        bucket = int64((uint64(key) - uint64(ids[0])) >> uint64(shift))
        low, high = starts[bucket], starts[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if ids[middle] < key:
                low = middle + 1
            else:
                high = middle
        if low < len(ids) and ids[low] == key:
            places[row] = low

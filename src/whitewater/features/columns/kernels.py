"""Kernels of the host: integers get numbers, and rows are counted and added up by code."""

from __future__ import annotations

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, uint64

# Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): 2**64 by the golden ratio.
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_HALF, _ONE = uint64(32), uint64(1)


@kernel
def number_values(values: Array, valid: Array, slots: Array, distinct: Array, codes: Array) -> int:
    """Give numbers to integers in the order in which they are met.

    ``values`` are int64 (rows,); ``valid``, bool (rows,), is False where the row is null, and empty where none is;
    ``slots`` are int32 zeros, a power of two of them and at least twice as many as rows. Filled are ``distinct``, int64
    (rows,), with the values, and ``codes``, int32 (rows,), with the number of each row's value, -1 for null. Returns
    how many distinct values there are.
    """
    size, mask = 0, uint64(len(slots) - 1)
    for row in range(len(values)):
        if len(valid) and not valid[row]:
            codes[row] = -1
            continue
        value = values[row]
        place = ((uint64(value) * _GOLDEN) >> _HALF) & mask
        while slots[place] and distinct[slots[place] - 1] != value:
            place = (place + _ONE) & mask
        if not slots[place]:
            distinct[size] = value
            size += 1
            slots[place] = size
        codes[row] = slots[place] - 1
    return size


@kernel
def fill_counts(codes: Array, counts: Array) -> int:
    """Count the rows of each code, int32, into int64 (size,); return how many rows have a code that is not below it."""
    outside = int64(0)
    for code in codes:
        if code >= len(counts):
            outside += 1
        elif code >= 0:
            counts[code] += 1
    return outside


@kernel
def fill_sums(codes: Array, weights: Array, sums: Array) -> int:
    """Add up float64 weights by code, as `fill_counts` counts."""
    outside = int64(0)
    for row in range(len(codes)):
        code = codes[row]
        if code >= len(sums):
            outside += 1
        elif code >= 0:
            sums[code] += weights[row]
    return outside

"""Integers as categories; counts and sums of rows by their codes, or in runs."""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, uint64
from whitewater.errors import IntegrityError
from whitewater.features.columns.column import Categories
from whitewater.tables.arrow_arrays import to_arrow

# Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): 2**64 by the golden ratio.
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_HALF, _ONE = uint64(32), uint64(1)


def factorize(values: Array, valid: Array | None) -> Categories:
    """Return integers as categories.

    ``values`` are int64 (rows,); ``valid``, bool (rows,), is False where the row is null, or None where none is. The
    dictionary has each value that occurs, once, in the order of first sight.
    """
    slots = np.zeros(1 << max(2 * len(values) - 1, 1).bit_length(), np.int32)
    distinct, codes = np.empty(len(values), np.int64), np.empty(len(values), np.int32)
    present = np.empty(0, np.bool_) if valid is None else valid
    size = number_values(_input(values), _input(present), slots, distinct, codes)
    return Categories(codes, to_arrow(distinct[:size].copy()))


def count_codes(codes: Array, size: int) -> Array:
    """Count the rows of each code below ``size``, int32 (rows,) -> int64 (size,); those of code -1 are not counted.

    Raises IntegrityError if there is another code.
    """
    counts = np.zeros(size, np.int64)
    _check(fill_counts(_input(codes), counts), size)
    return counts


def sum_by_code(codes: Array, weights: Array, size: int) -> Array:
    """Add up float64 (rows,) by code, in the order of the rows, as `count_codes` counts them."""
    _check(int(np.count_nonzero(codes >= size)), size)
    # The first sum is that of -1.
    return np.bincount(codes + 1, weights, size + 1)[1:]


def _input(values: Array) -> Array:
    """Return an array as kernels take it, so that each is compiled once: contiguous, and read-only."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def _check(outside: int, size: int) -> None:
    if outside:
        raise IntegrityError(f"{outside} rows have a code that is not below {size}. This is an error of the program.")


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

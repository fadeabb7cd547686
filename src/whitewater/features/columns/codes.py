"""Counts and sums of rows by their codes, or in runs."""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel
from whitewater.errors import IntegrityError
from whitewater.features.categories.byte_strings import read_only


def count_codes(codes: Array, size: int) -> Array:
    """Count the rows of each code below ``size``, int32 (rows,) -> int64 (size,); those of code -1 are not counted.

    Raises IntegrityError if there is another code.
    """
    counts = np.zeros(size, np.int64)
    _check(fill_counts(read_only(codes), counts), size)
    return counts


def sum_by_code(codes: Array, weights: Array, size: int) -> Array:
    """Add up float64 (rows,) by code, in the order of the rows, as `count_codes` counts them."""
    _check(int(np.count_nonzero(codes >= size)), size)
    # The first sum is that of -1.
    return np.bincount(codes + 1, weights, size + 1)[1:]


def _check(outside: int, size: int) -> None:
    if outside:
        raise IntegrityError(f"{outside} rows have a code that is not below {size}. This is an error of the program.")


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

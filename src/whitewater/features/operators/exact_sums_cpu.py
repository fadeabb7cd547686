"""The bins of `whitewater.features.operators.exact_sums`, and how the CPU adds values to them."""

from __future__ import annotations

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import int64, kernel, part, uint64

# The power of two that a position of 0 stands for, of values; of squares it is twice that. The least double has -1074,
# and one of 53 bits -1126.
FIRST = -1136
BINS = 544
HALF, LOWER = 31, (1 << 31) - 1
# A value of 53 bits is an upper part and a lower one of 27 bits, whose products fit 54.
LOW_BITS = 27
LOW = (1 << LOW_BITS) - 1
_FRACTION, _SPECIAL = uint64((1 << 52) - 1), uint64(0x7FF)
_IMPLIED = 1 << 52


@part
def _add(bins: Array, number: int, position: int) -> None:
    shifted = number << (position & 7)
    bins[position >> 3, 0] += shifted >> HALF
    bins[position >> 3, 1] += shifted & LOWER


@kernel
def fill(values: Array, words: Array, bins: Array) -> tuple[int, float, float]:
    """Add values, float64 given with their bits, to bins; return how many are finite, and the extremes."""
    count, least, most = 0, np.inf, -np.inf
    for row in range(len(values)):
        # Of NaN neither is true.
        least = min(least, values[row])
        most = max(most, values[row])
        exponent = int64((words[row] >> uint64(52)) & _SPECIAL)
        if exponent == 0x7FF:
            continue
        count += 1
        number = int64(words[row] & _FRACTION)
        if exponent:
            number |= _IMPLIED
        else:
            exponent = 1
        if words[row] >> uint64(63):
            number = -number
        position = exponent - 1075 - FIRST
        high, low = number >> LOW_BITS, number & LOW
        _add(bins[0], number, position)
        _add(bins[1], high * high, 2 * position + 2 * LOW_BITS)
        _add(bins[1], high * low, 2 * position + LOW_BITS + 1)
        _add(bins[1], low * low, 2 * position)
    return count, least, most

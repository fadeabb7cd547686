"""The kernels of `whitewater.tables.group_statistics` for the CPU, and what they share with that of the GPU."""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part

# Between these two values, bins are log-linear; no value may be as large as the second.
LEAST, LIMIT = 2.0**-20, 2.0**20
BINS_OF_OCTAVE = 512
# Bits of a float64 below those that tell the bin, and the bits above them of the first log-linear bin.
SHIFT = 52 - 9
FIRST = int(np.float64(LEAST).view(np.int64)) >> SHIFT
# The bits of the first value that is too large.
LIMIT_BITS = int(np.float64(LIMIT).view(np.int64))
# Besides the log-linear bins: one for 0, and one for what lies between 0 and `LEAST`.
BINS = (LIMIT_BITS >> SHIFT) - FIRST + 2
# A band is two octaves: its number is that of the log-linear bin without the bits that tell bins of a band apart.
BAND_SHIFT = 10
BANDS = (BINS - 2) >> BAND_SHIFT
# A value is rounded to 1 / 2**38 of the upper end of its band. Its square has 76 bits and is summed up in two parts.
HALF = 19
LEFT_OUT = -2
_NEGATIVE_ZERO = -(2**63)
_REFUSED = -1
# A float64 is an exponent and, below it, 52 bits; before those stands a 1.
_FRACTION = 52
_FIRST_OCTAVE = FIRST >> (_FRACTION - SHIFT)
# By so many bits a value is rounded that lies in the upper octave of its band.
_ROUNDED = _FRACTION + 1 - 2 * HALF
_LOWEST = (1 << HALF) - 1


@part
def bin_of(bits: int) -> int:
    """Return the bin of a float64 that is given by its bits, or -1 if it is negative, not finite or too large."""
    if (bits == 0) | (bits == _NEGATIVE_ZERO):
        return 0
    if bits < 0 or bits >= LIMIT_BITS:
        return _REFUSED
    return max((bits >> SHIFT) - FIRST, -1) + 2


@part
def band_of(place: int) -> int:
    """Return the band of a bin."""
    return max(place - 2, 0) >> BAND_SHIFT


@part
def units_of(bits: int) -> int:
    """Return a float64, given by its bits, in units of its band, rounded: at most 2**(2 `HALF`)."""
    octave = (bits >> _FRACTION) - _FIRST_OCTAVE
    # Below the first band, where its units count, no shift may reach the width of an integer.
    shift = _ROUNDED + 1 - (octave & 1) if octave >= 0 else min(_ROUNDED + 1 - octave, 62)
    return ((bits & ((1 << _FRACTION) - 1) | 1 << _FRACTION) + (1 << (shift - 1))) >> shift


@part
def upper_square(units: int) -> int:
    """Return the square of units without its lowest 2 `HALF` bits."""
    high, low = units >> HALF, units & _LOWEST
    return high * high + (2 * high * low >> HALF)


@part
def lower_square(units: int) -> int:
    """Return what `upper_square` leaves of the square: less than two of its own units."""
    high, low = units >> HALF, units & _LOWEST
    return ((2 * high * low & _LOWEST) << HALF) + low * low


@kernel
def fill_bins(bits: Array, chosen: Array, bins: Array, units: Array) -> None:
    """Fill ``bins`` (int16) and ``units`` (int64) with those of each float64, given by its bits (int64).

    The bin of what is not chosen is `LEFT_OUT`; the units of what has no bin are 0.
    """
    for row in range(len(bits)):
        place = bin_of(bits[row])
        place = place if chosen[row] else LEFT_OUT
        value = units_of(bits[row])
        bins[row] = place
        units[row] = value if place >= 0 else 0


@kernel
def accumulate(keys: Array, bins: Array, units: Array, sums: Array, counts: Array) -> int:
    """Add units to the sums and count rows by their keys.

    ``sums``, int64 (bands, groups, 1 or 3): of units, and of the two parts of squares; ``counts``, int32 (groups, 1 or
    bins). The last group is that of the rows that do not count. Returns the rows that were left out because of their
    value or because their key has no group.
    """
    # Without branches: which rows count is as good as random, and a branch guessed wrong costs more than an addition.
    faults, groups, medians = 0, len(counts) - 1, sums.shape[2] > 1
    for row in range(len(keys)):
        key, place, value = keys[row], bins[row], units[row]
        fault = ((place >= 0) & (key >= groups)) | ((place == _REFUSED) & (key >= 0))
        faults += fault
        group = key if (place >= 0) & (key >= 0) & (key < groups) else groups
        band = band_of(place)
        sums[band, group, 0] += value
        if medians:
            sums[band, group, 1] += upper_square(value)
            sums[band, group, 2] += lower_square(value)
        counts[group, max(place, 0) if medians else 0] += 1
    return faults

"""Sums of doubles and of their squares without any rounding: no order, part or device changes a bit of them.

A double is an integer of 53 bits times a power of two. Such integers are added up in bins of eight powers each, a long
accumulator whose carries wait until the end, when the sums are fractions of Python's integers. A bin has two halves, so
that 2**32 values do not overflow it.

Source: U. Kulisch, "Computer arithmetic and validity: theory, implementation, and applications", 2nd edition, De
Gruyter, 2013, chapter 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.engines.kernel import int64, kernel, part, uint64

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

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


@dataclass(frozen=True)
class ExactSums:
    """Of the values of some rows: how many are finite, the extremes, and the bins, int64 (2, bins, 2).

    The extremes are infinite and minus infinite where there is no value.
    """

    count: int
    minimum: float
    maximum: float
    bins: npt.NDArray[np.int64]

    @classmethod
    def none(cls) -> ExactSums:
        """Return those of no value."""
        return cls(0, np.inf, -np.inf, np.zeros((2, BINS, 2), np.int64))

    def merged(self, other: ExactSums) -> ExactSums:
        """Return those of the values of both."""
        least, most = min(self.minimum, other.minimum), max(self.maximum, other.maximum)
        return ExactSums(self.count + other.count, least, most, self.bins + other.bins)

    def moments(self) -> tuple[Fraction, Fraction]:
        """Return the mean and the variance, that of the population, of one or more values."""
        total, squares = (
            sum(((int(high) << HALF) + int(low)) << (8 * place) for place, (high, low) in enumerate(bins))
            for bins in self.bins
        )
        mean = Fraction(total, self.count << -FIRST)
        return mean, Fraction(squares, self.count << (-2 * FIRST)) - mean * mean


def exact_sums(values: Array, device: Device) -> ExactSums:
    """Return the sums of float64 (values,) on the device, among which NaN is none: of NumPy's arrays by a kernel."""
    return sums_by_kernel(values) if device.xp is np else sums_by_arrays(values, device)


def sums_by_kernel(values: npt.NDArray[np.float64]) -> ExactSums:
    """Return `exact_sums` of values on the host."""
    found = ExactSums.none()
    floats = np.ascontiguousarray(values).view()
    floats.flags.writeable = False
    count, least, most = fill(floats, floats.view(np.uint64), found.bins)
    return ExactSums(count, least, most, found.bins)


def sums_by_arrays(values: Array, device: Device) -> ExactSums:
    """Return `exact_sums` by expressions of arrays."""
    xp, found = device.xp, ExactSums.none()
    known = values[~xp.isnan(values)]
    finite = known[xp.isfinite(known)]
    if not len(known):
        return found
    mantissas, exponents = xp.frexp(finite)
    numbers = xp.ldexp(mantissas, 53).astype(xp.int64)
    positions = exponents.astype(xp.int64) - 53 - FIRST
    high, low = numbers >> LOW_BITS, numbers & LOW
    _add_arrays(found.bins[0], numbers, positions, device)
    _add_arrays(found.bins[1], high * high, 2 * positions + 2 * LOW_BITS, device)
    _add_arrays(found.bins[1], high * low, 2 * positions + LOW_BITS + 1, device)
    _add_arrays(found.bins[1], low * low, 2 * positions, device)
    return ExactSums(len(finite), float(known.min()), float(known.max()), found.bins)


def _add_arrays(bins: npt.NDArray[np.int64], numbers: Array, positions: Array, device: Device) -> None:
    xp = device.xp
    places, shifted = positions >> 3, numbers << (positions & 7)
    for place in device.to_host(xp.unique(places)).tolist():  # few: a column has values of about one size
        here = xp.where(places == place, shifted, 0)
        bins[place] += int((here >> HALF).sum()), int((here & LOWER).sum())


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

"""Sums of doubles and of their squares without any rounding: no order, part or device changes a bit of them.

Doubles of one sign and exponent are integers of 52 bits on one scale. The parts of these integers, and of their
squares, are summed separately for each sign and exponent; at the end the sums become fractions of Python's integers.

Source: U. Kulisch, "Computer arithmetic and validity: theory, implementation, and applications", 2nd edition, De
Gruyter, 2013, chapter 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.engines.kernel import int64, kernel, part, uint64
from whitewater.features.columns.byte_strings import read_only

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

# The upper bits of a double are its sign and exponent, the others the fraction, which is cut into two halves.
_SIGNS_AND_EXPONENTS, _FRACTION_BITS, _HALF = 1 << 12, 52, 26
_SPECIAL = 0x7FF  # exponent of infinity and NaN
_LOWER = (1 << _HALF) - 1
# A sum is of numbers below 2**28, so that 2**35 values do not overflow it.
_SUMS = 7
# The power of two that the last bit of the smallest doubles stands for.
_LEAST = -1074


@dataclass
class ExactSums:
    """The extremes of some values, infinite and minus infinite where there is none, and their sums.

    ``sums``, int64 (4096, 7), are by sign and exponent: how many values there are, the halves of their fractions, and
    four parts of the squares of these.
    """

    minimum: float = np.inf
    maximum: float = -np.inf
    sums: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((_SIGNS_AND_EXPONENTS, _SUMS), np.int64))

    def add(self, values: Array, device: Device) -> None:
        """Add float64 (values,) on the device, among which NaN is none: NumPy's by a kernel, others by expressions."""
        if device.xp is np:
            floats = read_only(values)
            extremes = add_up(floats, floats.view(np.uint64), self.sums)
        else:
            extremes = add_up_arrays(values, device, self.sums)
        self._widen(*extremes)

    def merge(self, other: ExactSums) -> None:
        """Add the values of another part."""
        self.sums += other.sums
        self._widen(other.minimum, other.maximum)

    def _widen(self, minimum: float, maximum: float) -> None:
        self.minimum, self.maximum = min(self.minimum, minimum), max(self.maximum, maximum)

    @property
    def count(self) -> int:
        """How many values are finite."""
        return sum(count for _, _, (count, *_) in self._finite())

    def moments(self) -> tuple[Fraction, Fraction]:
        """Return the mean and the variance, that of the population, of one or more finite values."""
        total = squares = 0
        for sign, exponent, (count, high, low, *parts) in self._finite():
            implied, shift = (1 << _FRACTION_BITS, exponent - 1) if exponent else (0, 0)
            fractions = (high << _HALF) + low
            squared = sum(each << (place * _HALF) for place, each in enumerate(reversed(parts)))
            total += sign * (implied * count + fractions) << shift
            squares += (implied * (implied * count + 2 * fractions) + squared) << (2 * shift)
        mean = Fraction(total, self.count << -_LEAST)
        return mean, Fraction(squares, self.count << (-2 * _LEAST)) - mean * mean

    def _finite(self) -> list[tuple[int, int, list[int]]]:
        """Return sign, exponent and sums of the finite values."""
        tops = np.flatnonzero(self.sums[:, 0]).tolist()
        return [
            (-1 if top > _SPECIAL else 1, top & _SPECIAL, self.sums[top].tolist())
            for top in tops
            if top & _SPECIAL != _SPECIAL
        ]


def _square(high: Any, low: Any) -> tuple[Any, Any]:
    """Return ``upper`` and ``lower``, each below 2**54, of the square of a fraction, ``upper << 52`` plus ``lower``."""
    middle = high * low
    upper = high * high + (middle >> (_HALF - 1))
    lower = ((middle & (_LOWER >> 1)) << (_HALF + 1)) + low * low
    return upper, lower


_square_one = part(_square)


@kernel
def add_up(values: Array, words: Array, sums: Array) -> tuple[float, float]:
    """Add values, float64 given with their bits, to ``sums``; return the extremes."""
    least, most = np.inf, -np.inf
    for row in range(len(values)):
        # Of NaN neither is true.
        least = min(least, values[row])
        most = max(most, values[row])
        high = int64((words[row] >> uint64(_HALF)) & uint64(_LOWER))
        low = int64(words[row] & uint64(_LOWER))
        upper, lower = _square_one(high, low)
        to = sums[words[row] >> uint64(_FRACTION_BITS)]
        to[0] += 1
        to[1] += high
        to[2] += low
        to[3] += upper >> _HALF
        to[4] += upper & _LOWER
        to[5] += lower >> _HALF
        to[6] += lower & _LOWER
    return least, most


def add_up_arrays(values: Array, device: Device, sums: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Do what `add_up` does, by expressions of arrays."""
    xp = device.xp
    known = values[~xp.isnan(values)]
    if not len(known):
        return np.inf, -np.inf
    words = known.view(xp.int64)
    tops = (words >> _FRACTION_BITS) & (_SIGNS_AND_EXPONENTS - 1)
    high, low = (words >> _HALF) & _LOWER, words & _LOWER
    upper, lower = _square(high, low)
    parts = xp.ones_like(high), high, low, upper >> _HALF, upper & _LOWER, lower >> _HALF, lower & _LOWER
    for top in device.to_host(xp.unique(tops)).tolist():  # few: a column has values of about one size
        here = tops == top
        sums[top] += [int(xp.where(here, each, 0).sum()) for each in parts]
    return float(known.min()), float(known.max())

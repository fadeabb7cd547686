"""Counts, means, sums of squared deviations and extremes that parts of the data are merged to without cancellation.

Each part's mean is taken first, then the deviations from it, with what is left of their sum as a correction; parts are
merged by the update of Chan, Golub and LeVeque, "Algorithms for computing the sample variance: analysis and
recommendations", The American Statistician 37 (1983). The textbook formula, the mean of squares less the square of the
mean, has no digit left for times of 1.7e9 with a standard deviation of 1. A mean is kept with what its rounding took
off: at 1e12 that is up to 6e-5, by which results would depend on the parts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from whitewater.features.columns.codes import count_codes, sum_by_code

if TYPE_CHECKING:
    from whitewater.engines.device import Array

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Of each of some groups of values; arrays (groups,).

    ``count`` int64; ``mean`` and ``deviation``, the sum of squared deviations from the mean, float64, 0 where there is
    no value; ``minimum`` and ``maximum`` float64, infinite and minus infinite where there is none; ``rest`` float64, by
    which the mean is more than ``mean``, the double nearest to it.
    """

    count: npt.NDArray[np.int64]
    mean: Floats
    deviation: Floats
    minimum: Floats
    maximum: Floats
    rest: Floats

    @classmethod
    def none(cls, groups: int = 1) -> Moments:
        """Return those of groups without values."""
        mean, deviation, rest = (np.zeros(groups) for _ in range(3))
        return cls(np.zeros(groups, np.int64), mean, deviation, np.full(groups, np.inf), np.full(groups, -np.inf), rest)

    def appended(self, other: Moments) -> Moments:
        """Return those of the groups of both."""
        return Moments(*(np.append(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)))

    def merged(self, other: Moments) -> Moments:
        """Return those of the values of both, group by group."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        shift = (other.mean - self.mean) + (other.rest - self.rest)
        mean, rest = _sum(self.mean, self.rest + shift * share)
        empty = self.count == 0
        deviation = self.deviation + other.deviation + shift * shift * (self.count * share)
        return Moments(
            count,
            np.where(empty, other.mean, mean),
            deviation,
            np.minimum(self.minimum, other.minimum),
            np.maximum(self.maximum, other.maximum),
            np.where(empty, other.rest, rest),
        )

    def variance(self, *, ddof: int = 0) -> Floats:
        """Return the sum of squared deviations by the count less ``ddof``; NaN where that is not above 0.

        It is exactly 0 where all values are equal: their deviations are one small multiple of the last digit, so that
        the correction by what is left of their sum takes away all of it.
        """
        divisor = self.count - ddof
        return np.where(divisor > 0, self.deviation / np.maximum(divisor, 1), np.nan)

    def standard_deviation(self, *, ddof: int = 0) -> Floats:
        """Return the root of `variance`."""
        return np.sqrt(self.variance(ddof=ddof))


def grouped_moments(codes: Array, values: Array, groups: int) -> Moments:
    """Return the moments of each group of rows; infinite values count for the extremes only, by which they are noticed.

    Codes are the group of each row, int32 or int64 (rows,), values float64 (rows,); a row with -1
    is in no group, and NaN is not a value.
    """
    known = (codes >= 0) & ~np.isnan(values)
    code, value = codes[known].astype(np.int32), values[known]
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, code, value)
    np.maximum.at(most, code, value)
    finite = np.isfinite(value)
    code, value = code[finite], value[finite]
    number = count_codes(code, groups)
    rows = np.maximum(number, 1)
    about = sum_by_code(code, value, groups) / rows
    deviations = value - about[code]
    left = sum_by_code(code, deviations, groups) / rows
    squares = np.maximum(sum_by_code(code, deviations * deviations, groups) - number * left * left, 0.0)
    mean, rest = _sum(about, left)
    return Moments(number, mean, squares, least, most, rest)


def _sum(larger: Floats, smaller: Floats) -> tuple[Floats, Floats]:
    """Return the sum of two numbers and what its rounding took off, exactly (Knuth, volume 2, section 4.2.2)."""
    total = larger + smaller
    added = total - larger
    return total, (larger - (total - added)) + (smaller - added)

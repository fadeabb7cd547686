"""Statistics of groups on the CPU, and what they share with those on a GPU: bins, bands and units of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import add

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, part
from whitewater.errors import IntegrityError
from whitewater.tables.blocks import DIGIT, DIGITS, GroupStatistics

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
# Rows whose sums, each of at most 2**39 a row, fit in int64.
_ROWS_OF_SUM = 2**24 - 1


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


class GroupAccumulator(ABC):
    """Statistics of values by several keys at once, filled slice by slice.

    On the GPU each sum is spread over lanes, so that a thread seldom waits for another one that adds to the same sum.
    """

    def __init__(self, groups: Sequence[int], *, medians: bool, lanes: int = 1) -> None:
        self._groups, self._lanes = groups, lanes
        # Sums of each group and band: of values, and of squares in two parts. Counts of each group, or of each bin.
        self._parts, self._bins = (3, BINS) if medians else (1, 1)
        self._settled: tuple[GroupStatistics, ...] = ()
        self._begin()
        self._rows = 0

    def add(self, keys: Sequence[Array], values: Array, chosen: Array | None = None) -> None:
        """Count values (float64, from 0 to below 2**20, about a million) under each array of keys (int8 to int32).

        Rows with a key below 0 do not count under it; where ``chosen`` (bool) is given, rows out of it count nowhere.
        What the statistics tell is exact but for the rounding of sums (see `GroupStatistics`) and the bins of medians:
        see `medians`, whose relative error is below 2**-9 for values from 2**-20.

        Raises IntegrityError if a value that counts is negative, not finite or too large, or a key is not below its
        groups. Values of another scale are given in another unit.
        """
        longest = _ROWS_OF_SUM * self._lanes
        for rows_of_sum in (slice(start, start + longest) for start in range(0, len(values), longest)):
            rows = -(-len(values[rows_of_sum]) // self._lanes)
            if self._rows + rows > _ROWS_OF_SUM:
                self._settled, self._rows = self.result(), 0
                self._begin()
            self._rows += rows
            chosen_rows = None if chosen is None else chosen[rows_of_sum]
            self._fill([key[rows_of_sum] for key in keys], values[rows_of_sum], chosen_rows)

    def result(self) -> tuple[GroupStatistics, ...]:
        """Return the statistics for each key array, in the order of ``groups``."""
        recent = self._recent()
        return tuple(map(add, self._settled, recent)) if self._settled else recent

    @abstractmethod
    def _begin(self) -> None:
        """Begin with sums and counts of 0."""

    @abstractmethod
    def _fill(self, keys: Sequence[Array], values: Array, chosen: Array | None) -> None:
        """Count so few values that no sum can overflow."""

    @abstractmethod
    def _recent(self) -> tuple[GroupStatistics, ...]:
        """Return the statistics since the beginning."""


class CpuGroupAccumulator(GroupAccumulator):
    """Statistics by several keys on the CPU."""

    def __init__(self, groups: Sequence[int], *, medians: bool = True) -> None:
        super().__init__(groups, medians=medians)

    def _begin(self) -> None:
        self._sums = [np.zeros((BANDS, size + 1, self._parts), np.int64) for size in self._groups]
        self._counts = [np.zeros((size + 1, self._bins), np.int32) for size in self._groups]

    def _fill(self, keys: Sequence[Array], values: Array, chosen: Array | None) -> None:
        bins, units = np.empty(len(values), np.int16), np.empty(len(values), np.int64)
        fill_bins(values.view(np.int64), np.ones(len(values), bool) if chosen is None else chosen, bins, units)
        for place, (key, sums, counts) in enumerate(zip(keys, self._sums, self._counts, strict=True)):
            refuse(accumulate(key, bins, units, sums, counts), place, len(counts) - 1)

    def _recent(self) -> tuple[GroupStatistics, ...]:
        return tuple(
            statistics(sums[:, None, :-1], counts[:-1]) for sums, counts in zip(self._sums, self._counts, strict=True)
        )


def refuse(faults: int, place: int, groups: int) -> None:
    """Raise IntegrityError if there were faults."""
    if faults:
        raise IntegrityError(
            f"{faults} values under key {place} are negative, not finite or not below {LIMIT:,.0f}, or their key is "
            f"not below {groups}. Leave such rows out with a key of -1, or give large values in another unit."
        )


def statistics(sums: Array, counts: Array) -> GroupStatistics:
    """Return the statistics from sums (`BANDS`, lanes, groups, 1 or 3) and counts (groups, 1 or `BINS`)."""
    bins = np.flatnonzero(counts.any(axis=0))
    count = counts.sum(axis=1, dtype=np.int64)
    return GroupStatistics(count, _digits(sums), bins, counts.T[bins].astype(np.int64))


def _digits(sums: Array) -> npt.NDArray[np.int64]:
    """Return sums over bands, each of which has its own unit, and lanes as digits: int64 (groups, 2, `DIGITS`)."""
    digits = np.zeros((sums.shape[2], 2, DIGITS), np.int64)
    lowest = (1 << DIGIT) - 1
    for band in np.flatnonzero(sums.any(axis=(1, 2, 3))).tolist():
        # A unit of one band is 4 of the band before; of the squares, 16.
        places = ((0, 2 * band), (1, 4 * band + 2 * HALF), (1, 4 * band))
        for place, (power, shift) in enumerate(places[: sums.shape[3]]):
            first, rest = divmod(shift, DIGIT)
            for lane in sums[band, :, :, place]:
                low, high = (lane & lowest) << rest, (lane >> DIGIT) << rest
                digits[:, power, first] += low & lowest
                digits[:, power, first + 1] += (low >> DIGIT) + (high & lowest)
                digits[:, power, first + 2] += high >> DIGIT
    return digits

"""Counts, sums and histograms of values by several keys in one pass, and medians from the histograms.

The histogram is log-linear, as in HdrHistogram (Tene) and DDSketch (Masson, Rim, Lee: DDSketch, VLDB 2019): the bin of
a value is read off the high bits of its float64, 512 bins to an octave, so that a bin is at most 2**-9 of its lower
bound wide, whatever the scale of the values.

Sums are of integers, so that they are the same in any order and for any partitioning. Values are rounded to a unit that
grows with them, one for each band of two octaves, and each band has a sum of its own. The same idea, with floats in
place of integers: J. Demmel and H. D. Nguyen, "Fast reproducible floating-point summation", ARITH 2013.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import add

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.tables.blocks import DIGIT, DIGITS, NULL_INTEGER, GroupStatistics
from whitewater.tables.group_kernels import BANDS, BINS, FIRST, HALF, LIMIT, SHIFT, accumulate, fill_bins

# Rows whose sums, each of at most 2**39 a row, fit in int64.
_ROWS_OF_SUM = 2**24 - 1
_GPU_THREADS = 256


def bin_bounds() -> npt.NDArray[np.float64]:
    """Return the lower bound of each bin, and `LIMIT` last: float64 (`BINS` + 1,)."""
    log_linear = (np.arange(FIRST, FIRST + BINS - 1, dtype=np.int64) << SHIFT).view(np.float64)
    return np.concatenate([[0.0, 0.0], log_linear])


def medians(statistics: GroupStatistics) -> npt.NDArray[np.float64]:
    """Return the median of each group, interpolated linearly inside its bin.

    It is float64 (groups,), NaN for a group without values. From `LEAST` (about a millionth) to `LIMIT` (about a
    million) the relative error is below 2**-9, and about 2**-10 where values lie evenly in their bin. 0 is exact;
    between 0 and `LEAST` the error is below `LEAST`.
    """
    return (_order_statistic(statistics, upper=False) + _order_statistic(statistics, upper=True)) / 2


def _order_statistic(statistics: GroupStatistics, *, upper: bool) -> npt.NDArray[np.float64]:
    """Return the lower or the upper of the two values in the middle, the j-th of n in a bin taken at (j + 1/2) / n."""
    histogram, bounds = statistics.histogram, bin_bounds()
    if not len(histogram):
        return np.full(len(statistics.count), np.nan)
    cumulative = np.cumsum(histogram, axis=0)
    rank = np.maximum(statistics.count - 1 + upper, 0) // 2
    row = np.argmax(cumulative > rank, axis=0)
    groups = np.arange(len(rank))
    inside = np.maximum(histogram[row, groups], 1)
    before = cumulative[row, groups] - inside
    place = statistics.bins[row]
    value = bounds[place] + (bounds[place + 1] - bounds[place]) * (rank - before + 0.5) / inside
    return np.where(statistics.count > 0, value, np.nan)


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
        for part in (slice(start, start + longest) for start in range(0, len(values), longest)):
            rows = -(-len(values[part]) // self._lanes)
            if self._rows + rows > _ROWS_OF_SUM:
                self._settled, self._rows = self.result(), 0
                self._begin()
            self._rows += rows
            self._fill([key[part] for key in keys], values[part], None if chosen is None else chosen[part])

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
            _refuse(accumulate(key, bins, units, sums, counts), place, len(counts) - 1)

    def _recent(self) -> tuple[GroupStatistics, ...]:
        return tuple(
            _statistics(sums[:, None, :-1], counts[:-1]) for sums, counts in zip(self._sums, self._counts, strict=True)
        )


class GpuGroupAccumulator(GroupAccumulator):
    """Statistics by several keys on the GPU; in what order its threads add changes nothing."""

    def __init__(self, groups: Sequence[int], *, medians: bool = True) -> None:
        from whitewater.engines.gpu_kernels import GPU_LANES

        super().__init__(groups, medians=medians, lanes=GPU_LANES)

    def _begin(self) -> None:
        import cupy

        self._sums = [cupy.zeros((BANDS, self._lanes, size, self._parts), np.int64) for size in self._groups]
        # The last column counts the rows that were left out.
        self._counts = [cupy.zeros((size, self._bins + 1), np.int64) for size in self._groups]

    def _fill(self, keys: Sequence[Array], values: Array, chosen: Array | None) -> None:
        import cupy

        from whitewater.engines.gpu_kernels import gpu_accumulate

        bits = values.view(np.int64)
        blocks = -(-len(values) // _GPU_THREADS)
        for place, (key, sums, counts) in enumerate(zip(keys, self._sums, self._counts, strict=True)):
            counting = key if chosen is None else cupy.where(chosen, key, NULL_INTEGER)
            gpu_accumulate[blocks, _GPU_THREADS](counting.astype(np.int32), bits, sums, counts)
            _refuse(int(counts[:, -1].sum()), place, len(counts))

    def _recent(self) -> tuple[GroupStatistics, ...]:
        import cupy

        return tuple(
            _statistics(cupy.asnumpy(sums), cupy.asnumpy(counts[:, :-1]))
            for sums, counts in zip(self._sums, self._counts, strict=True)
        )


def _refuse(faults: int, place: int, groups: int) -> None:
    if faults:
        raise IntegrityError(
            f"{faults} values under key {place} are negative, not finite or not below {LIMIT:,.0f}, or their key is "
            f"not below {groups}. Leave such rows out with a key of -1, or give large values in another unit."
        )


def _statistics(sums: Array, counts: Array) -> GroupStatistics:
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
        for part, (power, shift) in enumerate(places[: sums.shape[3]]):
            first, rest = divmod(shift, DIGIT)
            for lane in sums[band, :, :, part]:
                low, high = (lane & lowest) << rest, (lane >> DIGIT) << rest
                digits[:, power, first] += low & lowest
                digits[:, power, first + 1] += (low >> DIGIT) + (high & lowest)
                digits[:, power, first + 2] += high >> DIGIT
    return digits

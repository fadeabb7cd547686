"""Counts, sums and histograms of values by several keys in one pass, and medians from the histograms.

The histogram is log-linear, as in HdrHistogram (Tene) and DDSketch (Masson, Rim, Lee: DDSketch, VLDB 2019): the bin of
a value is read off the high bits of its float64, 512 bins to an octave, so that a bin is at most 2**-9 of its lower
bound wide, whatever the scale of the values.

Sums are of integers, so that they are the same in any order and for any partitioning. Values are rounded to a unit that
grows with them, one for each band of two octaves, and each band has a sum of its own. The same idea, with floats in
place of integers: J. Demmel and H. D. Nguyen, "Fast reproducible floating-point summation", ARITH 2013.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from whitewater.engines import Device
from whitewater.tables.blocks import GroupStatistics
from whitewater.tables.group_statistics_cpu import BINS, FIRST, SHIFT, CpuGroupAccumulator, GroupAccumulator


def group_accumulator(device: Device, groups: Sequence[int], *, medians: bool = True) -> GroupAccumulator:
    """Return an empty accumulator for key arrays of so many groups each; one task makes one and is done with it.

    Without ``medians`` it gathers counts and sums only, which is faster.
    """
    if device.name == "gpu":
        from whitewater.tables.group_statistics_gpu import GpuGroupAccumulator

        return GpuGroupAccumulator(groups, medians=medians)
    return CpuGroupAccumulator(groups, medians=medians)


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

"""Counts, sums and histograms of values by several keys in one pass, and medians from the histograms.

The histogram is log-linear, as in HdrHistogram (Tene) and DDSketch (Masson, Rim, Lee: DDSketch, VLDB 2019): the bin of
a value is read off the high bits of its float64, 512 bins to an octave, so that a bin is at most 2**-9 of its lower
bound wide, whatever the scale of the values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from whitewater.devices.protocol import NULL_INTEGER, Array, GroupStatistics
from whitewater.errors import IntegrityError

# Between these two values, bins are log-linear.
LEAST, OVERFLOW = 2.0**-8, 2.0**4
BINS_OF_OCTAVE = 512
# Bits of a float64 below those that tell the bin, and the bits above them of the first and the last log-linear bin.
SHIFT = 52 - 9
FIRST = int(np.float64(LEAST).view(np.int64)) >> SHIFT
LAST = (int(np.float64(OVERFLOW).view(np.int64)) >> SHIFT) - 1
# Besides those: one for 0, one for what lies between 0 and `LEAST`, and the last for `OVERFLOW` and more.
BINS = LAST - FIRST + 1 + 3
# Rows after which a count of int32 might not hold them all.
_MOST_ROWS = 2**31 - 1
_GPU_THREADS = 256


def bin_bounds() -> npt.NDArray[np.float64]:
    """Return the lower bound of each bin, and infinity last: float64 (`BINS` + 1,)."""
    log_linear = (np.arange(FIRST, LAST + 2, dtype=np.int64) << SHIFT).view(np.float64)
    return np.concatenate([[0.0, 0.0], log_linear, [np.inf]])


def median_from_histogram(histogram: Array) -> npt.NDArray[np.float64]:
    """Return the median of each group, interpolated linearly inside its bin.

    Parameters
    ----------
    histogram
        Counts, integers (groups, `BINS`).

    Returns
    -------
    numpy.ndarray
        float64 (groups,); NaN for a group without values. From `LEAST` to `OVERFLOW` the relative error is below 2**-9,
        and about 2**-10 where values lie evenly in their bin. 0 is exact; below `LEAST` the error is below `LEAST`; a
        median of `OVERFLOW` or more is given as `OVERFLOW`.
    """
    return (_order_statistic(histogram, upper=False) + _order_statistic(histogram, upper=True)) / 2


def _order_statistic(histogram: Array, *, upper: bool) -> npt.NDArray[np.float64]:
    """Return the lower or the upper of the two values in the middle, the j-th of n in a bin taken at (j + 1/2) / n."""
    bounds = bin_bounds()
    bounds[-1] = bounds[-2]
    cumulative = np.cumsum(histogram, axis=1, dtype=np.int64)
    count = cumulative[:, -1]
    rank = np.maximum(count - 1 + upper, 0) // 2
    place = np.argmax(cumulative > rank[:, None], axis=1)
    groups = np.arange(len(histogram))
    inside = np.maximum(histogram[groups, place], 1)
    before = cumulative[groups, place] - inside
    value = bounds[place] + (bounds[place + 1] - bounds[place]) * (rank - before + 0.5) / inside
    return np.where(count > 0, value, np.nan)


class CpuGroupAccumulator:
    """Statistics by several keys, filled slice by slice; see `whitewater.devices.protocol.GroupAccumulator`.

    Without ``medians`` rows are counted in lanes, as sums are, which is cheaper than in the bins of a histogram.
    """

    def __init__(self, groups: Sequence[int], *, medians: bool = True) -> None:
        from whitewater.devices.group_kernels import LANES

        self._sums = [np.zeros((LANES, size + 1, 2)) for size in groups]
        self._medians = medians
        bins = BINS if medians else LANES
        self._recent = [np.zeros((size + 1, bins), np.int32) for size in groups]
        self._histograms = [np.zeros((size, bins), np.int64) for size in groups]
        self._recent_rows = 0

    def add(self, keys: Sequence[Array], values: Array, chosen: Array | None = None) -> None:
        """Count values under each array of keys."""
        from whitewater.devices.group_kernels import accumulate, fill_bins

        self._recent_rows += len(values)
        if self._recent_rows > _MOST_ROWS:
            self._settle()
            self._recent_rows = len(values)
        bins = np.empty(len(values), np.int16)
        counting = np.ones(len(values), bool) if chosen is None else chosen
        fill_bins(values.view(np.int64), counting, self._medians, bins)
        for place, (key, sums, histogram) in enumerate(zip(keys, self._sums, self._recent, strict=True)):
            _refuse(accumulate(key, values, bins, sums, histogram), place, len(histogram) - 1)

    def _settle(self) -> None:
        for histogram, recent in zip(self._histograms, (each[:-1] for each in self._recent), strict=True):
            # Most months and zones are of other files, and a page of memory that is not touched costs nothing.
            filled = np.flatnonzero(recent.any(axis=1))
            histogram[filled] += recent[filled]
            recent[filled] = 0

    def result(self) -> tuple[GroupStatistics, ...]:
        """Return the statistics for each key array."""
        self._settle()
        return tuple(
            _statistics(sums[:, :-1], histogram, medians=self._medians)
            for sums, histogram in zip(self._sums, self._histograms, strict=True)
        )


class GpuGroupAccumulator:
    """Statistics by several keys on the GPU; in what order its threads add changes the last bits of sums, no count."""

    def __init__(self, groups: Sequence[int], *, medians: bool = True) -> None:
        import cupy

        from whitewater.devices.gpu_kernels import GPU_LANES

        self._medians = medians
        self._sums = [cupy.zeros((GPU_LANES, size, 2), np.float64) for size in groups]
        # The last column counts the rows that were left out.
        self._histograms = [cupy.zeros((size, BINS + 1), np.int64) for size in groups]

    def add(self, keys: Sequence[Array], values: Array, chosen: Array | None = None) -> None:
        """Count values under each array of keys."""
        import cupy

        from whitewater.devices.gpu_kernels import gpu_accumulate

        if len(values) == 0:
            return
        bits = values.view(np.int64)
        blocks = -(-len(values) // _GPU_THREADS)
        for place, (key, sums, histogram) in enumerate(zip(keys, self._sums, self._histograms, strict=True)):
            counting = key if chosen is None else cupy.where(chosen, key, NULL_INTEGER)
            gpu_accumulate[blocks, _GPU_THREADS](counting.astype(np.int32), values, bits, sums, histogram)
            _refuse(int(histogram[:, BINS].sum()), place, len(histogram))

    def result(self) -> tuple[GroupStatistics, ...]:
        """Return the statistics for each key array, in the host's memory."""
        import cupy

        return tuple(
            _statistics(cupy.asnumpy(sums), cupy.asnumpy(histogram[:, :BINS]), medians=self._medians)
            for sums, histogram in zip(self._sums, self._histograms, strict=True)
        )


def _refuse(faults: int, place: int, groups: int) -> None:
    if faults:
        raise IntegrityError(
            f"{faults} values under key {place} are negative or not finite, or their key is not below {groups}. "
            "Leave such rows out with a key of -1."
        )


def _statistics(sums: Array, histogram: Array, *, medians: bool) -> GroupStatistics:
    total, count = sums.sum(axis=0), histogram.sum(axis=1)
    return GroupStatistics(count, total[:, 0].copy(), total[:, 1].copy(), histogram if medians else count[:, None])

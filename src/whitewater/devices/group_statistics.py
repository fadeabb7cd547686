"""Counts, sums and histograms by key in one pass, and medians from the histograms.

The histogram is a log-linear one, as in HdrHistogram (Tene) and DDSketch (Masson, Rim and Lee, VLDB 2019): the bin is
read off the high bits of the float64, 512 bins to an octave, so a bin is at most 2**-9 of its lower bound wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.devices.protocol import Array, GroupStatistics
from whitewater.errors import IntegrityError

BITS_OF_MANTISSA = 9
LEAST, OVERFLOW = 2.0**-8, 2.0**4
SHIFT = 52 - BITS_OF_MANTISSA
FIRST = int(np.float64(LEAST).view(np.int64)) >> SHIFT
LAST = (int(np.float64(OVERFLOW).view(np.int64)) >> SHIFT) - 1
BINS = LAST - FIRST + 1 + 3


def bin_bounds() -> npt.NDArray[np.float64]:
    """Return the lower bounds of all bins and, last, infinity: float64 (bins + 1,).

    Bin 0 holds exactly 0, bin 1 what lies between 0 and `LEAST`, the last bin what is at least `OVERFLOW`.
    """
    edges = (np.arange(FIRST, LAST + 2, dtype=np.int64) << SHIFT).view(np.float64)
    return np.concatenate([[0.0, 0.0], edges, [np.inf]])


def median_from_histogram(histogram: Array) -> npt.NDArray[np.float64]:
    """Return the median of each group, interpolated linearly inside its bin.

    Parameters
    ----------
    histogram
        Counts, integers (groups, `BINS`).

    Returns
    -------
    numpy.ndarray
        float64 (groups,). NaN for a group without values; in [`LEAST`, `OVERFLOW`) within 2**-9 of the exact median,
        below `LEAST` within `LEAST`, and `OVERFLOW` where the median lies above it.
    """
    return (_order_statistic(histogram, 0) + _order_statistic(histogram, 1)) / 2


def _order_statistic(histogram: Array, upper: int) -> npt.NDArray[np.float64]:
    """Return the lower or upper middle value: of the j-th of n values in a bin, the point (j + 1/2) / n into it."""
    bounds = bin_bounds()
    cumulative = np.cumsum(histogram, axis=1, dtype=np.int64)
    count = cumulative[:, -1]
    rank = np.maximum((count - 1 + upper) // 2, 0)
    place = np.argmax(cumulative > rank[:, None], axis=1)
    inside = np.take_along_axis(histogram, place[:, None], axis=1)[:, 0]
    before = np.take_along_axis(cumulative, place[:, None], axis=1)[:, 0] - inside
    width = np.where(np.isfinite(bounds[place + 1]), bounds[place + 1] - bounds[place], 0.0)
    value = bounds[place] + width * (rank - before + 0.5) / np.maximum(inside, 1)
    return np.where(count > 0, value, np.nan)


class CpuGroupAccumulator:
    """Statistics by several keys, filled slice by slice with Numba."""

    def __init__(self, groups: Sequence[int]) -> None:
        self._count = [np.zeros(size, np.int64) for size in groups]
        self._total = [np.zeros(size) for size in groups]
        self._squares = [np.zeros(size) for size in groups]
        self._histogram = [np.zeros((size, BINS), np.int32) for size in groups]

    def add(self, keys: Sequence[Array], values: Array) -> None:
        """Count values under each array of keys; see `whitewater.devices.protocol.GroupAccumulator`."""
        bins = np.empty(len(values), np.int16)
        compiled = _compiled()
        compiled[0](values.view(np.int64), bins)
        for place, key in enumerate(keys):
            faults = compiled[1](
                key, values, bins, self._count[place], self._total[place], self._squares[place], self._histogram[place]
            )
            if faults:
                raise IntegrityError(
                    f"{faults} values under key {place} are negative, not finite, or have a key that is not below "
                    f"{len(self._count[place])}. Clean the values before they are summed up."
                )

    def result(self) -> tuple[GroupStatistics, ...]:
        """Return the statistics for each key array."""
        return tuple(
            GroupStatistics(count, total, squares, histogram.astype(np.int64))
            for count, total, squares, histogram in zip(
                self._count, self._total, self._squares, self._histogram, strict=True
            )
        )


def _bin(bits: Array, bins: Array) -> None:
    for row in range(len(bits)):
        bin_ = (bits[row] >> SHIFT) - FIRST
        if bits[row] == 0:
            bins[row] = 0
        elif bits[row] < 0 or bits[row] >= 0x7FF0000000000000:
            bins[row] = -1
        else:
            bins[row] = min(max(bin_, -1), LAST - FIRST + 1) + 2


def _accumulate(
    keys: Array, values: Array, bins: Array, count: Array, total: Array, squares: Array, histogram: Array
) -> int:
    faults = 0
    for row in range(len(keys)):
        key = keys[row]
        if key < 0:
            continue
        if key >= len(count) or bins[row] < 0:
            faults += 1
            continue
        count[key] += 1
        total[key] += values[row]
        squares[key] += values[row] * values[row]
        histogram[key, bins[row]] += 1
    return faults


@cache
def _compiled() -> tuple[Any, Any]:
    import numba

    return tuple(numba.njit(function, nogil=True, cache=True) for function in (_bin, _accumulate))  # type: ignore[return-value]

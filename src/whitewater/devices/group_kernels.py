"""The kernels of `whitewater.devices.group_statistics` for the CPU."""

from __future__ import annotations

from whitewater.devices.group_statistics import FIRST, LAST, SHIFT
from whitewater.devices.kernel import kernel, part
from whitewater.devices.protocol import Array

# Sums are spread over lanes, so that an addition need not wait for the one before it.
LANES = 4
LEFT_OUT = -2
_INFINITY = 0x7FF0000000000000
_NEGATIVE_ZERO = -(2**63)
_REFUSED = -1


@part
def bin_of(bits: int) -> int:
    """Return the bin of a float64 that is given by its bits, or -1 if it is negative or not finite."""
    if (bits == 0) | (bits == _NEGATIVE_ZERO):
        return 0
    if bits < 0 or bits >= _INFINITY:
        return _REFUSED
    return min(max((bits >> SHIFT) - FIRST, -1), LAST - FIRST + 1) + 2


@kernel
def fill_bins(bits: Array, chosen: Array, medians: bool, bins: Array) -> None:
    """Fill ``bins`` (int16) with the bin of each float64, given by its bits (int64); `LEFT_OUT` where it is not chosen.

    Without ``medians`` the bins are `LANES` in turn.
    """
    for row in range(len(bits)):
        place = bin_of(bits[row])
        place = place if medians or place < 0 else row % LANES
        bins[row] = place if chosen[row] else LEFT_OUT


@kernel
def accumulate(keys: Array, values: Array, bins: Array, sums: Array, histogram: Array) -> int:
    """Add values to the sums (float64 (`LANES`, groups, 2)) and the histogram (int32 (groups, bins)) of their keys.

    The last group is that of the rows that do not count.

    Returns
    -------
    int
        Rows that were left out because of their value or because their key has no group.
    """
    # Without branches: which rows count is as good as random, and a branch guessed wrong costs more than an addition.
    faults, groups = 0, len(histogram) - 1
    for row in range(len(keys)):
        key, place = keys[row], bins[row]
        fault = ((place >= 0) & (key >= groups)) | ((place == _REFUSED) & (key >= 0))
        faults += fault
        counts = (place >= 0) & (key >= 0) & (key < groups)
        group = key if counts else groups
        value = values[row] if counts else 0.0
        sums[row % LANES, group, 0] += value
        sums[row % LANES, group, 1] += value * value
        histogram[group, place if counts else 0] += 1
    return faults

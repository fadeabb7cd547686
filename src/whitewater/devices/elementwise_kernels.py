"""The kernels of `whitewater.devices.elementwise` for the CPU: one pass each, where NumPy takes one an operation."""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel
from whitewater.devices.protocol import NULL_INTEGER, NULL_TIMESTAMP, Array

_NAN = float("nan")
_MICROSECONDS = 1e6


@kernel
def fill_ratio(numerator: Array, denominator: Array, result: Array) -> None:
    """Fill ``result`` with the quotient, NaN where the denominator is not above 0."""
    for row in range(len(result)):
        result[row] = numerator[row] / denominator[row] if denominator[row] > 0 else _NAN


@kernel
def fill_seconds(start: Array, end: Array, result: Array) -> None:
    """Fill ``result`` with the seconds from ``start`` to ``end`` (int64 microseconds), NaN where one is null."""
    for row in range(len(result)):
        null = start[row] == NULL_TIMESTAMP or end[row] == NULL_TIMESTAMP
        result[row] = _NAN if null else (end[row] - start[row]) / _MICROSECONDS


@kernel
def mark_outside(values: Array, bounds: tuple[float, float, float, float], mask: Array, bit: int) -> None:
    """Set ``bit`` and the three above it in ``mask`` (int64) for the bounds that a value breaks."""
    above, at_least, below, at_most = bounds
    for row in range(len(mask)):
        value = values[row]
        broken = (value <= above) | (value < at_least) << 1 | (value >= below) << 2 | (value > at_most) << 3
        mask[row] |= int64(broken) << bit


@kernel
def fill_steps(values: Array, clock: tuple[int, int, int, int, int], result: Array) -> None:
    """Fill ``result`` (int32) with the step of a clock (first, last, step, shift, cycle), -1 outside [first, last)."""
    first, last, step, shift, cycle = clock
    share = 1.0 / step
    for row in range(len(result)):
        known = first <= values[row] < last
        passed = values[row] - first if known else 0
        # A product is several times faster than a division; rounding may put it one step away, which the rest tells.
        steps = int64(passed * share)
        rest = passed - steps * step
        steps += int64(rest >= step) - int64(rest < 0)
        result[row] = np.int32(steps + shift) % np.int32(cycle) if known else NULL_INTEGER

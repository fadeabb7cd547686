"""Arithmetic of whole columns that every row pays for: quotients, durations, bounds, and steps of a clock.

On the CPU by kernels of one pass each, where NumPy takes one an operation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whitewater.engines import Array
from whitewater.engines.device import Device
from whitewater.engines.kernel import int64, kernel
from whitewater.tables.blocks import NULL_INTEGER, NULL_TIMESTAMP

_NAN = float("nan")


class Bounds(NamedTuple):
    """Bounds of a value, in the order of their bits; NaN is no bound, and a NaN breaks none."""

    above: float = _NAN
    at_least: float = _NAN
    below: float = _NAN
    at_most: float = _NAN


class Clock(NamedTuple):
    """Steps of ``step`` microseconds, counted from ``shift`` at ``first`` and starting again after ``cycle`` steps."""

    first: int
    last: int
    step: int
    shift: int
    cycle: int


def ratio(numerator: Array, denominator: Array, device: Device) -> Array:
    """Return the quotient of float64 columns, NaN where the denominator is not above 0."""
    if device.name == "gpu":
        xp, known = device.xp, denominator > 0
        quotient: Array = xp.where(known, numerator / xp.where(known, denominator, 1.0), _NAN)
        return quotient
    result = np.empty(len(numerator))
    _fill_ratio(numerator, denominator, result)
    return result


def seconds(start: Array, end: Array, device: Device) -> Array:
    """Return the seconds between timestamps as float64, NaN where one is null."""
    if device.name == "gpu":
        known = (start != NULL_TIMESTAMP) & (end != NULL_TIMESTAMP)
        duration: Array = device.xp.where(known, (end - start) / 1e6, _NAN)
        return duration
    result = np.empty(len(start))
    _fill_seconds(start, end, result)
    return result


def mark_outside(values: Array, bounds: Bounds, mask: Array, bit: int, device: Device) -> None:
    """Set bit ``bit + i`` of ``mask``, int64, where a value breaks bound *i*; NaN breaks none."""
    if device.name == "gpu":
        tests = (values <= bounds.above, values < bounds.at_least, values >= bounds.below, values > bounds.at_most)
        for place, broken in enumerate(tests, start=bit):
            mask |= broken.astype(np.int64) << place
    else:
        _mark_outside(values, bounds, mask, bit)


def steps(timestamps: Array, clock: Clock, device: Device) -> Array:
    """Return the step of the clock at each timestamp as int32, -1 outside [first, last) and for nulls."""
    if device.name == "gpu":
        xp, known = device.xp, (timestamps >= clock.first) & (timestamps < clock.last)
        passed = ((timestamps - clock.first) // clock.step + clock.shift) % clock.cycle
        found: Array = xp.where(known, passed, NULL_INTEGER).astype(xp.int32)
        return found
    result = np.empty(len(timestamps), np.int32)
    _fill_steps(timestamps, clock, result)
    return result


@kernel
def _fill_ratio(numerator: Array, denominator: Array, result: Array) -> None:
    """Fill ``result`` with the quotient, NaN where the denominator is not above 0."""
    for row in range(len(result)):
        result[row] = numerator[row] / denominator[row] if denominator[row] > 0 else _NAN


@kernel
def _fill_seconds(start: Array, end: Array, result: Array) -> None:
    """Fill ``result`` with the seconds from ``start`` to ``end`` (int64 microseconds), NaN where one is null."""
    for row in range(len(result)):
        null = start[row] == NULL_TIMESTAMP or end[row] == NULL_TIMESTAMP
        result[row] = _NAN if null else (end[row] - start[row]) / 1e6


@kernel
def _mark_outside(values: Array, bounds: tuple[float, float, float, float], mask: Array, bit: int) -> None:
    """Set ``bit`` and the three above it in ``mask`` (int64) for the bounds that a value breaks."""
    above, at_least, below, at_most = bounds
    for row in range(len(mask)):
        value = values[row]
        broken = (value <= above) | (value < at_least) << 1 | (value >= below) << 2 | (value > at_most) << 3
        mask[row] |= int64(broken) << bit


@kernel
def _fill_steps(values: Array, clock: tuple[int, int, int, int, int], result: Array) -> None:
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

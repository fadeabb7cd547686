"""Arithmetic of whole columns that every row pays for: quotients, durations, bounds, and steps of a clock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whitewater.devices.protocol import NULL_INTEGER, NULL_TIMESTAMP, Array

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


def cpu_ratio(numerator: Array, denominator: Array) -> Array:
    """Return the quotient of float64 columns, NaN where the denominator is not above 0."""
    from whitewater.devices.elementwise_kernels import fill_ratio

    result = np.empty(len(numerator))
    fill_ratio(numerator, denominator, result)
    return result


def gpu_ratio(numerator: Array, denominator: Array) -> Array:
    """Return the quotient of float64 columns, NaN where the denominator is not above 0."""
    import cupy

    known = denominator > 0
    result: Array = cupy.where(known, numerator / cupy.where(known, denominator, 1.0), _NAN)
    return result


def cpu_seconds(start: Array, end: Array) -> Array:
    """Return the seconds between timestamps as float64, NaN where one is null."""
    from whitewater.devices.elementwise_kernels import fill_seconds

    result = np.empty(len(start))
    fill_seconds(start, end, result)
    return result


def gpu_seconds(start: Array, end: Array) -> Array:
    """Return the seconds between timestamps as float64, NaN where one is null."""
    import cupy

    known = (start != NULL_TIMESTAMP) & (end != NULL_TIMESTAMP)
    result: Array = cupy.where(known, (end - start) / 1e6, _NAN)
    return result


def cpu_mark_outside(values: Array, bounds: Bounds, mask: Array, bit: int) -> None:
    """Set bit ``bit + i`` of ``mask``, int64, where bound *i* is broken."""
    from whitewater.devices.elementwise_kernels import mark_outside

    mark_outside(values, bounds, mask, bit)


def gpu_mark_outside(values: Array, bounds: Bounds, mask: Array, bit: int) -> None:
    """Set bit ``bit + i`` of ``mask``, int64, where bound *i* is broken."""
    tests = (values <= bounds.above, values < bounds.at_least, values >= bounds.below, values > bounds.at_most)
    for place, broken in enumerate(tests, start=bit):
        mask |= broken.astype(np.int64) << place


def cpu_steps(timestamps: Array, clock: Clock) -> Array:
    """Return the step of the clock at each timestamp as int32, -1 outside [first, last) and for nulls."""
    from whitewater.devices.elementwise_kernels import fill_steps

    result = np.empty(len(timestamps), np.int32)
    fill_steps(timestamps, clock, result)
    return result


def gpu_steps(timestamps: Array, clock: Clock) -> Array:
    """Return the step of the clock at each timestamp as int32, -1 outside [first, last) and for nulls."""
    import cupy

    known = (timestamps >= clock.first) & (timestamps < clock.last)
    steps = ((timestamps - clock.first) // clock.step + clock.shift) % clock.cycle
    result: Array = cupy.where(known, steps, NULL_INTEGER).astype(cupy.int32)
    return result

"""Seconds, sizes, rates and shares as people read them: three digits, and a unit that fits."""

from __future__ import annotations

import math

from benchmarks.spread import Spread

NO_FIGURE = "-"
CERTAIN = 0.95
_TIMES = ((60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def digits(number: float) -> str:
    """Return a number to three digits, without an exponent: ``1,234``, ``12.3``, ``0.0123``."""
    if number == 0:
        return "0"
    if abs(number) >= 999.5:
        return f"{number:,.0f}"
    decimals = max(0, 2 - math.floor(math.log10(float(f"{abs(number):.2e}"))))
    return f"{number:.{decimals}f}"


def seconds(number: float) -> str:
    """Return a time: ``2.65 min``, ``12.3 s``, ``402 ms``, ``12.0 µs``."""
    size, unit = _time_unit(number)
    return f"{digits(number / size)} {unit}"


def interval(of: Spread) -> str:
    """Return a median time with its interval, in one unit: ``402 (398 - 411) ms``."""
    size, unit = _time_unit(of.median)
    median, low, high = (digits(number / size) for number in (of.median, of.low, of.high))
    return f"{median} ({low} - {high}) {unit}"


def ratio(of: Spread) -> str:
    """Return a median ratio with its interval: ``0.52 (0.43 - 0.76)``."""
    return f"{_short(of.median)} ({_short(of.low)} - {_short(of.high)})"


def amount(number: float, unit: str) -> str:
    """Return an amount of bytes or operations, by powers of 1000: ``1.90 GB``, ``12.0 Gop/s``."""
    size, letter = next((each for each in _SIZES if number >= each[0]), (1.0, ""))
    return f"{digits(number / size)} {letter}{unit}"


def _time_unit(number: float) -> tuple[float, str]:
    return next((each for each in _TIMES if number >= 2 * each[0] or (each[0] < 60 and number >= each[0])), _TIMES[-1])


def _short(number: float) -> str:
    return f"{number:.2f}" if 0.1 <= number < 9.995 else f"{number:#.2g}" if number < 0.1 else digits(number)

"""How variants look in every picture: ours, the published code, and the peers, which are told apart by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.published.amounts import amount, seconds
from benchmarks.results_file import Results
from benchmarks.spread import Spread
from benchmarks.standing import AS_PUBLISHED, OURS, TUNED
from whitewater.figures import style

if TYPE_CHECKING:
    from matplotlib.axis import Axis

PEER = style.GRAY
# Colors and marks of lines, the first for what is first.
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.BLACK, style.SKY_BLUE, style.VERMILION, PEER)


def color(variant: str) -> str:
    """Return the color of a variant's kind."""
    if variant == OURS:
        return style.BLUE
    if variant == TUNED:
        return style.SKY_BLUE
    return style.ORANGE if variant.startswith(AS_PUBLISHED) else PEER


def spoken(variant: str) -> str:
    """Return the name of a variant without underscores."""
    return variant.replace("_", " ")


def around(of: Spread) -> tuple[float, float]:
    """Return how far the interval reaches below and above the median."""
    return of.median - of.low, of.high - of.median


def in_seconds(axis: Axis, *, fine: bool = False) -> None:
    """Label a logarithmic axis of seconds with units; ``fine`` labels 2 and 5 times the powers of ten, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if fine else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _round(value)))
    axis.set_minor_formatter(NullFormatter())


def in_amounts(axis: Axis, unit: str) -> None:
    """Label a logarithmic axis of bytes or operations: ``100 kB``."""
    axis.set_major_formatter(lambda value, _: _without_zeros(amount(value, unit)))


def machine(results: Results) -> str:
    """Return on what it was measured, for a subtitle."""
    of = results.limits.machine
    gpus = f", {'; '.join(of.gpus)}" if of.gpus else ""
    return f"{of.processor}, {results.limits.threads} threads, {of.memory_bytes / 2**30:.0f} GiB{gpus}"


def _round(value: float) -> str:
    """Return a round number of seconds: ``10 ms``."""
    if value >= 1:
        return f"{value:,.0f} s"
    return _without_zeros(seconds(value))


def _without_zeros(text: str) -> str:
    number, _, unit = text.partition(" ")
    return f"{float(number.replace(',', '')):g} {unit}"

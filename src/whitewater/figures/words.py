"""Numbers formatted for pictures and sentences."""

from collections.abc import Mapping


def percent(fraction: float) -> str:
    """Format a share to three digits: ``27.0 %``, ``0.0923 %``."""
    return f"{100 * fraction:#.3g}".removesuffix(".") + " %"


def count(number: int) -> str:
    """Format a count: ``12,345``, ``12.3 million``, ``1.23 billion``."""
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= 10 * size or (number >= size and name == "billion"):
            return f"{number / size:.3g} {name}"
    return f"{number:,}"


def pluralize(number: int, what: str) -> str:
    """Format a count with its noun: ``1 group``, ``1,234 communities``."""
    plural = what.removesuffix("y") + "ies" if what.endswith("y") else f"{what}s"
    return f"{count(number)} {what if number == 1 else plural}"


def short_count(number: int) -> str:
    """Format a count for a narrow bar: ``980``, ``12.3k``, ``1.23M``."""
    sizes = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
    size, letter = next((each for each in sizes if number >= each[0]), (1, ""))
    return f"{number / size:.3g}{letter}"


def interval(estimate: Mapping[str, float | None], factor: float, digits: int) -> str:
    """Format an estimate times a factor, with its interval."""
    numbers = [factor * number for name in ("value", "low", "high") if (number := estimate[name]) is not None]
    if len(numbers) < 3:
        return "unknown"
    value, low, high = numbers
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"

"""Numbers as people read them, in pictures and in sentences."""

from collections.abc import Mapping


def percent(fraction: float) -> str:
    """Return a share to three digits: ``27.0 %``, ``0.0923 %``."""
    return f"{100 * fraction:#.3g}".removesuffix(".") + " %"


def count(number: int) -> str:
    """Return a count as people read it: ``12,345``, ``12.3 million``, ``1.23 billion``."""
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= 10 * size or (number >= size and name == "billion"):
            return f"{number / size:.3g} {name}"
    return f"{number:,}"


def counted(number: int, what: str) -> str:
    """Return a count with its noun: ``1 group``, ``1,234 communities``."""
    several = what.removesuffix("y") + "ies" if what.endswith("y") else f"{what}s"
    return f"{count(number)} {what if number == 1 else several}"


def short_count(number: int) -> str:
    """Return a count in the room of a bar: ``980``, ``12.3k``, ``1.23M``."""
    sizes = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
    size, letter = next((each for each in sizes if number >= each[0]), (1, ""))
    return f"{number / size:.3g}{letter}"


def interval(estimate: Mapping[str, float | None], factor: float, digits: int) -> str:
    """Return an estimate times a factor, with its interval, as text."""
    known = [factor * number for name in ("value", "low", "high") if (number := estimate[name]) is not None]
    if len(known) < 3:
        return "unknown"
    value, low, high = known
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"

"""A join in functions that NumPy and CuPy both have."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def matches(xp: ModuleType, left: Any, right: Any) -> tuple[Any, Any]:
    """Return the rows of ``left`` and of ``right``, keys (rows,), of each pair of rows whose keys are equal.

    The pairs are in the order of the rows of ``left``. Keys of any span: the right ones are sorted, and the left ones
    searched for.
    """
    order = xp.argsort(right)
    ordered = right[order]
    first = xp.searchsorted(ordered, left, side="left")
    ends = xp.cumsum(xp.searchsorted(ordered, left, side="right") - first)
    pairs = int(ends[-1]) if len(left) else 0
    # The row of the left that a pair belongs to is the number of rows whose pairs have all been before.
    numbers = xp.arange(pairs)
    rows = xp.searchsorted(ends, numbers, side="right")
    # Counted backwards from the last pair of its row, so that the rows need no column of first pairs besides.
    last = xp.searchsorted(ordered, left[rows], side="right") if pairs else rows
    return rows, order[last - (ends[rows] - numbers)]

"""Cleaning rules as data: a reason, a quantity, and the test that a rejected row meets.

Each engine applies the rules to its own frames: `whitewater.tables.with_polars` and `whitewater.tables.with_dask`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Test = Callable[[Any, Any], Any] | Literal["missing", "in", "not in"]


@dataclass(frozen=True)
class Rule:
    """Reject the rows whose ``quantity``, a column or a value computed from columns, meets a test.

    ``test`` is a comparison from Python's module `operator`, with the number ``operand``; or ``in`` or ``not in``, with
    a tuple of integers as ``operand``; or ``missing``, which nulls meet. A null meets no other test.
    """

    reason: str
    quantity: str
    test: Test
    operand: Any = None

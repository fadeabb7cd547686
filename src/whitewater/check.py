"""One thing that the doctor tried, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SHOWN = 5


@dataclass(frozen=True)
class Check:
    """One thing that was tried, what was found, and the remedy where it failed."""

    name: str
    status: Literal["ok", "warn", "fail", "skip"]
    found: str
    fix: str = ""


def few(items: Sequence[str]) -> str:
    """Return the first items as text, and how many more there are."""
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more

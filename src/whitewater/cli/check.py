"""One thing that the doctor tried, and what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """One thing that was tried, what was found, and the remedy where it failed."""

    name: str
    status: Literal["ok", "warn", "fail", "skip"]
    found: str
    fix: str = ""

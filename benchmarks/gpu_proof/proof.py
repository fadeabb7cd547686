"""The record of one piece: what was run on what, how long it took, and whether its checks passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from benchmarks.machine import Machine, Revision
from benchmarks.report import Report, Stored
from whitewater.errors import WhitewaterError

ROOT = Path(__file__).parents[2]
# The file that the process of a piece writes, and its exit status where this machine lacks what the piece needs.
FOUND, NOT_HERE = "found.json", 3


class NotHereError(WhitewaterError):
    """A machine lacks what a piece needs; the message says what."""


@dataclass(frozen=True)
class Work:
    """What a piece is given; ``scale`` is its size as a fraction of the one that is to be shown.

    ``folder`` is the scratch folder, the working directory of the piece and of all that it starts.
    """

    device: str
    scale: float
    threads: int
    folder: Path = field(default_factory=Path.cwd)

    def sized(self, full: int, *, least: int = 1) -> int:
        """Return a number at this scale."""
        return max(least, round(full * self.scale))


class Found(Stored):
    """What a piece found: of each check what is wrong, or nothing; figures, seconds unless named otherwise."""

    checks: dict[str, str]
    figures: dict[str, JsonValue] = Field(default_factory=dict)
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A piece: its name, which is that of its file, what it shows, and what it does."""

    name: str
    title: str
    show: Callable[[Work], Found]


class Proof(Stored):
    """What was seen of one piece.

    ``said`` are the last lines of an error, or why it could not be run. ``seconds`` are those of the whole piece, its
    data included. ``peak_device_bytes`` is the most that the driver counted on one GPU, all processes together.
    """

    format: Literal[1] = 1
    piece: str
    title: str
    state: Literal["passed", "failed", "stopped", "not possible here"]
    said: str
    device: str
    scale: float
    started: str
    command: tuple[str, ...]
    seconds: float
    limit: float
    peak_memory_bytes: int
    peak_device_bytes: int | None
    machine: Machine
    versions: dict[str, str]
    revision: Revision
    found: Found | None

    def stands_for(self, other: Proof) -> bool:
        """Whether it passed, and the other one would run the same source on the same hardware, at the same size."""
        same = ("piece", "device", "scale", "revision")
        hardware = ("gpus", "processor", "cores")
        return (
            self.state == "passed"
            and not self.revision.changed
            and self.revision.commit != "unknown"
            and all(getattr(self, name) == getattr(other, name) for name in same)
            and all(getattr(self.machine, name) == getattr(other.machine, name) for name in hardware)
        )

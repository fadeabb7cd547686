"""The record of one piece, and the page that is written from the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, JsonValue

from benchmarks.machine import Machine, Revision
from benchmarks.published.amounts import amount, seconds
from benchmarks.report import Report, Stored
from benchmarks.results_file import read
from whitewater.errors import WhitewaterError

ROOT = Path(__file__).parents[2]
PAGE, RECORDED = Path("benchmarks/GPU.md"), Path("benchmarks/results/gpu")
NOT_SEEN = "not seen on hardware yet"
HEAD = f"""# What was seen on a GPU

Written from the records in `{RECORDED}`, which `make gpu-proof` writes on a machine with a GPU. What has no record is
**{NOT_SEEN}**: tests without a GPU check it against stand-ins and recorded signatures, and say nothing of its speed.
"""


class NotHereError(WhitewaterError):
    """A machine lacks what a piece needs; the message says what."""


@dataclass(frozen=True)
class Work:
    """What a piece is given; it works in a scratch folder. ``scale`` is its size, 1 that which is to be shown."""

    device: str
    scale: float
    threads: int

    def sized(self, full: int, *, least: int = 1000) -> int:
        """Return a number at this scale."""
        return max(least, round(full * self.scale))


class Found(Stored):
    """What a piece found: of each check what is wrong, or nothing; figures, seconds unless named otherwise."""

    checks: dict[str, str]
    figures: dict[str, JsonValue] = Field(default_factory=dict)
    reports: tuple[Report, ...] = ()


class Piece(NamedTuple):
    """What a piece shows, and how."""

    title: str
    show: Callable[[Work], Found]


class Proof(Stored):
    """What was seen of one piece.

    ``said`` are the last lines of an error, or why it could not be run. ``seconds`` are those of the whole piece, its
    data included. ``peak_device_bytes`` is the most that the driver counted on one GPU, which is asked twice a second.
    """

    format: Literal[1] = 1
    piece: str
    state: Literal["passed", "failed", "stopped", "not possible here"]
    said: str = ""
    device: str
    scale: float
    started: str
    command: tuple[str, ...]
    seconds: float = 0.0
    limit: float
    peak_memory_bytes: int = 0
    peak_device_bytes: int | None = None
    machine: Machine
    versions: dict[str, str]
    revision: Revision
    found: Found | None = None

    def stands_for(self, other: Proof) -> bool:
        """Whether it passed, and the other one would run the same source on the same hardware, at the same size."""
        known = not self.revision.changed and self.revision.commit != "unknown"
        return self.state == "passed" and known and self._key == other._key

    @property
    def _key(self) -> tuple[object, ...]:
        machine = self.machine
        return self.piece, self.device, self.scale, self.revision, machine.gpus, machine.processor, machine.cores


def page(titles: Mapping[str, str], recorded: Path) -> str:
    """Return the page of all pieces, of the records in a folder."""
    proofs = {name: read(path, Proof) if (path := recorded / f"{name}.json").exists() else None for name in titles}
    seen = sum(proof.state == "passed" for proof in proofs.values() if proof)
    lines = [f"| `{name}` | {title} | {_seen(proofs[name])} |" for name, title in titles.items()]
    table = "\n".join(["| piece | what | seen | time | GPU memory | where |", "|---|---|---|---|---|---|", *lines])
    return (
        "\n".join([HEAD, f"Seen: {seen} of {len(proofs)} pieces.\n", table, *map(_details, proofs.values())]).rstrip()
        + "\n"
    )


def _seen(proof: Proof | None) -> str:
    if proof is None:
        return f"{NOT_SEEN} | - | - | -"
    seen = f"yes, {len(proof.found.checks)} checks" if proof.found and proof.state == "passed" else f"**{proof.state}**"
    memory = amount(proof.peak_device_bytes, "B") if proof.peak_device_bytes else "-"
    where = f"{'; '.join(proof.machine.gpus) or proof.machine.processor}; commit {proof.revision.commit[:9]}"
    return f"{seen} | {seconds(proof.seconds)} | {memory} | {where}"


def _details(proof: Proof | None) -> str:
    """Return the figures of a piece, and what was said where it did not pass."""
    if proof is None:
        return ""
    figures = proof.found.figures.items() if proof.found else ()
    lines = [f"- {name}: {value:.4g}" if isinstance(value, float) else f"- {name}: {value}" for name, value in figures]
    said = ["```", proof.said, "```"] if proof.said else []
    return "\n".join([f"\n## {proof.piece}, {proof.started}\n", *lines, *said])

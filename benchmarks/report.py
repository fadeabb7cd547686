"""The record of one measurement: every sample, what they come to, and what they were taken on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from benchmarks.machine import Machine, Revision
from benchmarks.spread import Spread, spread

Quantity = Literal["wall_seconds", "compute_seconds", "cpu_seconds", "peak_memory_bytes", "peak_anonymous_bytes"]
QUANTITIES: tuple[Quantity, ...] = (
    "wall_seconds",
    "compute_seconds",
    "cpu_seconds",
    "peak_memory_bytes",
    "peak_anonymous_bytes",
)
MEBIBYTE = 2**20
# Of a process of some milliseconds the kernel may have counted no CPU time; in a ratio it is a microsecond.
_LEAST = 1e-6
LONGEST_JSON_LINE = 500
# What the table calls the quantity that counts, which one stands beside it, and what that is called.
_COLUMNS: Mapping[str, tuple[str, Quantity, str]] = {
    "process": ("wall", "compute_seconds", "compute"),
    "call": ("call", "wall_seconds", "wall"),
}


class Record(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Plan(Record):
    """How a measurement is made.

    After ``at_least`` rounds another one starts only if the longest so far still fits into ``seconds``. ``threads``
    bounds the threads of every variant. Integers and texts of answers must be equal, real numbers within ``tolerance``,
    relative and, below 1, absolute. A sample that takes longer than ``timeout`` seconds makes its variant void.
    """

    rounds: int = Field(10, ge=1)
    at_least: int = Field(3, ge=1)
    seconds: float | None = Field(None, gt=0)
    threads: int = Field(2, ge=1)
    tolerance: float = Field(1e-9, ge=0)
    timeout: float = Field(900.0, gt=0)


class Size(Record):
    """The input of a benchmark; ``basis`` says whether its bytes are counted in the files or in memory."""

    rows: int = Field(ge=0)
    bytes: int = Field(ge=0)
    basis: Literal["file", "memory"]


class Sample(Record):
    """One fresh process, or one call, of one variant; fields not explained here are those of `process_tree.Cost`.

    ``place`` is its place in the round, from 0. ``compute_seconds`` is what the process itself measured, without its
    imports, and ``phases`` what it measured of parts of that, in seconds. ``peak_device_bytes`` is the most that it has
    held on GPUs so far, if it used any.
    """

    round: int
    place: int
    wall_seconds: float
    compute_seconds: float
    phases: dict[str, float] = Field(default_factory=dict)
    cpu_seconds: float
    other_cpu_seconds: float
    peak_memory_bytes: int
    peak_anonymous_bytes: int
    peak_device_bytes: int | None = None


class Outcome(Record):
    """A variant's samples.

    ``void`` says why its figures do not count; ``missing`` why it could not be tried here, such as a package that is
    not installed. ``warm_up`` was its first process or call.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    void: str | None
    missing: str | None = None
    warm_up: Sample | None
    samples: tuple[Sample, ...]
    summary: dict[Quantity, Spread]


def as_json(value: JsonValue, *, indent: str = "") -> str:
    """Return JSON in which a value that fits, such as a sample or the summary of a quantity, has one line."""
    text = json.dumps(value, ensure_ascii=False)
    inner = f"{indent} "
    if len(text) <= LONGEST_JSON_LINE or not isinstance(value, dict | list):
        return text
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {as_json(each, indent=inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{as_json(each, indent=inner)}" for each in value) + f"\n{indent}]"


class Stored(Record):
    """A value that is kept as a file of JSON."""

    def write(self, path: Path) -> None:
        """Write it as JSON: the whole of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = path.with_name(f".{path.name}.{os.getpid()}")
        with staging.open("w") as file:
            file.write(as_json(self.model_dump(mode="json")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        staging.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        return cls.model_validate_json(path.read_text())


class Report(Stored):
    """All of a measurement.

    ``ratios`` holds, for every other variant, the first variant's figure divided by it, taken round by round: below 1
    the first variant needs less. ``sampling`` says what a sample is: a fresh process, start-up included, or a call in a
    process that has its data in memory. ``operations`` are the floating-point operations of the definition, if counted.
    """

    format: Literal[1] = 1
    name: str
    sampling: Literal["process", "call"] = "process"
    operations: float | None = None
    started: str
    command: tuple[str, ...]
    size: Size
    parameters: dict[str, JsonValue]
    plan: Plan
    page_cache: Literal["warm"] = "warm"
    machine: Machine
    versions: dict[str, str]
    revision: Revision
    oracle: str
    answer: JsonValue
    outcomes: dict[str, Outcome]
    ratios: dict[str, dict[Quantity, Spread]]

    @property
    def exit_status(self) -> Literal[0, 1]:
        """1 if a variant is void."""
        return 1 if any(outcome.void for outcome in self.outcomes.values()) else 0

    @property
    def headline(self) -> Quantity:
        """The quantity that a user waits for: the call alone, or the whole process."""
        return "compute_seconds" if self.sampling == "call" else "wall_seconds"


class Reports(Stored):
    """The reports of the cases of one row of the published table, in one file."""

    format: Literal[1] = 1
    reports: tuple[Report, ...]


def summarize(samples: Sequence[Sample]) -> dict[Quantity, Spread]:
    """Return the spread of each quantity; nothing for no samples."""
    if not samples:
        return {}
    return {quantity: spread([getattr(sample, quantity) for sample in samples]) for quantity in QUANTITIES}


def paired_ratios(subject: Sequence[Sample], peer: Sequence[Sample]) -> dict[Quantity, Spread]:
    """Return the spread of subject / peer of each quantity over the rounds that have both."""
    peers = {sample.round: sample for sample in peer}
    pairs = [(sample, peers[sample.round]) for sample in subject if sample.round in peers]
    if not pairs:
        return {}
    return {
        quantity: spread(
            [max(getattr(ours, quantity), _LEAST) / max(getattr(theirs, quantity), _LEAST) for ours, theirs in pairs]
        )
        for quantity in QUANTITIES
    }


def table(report: Report) -> str:
    """Return the medians, and the interval of the time that a user waits and of its ratio, as text."""
    rounds = max((len(outcome.samples) for outcome in report.outcomes.values()), default=0)
    figures = [outcome.summary[report.headline] for outcome in report.outcomes.values() if outcome.summary]
    coverage = f"{min(figure.coverage for figure in figures):.1%} interval" if figures else "interval"
    name, other, label = _COLUMNS[report.sampling]
    machine = report.machine
    where = {"file": "files", "memory": "memory"}[report.size.basis]
    lines = [
        f"{report.name}: {report.size.rows:,} rows, {report.size.bytes / 1e9:.2f} GB in {where}; "
        f"{rounds} rounds, {report.plan.threads} threads, page cache {report.page_cache}; "
        f"{machine.processor}, {machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB; "
        f"others used {_disturbance(report):.0%} of the cores",
        "",
        f"{'variant':<20} {f'{name} s ({coverage})':>26} {f'{label} s':>10} {'CPU s':>8} {'peak MiB':>9} "
        f"{'anonymous':>9}  {f'{name}, first / this':>24}",
    ]
    lines += [
        _row(each, outcome, report.ratios.get(each, {}), columns=(report.headline, other))
        for each, outcome in report.outcomes.items()
    ]
    return "\n".join(lines)


def in_short(report: Report) -> str:
    """Return the medians of the quantity that a user waits for, in one line."""
    said = {
        name: outcome.missing or _void(outcome) or f"{outcome.summary[report.headline].median:.3g} s"
        for name, outcome in report.outcomes.items()
    }
    return f"{report.name}: {', '.join(f'{name} {figure}' for name, figure in said.items())}"


def _void(outcome: Outcome) -> str | None:
    """Return the last line of why a variant is void: what went wrong, without the traceback and the command."""
    if outcome.void is None:
        return None
    last = outcome.void.splitlines()[-1]
    return f"void: {last[max(0, last.find('ended with status')) :]}"


def _disturbance(report: Report) -> float:
    """Return the share of the machine's cores that worked for something else while samples were taken."""
    samples = [sample for outcome in report.outcomes.values() for sample in outcome.samples]
    available = sum(sample.wall_seconds for sample in samples) * report.machine.cores
    return sum(sample.other_cpu_seconds for sample in samples) / available if samples else 0.0


def _row(name: str, outcome: Outcome, ratios: Mapping[Quantity, Spread], *, columns: tuple[Quantity, Quantity]) -> str:
    if outcome.missing is not None:
        return f"{name:<20} not tried: {outcome.missing}"
    if outcome.void is not None:
        return f"{name:<20} void: {outcome.void}"
    summary = outcome.summary
    memory, anonymous = (summary[key].median / MEBIBYTE for key in ("peak_memory_bytes", "peak_anonymous_bytes"))
    first, second = columns
    ratio = _interval(ratios[first]) if ratios else ""
    return (
        f"{name:<20} {_interval(summary[first]):>26} {summary[second].median:>10.3f} "
        f"{summary['cpu_seconds'].median:>8.2f} {memory:>9.0f} {anonymous:>9.0f}  {ratio:>24}"
    )


def _interval(of: Spread) -> str:
    return f"{of.median:.3f} ({of.low:.3f} - {of.high:.3f})"

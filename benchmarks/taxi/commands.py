"""The commands of the variants, which the benchmark and the published table run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import Variant, this_python
from benchmarks.placement import ON_CPU, Placement
from benchmarks.taxi.simulated_months import Months
from benchmarks.taxi.written import inspect_written
from whitewater.engines.memory import KEPT_BY_POLARS


def variant(
    tool: str,
    files: Sequence[Path],
    months: Months,
    *,
    threads: int,
    output: Path | None = None,
    placement: Placement = ON_CPU,
) -> Variant:
    """Return the command of a tool that aggregates files and, where there is an ``output``, writes the cleaned trips.

    ``placement`` is for Whitewater alone.
    """
    options = ["--zones", str(months.zones), "--threads", str(threads), *placement.options]
    if output is not None:
        options += ["--output", str(output)]
    return Variant(
        tool,
        (this_python(), "-m", f"benchmarks.taxi.with_{tool}", *options, *map(str, files)),
        environment=dict([KEPT_BY_POLARS]) if tool == "whitewater" else {},  # as its steps run
        outputs=(output,) if output else (),
        inspect=partial(inspect_written, output) if output else None,
    )

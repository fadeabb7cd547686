"""The commands of the variants, which the benchmark and the published table run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.measure import Variant, this_python
from benchmarks.placement import ON_CPU, Placement
from benchmarks.recsys import features_variant
from benchmarks.recsys.click_log import ClickLog
from benchmarks.recsys.feature_rows import FeatureRows


def features_variant_of(
    tool: str,
    log: ClickLog,
    folder: Path,
    *,
    threads: int,
    memory_limit: int | None = None,
    placement: Placement = ON_CPU,
) -> Variant:
    """Return the command of a tool that makes features in ``folder``; ``placement`` is for Whitewater alone."""
    options = ["--events", str(log.folder), "--threads", str(threads), *placement.options]
    if memory_limit:
        options += ["--memory-limit", str(memory_limit)]
    return Variant(
        tool,
        (this_python(), "-m", f"benchmarks.recsys.features_with_{tool}", *options, "--folder", str(folder)),
        outputs=(folder,),
        inspect=partial(features_variant.inspect, folder),
    )


def load_variant_of(tool: str, rows: FeatureRows, *, threads: int, placement: Placement = ON_CPU) -> Variant:
    """Return the command of a tool that loads features; ``placement`` is for Whitewater alone."""
    options = ["--features", str(rows.folder), "--threads", str(threads), *placement.options]
    return Variant(
        tool,
        (this_python(), "-m", f"benchmarks.recsys.load_with_{tool}", *options),
    )

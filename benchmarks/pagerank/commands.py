"""The commands of the variants, which the benchmark and the published table run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from benchmarks.measure import Variant, this_python
from benchmarks.pagerank import index_variant
from benchmarks.placement import ON_CPU, Placement

# The folder of edges, or of documents.
SOURCES = {"rank": "--edges", "index": "--documents"}


def variant(
    case: Literal["rank", "index"],
    tool: str,
    source: Path,
    folder: Path,
    *,
    threads: int,
    placement: Placement = ON_CPU,
) -> Variant:
    """Return the command of a tool that ranks or indexes what is in ``source``, and writes to ``folder``.

    ``placement`` is for Whitewater alone.
    """
    options = [SOURCES[case], str(source), "--threads", str(threads), *placement.options]
    return Variant(
        tool,
        (this_python(), "-m", f"benchmarks.pagerank.{case}_with_{tool}", *options, "--folder", str(folder)),
        outputs=(folder,),
        inspect=partial(index_variant.inspect, folder) if case == "index" else None,
    )

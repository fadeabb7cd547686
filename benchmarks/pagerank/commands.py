"""The commands of the variants, which the benchmark and the published table run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

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
    inspect = inspect_tantivy if tool == "tantivy" else index_variant.inspect
    return Variant(
        tool,
        (this_python(), "-m", f"benchmarks.pagerank.{case}_with_{tool}", *options, "--folder", str(folder)),
        outputs=(folder,),
        inspect=partial(inspect, folder) if case == "index" else None,
        in_part=tool == "tantivy",
    )


def inspect_tantivy(folder: Path) -> JsonValue:
    """Return what can be read of an index of tantivy, which only its own library reads."""
    from benchmarks.pagerank.index_with_tantivy import inspect

    return inspect(folder)

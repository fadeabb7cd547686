"""Which rows become edges, by the rules for broken links and self-loops, and how many do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whitewater.devices.protocol import Array

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules

# What is counted in any case. The rows read are the edges and those dropped by each rule.
COUNTS = ("read", "edges", "broken", "dropped_broken", "self_loops", "dropped_self_loops")


@dataclass(frozen=True)
class Judged:
    """What the rules say of rows, bool (rows,): which are edges, which are broken, which are loops; and the counts."""

    kept: Array
    broken: Array
    loops: Array
    counts: Counter[str]


def judge(source: Array, target: Array, broken: Array, rules: EdgeRules) -> Judged:
    """Apply the rules to rows; a broken row that is dropped is no self-loop any more.

    Parameters
    ----------
    source, target
        int64 (rows,).
    broken
        bool (rows,): which have an end that is no known vertex.
    """
    drop_broken, drop_loops = rules.broken == "drop", rules.self_loops == "drop"
    loops = (source == target) & ~broken if drop_broken else source == target
    left_out = (broken & drop_broken) | (loops & drop_loops)
    broken_rows, loop_rows = int(broken.sum()), int(loops.sum())
    counts = {
        "read": len(source),
        "edges": len(source) - int(left_out.sum()),
        "broken": broken_rows,
        "dropped_broken": broken_rows * drop_broken,
        "self_loops": loop_rows,
        "dropped_self_loops": loop_rows * drop_loops,
    }
    return Judged(~left_out, broken, loops, Counter(counts))


def total(counts: Counter[str]) -> dict[str, int]:
    """Return the counts as a mapping that has all of `COUNTS`."""
    return {**dict.fromkeys(COUNTS, 0), **counts}

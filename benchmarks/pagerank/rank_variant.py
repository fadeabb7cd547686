"""What every variant that ranks a graph has in common: its arguments, the rules of the work, its line of output.

The work: read the edges; an edge counts once however often it is there, self-loops count; the vertices are the ends of
the edges. PageRank as NetworkX defines it, damping 0.85, no personalization, the rank of dangling vertices going evenly
to all; iterated from even ranks until an iteration moves less than 1e-8 in L1, or by another method as exact as that.
Then the ids of the 100 vertices of the highest rank, and their ranks, as multiples of the mean rank.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.placement import ON_CPU, Placement, add_options, placement_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.int64]
    Ranks = npt.NDArray[np.float64]

DAMPING = 0.85
CHANGE = 1e-8
TOP = 100


@dataclass
class Work:
    """What a variant is to do, and how long its parts took: load, renumber, solve and join back."""

    edges: Path
    threads: int
    folder: Path
    placement: Placement = ON_CPU
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a part of the work."""
        started = time.perf_counter()
        yield
        self.phases[name] = time.perf_counter() - started

    @property
    def files(self) -> list[str]:
        """The Parquet files of edges."""
        return sorted(map(str, self.edges.glob("edges-*.parquet")))


@dataclass(frozen=True)
class Ranked:
    """The answer: sizes, the top ids, best first, and their ranks as multiples of the mean; and the iterations made."""

    vertices: int
    edges: int
    ids: list[int]
    ranks: list[float]
    iterations: int | None = None


def main(rank: Callable[[Work], Ranked], *, is_placed: bool = False) -> None:
    """Read the command line, compute, and print how long that took and the answer.

    Only a variant that ``is_placed`` has the options of `benchmarks.placement`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--edges", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    if is_placed:
        add_options(parser)
    arguments: Any = parser.parse_args()
    work = Work(arguments.edges, arguments.threads, arguments.folder, placement_of(arguments))
    work.folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    ranked = rank(work)
    seconds = time.perf_counter() - start
    if ranked.iterations:
        edges_a_second = ranked.edges * ranked.iterations / work.phases["solve"]
        work.phases |= {"iterations": ranked.iterations, "edges_per_second_per_iteration": edges_a_second}
    answer = {"vertices": ranked.vertices, "edges": ranked.edges, "ids": ranked.ids, "ranks": ranked.ranks}
    print(json.dumps({"compute_seconds": seconds, "answer": answer, "phases": work.phases}))


def read_edges(work: Work) -> tuple[Ids, Ids]:
    """Read the edges with pyarrow on all threads: ids of sources and targets, int64 (edges,)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(work.threads)
    with work.phase("load"):
        table = pq.read_table(work.files, columns=["source", "target"])
        return table["source"].to_numpy(), table["target"].to_numpy()


def numbered(source: Ids, target: Ids) -> tuple[Ids, Ids, Ids]:
    """Return the ids that there are, ascending, and the numbers of the ends of each edge among them.

    By a table of all possible ids, which a user who knows that they are small and not negative would write; a sort
    (``numpy.unique``) takes several times as long.
    """
    import numpy as np

    present = np.zeros(max(source.max(), target.max()) + 1, np.bool_)
    present[source] = present[target] = True
    numbers = np.cumsum(present) - 1
    return np.flatnonzero(present), numbers[source], numbers[target]


def unique_keys(source: Ids, target: Ids, *, vertices: int) -> Ids:
    """Return ``source * vertices + target`` of each edge once, ascending."""
    import numpy as np

    keys = source * vertices + target
    keys.sort()
    different: Ids = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    return different


def top(ids: Ids, ranks: Ranks, *, edges: int, iterations: int | None) -> Ranked:
    """Return the answer, of the ids and ranks of all vertices."""
    import numpy as np

    best = np.argpartition(-ranks, TOP)[:TOP]
    best = best[np.argsort(-ranks[best], kind="stable")]
    return Ranked(len(ids), edges, ids[best].tolist(), (ranks[best] * len(ids)).tolist(), iterations)

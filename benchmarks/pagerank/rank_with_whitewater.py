"""Whitewater: the steps renumber and pagerank, as functions, in one process, with the files that they write.

It ends as Whitewater's command line does.
"""

from __future__ import annotations

from typing import TypeVar

import pyarrow.parquet as pq

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, Ranked, Work, main, top
from whitewater import devices
from whitewater.arrow_arrays import to_numpy
from whitewater.config import pagerank
from whitewater.config.base import Section
from whitewater.pagerank.graph_folder import open_graph
from whitewater.pagerank.pagerank import pagerank as solve
from whitewater.pagerank.renumber import renumber
from whitewater.process import leave
from whitewater.step import Output, Run
from whitewater.store import read_json

Settings = TypeVar("Settings", bound=Section)


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    graph, ranks, convergence = (work.folder / name for name in ("graph", "ranks.parquet", "convergence.json"))
    with work.phase("load_and_renumber"):
        renumber(_run(work, "renumber", pagerank.Renumber()), edges=work.edges, graph=Output(graph),
                 summary=Output(work.folder / "edges.json"))  # fmt: skip
    with work.phase("solve"):
        # The bound on the distance to the exact ranks that a change of `CHANGE` gives.
        rules = pagerank.Pagerank(damping=DAMPING, tolerance=CHANGE * DAMPING / (1 - DAMPING))
        solve(_run(work, "pagerank", rules), graph=graph, ranks=Output(ranks), convergence=Output(convergence))
    with work.phase("join_back"):
        table = pq.ParquetFile(ranks).read()
        ids, values = to_numpy(table["vertex"]), to_numpy(table["rank"])
        iterations = read_json(convergence)["iterations"]
        return top(ids, values, edges=open_graph(graph).edges, iterations=iterations)


def _run(work: Work, step: str, settings: Settings) -> Run[Settings]:
    return Run("pagerank", step, devices.resolve("cpu"), settings, threads=work.threads)


if __name__ == "__main__":
    main(rank)
    leave(0)

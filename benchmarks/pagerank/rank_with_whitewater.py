"""Whitewater: the steps renumber and pagerank, as functions, in one process, with the files that they write.

It starts and ends as Whitewater's command line does.
"""

from __future__ import annotations

from functools import partial

import pyarrow.parquet as pq

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, Ranked, Work, main, top
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import open_graph
from whitewater.io.store import read_json
from whitewater.process import exit_fast, start_fast
from whitewater.step import Output
from whitewater.tables.arrow_arrays import to_numpy
from whitewater_apps.pagerank.config import Renumber
from whitewater_apps.pagerank.steps.rank import rank as solve
from whitewater_apps.pagerank.steps.renumber import renumber


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    run = partial(work.placement.run, "pagerank", threads=work.threads)
    graph, ranks, convergence = (work.folder / name for name in ("graph", "ranks.parquet", "convergence.json"))
    with work.phase("load_and_renumber"):
        renumber(run("renumber", Renumber()), edges=work.edges, graph=Output(graph),
                 summary=Output(work.folder / "edges.json"))  # fmt: skip
    with work.phase("solve"):
        # The bound on the distance to the exact ranks that a change of `CHANGE` gives.
        rules = Pagerank(damping=DAMPING, tolerance=CHANGE * DAMPING / (1 - DAMPING))
        solve(run("pagerank", rules), graph=graph, ranks=Output(ranks), convergence=Output(convergence))
    with work.phase("join_back"):
        table = pq.ParquetFile(ranks).read()
        ids, values = to_numpy(table["vertex"]), to_numpy(table["rank"])
        iterations = read_json(convergence)["iterations"]
        return top(ids, values, edges=open_graph(graph).edges, iterations=iterations)


if __name__ == "__main__":
    start_fast()
    main(rank, is_placed=True)
    exit_fast(0)

"""NetworkX: a directed graph from a table of edges, and its PageRank, as its documentation shows them.

A vertex is a key of dictionaries, so that ids are not renumbered. The graph is put together edge by edge on one core,
which takes most of the time; PageRank iterates over a SciPy matrix, which NetworkX makes of the graph.
"""

from __future__ import annotations

import networkx as nx
import pandas as pd

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, TOP, Ranked, Work, main

# More than the 114 or so after which a change of 1 has become `CHANGE`.
ITERATIONS = 200


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    with work.phase("load"):
        edges = pd.concat([pd.read_parquet(file, columns=["source", "target"]) for file in work.files])
    with work.phase("renumber"):
        graph = nx.from_pandas_edgelist(edges, create_using=nx.DiGraph)
    count = graph.number_of_nodes()
    with work.phase("solve"):
        # NetworkX compares the change with its tolerance times the number of vertices.
        ranks = nx.pagerank(graph, alpha=DAMPING, tol=CHANGE / count, max_iter=ITERATIONS)
    with work.phase("join_back"):
        best = sorted(ranks, key=ranks.__getitem__, reverse=True)[:TOP]
        return Ranked(count, graph.number_of_edges(), best, [ranks[each] * count for each in best])


if __name__ == "__main__":
    main(rank)

"""NetworKit: a directed graph from arrays of edges, and its parallel PageRank, which can share out dangling rank."""

from __future__ import annotations

import networkit as nk
import numpy as np

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, Ranked, Work, main, numbered, read_edges, top, unique_keys


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    nk.setNumberOfThreads(work.threads)
    source, target = read_edges(work)
    with work.phase("renumber"):
        ids, source, target = numbered(source, target)
        # Duplicates are removed before the graph is made: its own `removeMultiEdges` takes longer.
        ends = np.divmod(unique_keys(source, target, vertices=len(ids)), len(ids))
        weights = np.ones(len(ends[0]))
        graph = nk.GraphFromCoo((weights, tuple(end.astype(np.uint64) for end in ends)), n=len(ids), directed=True)
    with work.phase("solve"):
        solver = nk.centrality.PageRank(
            graph, DAMPING, CHANGE, distributeSinks=nk.centrality.SinkHandling.DistributeSinks
        )
        solver.norm = nk.centrality.Norm.L1_NORM
        solver.run()
        ranks = np.asarray(solver.scores())
        iterations = int(solver.numberOfIterations())
    with work.phase("join_back"):
        return top(ids, ranks / ranks.sum(), edges=graph.numberOfEdges(), iterations=iterations)


if __name__ == "__main__":
    main(rank)

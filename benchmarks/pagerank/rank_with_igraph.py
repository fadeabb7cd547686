"""igraph: PageRank by PRPACK, which is exact to about 1e-10, on one core."""

from __future__ import annotations

import igraph as ig
import numpy as np

from benchmarks.pagerank.rank_variant import DAMPING, Ranked, Work, main, numbered, read_edges, top, unique_keys


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    source, target = read_edges(work)
    with work.phase("renumber"):
        ids, source, target = numbered(source, target)
        # Duplicates are removed before the graph is made: its own `simplify` takes much longer.
        keys = unique_keys(source, target, vertices=len(ids))
        graph = ig.Graph(len(ids), np.column_stack(np.divmod(keys, len(ids))), directed=True)
    with work.phase("solve"):
        ranks = np.asarray(graph.pagerank(damping=DAMPING, implementation="prpack"))
    with work.phase("join_back"):
        return top(ids, ranks, edges=graph.ecount(), iterations=None)


if __name__ == "__main__":
    main(rank)

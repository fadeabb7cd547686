"""SciPy: a compressed sparse row matrix of float64, and NumPy vectors. Its product runs on one core."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, Ranked, Work, main, numbered, read_edges, top


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    source, target = read_edges(work)
    with work.phase("renumber"):
        ids, source, target = numbered(source, target)
        count = len(ids)
        matrix = sp.csr_array((np.ones(len(source)), (target, source)), shape=(count, count))
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
    with work.phase("solve"):
        degree = np.bincount(matrix.indices, minlength=count)
        share = DAMPING / np.maximum(degree, 1)
        dangling = degree == 0
        ranks = np.full(count, 1 / count)
        change, iterations = np.inf, 0
        while change > CHANGE:
            following = matrix @ (ranks * share) + (DAMPING * ranks[dangling].sum() + 1 - DAMPING) / count
            change = float(np.abs(following - ranks).sum())
            ranks = following
            iterations += 1
    with work.phase("join_back"):
        return top(ids, ranks, edges=matrix.nnz, iterations=iterations)


if __name__ == "__main__":
    main(rank)

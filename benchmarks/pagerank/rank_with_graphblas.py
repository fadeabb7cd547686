"""SuiteSparse:GraphBLAS by python-graphblas: the semiring plus-second over a boolean matrix, on all threads."""

from __future__ import annotations

import graphblas as gb
import numpy as np

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, Ranked, Work, main, numbered, read_edges, top


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    gb.ss.config["nthreads"] = work.threads
    source, target = read_edges(work)
    with work.phase("renumber"):
        ids, source, target = numbered(source, target)
        count = len(ids)
        matrix = gb.Matrix.from_coo(target, source, True, nrows=count, ncols=count)
        matrix.ss.config["format"] = "by_row"
        edges = matrix.nvals
    with work.phase("solve"):
        degree = matrix.reduce_columnwise(gb.agg.count).new(dtype=float).to_dense(fill_value=0.0)
        share = DAMPING / np.maximum(degree, 1.0)
        dangling = degree == 0
        ranks = np.full(count, 1 / count)
        change, iterations = np.inf, 0
        while change > CHANGE:
            product = gb.semiring.plus_second(matrix @ gb.Vector.from_dense(ranks * share)).new(dtype=float)
            base = (DAMPING * ranks[dangling].sum() + 1 - DAMPING) / count
            following = product.to_dense(fill_value=0.0) + base
            change = float(np.abs(following - ranks).sum())
            ranks = following
            iterations += 1
    with work.phase("join_back"):
        return top(ids, ranks, edges=edges, iterations=iterations)


if __name__ == "__main__":
    main(rank)

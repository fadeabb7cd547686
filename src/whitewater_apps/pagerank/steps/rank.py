"""Step `rank`: the rank of each vertex, by one of three definitions, in float64."""

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import memory
from whitewater.errors import IntegrityError
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import GraphFolder, open_graph
from whitewater.graphs.pagerank.personalization import read_personalization
from whitewater.graphs.pagerank.solving import VECTORS, Problem, Solution, solve
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow

logger = logging.getLogger(__name__)
# How far the sum of ranks may be from 1.
SUM_TOLERANCE = 1e-9


def rank(run: Run[Pagerank], *, graph: Path, ranks: Output, convergence: Output) -> None:
    """Compute PageRank; write the rank of each vertex, ascending by id, and how the ranks converged.

    Raises InputError if the graph or the personalization cannot be used; IntegrityError if the iterations did not
    reach the tolerance, or the ranks are negative, are not finite or do not add up to 1; and ResourceError if there is
    not enough memory.
    """
    folder = open_graph(graph)
    forecast_bytes = _forecast(folder, run.settings)
    solution = _solve(run, folder)
    summary = _summary(solution, folder, run.settings)
    _check(solution, summary, run.settings)
    table = pa.table({"vertex": to_arrow(folder.ids), "rank": to_arrow(solution.ranks)})
    pq.write_table(table, ranks, compression="zstd", use_dictionary=False)
    write_json(convergence, summary)
    run.note(
        **{name: summary[name] for name in ("definition", "vertices", "edges", "start", "iterations", "error_bound")},
        forecast_memory_bytes=forecast_bytes,
    )
    count = len(solution.iterations)
    logger.info("%d iterations, %s vertices, %s edges", count, f"{folder.vertices:,}", f"{folder.edges:,}")


def _forecast(folder: GraphFolder, settings: Pagerank) -> int:
    """Refuse a graph whose vectors do not fit into memory; return their bytes. Edges do not count: they are mapped."""
    vectors = VECTORS + (2 if settings.personalization else 0)
    needed = 8 * vectors * folder.vertices
    memory.forecast(
        needed,
        what=f"PageRank of {folder.vertices:,} vertices and {folder.edges:,} edges",
        remedy="Use a machine with more memory.",
    )
    return needed


def _solve(run: Run[Pagerank], folder: GraphFolder) -> Solution:
    if not folder.vertices:
        return Solution(np.zeros(0), [])
    path = run.settings.personalization
    personalization = read_personalization(Path(path).expanduser(), folder) if path else None
    return solve(run, Problem(folder, run.settings, personalization, run.device, run.threads))


def _summary(solution: Solution, folder: GraphFolder, settings: Pagerank) -> dict[str, Any]:
    last = solution.iterations[-1] if solution.iterations else None
    return {
        "definition": settings.definition,
        "damping": settings.damping,
        "tolerance": settings.tolerance,
        "start": "cugraph" if solution.from_cugraph else "personalization" if settings.personalization else "uniform",
        "iterations": len(solution.iterations),
        "converged": last is None or last.error_bound <= settings.tolerance,
        "error_bound": last and last.error_bound,
        "sum": float(np.sum(solution.ranks)),
        "dangling_vertices": int(np.count_nonzero(folder.out_degree == 0)),
        "vertices": folder.vertices,
        "edges": folder.edges,
        "log": [asdict(iteration) for iteration in solution.iterations],
    }


def _check(solution: Solution, summary: dict[str, Any], settings: Pagerank) -> None:
    ranks, total = solution.ranks, summary["sum"]
    if not np.all(np.isfinite(ranks)) or np.any(ranks < 0):
        raise IntegrityError("ranks are negative or not finite. Report this as a bug.")
    if settings.definition != "gap" and len(ranks) and abs(total - 1) > SUM_TOLERANCE:
        raise IntegrityError(f"the ranks add up to {total!r}, not to 1. Report this as a bug.")
    if settings.definition != "graphalytics" and not summary["converged"]:
        bound = summary["error_bound"]
        raise IntegrityError(
            f"after {len(solution.iterations)} iterations the ranks are within {bound:.3g} of the exact ones, but "
            f"pagerank.rank.tolerance is {settings.tolerance:g}. Set pagerank.rank.maximum_iterations higher, "
            f"or the tolerance above {bound:.3g}."
        )


if __name__ == "__main__":
    main(rank)

"""Step `rank`: compute PageRank in float64, by one of three definitions."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import memory
from whitewater.errors import IntegrityError
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import open_graph
from whitewater.graphs.pagerank.personalization import read_personalization
from whitewater.graphs.pagerank.solving import VECTORS, solve
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import to_arrow

logger = logging.getLogger(__name__)


def rank(run: Run[Pagerank], *, graph: Path, ranks: Output, convergence: Output) -> None:
    """Compute PageRank; write the rank of each vertex, ascending by id, and the convergence.

    Raises InputError if the graph or the personalization is invalid; IntegrityError if the iterations did not reach the
    tolerance, or the ranks are negative, not finite or do not add up to 1; and ResourceError if memory is too small.
    """
    folder = open_graph(graph)
    # Edges are memory-mapped and take no memory.
    needed = 8 * folder.vertices * (VECTORS + 2 * bool(run.settings.personalization))
    memory.forecast(needed, what=f"PageRank of {folder.vertices:,} vertices and {folder.edges:,} edges",
                    remedy="Use a machine with more memory.")  # fmt: skip
    path = run.settings.personalization
    personalization = read_personalization(Path(path).expanduser(), folder) if path and folder.vertices else None
    solution = solve(run, folder, personalization)
    bound = solution.log[-1]["error_bound"] if solution.log else None
    summary = {
        **run.settings.model_dump(include={"definition", "damping", "tolerance"}),
        "start": "cugraph" if solution.from_cugraph else "personalization" if path else "uniform",
        "iterations": len(solution.log),
        "converged": bound is None or bound <= run.settings.tolerance,
        "error_bound": bound,
        "sum": float(np.sum(solution.ranks)),
        "dangling_vertices": int(np.count_nonzero(folder.out_degree == 0)),
        "vertices": folder.vertices,
        "edges": folder.edges,
        "log": solution.log,
    }
    _check(solution.ranks, summary)
    table = pa.table({"vertex": to_arrow(folder.ids), "rank": to_arrow(solution.ranks)})
    pq.write_table(table, ranks, compression="zstd", use_dictionary=False)
    write_json(convergence, summary)
    run.note(
        **{name: summary[name] for name in ("definition", "vertices", "edges", "start", "iterations", "error_bound")},
        forecast_memory_bytes=needed,
    )
    logger.info("%d iterations, %s vertices, %s edges", len(solution.log), f"{folder.vertices:,}", f"{folder.edges:,}")


def _check(ranks: npt.NDArray[np.float64], summary: dict[str, Any]) -> None:
    definition, total, bound = summary["definition"], summary["sum"], summary["error_bound"]
    if not np.all(np.isfinite(ranks)) or np.any(ranks < 0):
        raise IntegrityError("ranks are negative or not finite. Report this as a bug.")
    if definition != "gap" and len(ranks) and abs(total - 1) > 1e-9:
        raise IntegrityError(f"the ranks add up to {total!r}, not to 1. Report this as a bug.")
    if definition != "graphalytics" and not summary["converged"]:
        raise IntegrityError(
            f"after {summary['iterations']} iterations the ranks are within {bound:.3g} of the exact ones, but "
            f"pagerank.rank.tolerance is {summary['tolerance']:g}. Set pagerank.rank.maximum_iterations higher, "
            f"or the tolerance above {bound:.3g}."
        )


if __name__ == "__main__":
    main(rank)

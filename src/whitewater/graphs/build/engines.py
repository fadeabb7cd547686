"""From edges to numbered vertices and merged edges: by kernels of the CPU, or by Dask DataFrame on pandas or cuDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.graphs.build.numbered_edges import NumberedEdges, Rule

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.graphs.edges_folder import EdgesFolder
    from whitewater.graphs.vertex_ids import Ids
    from whitewater.step import Run


def number_edges(
    folder: EdgesFolder, known: Ids, *, rule: Rule, memory_gb: float, run: Run[Any], workers: Workers, spool: Path
) -> NumberedEdges:
    """Give vertices numbers in ascending order of their ids, and merge edges with the same ends.

    By ``rule`` edges with the same ends get the sum of their weights, added up in ascending order, or else the
    maximum; edges without any count 1 each. Both engines give equal bits.

    Parameters
    ----------
    folder
        The edges; where they have no direction, the opposite of each that is not a self-loop is added.
    known
        Ids of vertices that may have no edges, int64, ascending.
    memory_gb
        Memory of the host for edges under way, in GB, 0: half of what is available; what is more goes through files in
        the folder ``spool``. Dask keeps the edges in the memory of its workers.

    Raises ResourceError if there is not enough memory for the vertices, or for the edges of a few targets, or the
    vertices are more than can be numbered: 2**32, by Dask 2**31.
    """
    if run.engine == "dask":
        from whitewater.graphs.build import with_dask

        return with_dask.number_edges(folder, known, rule=rule, run=run, workers=workers)
    from whitewater.graphs.build import with_kernels

    return with_kernels.number_edges(
        folder, known, rule=rule, memory_gb=memory_gb, run=run, workers=workers, spool=spool
    )

"""Step `renumber`: build a graph in compressed sparse rows from edges, in memory or on disk.

Vertices are numbered by ascending id. The result does not depend on the order of edges and files, or on the workers.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from whitewater.engines import memory
from whitewater.errors import ConfigError, InputError
from whitewater.graphs.edges_folder import open_edges
from whitewater.graphs.graph_folder import MergedEdges, write_graph
from whitewater.graphs.vertex_ids import Ids, find_positions
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.pagerank.config import Renumber

logger = logging.getLogger(__name__)
# With fewer edges, processes take longer to start than to do the work.
SMALL = 2 << 20


def renumber(run: Run[Renumber], *, edges: Path, graph: Output, summary: Output) -> None:
    """Write the graph of a folder of edges, and a summary.

    ``summary`` holds the counts of the folder of edges, and: ``rows`` of edges; ``reversed``, edges added for the other
    direction; ``duplicates``, edges merged into others; ``edges`` = rows + reversed - duplicates; ``self_loops`` among
    these; ``vertices``; ``dangling`` (no out-edges); ``isolated`` (no edges); ``minimum_id`` and ``maximum_id``.

    Raises ConfigError if weighted edges are repeated and `renumber.duplicates` is drop; InputError if there are neither
    edges nor vertices; and ResourceError if memory is too small for the vertices or the edges of a few targets, or
    there are more than 2**32 vertices.
    """
    folder = open_edges(edges)
    table = folder.vertices()
    vertex_ids = np.empty(0, np.int64) if table is None else table["vertex"].to_numpy()
    if not folder.edges and not len(vertex_ids):
        raise InputError(f"{edges}: no vertices: there are no edges and no table of vertices. Check the source.")
    graph.mkdir(parents=True, exist_ok=True)
    rule = run.settings.duplicates
    # The forecast does not include the libraries and the workers.
    run.note(memory_before_bytes=memory.peak())
    with (
        TemporaryDirectory(prefix="under-way-", dir=graph) as buffer,
        run.workers(small=folder.edges << (not folder.directed) < SMALL) as workers,
    ):
        if run.engine == "dask":
            from whitewater.graphs.build import with_dask

            numbered = with_dask.number_edges(folder, vertex_ids, rule=rule, run=run, workers=workers)
        else:
            from whitewater.graphs.build import with_kernels

            numbered = with_kernels.number_edges(
                folder,
                vertex_ids,
                rule=rule,
                memory_gb=run.settings.memory_gb,
                run=run,
                workers=workers,
                spool=Path(buffer),
            )
        loops = 0

        def rows() -> Iterator[MergedEdges]:
            nonlocal loops
            for merged in numbered.ranges:
                if merged.repeated is not None and folder.weighted and rule == "drop":
                    source, target = numbered.ids[[*merged.repeated]].tolist()
                    raise ConfigError("pagerank.renumber.duplicates is 'drop', but edges have weights, and there are "
                                      f"several from {source} to {target}: set it to sum or maximum.")  # fmt: skip
                loops += merged.loops
                yield merged

        names = _names(table, numbered.ids) if folder.named else None
        written = write_graph(
            graph, ids=numbered.ids, rows=rows(), weighted=folder.weighted or rule == "sum", names=names
        )
    dangling = written.out_degree == 0
    counts = {
        **folder.counts, "rows": folder.edges, "reversed": numbered.entries - folder.edges,
        "duplicates": numbered.entries - written.edges, "edges": written.edges, "vertices": written.vertices,
        "dangling": int(dangling.sum()), "isolated": int((dangling & (np.diff(written.indptr) == 0)).sum()),
        "minimum_id": int(numbered.ids[0]), "maximum_id": int(numbered.ids[-1]), "self_loops": loops,
    }  # fmt: skip
    write_json(summary, counts)
    run.note(**counts)
    logger.info("%d vertices, %d edges; %d duplicates", written.vertices, written.edges, counts["duplicates"])


def _names(table: pa.Table | None, ids: Ids) -> pa.Array | pa.ChunkedArray | None:
    """Return the name of each id, null where the table has none."""
    if table is None or table.num_rows == len(ids):
        return table and table["name"]
    rows = find_positions(ids, table["vertex"].to_numpy())
    return table["name"].take(pa.array(rows, mask=rows < 0))


if __name__ == "__main__":
    main(renumber)

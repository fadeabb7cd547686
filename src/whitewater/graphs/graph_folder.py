"""A folder of a graph: its in-edges as compressed sparse rows (CSR), in memory-mapped files.

=================== ===================================================================================================
file                what it holds; n vertices, m edges
=================== ===================================================================================================
``graph.json``      format, vertices, edges, weighted, named, index (the type of ``sources``); written last
``ids.npy``         int64 (n,): the id of each vertex, ascending; the number of a vertex is its position here
``indptr.npy``      int64 (n + 1,): the in-edges of vertex v are those from ``indptr[v]`` to before ``indptr[v + 1]``
``sources.npy``     int32 or int64 (m,): the vertex that each edge comes from, ascending within a target
``weights.npy``     float64 (m,), if weighted
``out_degree.npy``  int64 (n,): edges that leave each vertex
``out_weight.npy``  float64 (n,), if weighted: the sum of their weights, added up in ascending order of target
``names.parquet``   name, one row per vertex, if named
=================== ===================================================================================================
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from io import BufferedWriter
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import IntegrityError
from whitewater.io.folder import Format

Index = Literal["int32", "int64"]
Rule = Literal["drop", "sum", "maximum"]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FORMAT = Format("graph.json", 1, "graph", remedy="Run the step renumber again.")
# Minimum edges per range: a smaller range would cost more to hand out than to compute.
RANGE_EDGES = 256 << 10


@dataclass(frozen=True)
class Edges:
    """In-edges of consecutive targets: memory-mapped, in host memory, or on a device."""

    # int64 (targets + 1,): target t has edges ``offsets[t]`` to before ``offsets[t + 1]``, counted from ``offsets[0]``
    offsets: Integers
    sources: npt.NDArray[Any]  # int32 or int64 (edges,): vertex numbers, ascending within a target
    weights: Floats | None = None  # float64 (edges,), or None if all are 1

    @property
    def target_count(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Approximate bytes on a GPU, including the segments that rows are cut into."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.sources.nbytes + weights + 6 * self.offsets.nbytes

    def between(self, start: int, stop: int) -> "Edges":
        first, last = (int(self.offsets[target] - self.offsets[0]) for target in (start, stop))
        weights = None if self.weights is None else self.weights[first:last]
        return Edges(self.offsets[start : stop + 1], self.sources[first:last], weights)

    def ranges(self, *, at_most: int = 64) -> list[tuple[int, int]]:
        """Cut the targets into ranges ``(start, stop)`` with about equally many edges; no target is split."""
        edges = int(self.offsets[-1] - self.offsets[0])
        count = max(1, min(at_most, edges // RANGE_EDGES))
        cuts = np.searchsorted(self.offsets, self.offsets[0] + np.arange(1, count) * edges // count).tolist()
        return list(pairwise(sorted({0, *cuts, self.target_count})))


class MergedEdges(NamedTuple):
    """Unique edges to a range of vertices, ordered by target, then source, on the host."""

    vertices: range
    counts: Integers  # int64 (vertices,): edges of each target
    sources: npt.NDArray[Any]  # int32 or int64 (edges,): numbers of vertices
    weights: Floats | None = None  # float64 (edges,), or None if unweighted
    loops: int = 0
    repeated: tuple[int, int] | None = None  # source and target of the first edge that occurred several times


class NumberedEdges(NamedTuple):
    """Vertices, and the edges between them by number."""

    ids: Integers  # int64 (vertices,), ascending
    entries: int  # edges before merging
    ranges: Iterator[MergedEdges]  # ascending by target; use it before the workers end


class GraphFolder:
    """An open graph folder: its numbers of vertices and edges, and its arrays, memory-mapped; see `Format.array`."""

    def __init__(self, path: Path, *, vertices: int, edges: int, weighted: bool, named: bool, index: Index) -> None:
        def map_array(name: str, size: int, dtype: str) -> npt.NDArray[Any]:
            return np.asarray(FORMAT.array(path / f"{name}.npy", (size,), dtype))

        self.path, self.vertices, self.edges, self.weighted, self.named = path, vertices, edges, weighted, named
        self.ids: Integers = map_array("ids", vertices, "int64")
        self.indptr: Integers = map_array("indptr", vertices + 1, "int64")
        self.sources = map_array("sources", edges, index)
        self.weights: Floats | None = map_array("weights", edges, "float64") if weighted else None
        self.out_degree: Integers = map_array("out_degree", vertices, "int64")
        self.out_weight: Floats | None = map_array("out_weight", vertices, "float64") if weighted else None

    def in_edges(self, *, weighted: bool = True) -> Edges:
        """Return the in-edges of all vertices, mapped; with ``weighted=False``, each counts as 1."""
        return Edges(self.indptr, self.sources, self.weights if weighted else None)

    def names(self) -> pa.ChunkedArray | None:
        """Return the name of each vertex, text (vertices,), or None if unnamed; see `Format.table`."""
        if not self.named:
            return None
        return FORMAT.table(self.path / "names.parquet", ["name"], rows=self.vertices)["name"]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path only: each process maps the arrays itself."""
        return open_graph, (self.path.resolve(),)


def open_graph(path: Path) -> GraphFolder:
    """Open a graph folder. Raises the errors of `Format.read` and `Format.array`."""
    return FORMAT.read(path, GraphFolder)


def write_graph(
    path: Path, *, ids: Integers, rows: Iterable[MergedEdges], weighted: bool, names: pa.ChunkedArray | None = None
) -> GraphFolder:
    """Write a graph folder, with three values per vertex in memory but no edges; open it.

    ``ids``, int64 (vertices,), are unique and ascending; ``rows`` ascend by target. Raises IntegrityError if the number
    of sources is not the sum of the counts.
    """
    path.mkdir(parents=True, exist_ok=True)
    in_degree, out_degree = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    out_weight, edges, index = np.zeros(len(ids) if weighted else 0), 0, index_type(len(ids))
    with ExitStack() as stack:
        dtypes = {"sources": index, "weights": "float64"} if weighted else {"sources": index}
        files = {stack.enter_context((path / f"{name}.npy").open("wb")): dtype for name, dtype in dtypes.items()}
        _write_headers(files, edges)
        for vertices, counts, sources, weights, *_ in rows:
            in_degree[vertices.start : vertices.stop] += counts
            edges += len(sources)
            np.add.at(out_degree, sources, 1)
            if weights is not None:
                np.add.at(out_weight, sources, weights)
            for (file, dtype), values in zip(files.items(), (sources, weights), strict=False):
                file.write(np.ascontiguousarray(values, dtype).data)
        _write_headers(files, edges)
    if edges != in_degree.sum():
        raise IntegrityError(
            f"{path}: {edges} sources are given, but there are {in_degree.sum()} edges. Report this as a bug."
        )
    arrays = {"ids": ids, "indptr": np.concatenate([[0], np.cumsum(in_degree)]), "out_degree": out_degree}
    for name, array in (arrays | ({"out_weight": out_weight} if weighted else {})).items():
        np.save(path / f"{name}.npy", array)
    if names is not None:
        pq.write_table(pa.table({"name": names}), path / "names.parquet", compression="zstd")
    FORMAT.write(path, {"vertices": len(ids), "edges": edges, "weighted": weighted, "named": names is not None,
                        "index": index})  # fmt: skip
    return open_graph(path)


def _write_headers(files: Mapping[BufferedWriter, str], edges: int) -> None:
    """Write the headers of the edge arrays, which NumPy pads: the final shape later fits into the same bytes."""
    for file, dtype in files.items():
        file.seek(0)
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (edges,)}
        np.lib.format.write_array_header_1_0(file, header)


def index_type(vertices: int) -> Index:
    """Return the dtype of vertex numbers: int32 where it suffices."""
    return "int32" if vertices <= np.iinfo(np.int32).max else "int64"

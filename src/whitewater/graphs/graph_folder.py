"""A graph in a folder: its in-edges as compressed sparse rows (CSR), in files that are mapped into memory.

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

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import IntegrityError
from whitewater.io.folder import Format

Index = Literal["int32", "int64"]
FORMAT = Format("graph.json", 1, "graph", remedy="Run the step renumber again.")
# Minimum edges per range: a smaller one would cost more to hand out than to work on.
RANGE_EDGES = 256 << 10


@dataclass(frozen=True)
class Edges:
    """In-edges of consecutive targets: memory-mapped, in the host's memory, or on a device."""

    # int64 (targets + 1,): target t has edges ``offsets[t]`` to before ``offsets[t + 1]``, counted from ``offsets[0]``
    offsets: npt.NDArray[np.int64]
    sources: npt.NDArray[Any]  # int32 or int64 (edges,): vertex numbers, ascending within a target
    weights: npt.NDArray[np.float64] | None = None  # float64 (edges,), or None if all are 1

    @property
    def target_count(self) -> int:
        """The number of targets."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """About how many bytes the edges take on a GPU, including the segments that `GpuInEdges` cuts rows into."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.sources.nbytes + weights + 5 * self.offsets.nbytes

    def between(self, start: int, stop: int) -> Edges:
        """Return the edges of the targets from ``start`` to before ``stop``."""
        first, last = (int(self.offsets[target] - self.offsets[0]) for target in (start, stop))
        weights = None if self.weights is None else self.weights[first:last]
        return Edges(self.offsets[start : stop + 1], self.sources[first:last], weights)


@dataclass(frozen=True)
class GraphFolder:
    """An open graph folder: how many vertices and edges, whether edges have weights, and whether vertices have names.

    Its arrays are mapped read-only when they are first accessed; see `Format.array` for what is raised.
    """

    path: Path
    vertices: int
    edges: int
    weighted: bool
    named: bool
    index: Index

    @cached_property
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids, int64 (vertices,), ascending."""
        return self._open("ids", self.vertices, "int64")

    @cached_property
    def indptr(self) -> npt.NDArray[np.int64]:
        """Where the in-edges of each vertex begin, and where those of the last one end, int64 (vertices + 1,)."""
        return self._open("indptr", self.vertices + 1, "int64")

    @cached_property
    def sources(self) -> npt.NDArray[Any]:
        """The numbers of the sources, int32 or int64 (edges,)."""
        return self._open("sources", self.edges, self.index)

    @cached_property
    def weights(self) -> npt.NDArray[np.float64] | None:
        """The weights, float64 (edges,), or None if the graph has none."""
        return self._open("weights", self.edges, "float64") if self.weighted else None

    @cached_property
    def out_degree(self) -> npt.NDArray[np.int64]:
        """The number of out-edges of each vertex, int64 (vertices,)."""
        return self._open("out_degree", self.vertices, "int64")

    @cached_property
    def out_weight(self) -> npt.NDArray[np.float64] | None:
        """The sum of the weights of each vertex's out-edges, float64 (vertices,), or None if the graph has none."""
        return self._open("out_weight", self.vertices, "float64") if self.weighted else None

    def in_edges(self, *, weighted: bool = True) -> Edges:
        """Return the in-edges of all vertices, mapped; with ``weighted=False``, each counts as 1."""
        return Edges(self.indptr, self.sources, self.weights if weighted else None)

    def names(self) -> pa.ChunkedArray | None:
        """Return the name of each vertex, text (vertices,), or None if they have none; see `Format.table`."""
        if not self.named:
            return None
        return FORMAT.table(self.path / "names.parquet", ["name"], rows=self.vertices)["name"]

    def ranges(self, *, at_most: int = 64) -> list[tuple[int, int]]:
        """Cut the vertices into ranges ``(start, stop)`` with about the same number of in-edges.

        They depend on the graph only. A vertex with more in-edges than that makes a larger range of its own.
        """
        count = max(1, min(at_most, self.edges // RANGE_EDGES))
        edge_cuts = np.arange(1, count) * self.edges // count
        vertex_cuts = np.searchsorted(self.indptr, edge_cuts).tolist()
        return list(pairwise(sorted({0, *vertex_cuts, self.vertices})))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path only: each process maps the arrays itself."""
        return open_graph, (self.path.resolve(),)

    def _open(self, name: str, size: int, dtype: str) -> npt.NDArray[Any]:
        return np.asarray(FORMAT.array(self.path / f"{name}.npy", (size,), dtype))


def open_graph(path: Path) -> GraphFolder:
    """Open a graph folder. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, GraphFolder)


class GraphWriter:
    """Writes a graph folder: the vertices first, then their in-edges in ascending order of target, then the rest.

    It keeps three values per vertex in memory, and no edges. The ids, int64 (vertices,), are unique and ascending.
    """

    def __init__(self, path: Path, *, ids: npt.NDArray[np.int64], weighted: bool) -> None:
        path.mkdir(parents=True, exist_ok=True)
        # In- and out-edges of each vertex written so far, int64 (vertices,), and the total weight of the latter.
        self.in_degree, self.out_degree = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        self._out_weight = np.zeros(len(ids) if weighted else 0)
        self._path, self._weighted, self._index, self._edges = path, weighted, index_type(len(ids)), 0
        self._dtypes = {"sources": self._index, "weights": "float64"} if weighted else {"sources": self._index}
        self._exit_stack = ExitStack()
        np.save(path / "ids.npy", ids)

    def __enter__(self) -> Self:
        self._files = [self._exit_stack.enter_context((self._path / f"{name}.npy").open("wb")) for name in self._dtypes]
        self._write_headers()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit_stack.close()

    def append(
        self, first: int, counts: npt.NDArray[Any], sources: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None
    ) -> None:
        """Write the in-edges of vertices ``first``, ``first`` + 1, ..., after those of all lower vertices.

        ``counts``, integers (some vertices,), are how many each has; those of the last vertex may continue in the next
        call. ``sources``, integers (edges,), are vertex numbers, ascending within a target; ``weights`` are float64
        (edges,).
        """
        self.in_degree[first : first + len(counts)] += counts
        self._edges += len(sources)
        np.add.at(self.out_degree, sources, 1)
        if weights is not None:
            np.add.at(self._out_weight, sources, weights)
        for file, dtype, values in zip(self._files, self._dtypes.values(), (sources, weights), strict=False):
            file.write(np.ascontiguousarray(values, dtype).data)

    def finish(self, *, names: pa.ChunkedArray | pa.Array | None = None) -> GraphFolder:
        """Write the remaining files; `graph.json`, which makes the folder a graph, comes last.

        Raises IntegrityError if there are not as many sources as the counts add up to, or as many names as vertices.
        """
        vertices, edges = len(self.in_degree), int(self.in_degree.sum())
        name_count = vertices if names is None else len(names)
        if edges != self._edges or name_count != vertices:
            raise IntegrityError(
                f"{self._path}: {self._edges} sources and {name_count} names are given, but there are {edges} edges "
                f"and {vertices} vertices. Report this as a bug."
            )
        self._write_headers()
        if self._weighted:
            np.save(self._path / "out_weight.npy", self._out_weight)
        np.save(self._path / "indptr.npy", np.concatenate([[0], np.cumsum(self.in_degree)]))
        np.save(self._path / "out_degree.npy", self.out_degree)
        if names is not None:
            pq.write_table(pa.table({"name": names}), self._path / "names.parquet", compression="zstd")
        self._exit_stack.close()
        graph = GraphFolder(self._path, vertices, self._edges, self._weighted, names is not None, self._index)
        FORMAT.write(self._path, {name: value for name, value in asdict(graph).items() if name != "path"})
        return graph

    def _write_headers(self) -> None:
        """Write the headers of the edge arrays; NumPy pads them, so that they can be rewritten with the final shape."""
        for file, dtype in zip(self._files, self._dtypes.values(), strict=True):
            file.seek(0)
            header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False,
                      "shape": (self._edges,)}  # fmt: skip
            np.lib.format.write_array_header_1_0(file, header)


def index_type(vertices: int) -> Index:
    """Return the dtype of vertex numbers: int32 where it suffices."""
    return "int32" if vertices <= np.iinfo(np.int32).max else "int64"

"""Graphs for tests: their edges as arrays, folders of them, and what LDBC and SNAP publish."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from whitewater.engines import Device
from whitewater.engines.config import Cluster
from whitewater.graphs import edges_folder
from whitewater.graphs.config import Pagerank
from whitewater.graphs.graph_folder import GraphFolder, MergedEdges, write_graph
from whitewater.io.store import read_json
from whitewater.step import Output, Run
from whitewater_apps.pagerank.steps.rank import rank as pagerank


@dataclass(frozen=True)
class Graph:
    """Edges between vertices numbered from 0, each pair at most once."""

    vertices: int
    edges: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None = None
    ids: npt.NDArray[np.int64] | None = None
    names: Sequence[str] | None = None

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """The weights as a dense matrix, a row a source."""
        dense = np.zeros((self.vertices, self.vertices))
        dense[self.edges[:, 0], self.edges[:, 1]] = 1.0 if self.weights is None else self.weights
        return dense

    def write(self, path: Path) -> GraphFolder:
        """Write a folder of the graph."""
        order = np.lexsort((self.edges[:, 0], self.edges[:, 1]))
        ids = np.arange(self.vertices) if self.ids is None else self.ids
        counts = np.bincount(self.edges[:, 1], minlength=self.vertices)
        weights = None if self.weights is None else self.weights[order]
        rows = MergedEdges(range(self.vertices), counts, self.edges[order, 0], weights)
        names = None if self.names is None else pa.array(self.names)
        return write_graph(path, ids=ids, rows=[rows], weighted=self.weights is not None, names=names)


def write_edges(
    folder: Path,
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    directed: bool = True,
    vertices: pa.Table | None = None,
    group_rows: int = edges_folder.GROUP_ROWS,
) -> edges_folder.EdgesFolder:
    """Write edges that are in memory as a folder of one part, and open it."""
    sources, targets = np.asarray(source, np.int64), np.asarray(target, np.int64)
    weights = None if weight is None else np.asarray(weight, np.float64)
    with edges_folder.EdgesWriter(folder, 0, weighted=weight is not None, group_rows=group_rows) as writer:
        writer.add(sources, targets, weights)
    edges_folder.finish_edges(
        folder,
        weighted=weight is not None,
        directed=directed,
        vertices=vertices,
        counts={"read": writer.rows, "edges": writer.rows},
    )
    return edges_folder.open_edges(folder)


def random_graph(
    vertices: int, density: float, *, dangling: float = 0.3, weighted: bool = False, seed: int = 0
) -> Graph:
    """Return a graph with self-loops whose first vertices, by a share, have no out-edges."""
    random = np.random.default_rng(seed)
    chosen = random.random((vertices, vertices)) < density
    chosen[: round(dangling * vertices)] = False
    edges = np.argwhere(chosen)
    return Graph(vertices, edges, random.uniform(0.1, 9, len(edges)) if weighted else None)


def read_adjacency(path: Path, *, directed: bool = True) -> Graph:
    """Read lines of a vertex and those that it has edges to, as LDBC gives them."""
    rows = [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
    return from_pairs([(row[0], target) for row in rows for target in row[1:]], directed=directed)


def from_pairs(pairs: Sequence[tuple[int, int]], *, directed: bool = True) -> Graph:
    """Return the graph of pairs of ids, each once."""
    every = set(pairs) if directed else {*pairs, *((target, source) for source, target in pairs)}
    found = np.array(sorted(every), np.int64)
    ids, numbers = np.unique(found, return_inverse=True)
    return Graph(len(ids), numbers.reshape(found.shape), ids=ids)


def read_vertex_values(path: Path) -> "pd.Series[Any]":
    """Read lines of a vertex and its value."""
    return pd.read_csv(path, sep=r"\s+", header=None, index_col=0)[1].sort_index()


@dataclass(frozen=True)
class Ranked:
    """What the step `pagerank` wrote."""

    ranks: npt.NDArray[np.float64]
    vertices: npt.NDArray[np.int64]
    convergence: Mapping[str, Any]
    facts: Mapping[str, Any]


def rank(
    folder: GraphFolder,
    out: Path,
    *,
    threads: int = 1,
    cluster: Cluster | None = None,
    device: Device | None = None,
    **settings: Any,
) -> Ranked:
    """Run the step `pagerank` on a folder."""
    run = Run(
        "pagerank",
        "pagerank",
        device or Device(),
        Pagerank.model_validate(settings),
        threads=threads,
        cluster_settings=cluster or Cluster(),
    )
    out.mkdir(parents=True, exist_ok=True)
    pagerank(run, graph=folder.path, ranks=Output(out / "ranks.parquet"), convergence=Output(out / "convergence.json"))
    table = pd.read_parquet(out / "ranks.parquet")
    return Ranked(table["rank"].to_numpy(), table["vertex"].to_numpy(), read_json(out / "convergence.json"), run.facts)

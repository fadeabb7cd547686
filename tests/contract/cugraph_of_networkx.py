"""CuPy's sparse matrices by SciPy, and pylibcugraph by NetworkX, with arrays of the strict device."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import networkx as nx
import pandas as pd
from scipy.sparse import csr_array

from tests.contract.device_array import on_device, on_host, record
from whitewater.engines import Array


class Rows:
    """Stands for CuPy's sparse matrix, whose arrays are the device's."""

    def __init__(self, given: Any, shape: Any = None) -> None:
        if shape:
            record("cupyx.scipy.sparse.csr_matrix", 2)
        arrays = [on_host(each, "int32", "int64", "float64") for each in given] if shape else None
        self.matrix = given if arrays is None else csr_array(tuple(arrays), shape=shape)

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.matrix + other.matrix)

    def transpose(self) -> Rows:
        record("cupyx.scipy.sparse.csr_matrix.transpose")
        return Rows(self.matrix.T)

    def tocsr(self) -> Rows:
        record("cupyx.scipy.sparse.csr_matrix.tocsr")
        return Rows(self.matrix.tocsr())

    def __getattr__(self, name: str) -> Array:
        values = getattr(self.matrix, name)
        return on_device(values if name == "data" else values.astype("int32"))


def sg_graph(*, graph_properties: Any, src_or_offset_array: Array, dst_or_index_array: Array, weight_array: Array,
             store_transposed: bool, input_array_format: str, **_: Any) -> Any:  # fmt: skip
    assert store_transposed != graph_properties.is_symmetric
    assert input_array_format == "CSR"
    arrays = (on_host(each, "int32", "float64") for each in (weight_array, dst_or_index_array, src_or_offset_array))
    vertices = len(src_or_offset_array) - 1
    return nx.from_scipy_sparse_array(csr_array(tuple(arrays), shape=(vertices, vertices)), create_using=nx.DiGraph)


def columns(found: dict[int, Any]) -> tuple[Array, Array]:
    """Return the keys and the values as arrays of the device, in an order that is not that of the vertices."""
    table = pd.Series(found).sample(frac=1, random_state=0)
    return on_device(table.index.to_numpy()), on_device(table.to_numpy())


def pagerank(*, graph: Any, personalization_vertices: Array, personalization_values: Array, alpha: float,
             epsilon: float, max_iterations: int, **_: Any) -> Any:  # fmt: skip
    chosen = (on_host(each, "int32", "float64").tolist() for each in (personalization_vertices, personalization_values))
    p = dict(zip(*chosen, strict=True))
    return *columns(nx.pagerank(graph, alpha, p, max_iter=max_iterations, tol=epsilon)), True


def parts(graph: Any, resolution: float) -> tuple[dict[int, int], float]:
    # Of the two directions one; a loop has twice its weight already.
    one_way = nx.Graph()
    one_way.add_nodes_from(graph)
    one_way.add_weighted_edges_from((u, v, w / 2 if u == v else w) for u, v, w in graph.edges(data="weight") if u <= v)
    found = nx.community.louvain_communities(one_way, resolution=resolution, seed=0)
    quality = nx.community.modularity(one_way, found, resolution=resolution)
    return {vertex: number for number, group in enumerate(found) for vertex in group}, quality


def communities(*, graph: Any, resolution: float, **_: Any) -> Any:
    labels, quality = parts(graph, resolution)
    return *columns(labels), quality


def joined(graph: Any) -> dict[int, int]:
    return {v: number for number, group in enumerate(nx.weakly_connected_components(graph)) for v in group}


GRAPH_LIBRARY: dict[str, dict[str, Any]] = {
    "cupyx.scipy.sparse": {"csr_matrix": Rows},
    "pylibcugraph": {
        "ResourceHandle": lambda: None, "GraphProperties": partial(SimpleNamespace), "SGGraph": sg_graph,
        "personalized_pagerank": pagerank, "leiden": communities, "louvain": communities,
        "weakly_connected_components": lambda graph, **_: columns(joined(graph)),
    },
}  # fmt: skip

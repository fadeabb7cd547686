"""Shares pulled along edges: the sparse matrix-vector product of PageRank.

To pull is to add up, for each target, ``weight * shares[source]`` over its in-edges, in float64, without a transposed
copy and without atomic additions. The order of each sum is fixed. On the CPU the edges of a target, ascending by
source, are cut into runs. The edges of a run go to four sums in turn, what is left after the last full four to the
first one; then the four are added pairwise. Runs are added with compensation, so that the error does not grow with the
degree. The bits of the result do not depend on threads, on ranges, or on whether edges are kept in memory.

A copy of the edges kept in memory has renumbered sources: the vertices with the most out-edges first, in groups by
powers of two, each group in the old order; vertices without out-edges have no number (Faldu, Diamond, Grot: A Closer
Look at Lightweight Graph Reordering, IISWC 2019). So the shares that are read most share cache lines; the order of each
sum stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whitewater.engines import Array, Device
from whitewater.graphs.graph_folder import Edges

if TYPE_CHECKING:
    from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges
    from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges


def edges_to_device(device: Device, edges: Edges) -> Edges:
    """Copy edges into the memory of a device; on the CPU they stay memory-mapped."""
    weights = None if edges.weights is None else device.to_device(edges.weights)
    return Edges(device.to_device(edges.offsets), device.to_device(edges.sources), weights)


def kept_bytes(edges: int, vertices: int) -> int:
    """Return how many bytes kept edges take on the CPU, without weights, while their sources are renumbered."""
    return 4 * edges + 40 * vertices


def prepare_in_edges(
    device: Device, edges: Edges, *, out_degree: Array, threads: int, keep: bool
) -> CpuInEdges | GpuInEdges:
    """Prepare in-edges for many calls of ``pull``.

    ``edges`` are on the device; ``out_degree``, int64 (vertices,) on the host, is that of all vertices. On the CPU
    ``keep`` is whether to keep a copy of the edges in memory (see `kept_bytes`); if not, every call reads the mapped
    files from start to end. A GPU always keeps them. The sums are the same either way.
    """
    if device.name == "gpu":
        from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges

        return GpuInEdges(edges)
    from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges

    return CpuInEdges(edges, out_degree=out_degree, threads=threads, keep=keep)

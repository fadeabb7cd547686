"""Shares pulled along edges: the sparse matrix-vector product of PageRank.

To pull is to add up, for each target, ``weight * shares[source]`` over its in-edges, in float64, without a transposed
copy and without atomic additions. The order of each sum is fixed. On the CPU the edges of a target, ascending by
source, are cut into runs. The edges of a run go to four sums in turn, what is left after the last full four to the
first one; then the four are added pairwise. Runs are added with compensation, so that the error does not grow with the
degree. The bits of the result do not depend on threads or on ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whitewater.engines import Device
from whitewater.graphs.graph_folder import Edges

if TYPE_CHECKING:
    from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges
    from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges


def edges_to_device(device: Device, edges: Edges) -> Edges:
    """Copy edges into the memory of a device; on the CPU they stay memory-mapped."""
    weights = None if edges.weights is None else device.to_device(edges.weights)
    return Edges(device.to_device(edges.offsets), device.to_device(edges.sources), weights)


def prepare_in_edges(device: Device, edges: Edges, *, threads: int) -> CpuInEdges | GpuInEdges:
    """Prepare in-edges, which are on the device, for many calls of ``pull``.

    On the CPU every call reads the mapped files from start to end; the system keeps in memory what fits.
    """
    if device.name == "gpu":
        from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges

        return GpuInEdges(edges)
    from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges

    return CpuInEdges(edges, threads=threads)

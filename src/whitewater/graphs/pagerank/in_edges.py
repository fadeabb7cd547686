"""Numbers pulled along edges: the sparse product of PageRank.

To pull is to add up, for each target, ``weight * shares[source]`` over its in-edges, float64, without a transposed copy
and without atomic additions. The order of each sum is fixed: on the CPU four sums take the edges of a run in turn,
ascending by source, and are then added pairwise; what is left after the last whole four goes to the first of them. Runs
of a target are added with a correction, so that the error does not grow with its edges. The order does not depend on
threads, on ranges, or on whether edges are kept in memory, so neither do the bits of the result.

Kept edges number their sources anew: those with the most out-edges first, in groups by powers of two, each in the old
order, and no others (Faldu, Diamond, Grot: A Closer Look at Lightweight Graph Reordering, IISWC 2019). So the values
that are read most share cache lines, while the order of each sum stays what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whitewater.engines import Array, Device
from whitewater.graphs.graph_folder import Edges

if TYPE_CHECKING:
    from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges
    from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges


def edges_on(device: Device, edges: Edges) -> Edges:
    """Return edges in the memory of a device; on the CPU they stay memory-mapped."""
    weights = None if edges.weights is None else device.to_device(edges.weights)
    return Edges(device.to_device(edges.offsets), device.to_device(edges.sources), weights)


def kept_bytes(edges: int, vertices: int) -> int:
    """Return the bytes that kept edges take on the CPU, besides weights, while they are numbered anew."""
    return 4 * edges + 40 * vertices


def hold_in_edges(
    device: Device, edges: Edges, *, out_degree: Array, threads: int, keep: bool
) -> CpuInEdges | GpuInEdges:
    """Return in-edges that numbers are pulled along many times.

    ``edges`` are on the device; ``out_degree``, int64 (vertices,) on the host, is that of all vertices. On the CPU
    ``keep`` says that there is memory for a copy of the edges, see `kept_bytes`; without it they are read where they
    are, in order, each time. A GPU keeps them always. The sums are the same.
    """
    if device.name == "gpu":
        from whitewater.graphs.pagerank.in_edges_gpu import GpuInEdges

        return GpuInEdges(edges)
    from whitewater.graphs.pagerank.in_edges_cpu import CpuInEdges

    return CpuInEdges(edges, out_degree=out_degree, threads=threads, keep=keep)

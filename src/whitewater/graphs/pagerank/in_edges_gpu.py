"""Shares pulled along edges on a GPU; see `whitewater.graphs.pagerank.in_edges`.

Kernels use `cuda` as a global of this module, because that is where Numba's simulator puts its own.
"""

from __future__ import annotations

import numpy as np
from numba import config, cuda

from whitewater.engines import Array
from whitewater.graphs.graph_folder import Edges

# Small grids are intended here: do not warn of them.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
THREADS = 256
# Threads that add up one segment together. They read adjacent edges, and few suffice: most rows of a web are short.
TEAM = 8
# Maximum edges of a segment.
SEGMENT_EDGES = 1024


class GpuInEdges:
    """In-edges in the memory of a GPU.

    Rows are cut into segments, so that many threads share a row with many edges (after Bell and Garland:
    Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009). A team of threads adds
    up each segment, then a team adds up the segments of each row, in a fixed order.
    """

    def __init__(self, edges: Edges) -> None:
        import cupy

        offsets = cupy.asarray(edges.offsets - edges.offsets[0])
        self._sources = cupy.asarray(edges.sources)
        self._weights = cupy.asarray(np.empty(0) if edges.weights is None else edges.weights)
        self._first_segment = cupy.zeros(edges.target_count + 1, np.int64)
        self._first_segment[1:] = cupy.cumsum(-(-(offsets[1:] - offsets[:-1]) // SEGMENT_EDGES))
        segments = cupy.arange(int(self._first_segment[-1]))
        rows = cupy.searchsorted(self._first_segment, segments, side="right") - 1
        starts = offsets[rows] + (segments - self._first_segment[rows]) * SEGMENT_EDGES
        self._segments = cupy.stack([starts, cupy.minimum(starts + SEGMENT_EDGES, offsets[rows + 1])], axis=1)
        self._sums = cupy.empty(len(segments), np.float64)

    def pull(self, shares: Array, out: Array) -> None:
        """Fill ``out`` with the sums."""
        if len(self._sums):
            blocks = -(-len(self._sums) * TEAM // THREADS)
            gpu_add_up[blocks, THREADS](self._segments, self._sources, self._weights, shares, self._sums)
        if len(out):
            gpu_add_segments[-(-len(out) * TEAM // THREADS), THREADS](self._first_segment, self._sums, out)


@cuda.jit
def gpu_add_up(segments: Array, sources: Array, weights: Array, shares: Array, sums: Array) -> None:
    """Add up ``weights * shares[sources]`` over each segment with a team of threads; blocks are of `THREADS` threads.

    ``segments``, int64 (segments, 2), are the first edge of each, and the one after its last; ``weights`` are float64
    (edges,), or (0,) if all are 1. ``sums``, float64 (segments,), is filled.
    """
    team = cuda.shared.array(THREADS, np.float64)
    thread, member = cuda.threadIdx.x, cuda.threadIdx.x % TEAM
    segment = cuda.grid(1) // TEAM
    total = 0.0
    if segment < len(segments):
        for edge in range(segments[segment, 0] + member, segments[segment, 1], TEAM):
            share = shares[sources[edge]]
            total += share if len(weights) == 0 else weights[edge] * share
    team[thread] = total
    cuda.syncthreads()
    if member == 0 and segment < len(segments):
        sums[segment] = team_total(team, thread)


@cuda.jit
def gpu_add_segments(first: Array, sums: Array, out: Array) -> None:
    """Add up the segments of each row with a team of threads; blocks are of `THREADS` threads."""
    team = cuda.shared.array(THREADS, np.float64)
    thread, member = cuda.threadIdx.x, cuda.threadIdx.x % TEAM
    row = cuda.grid(1) // TEAM
    total = 0.0
    if row < len(out):
        for segment in range(first[row] + member, first[row + 1], TEAM):
            total += sums[segment]
    team[thread] = total
    cuda.syncthreads()
    if member == 0 and row < len(out):
        out[row] = team_total(team, thread)


@cuda.jit(device=True)
def team_total(team: Array, thread: int) -> float:
    """Return the sum of the results of a team's members, in their order."""
    total = 0.0
    for member in range(TEAM):
        total += team[thread + member]
    return total

"""The matrix-vector product of `whitewater.graphs.pagerank.in_edges` on a GPU.

`cuda` must be a global of this module: Numba's simulator replaces it there.
"""

from collections.abc import Callable

import numpy as np
from numba import config, cuda

from whitewater.engines import Array
from whitewater.graphs.graph_folder import Edges

# Small grids are intended.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
THREADS = 256
# Threads that add up one segment together. A few suffice, because most rows of a web graph are short.
TEAM = 8
# Maximum edges of a segment.
SEGMENT_EDGES = 1024


def prepare_in_edges(edges: Edges) -> Callable[[Array, Array], None]:
    """Return the function that computes the product with in-edges in GPU memory.

    Rows are cut into segments, so that many threads share a long row (after Bell and Garland: Implementing sparse
    matrix-vector multiplication on throughput-oriented processors, SC 2009). A team of threads adds up each segment,
    then a team adds up the segments of each row, in a fixed order.
    """
    import cupy

    offsets, sources = cupy.asarray(edges.offsets - edges.offsets[0]), cupy.asarray(edges.sources)
    weights = cupy.asarray(np.empty(0) if edges.weights is None else edges.weights)
    first_segment = cupy.zeros(edges.target_count + 1, np.int64)
    first_segment[1:] = cupy.cumsum(-(-(offsets[1:] - offsets[:-1]) // SEGMENT_EDGES))
    count = int(first_segment[-1])
    row = cupy.searchsorted(first_segment, cupy.arange(count), side="right") - 1
    starts = offsets[row] + (cupy.arange(count) - first_segment[row]) * SEGMENT_EDGES
    segments = cupy.stack([starts, cupy.minimum(starts + SEGMENT_EDGES, offsets[row + 1])], axis=1)
    rows, sums = cupy.stack([first_segment[:-1], first_segment[1:]], axis=1), cupy.empty(count, np.float64)

    def pull(shares: Array, out: Array) -> None:
        for stage in ((segments, shares, sources, weights, sums), (rows, sums, sources[:0], weights[:0], out)):
            if threads := len(stage[0]) * TEAM:
                gpu_add_up[-(-threads // THREADS), THREADS](*stage)

    return pull


@cuda.jit
def gpu_add_up(ranges: Array, values: Array, places: Array, weights: Array, sums: Array) -> None:
    """Fill ``sums``, float64 (ranges,), with the sum of ``weights * values[places]`` over each range.

    A team of threads adds up a range; blocks have `THREADS` threads. ``ranges``, int64 (ranges, 2), are start and stop.
    Without ``places`` (length 0) the values are added in order; without ``weights`` all weights are 1.
    """
    team = cuda.shared.array(THREADS, np.float64)
    thread, member = cuda.threadIdx.x, cuda.threadIdx.x % TEAM
    row = cuda.grid(1) // TEAM
    total = 0.0
    if row < len(ranges):
        for place in range(ranges[row, 0] + member, ranges[row, 1], TEAM):
            value = values[place] if len(places) == 0 else values[places[place]]
            total += value if len(weights) == 0 else weights[place] * value
    team[thread] = total
    cuda.syncthreads()
    if member == 0 and row < len(ranges):
        total = 0.0
        for other in range(TEAM):
            total += team[thread + other]
        sums[row] = total

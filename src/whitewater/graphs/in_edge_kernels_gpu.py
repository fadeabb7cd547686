"""Our kernels on graphs for the GPU; see `whitewater.engines.gpu_kernels` for why they are in a module of their own."""

from __future__ import annotations

import numpy as np
from numba import config, cuda

from whitewater.engines import Array

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
THREADS = 256
# Threads that add up a segment together: neighbours read neighbouring edges, and most rows of a web are short.
TEAM = 8
# Edges of a segment at most.
SEGMENT = 1024


@cuda.jit
def gpu_add_up(segments: Array, sources: Array, weights: Array, shares: Array, sums: Array) -> None:
    """Add up ``weights * shares[sources]`` over each segment with a team of threads; blocks are of `THREADS` threads.

    ``segments``, int64 (segments, 2), are the first edge of each, and the one behind its last; no ``weights``, float64
    (0,), are weights of 1. ``sums``, float64 (segments,), is filled.
    """
    team = cuda.shared.array(THREADS, np.float64)
    place, member = cuda.threadIdx.x, cuda.threadIdx.x % TEAM
    segment = cuda.grid(1) // TEAM
    total = 0.0
    if segment < len(segments):
        for edge in range(segments[segment, 0] + member, segments[segment, 1], TEAM):
            share = shares[sources[edge]]
            total += share if len(weights) == 0 else weights[edge] * share
    team[place] = total
    cuda.syncthreads()
    if member == 0 and segment < len(segments):
        sums[segment] = team_total(team, place)


@cuda.jit
def gpu_add_segments(first: Array, sums: Array, out: Array) -> None:
    """Add up the segments of each row with a team of threads; blocks are of `THREADS` threads."""
    team = cuda.shared.array(THREADS, np.float64)
    place, member = cuda.threadIdx.x, cuda.threadIdx.x % TEAM
    row = cuda.grid(1) // TEAM
    total = 0.0
    if row < len(out):
        for segment in range(first[row] + member, first[row + 1], TEAM):
            total += sums[segment]
    team[place] = total
    cuda.syncthreads()
    if member == 0 and row < len(out):
        out[row] = team_total(team, place)


@cuda.jit(device=True)
def team_total(team: Array, place: int) -> float:
    """Return the sum of what the members of a team found, in their order."""
    total = 0.0
    for member in range(TEAM):
        total += team[place + member]
    return total

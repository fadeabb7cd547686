"""Our kernels for the GPU; what a thread does is shared with the kernels for the CPU.

Numba's simulator puts its own `cuda` among the globals of a kernel, so that is where the kernel must find it.
"""

from __future__ import annotations

from numba import config, cuda

from whitewater.engines.device import Array
from whitewater.tables.group_kernels import band_of, bin_of, lower_square, units_of, upper_square

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
# Sums are spread over lanes, so that a thread seldom waits for another one that adds to the same sum.
GPU_LANES = 16


@cuda.jit
def gpu_accumulate(keys: Array, bits: Array, sums: Array, counts: Array) -> None:
    """Do with a thread to each row what `fill_bins` and `accumulate` of `whitewater.tables.group_kernels` do.

    ``keys`` are int32, and ``bits`` float64 by its bits as int64, (rows,). Added to are ``sums``, int64 (bands,
    `GPU_LANES`, groups, 1 or 3), and ``counts``, int64 (groups, 1 or bins, and 1 more), whose last column is of the
    rows that are left out: because of their value, or, under the last group, because their key has no group.
    """
    row = cuda.grid(1)
    if row >= len(keys) or keys[row] < 0:
        return
    key, place = keys[row], bin_of(bits[row])
    if place < 0 or key >= len(counts):
        cuda.atomic.add(counts, (min(key, len(counts) - 1), counts.shape[1] - 1), 1)
        return
    lane, band, value, medians = row % GPU_LANES, band_of(place), units_of(bits[row]), sums.shape[3] > 1
    cuda.atomic.add(sums, (band, lane, key, 0), value)
    if medians:
        cuda.atomic.add(sums, (band, lane, key, 1), upper_square(value))
        cuda.atomic.add(sums, (band, lane, key, 2), lower_square(value))
    cuda.atomic.add(counts, (key, place if medians else 0), 1)


@cuda.jit
def gpu_sum_runs(values: Array, starts: Array, lengths: Array, sums: Array) -> None:
    """Add up, with a thread to each run, its values in their order: float64, int64 (runs,) twice, float64 (runs,)."""
    run = cuda.grid(1)
    if run < len(starts):
        total = 0.0
        for place in range(starts[run], starts[run] + lengths[run]):
            total += values[place]
        sums[run] = total

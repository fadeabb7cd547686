"""Our kernels for the GPU; what a thread does is shared with the kernels for the CPU.

Numba's simulator puts its own `cuda` among the globals of a kernel, so that is where the kernel must find it.
"""

from __future__ import annotations

from numba import config, cuda

from whitewater.engines.device import Array

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False


@cuda.jit
def gpu_sum_runs(values: Array, starts: Array, lengths: Array, sums: Array) -> None:
    """Add up, with a thread to each run, its values in their order: float64, int64 (runs,) twice, float64 (runs,)."""
    run = cuda.grid(1)
    if run < len(starts):
        total = 0.0
        for place in range(starts[run], starts[run] + lengths[run]):
            total += values[place]
        sums[run] = total

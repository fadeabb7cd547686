"""Our kernels for the GPU; what a thread does is shared with the kernels for the CPU.

Numba's simulator puts its own `cuda` among the globals of a kernel, so that is where the kernel must find it.
"""

from __future__ import annotations

from numba import config, cuda

from whitewater.devices.delimited_lines import BLANK, LONG, MALFORMED, PARSED, STATE, is_blank, parse_line
from whitewater.devices.group_kernels import bin_of
from whitewater.devices.protocol import Array

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
# Sums are spread over lanes, so that a thread seldom waits for another one that adds to the same sum.
GPU_LANES = 64


@cuda.jit
def gpu_accumulate(keys: Array, values: Array, bits: Array, sums: Array, histogram: Array) -> None:
    """Do with a thread to each row what `fill_bins` and `accumulate` of `whitewater.devices.group_kernels` do.

    Parameters
    ----------
    keys, values, bits
        int32, float64 and its bits as int64, (rows,).
    sums, histogram
        float64 (`GPU_LANES`, groups, 2) and int64 (groups, bins + 1), added to. The last column of the histogram counts
        the rows that are left out: because of their value, or, under the last group, because their key has no group.
    """
    row = cuda.grid(1)
    if row >= len(keys) or keys[row] < 0:
        return
    key, place = keys[row], bin_of(bits[row])
    if place < 0 or key >= len(histogram):
        cuda.atomic.add(histogram, (min(key, len(histogram) - 1), histogram.shape[1] - 1), 1)
        return
    value = values[row]
    lane = row % GPU_LANES
    cuda.atomic.add(sums, (lane, key, 0), value)
    cuda.atomic.add(sums, (lane, key, 1), value * value)
    cuda.atomic.add(histogram, (key, place), 1)


@cuda.jit
def gpu_parse_lines(data: Array, starts: Array, plan: Array, integers: Array, floats: Array) -> None:
    """Parse with a thread to each line; ``starts``, int64 (lines,), tells where they begin.

    The other arrays are those of `whitewater.devices.delimited_lines.parse_line`. Row `STATE` of ``integers`` becomes
    `BLANK`, `MALFORMED` or `PARSED`.
    """
    line = cuda.grid(1)
    if line >= len(starts):
        return
    if parse_line(data, (starts[line], line), plan, integers, floats) > 0:
        integers[STATE, line] = PARSED
        return
    # A line that is no row has no numbers, and so none with too many digits.
    integers[LONG, line] = 0
    integers[STATE, line] = BLANK if is_blank(data, starts[line]) else MALFORMED

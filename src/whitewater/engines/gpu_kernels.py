"""Our kernels for the GPU; what a thread does is shared with the kernels for the CPU.

Numba's simulator puts its own `cuda` among the globals of a kernel, so that is where the kernel must find it.
"""

from __future__ import annotations

from numba import config, cuda

from whitewater.engines.device import Array
from whitewater.genotypes.pair_kernels import are_correlated, are_correlated_dosages, fill_row
from whitewater.tables.group_kernels import band_of, bin_of, lower_square, units_of, upper_square

# Blocks of few rows are no mistake here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
# Sums are spread over lanes, so that a thread seldom waits for another one that adds to the same sum.
GPU_LANES = 16
# Neighbouring threads read neighbouring bytes: a warp to each variant.
GPU_STRIPS = 32


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
def gpu_expand_packed(codes: Array, table: Array, out: Array) -> None:
    """Do with a thread to each byte what `whitewater.genotypes.kernels.expand_packed` does."""
    byte = cuda.grid(1)
    if byte < codes.size:
        size = codes.shape[1]
        variant, column = byte // size, byte % size
        for place in range(4):
            out[variant, place * size + column] = table[variant, (codes[variant, column] >> (2 * place)) & 3]


@cuda.jit
def gpu_expand_dosages(dosages: Array, table: Array, out: Array) -> None:
    """Do with a thread to each sample what `whitewater.genotypes.kernels.expand_dosages` does."""
    place = cuda.grid(1)
    if place < dosages.size:
        variant, sample = place // dosages.shape[1], place % dosages.shape[1]
        dosage = dosages[variant, sample]
        out[variant, sample] = table[variant, dosage if dosage >= 0 else table.shape[1] - 1]


@cuda.jit
def gpu_count_packed(codes: Array, lanes: Array, counts: Array) -> None:
    """Add to ``counts``, int32 (variants, 4), the genotypes of each code, with `GPU_STRIPS` threads to each variant.

    ``lanes`` are those of `whitewater.genotypes.kernels.lanes_of`.
    """
    thread = cuda.grid(1)
    variant = thread // GPU_STRIPS
    if variant >= len(codes):
        return
    samples, lower, upper, both = 0, 0, 0, 0
    for byte in range(thread % GPU_STRIPS, len(lanes), GPU_STRIPS):
        low, high = codes[variant, byte] & lanes[byte], codes[variant, byte] >> 1 & lanes[byte]
        samples += cuda.popc(lanes[byte])
        lower += cuda.popc(low)
        upper += cuda.popc(high)
        both += cuda.popc(low & high)
    cuda.atomic.add(counts, (variant, 0), samples - lower - upper + both)
    cuda.atomic.add(counts, (variant, 1), lower - both)
    cuda.atomic.add(counts, (variant, 2), upper - both)
    cuda.atomic.add(counts, (variant, 3), both)


@cuda.jit
def gpu_fill_planes(words: Array, planes: Array, sums: Array) -> None:
    """Do with a thread to each variant what `whitewater.genotypes.pair_kernels.fill_row` does."""
    variant = cuda.grid(1)
    if variant < len(words):
        fill_row(words[variant], planes[variant], sums[variant])


@cuda.jit
def gpu_mark_packed(planes: Array, sums: Array, stops: Array, threshold: float, band: Array) -> None:
    """Do with a thread to each pair what `whitewater.genotypes.pair_kernels.mark_packed` does."""
    place = cuda.grid(1)
    if place < band.size:
        first, distance = place // band.shape[1], place % band.shape[1]
        second = first + 1 + distance
        if second < stops[first]:
            band[first, distance] = are_correlated(planes, sums, first, second, threshold)


@cuda.jit
def gpu_mark_dosages(dosages: Array, stops: Array, threshold: float, band: Array) -> None:
    """Do with a thread to each pair what `whitewater.genotypes.pair_kernels.mark_dosages` does."""
    place = cuda.grid(1)
    if place < band.size:
        first, distance = place // band.shape[1], place % band.shape[1]
        second = first + 1 + distance
        if second < stops[first]:
            band[first, distance] = are_correlated_dosages(dosages[first], dosages[second], threshold)


@cuda.jit
def gpu_sum_runs(values: Array, starts: Array, lengths: Array, sums: Array) -> None:
    """Add up, with a thread to each run, its values in their order: float64, int64 (runs,) twice, float64 (runs,)."""
    run = cuda.grid(1)
    if run < len(starts):
        total = 0.0
        for place in range(starts[run], starts[run] + lengths[run]):
            total += values[place]
        sums[run] = total

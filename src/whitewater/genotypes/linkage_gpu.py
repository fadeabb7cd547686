"""The kernels of `whitewater.genotypes.linkage` for the GPU; a thread does what the CPU's loops do.

Numba's simulator puts its own `cuda` among the globals of a kernel, so that is where the kernel must find it.
"""

from __future__ import annotations

import numpy as np
from numba import config, cuda

from whitewater.engines.device import Array
from whitewater.genotypes.linkage_cpu import BYTES_A_PLANE_WORD, MISSING_BYTE, PLANES, are_correlated, fill_row

# Blocks of few rows are intended here.
config.CUDA_LOW_OCCUPANCY_WARNINGS = False
THREADS = 256


def gpu_mark_correlated(codes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Mark the pairs that are correlated, with a thread to each pair."""
    import cupy

    if not band.size:
        return
    variants, size = codes.shape
    words = -(-size // BYTES_A_PLANE_WORD)
    padded = cupy.full((variants, BYTES_A_PLANE_WORD * words), MISSING_BYTE, np.uint8)
    padded[:, :size] = codes
    planes: Array = cupy.empty((variants, PLANES, words), np.uint64)
    gpu_fill_planes[-(-variants // THREADS), THREADS](padded.view(np.uint64), planes)
    gpu_mark_packed[-(-band.size // THREADS), THREADS](planes, cupy.asarray(stops), threshold, band)


@cuda.jit(cache=True)
def gpu_fill_planes(words: Array, planes: Array) -> None:
    """Do with a thread to each variant what `whitewater.genotypes.linkage_cpu.fill_row` does."""
    variant = cuda.grid(1)
    if variant < len(words):
        fill_row(words[variant], planes[variant])


@cuda.jit(cache=True)
def gpu_mark_packed(planes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Do with a thread to each pair what `whitewater.genotypes.linkage_cpu.mark_packed` does."""
    place = cuda.grid(1)
    if place < band.size:
        first, distance = place // band.shape[1], place % band.shape[1]
        second = first + 1 + distance
        if second < stops[first]:
            band[first, distance] = are_correlated(planes[first], planes[second], threshold)

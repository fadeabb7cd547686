"""Pairs of variants whose dosages are correlated: linkage disequilibrium.

The squared correlation of two variants over the samples called in both is that of unphased dosages, as PLINK's
``--indep-pairwise`` has it (https://www.cog-genomics.org/plink/1.9/ld). Packed dosages less 1 are -1, 0 or 1, so that
counts of bits are all their sums. The sums are integers, and one product of floats is compared with another.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from whitewater.engines import Array
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.pair_kernels import (
    BYTES_A_PLANE_WORD,
    MISSING,
    MISSING_BYTE,
    PLANES,
    SUMS,
    fill_planes,
    mark_dosages,
    mark_packed,
)

# A correlation that equals the threshold is not above it, whatever the rounding of its float64: PLINK's tolerance.
_TOLERANCE = 1 + 2.0**-44
_GPU_THREADS = 256


def cpu_correlated_variants(genotypes: Genotypes, stops: Array, threshold: float) -> Array:
    """Return the correlated pairs; see `whitewater.engines.device.Device.correlated_variants`."""
    band = np.zeros((genotypes.variants, _width(genotypes.variants, stops)), np.bool_)
    if genotypes.packed:
        words = -(-genotypes.codes.shape[1] // BYTES_A_PLANE_WORD)
        planes = np.empty((genotypes.variants, PLANES, words), np.uint64)
        sums = _no_calls(genotypes, np)
        fill_planes(genotypes.codes, planes, sums)
        mark_packed(planes, sums, stops, threshold * _TOLERANCE, band)
    else:
        mark_dosages(genotypes.codes, stops, threshold * _TOLERANCE, band)
    return _pairs(*np.nonzero(band))


def gpu_correlated_variants(genotypes: Genotypes, stops: Array, threshold: float) -> Array:
    """Return the correlated pairs, found with a thread to each pair."""
    import cupy

    from whitewater.engines.gpu_kernels import gpu_mark_dosages, gpu_mark_packed

    band = cupy.zeros((genotypes.variants, _width(genotypes.variants, stops)), np.bool_)
    blocks = -(-band.size // _GPU_THREADS)
    if blocks and genotypes.packed:
        planes, sums = _gpu_planes(genotypes)
        gpu_mark_packed[blocks, _GPU_THREADS](planes, sums, cupy.asarray(stops), threshold * _TOLERANCE, band)
    elif blocks:
        gpu_mark_dosages[blocks, _GPU_THREADS](genotypes.codes, cupy.asarray(stops), threshold * _TOLERANCE, band)
    first, distance = cupy.nonzero(band)
    return _pairs(cupy.asnumpy(first), cupy.asnumpy(distance))


def _gpu_planes(genotypes: Genotypes) -> tuple[Array, Array]:
    import cupy

    from whitewater.engines.gpu_kernels import gpu_fill_planes

    variants, size = genotypes.codes.shape
    words = -(-size // BYTES_A_PLANE_WORD)
    padded = cupy.full((variants, BYTES_A_PLANE_WORD * words), MISSING_BYTE, np.uint8)
    padded[:, :size] = genotypes.codes
    planes = cupy.empty((variants, PLANES, words), np.uint64)
    sums = _no_calls(genotypes, cupy)
    gpu_fill_planes[-(-variants // _GPU_THREADS), _GPU_THREADS](padded.view(np.uint64), planes, sums)
    return planes, sums


def _no_calls(genotypes: Genotypes, xp: ModuleType) -> Array:
    """Return the sums of variants without a call."""
    sums: Array = xp.zeros((genotypes.variants, len(SUMS)), np.int64)
    sums[:, MISSING] = genotypes.samples
    return sums


def _width(variants: int, stops: Array) -> int:
    """Return the largest number of variants that one is compared with."""
    if np.any(stops > variants):
        raise ValueError(f"a stop of {stops.max()} is behind the last of {variants} variants")
    return int(np.max(stops - np.arange(1, variants + 1), initial=0))


def _pairs(first: Array, distance: Array) -> Array:
    """Return the pairs of a band, whose column *d* is the variant *d* + 1 behind that of its row."""
    return np.stack([first, first + distance + 1], axis=1).astype(np.int32)

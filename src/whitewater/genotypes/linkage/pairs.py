"""Pairs of variants whose dosages are correlated: linkage disequilibrium.

The squared correlation of two variants over the samples called in both is that of unphased dosages, as PLINK's
``--indep-pairwise`` has it (https://www.cog-genomics.org/plink/1.9/ld). Packed dosages less 1 are -1, 0 or 1, so that
counts of bits are all their sums. The sums are integers, and one product of floats is compared with another.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array, Device
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage.pairs_cpu import BYTES_A_PLANE_WORD, PLANES, fill_planes, mark_dosages, mark_packed

# A correlation that equals the threshold is not above it, whatever the rounding of its float64: PLINK's tolerance.
_TOLERANCE = 1 + 2.0**-44


def correlated_variants(device: Device, genotypes: Genotypes, stops: Array, threshold: float) -> Array:
    """Return the pairs of variants whose squared correlation of dosages is above a threshold.

    Each variant *i* is compared with the variants from *i* + 1 to before ``stops[i]``, over the samples that have a
    call of both. ``stops``, int32 (variants,), and the result, int32 (pairs, 2), ordered, are on the host. All sums
    are integers, so that every device finds the same pairs.
    """
    xp, variants = device.xp, genotypes.variants
    if np.any(stops > variants):
        raise ValueError(f"a stop of {stops.max()} is behind the last of {variants} variants")
    # Column d of the band is the variant d + 1 behind that of its row.
    band = xp.zeros((variants, int(np.max(stops - np.arange(1, variants + 1), initial=0))), np.bool_)
    if device.name == "gpu":
        from whitewater.genotypes.linkage.pairs_gpu import gpu_mark_correlated

        gpu_mark_correlated(genotypes, stops, threshold * _TOLERANCE, band)
    elif genotypes.packed:
        planes = np.empty((variants, PLANES, -(-genotypes.codes.shape[1] // BYTES_A_PLANE_WORD)), np.uint64)
        fill_planes(genotypes.codes, planes)
        mark_packed(planes, stops, threshold * _TOLERANCE, band)
    else:
        mark_dosages(genotypes.codes, stops, threshold * _TOLERANCE, band)
    first, distance = (device.to_host(places) for places in xp.nonzero(band))
    return np.stack([first, first + distance + 1], axis=1).astype(np.int32)

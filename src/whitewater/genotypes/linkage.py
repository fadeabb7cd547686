"""Linkage disequilibrium: find pairs of correlated variants, and choose which variants to keep.

The correlation is that of unphased dosages over the samples called in both variants, as in PLINK's ``--indep-pairwise``
(https://www.cog-genomics.org/plink/1.9/ld). All sums are integers, and only two products of floats are compared, so
every device finds the same pairs.
"""

from types import ModuleType

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.engines.kernel import kernel
from whitewater.genotypes.bit_planes import are_correlated, fill_row
from whitewater.genotypes.genotypes import Genotypes

NONE = -1
# PLINK's tolerance: a correlation equal to the threshold is not above it, whatever float64 rounds it to.
_TOLERANCE = 1 + 2.0**-44
# Bytes of codes per word of a bit plane, which has 64 samples. The last word is padded with missing calls.
_BYTES, MISSING_BYTE = 16, 0xFF
# Variants of int8 dosages per matrix product.
_ROWS = 64


def correlated_variants(device: Device, genotypes: Genotypes, stops: Array, threshold: float) -> Array:
    """Return the pairs of variants whose squared correlation of dosages is above a threshold.

    Variant *i* is compared with the variants in [*i* + 1, ``stops[i]``), over the samples called in both. ``stops``,
    int32 (variants,), and the result, int32 (pairs, 2), sorted, are on the host.
    """
    if np.any(stops > genotypes.variants):
        raise ValueError(f"a stop of {stops.max()} is beyond the {genotypes.variants} variants")
    find = _find_pairs_by_bits if genotypes.packed else _find_pairs_by_products
    return device.to_host(find(device, genotypes.codes, stops, threshold * _TOLERANCE)).astype(np.int32)


def _find_pairs_by_bits(device: Device, codes: Array, stops: Array, threshold: float) -> Array:
    """Count bits: dosages less 1 are -1, 0 or 1."""
    xp, (variants, size) = device.xp, codes.shape
    # Row i, column d of the band: variants i and i + 1 + d.
    band = xp.zeros((variants, int(np.max(stops - np.arange(1, variants + 1), initial=0))), np.bool_)
    words = -(-size // _BYTES)
    padded = xp.full((variants, _BYTES * words), MISSING_BYTE, np.uint8)
    padded[:, :size] = codes
    planes = xp.empty((variants, 3, words), np.uint64)
    if device.name == "gpu":
        from whitewater.genotypes.kernels_gpu import gpu_mark_correlated

        gpu_mark_correlated(padded.view(np.uint64), planes, device.to_device(stops), threshold, band)
    else:
        _mark_correlated(padded.view(np.uint64), planes, stops, threshold, band)
    first, distance = xp.nonzero(band)
    return xp.stack([first, first + distance + 1], axis=1)


@kernel
def _mark_correlated(words: Array, planes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Fill the planes, and set ``band[i, d]`` where variants *i* and *i* + 1 + *d* are correlated."""
    for variant in range(len(words)):
        fill_row(words[variant], planes[variant])
    for first in range(len(planes)):
        for second in range(first + 1, stops[first]):
            band[first, second - first - 1] = are_correlated(planes[first], planes[second], threshold)


def _find_pairs_by_products(device: Device, codes: Array, stops: Array, threshold: float) -> Array:
    """Multiply matrices: float64 holds sums of products of dosages exactly."""
    xp, pairs = device.xp, []
    for start in range(0, max(1, len(codes)), _ROWS):
        reach = stops[start : start + _ROWS]
        end = int(reach.max(initial=start))
        rows, columns = _powers(codes[start : start + _ROWS], xp), _powers(codes[start:end], xp)
        # Sums over the samples called in both: their number, a and b of either variant, and products of these.
        n, a, b, aa, ab, bb = (
            (rows[one] @ columns[other].T).astype(np.int64)
            for one, other in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
        )
        covariance = (n * ab - a * b).astype(np.float64)
        variances = (n * aa - a * a).astype(np.float64) * (n * bb - b * b).astype(np.float64)
        first, second = xp.arange(len(reach))[:, None], xp.arange(end - start)[None, :]
        compared = (first < second) & (second < device.to_device(reach - start)[:, None])
        above = xp.nonzero(compared & (covariance * covariance > threshold * variances))
        pairs.append(xp.stack(above, axis=1) + start)
    return xp.concatenate(pairs)


def _powers(codes: Array, xp: ModuleType) -> list[Array]:
    """Return dosages to the powers of 0, 1 and 2, float64 (variants, samples); missing calls are 0 in all."""
    called = (codes >= 0).astype(np.float64)
    dosages = codes * called
    return [called, dosages, dosages * dosages]


def window_ends(variants: int, *, size: int, step: int) -> npt.NDArray[np.int32]:
    """Return the end of the last window that contains each variant of a contig, int32 (variants,).

    Windows of ``size`` variants start every ``step`` variants, until one reaches the end of the contig.
    """
    last = max(0, -(-(variants - size) // step))
    starts = step * np.minimum(np.arange(variants) // step, last)
    return np.minimum(starts + size, variants).astype(np.int32)


def prune(
    pairs: npt.NDArray[np.int32], *, size: int, step: int, rarer: Array, called: Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Choose which variants of a contig to keep, in the windows of `window_ends`.

    Each window repeats rounds over its remaining variants until none of them are linked. In a round, a variant meets
    the next remaining variant that it is linked with and has not met yet. The one with the lower minor allele frequency
    is removed, or the later one if they are equal. This is what PLINK 1.9 and 2.0 do, as experiments with v1.90b6.26
    and v2.00a3.5 show, with and without ties. In contrast, PLINK uses founders only, treats sex chromosomes by sex, and
    drops variants whose calls are all heterozygous, which here are linked with none.

    ``pairs``, int32 (pairs, 2), sorted, are the linked variants. ``rarer`` and ``called``, int64 (variants,), count the
    copies of the rarer allele and of all alleles. Frequencies are compared as exact fractions.

    Returns which variants are kept, bool (variants,), and for each other one a kept variant that it is linked with,
    int32 (variants,): the one that removed it, if kept, else the first kept one in any window, else -1.
    """
    variants = len(rarer)
    removed_by, first_kept = np.full(variants, NONE, np.int32), np.full(variants, variants, np.int32)
    links = pairs[:, 1].copy(), np.searchsorted(pairs[:, 0], np.arange(variants + 1, dtype=np.int32))
    _prune_windows(size, step, links, (rarer, called), removed_by)
    kept = removed_by == NONE
    for one, other in (pairs.T, pairs.T[::-1]):
        to_kept = ~kept[one] & kept[other]
        np.minimum.at(first_kept, one[to_kept], other[to_kept])
    partners = np.where(kept[removed_by], removed_by, first_kept)
    return kept, np.where(kept | (partners == variants), NONE, partners)


@kernel
def _prune_windows(
    size: int, step: int, links: tuple[Array, Array], alleles: tuple[Array, Array], removed_by: Array
) -> None:
    """Fill ``removed_by``; variant ``i`` is linked with ``seconds[offsets[i] : offsets[i + 1]]``."""
    seconds, offsets = links
    rarer, called = alleles
    next_link = offsets[:-1].copy()
    for start in range(0, max(1, len(removed_by) - size + step), step):
        stop, any_pair = min(start + size, len(removed_by)), True
        while any_pair:
            any_pair = False
            for first in range(start, stop):
                if removed_by[first] >= 0:
                    continue
                link, end = next_link[first], offsets[first + 1]
                while link < end and seconds[link] < stop and removed_by[seconds[link]] >= 0:
                    link += 1
                if link < end and seconds[link] < stop:
                    any_pair = True
                    second = seconds[link]
                    if rarer[first] * called[second] < rarer[second] * called[first]:
                        removed_by[first] = second
                    else:
                        removed_by[second] = first
                    link += 1
                next_link[first] = link


@kernel
def thin(contigs: Array, positions: Array, minimum_distance: int) -> Array:
    """Keep the first variant of each contig, and each that is ``minimum_distance`` bases after the last kept one.

    Returns the kept variant that each other one is too close to, int32 (variants,); -1 for kept ones.
    """
    neighbors, last = np.full(len(positions), NONE, np.int32), 0
    for variant in range(1, len(positions)):
        if contigs[variant] == contigs[last] and positions[variant] - positions[last] < minimum_distance:
            neighbors[variant] = last
        else:
            last = variant
    return neighbors

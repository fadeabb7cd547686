"""Linkage disequilibrium: pairs of variants whose dosages are correlated, and which of linked variants to keep.

The squared correlation of two variants over the samples called in both is that of unphased dosages, as PLINK's
``--indep-pairwise`` has it (https://www.cog-genomics.org/plink/1.9/ld). All sums are integers, and one product of
floats is compared with another, so that every device finds the same pairs. Variants are kept by a greedy choice: in
windows, as PLINK does, or by distance.
"""

from types import ModuleType

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device
from whitewater.engines.kernel import kernel
from whitewater.genotypes.bit_planes import are_correlated, fill_row
from whitewater.genotypes.genotypes import Genotypes

NONE = -1
# A correlation that equals the threshold is not above it, whatever the rounding of its float64: PLINK's tolerance.
_TOLERANCE = 1 + 2.0**-44
# Of codes, for a word of planes of 64 samples; the last one is filled up with missing calls.
_BYTES, MISSING_BYTE = 16, 0xFF
# Variants of dosages of eight bits that are multiplied with others at once.
_ROWS = 64


def correlated_variants(device: Device, genotypes: Genotypes, stops: Array, threshold: float) -> Array:
    """Return the pairs of variants whose squared correlation of dosages is above a threshold.

    Each variant *i* is compared with the variants from *i* + 1 to before ``stops[i]``, over the samples that have a
    call of both. ``stops``, int32 (variants,), and the result, int32 (pairs, 2), ordered, are on the host.
    """
    if np.any(stops > genotypes.variants):
        raise ValueError(f"a stop of {stops.max()} is behind the last of {genotypes.variants} variants")
    find = _pairs_of_bits if genotypes.packed else _pairs_of_dosages
    return device.to_host(find(device, genotypes.codes, stops, threshold * _TOLERANCE)).astype(np.int32)


def _pairs_of_bits(device: Device, codes: Array, stops: Array, threshold: float) -> Array:
    """Find pairs by counts of bits: packed dosages less 1 are -1, 0 or 1."""
    xp, (variants, size) = device.xp, codes.shape
    # Column d of the band is the variant d + 1 behind that of its row.
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


def _pairs_of_dosages(device: Device, codes: Array, stops: Array, threshold: float) -> Array:
    """Find pairs by products of matrices: float64 holds sums of products of dosages exactly."""
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
    """Return dosages to the powers of 0, 1 and 2, float64 (variants, samples), of missing calls all 0."""
    called = (codes >= 0).astype(np.float64)
    dosages = codes * called
    return [called, dosages, dosages * dosages]


def window_ends(variants: int, *, size: int, step: int) -> npt.NDArray[np.int32]:
    """Return the end of the last window that each variant of a contig is in, int32 (variants,).

    Windows of ``size`` variants begin ``step`` apart, up to the first that reaches the end of the contig.
    """
    last = max(0, -(-(variants - size) // step))
    starts = step * np.minimum(np.arange(variants) // step, last)
    return np.minimum(starts + size, variants).astype(np.int32)


def prune(
    pairs: npt.NDArray[np.int32], *, size: int, step: int, rarer: Array, called: Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Choose among the variants of a contig, in windows as of `window_ends`.

    In each window all variants left are gone through in order, again and again until no linked pair is left. In each
    round a variant meets the first linked one behind it that is left and that it has not met yet, and the one whose
    rarer allele has the lower frequency is removed; of equal ones the later. This is what PLINK 1.9 and 2.0 do, as
    experiments with v1.90b6.26 and v2.00a3.5 show, with and without ties. They differ in this: they use founders only,
    treat sex chromosomes by sex, and drop variants whose calls are all heterozygous, which here are linked with none.

    ``pairs``, int32 (pairs, 2), ordered, are linked. ``rarer`` and ``called``, int64 (variants,), are the copies of the
    rarer allele and all called alleles: frequencies are compared as exact fractions.

    Returns which variants are left, bool (variants,), and a kept variant that each other one is linked with, int32
    (variants,). That is the one that it lost to, if that is kept; else the first kept one that it is linked with in any
    window; else -1, as that of a kept one.
    """
    variants = len(rarer)
    lost_to, first_kept = np.full(variants, NONE, np.int32), np.full(variants, variants, np.int32)
    links = pairs[:, 1].copy(), np.searchsorted(pairs[:, 0], np.arange(variants + 1, dtype=np.int32))
    _prune_windows(size, step, links, (rarer, called), lost_to)
    kept = lost_to == NONE
    for one, other in (pairs.T, pairs.T[::-1]):
        to_kept = ~kept[one] & kept[other]
        np.minimum.at(first_kept, one[to_kept], other[to_kept])
    partners = np.where(kept[lost_to], lost_to, first_kept)
    return kept, np.where(kept | (partners == variants), NONE, partners)


@kernel
def _prune_windows(
    size: int, step: int, links: tuple[Array, Array], alleles: tuple[Array, Array], lost_to: Array
) -> None:
    """Fill ``lost_to``; variant ``i`` is linked with ``seconds[offsets[i] : offsets[i + 1]]``."""
    seconds, offsets = links
    rarer, called = alleles
    met = offsets[:-1].copy()
    for start in range(0, max(1, len(lost_to) - size + step), step):
        stop, found = min(start + size, len(lost_to)), True
        while found:
            found = False
            for first in range(start, stop):
                if lost_to[first] >= 0:
                    continue
                at, end = met[first], offsets[first + 1]
                while at < end and seconds[at] < stop and lost_to[seconds[at]] >= 0:
                    at += 1
                if at < end and seconds[at] < stop:
                    found = True
                    second = seconds[at]
                    if rarer[first] * called[second] < rarer[second] * called[first]:
                        lost_to[first] = second
                    else:
                        lost_to[second] = first
                    at += 1
                met[first] = at


@kernel
def thin(contigs: Array, positions: Array, minimum_distance: int) -> Array:
    """Keep each variant that is so many bases behind the last kept one of its contig, or the first there.

    Returns, int32 (variants,), the kept one that each other variant is too close to; -1 for those that are kept.
    """
    too_close_to, last = np.full(len(positions), NONE, np.int32), 0
    for variant in range(1, len(positions)):
        if contigs[variant] == contigs[last] and positions[variant] - positions[last] < minimum_distance:
            too_close_to[variant] = last
        else:
            last = variant
    return too_close_to

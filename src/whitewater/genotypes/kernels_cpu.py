"""The kernels for the CPU, and what a thread of a GPU shares with them.

``planes``, uint64 (variants, 3, words), hold a bit a sample, in any order: whether it has a call, whether its dosage
is not 1, and whether it is 2.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, ones, part, uint64

# The lower bit of each genotype of a word.
LANES = 0x5555555555555555
BYTES_A_WORD = 8


# ---- expanding and counting


@kernel
def expand_packed(codes: Array, table: Array, out: Array) -> None:
    """Fill ``out``, float32 (variants, 4 x bytes), with the entries of ``table``, float32 (variants, 4)."""
    size = codes.shape[1]
    for variant in range(len(codes)):
        homozygous_reference, heterozygous = table[variant, 0], table[variant, 1]
        homozygous_alternate, missing = table[variant, 2], table[variant, 3]
        row = codes[variant]
        for place in range(4):
            plane = out[variant, place * size : (place + 1) * size]
            for byte in range(size):
                code = (row[byte] >> (2 * place)) & 3
                low = heterozygous if code & 1 else homozygous_reference
                high = missing if code & 1 else homozygous_alternate
                plane[byte] = high if code & 2 else low


@kernel
def expand_dosages(dosages: Array, table: Array, out: Array) -> None:
    """Fill ``out``, float32 (variants, samples), with the entries of ``table``, float32 (variants, ploidy + 2)."""
    for variant in range(len(dosages)):
        row, filled, values = dosages[variant], out[variant], table[variant]
        for sample in range(len(row)):
            filled[sample] = values[row[sample]]  # -1, a missing call, is the last one


def count_packed(codes: Array, counting: Array) -> Array:
    """Count the genotypes of each code, int32 (variants, 4), of the samples that are true in bool (samples,)."""
    # The lower bit of each genotype that counts.
    lanes = np.zeros((-(-codes.shape[1] // BYTES_A_WORD) * BYTES_A_WORD, 4), np.uint8)
    lanes.reshape(-1)[: len(counting)] = counting
    packed = lanes[:, 0] | lanes[:, 1] << 2 | lanes[:, 2] << 4 | lanes[:, 3] << 6
    counts = np.empty((len(codes), 4), np.int32)
    _count_lanes(codes, packed.view(np.uint64), int(np.count_nonzero(counting)), counts)
    return counts


@kernel
def _count_lanes(codes: Array, lanes: Array, samples: int, counts: Array) -> None:
    copied = np.zeros(BYTES_A_WORD * len(lanes), np.uint8)
    words = copied.view(np.uint64)
    for variant in range(len(codes)):
        row = codes[variant]
        for byte in range(len(row)):
            copied[byte] = row[byte]
        lower, upper, both = 0, 0, 0
        for word in range(len(words)):
            low = words[word] & lanes[word]
            high = (words[word] >> uint64(1)) & lanes[word]
            lower += ones(low)
            upper += ones(high)
            both += ones(low & high)
        counts[variant, 0] = samples - lower - upper + both
        counts[variant, 1] = lower - both
        counts[variant, 2] = upper - both
        counts[variant, 3] = both


# ---- linkage


@kernel
def fill_planes(words: Array, planes: Array) -> None:
    """Fill planes from words of 32 genotypes, uint64 (variants, 2 x words of a plane)."""
    for variant in range(len(words)):
        fill_row(words[variant], planes[variant])


@part
def fill_row(words: Array, planes: Array) -> None:
    """Fill the planes of a variant."""
    one, lanes = uint64(1), uint64(LANES)
    for word in range(planes.shape[1]):
        first, second = words[2 * word], words[2 * word + 1]
        low = (first & lanes) | (second & lanes) << one
        high = (first >> one & lanes) | (second & ~lanes)
        planes[0, word], planes[1, word], planes[2, word] = ~(low & high), ~low, high & ~low


@kernel
def mark_packed(planes: Array, stops: Array, threshold: float, band: Array) -> None:
    """Set ``band[i, d]`` where variants *i* and *i* + 1 + *d* are correlated."""
    for first in range(len(planes)):
        for second in range(first + 1, stops[first]):
            band[first, second - first - 1] = are_correlated(planes[first], planes[second], threshold)


@part
def are_correlated(first: Array, second: Array, threshold: float) -> bool:
    """Tell whether the squared correlation of the dosages less 1 of two variants is above a threshold."""
    calls, homozygous, opposite = 0, 0, 0
    homozygous_1, alternate_1, homozygous_2, alternate_2 = 0, 0, 0, 0
    for word in range(first.shape[1]):
        called_1, called_2 = first[0, word], second[0, word]
        both = first[1, word] & second[1, word]
        calls += ones(called_1 & called_2)
        homozygous += ones(both)
        opposite += ones(both & (first[2, word] ^ second[2, word]))
        homozygous_1 += ones(first[1, word] & called_2)
        alternate_1 += ones(first[2, word] & called_2)
        homozygous_2 += ones(second[1, word] & called_1)
        alternate_2 += ones(second[2, word] & called_1)
    sum_1, sum_2 = 2 * alternate_1 - homozygous_1, 2 * alternate_2 - homozygous_2
    # A product is 1 where both are homozygous alike, -1 where not alike; all is exact up to the last product.
    covariance = float(calls * (homozygous - 2 * opposite) - sum_1 * sum_2)
    variance_1, variance_2 = float(calls * homozygous_1 - sum_1 * sum_1), float(calls * homozygous_2 - sum_2 * sum_2)
    return covariance * covariance > threshold * (variance_1 * variance_2)


@kernel
def prune_windows(
    windows: tuple[Array, Array], links: tuple[Array, Array], alleles: tuple[Array, Array], lost_to: Array
) -> None:
    """Fill ``lost_to``; variant ``i`` is linked with ``seconds[offsets[i] : offsets[i + 1]]``."""
    starts, stops = windows
    seconds, offsets = links
    rarer, called = alleles
    met = offsets[:-1].copy()
    for window in range(len(starts)):
        found = True
        while found:
            found = False
            for first in range(starts[window], stops[window]):
                if lost_to[first] >= 0:
                    continue
                at, end = met[first], offsets[first + 1]
                while at < end and seconds[at] < stops[window] and lost_to[seconds[at]] >= 0:
                    at += 1
                if at < end and seconds[at] < stops[window]:
                    found = True
                    second = seconds[at]
                    if rarer[first] * called[second] < rarer[second] * called[first]:
                        lost_to[first] = second
                    else:
                        lost_to[second] = first
                    at += 1
                met[first] = at


@kernel
def thin_out(contigs: Array, positions: Array, minimum_distance: int, too_close_to: Array) -> None:
    """Fill ``too_close_to``, -1 before, with the kept variant that each other one is too close to."""
    last = 0
    for variant in range(1, len(positions)):
        if contigs[variant] == contigs[last] and positions[variant] - positions[last] < minimum_distance:
            too_close_to[variant] = last
        else:
            last = variant

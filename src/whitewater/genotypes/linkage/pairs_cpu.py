"""The kernels of `whitewater.genotypes.linkage.pairs` for the CPU, and what a thread of a GPU shares with them.

``planes``, uint64 (variants, 3, words), hold a bit a sample, in any order: whether it has a call, whether its dosage
is not 1, and whether it is 2.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, ones, part, uint64
from whitewater.genotypes.decode_cpu import LANES

PLANES = 3
# A word of 64 bits, one a sample, is made of 64 genotypes of two bits.
BYTES_A_PLANE_WORD = 16
MISSING_BYTE = 0xFF


@kernel
def fill_planes(codes: Array, planes: Array) -> None:
    """Fill planes from two-bit codes, uint8 (variants, bytes)."""
    padded = np.full(BYTES_A_PLANE_WORD * planes.shape[2], MISSING_BYTE, np.uint8)
    words = padded.view(np.uint64)
    for variant in range(len(codes)):
        row = codes[variant]
        for byte in range(len(row)):
            padded[byte] = row[byte]
        fill_row(words, planes[variant])


@part
def fill_row(words: Array, planes: Array) -> None:
    """Fill the planes of a variant from words of 32 genotypes."""
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
    sums_1 = 2 * alternate_1 - homozygous_1, homozygous_1
    sums_2 = 2 * alternate_2 - homozygous_2, homozygous_2
    # A product is 1 where both are homozygous alike, -1 where not alike.
    return is_above(calls, sums_1, sums_2, homozygous - 2 * opposite, threshold)


@kernel
def mark_dosages(dosages: Array, stops: Array, threshold: float, band: Array) -> None:
    """Do what `mark_packed` does with dosages, int8 (variants, samples), -1 where missing."""
    for first in range(len(dosages)):
        for second in range(first + 1, stops[first]):
            band[first, second - first - 1] = are_correlated_dosages(dosages[first], dosages[second], threshold)


@part
def are_correlated_dosages(first: Array, second: Array, threshold: float) -> bool:
    """Tell whether the squared correlation of two rows of dosages is above a threshold."""
    calls, sum_1, squares_1, sum_2, squares_2, products = 0, 0, 0, 0, 0, 0
    for sample in range(len(first)):
        called = (first[sample] | second[sample]) >= 0
        dosage_1 = int64(first[sample]) if called else 0
        dosage_2 = int64(second[sample]) if called else 0
        calls += called
        sum_1 += dosage_1
        sum_2 += dosage_2
        squares_1 += dosage_1 * dosage_1
        squares_2 += dosage_2 * dosage_2
        products += dosage_1 * dosage_2
    return is_above(calls, (sum_1, squares_1), (sum_2, squares_2), products, threshold)


@part
def is_above(calls: int, sums_1: tuple[int, int], sums_2: tuple[int, int], products: int, threshold: float) -> bool:
    """Compare squares that are exact up to the last product; a constant variant has variance 0 and no correlation.

    ``sums_1`` and ``sums_2`` are the sum and the sum of squares of each variant, over the samples called in both.
    """
    covariance = float(calls * products - sums_1[0] * sums_2[0])
    variance_1 = float(calls * sums_1[1] - sums_1[0] * sums_1[0])
    variance_2 = float(calls * sums_2[1] - sums_2[0] * sums_2[0])
    return covariance * covariance > threshold * (variance_1 * variance_2)

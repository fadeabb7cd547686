"""The kernels of `whitewater.genotypes.linkage.pairs` for the CPU, and what a thread of a GPU shares with them.

``planes``, uint64 (variants, 3, words), hold a bit a sample, in any order: whether it has a call, whether its dosage
is not 1, and whether it is 2. ``sums``, int64 (variants, 4), are the numbers of calls and of missing calls, and the
sums of the dosages less 1 and of their squares.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, ones, part, uint64
from whitewater.genotypes.decode_cpu import LANES

PLANES = 3
# Columns of the sums of a variant.
CALLS, MISSING, SUM, SQUARES = SUMS = range(4)
# A word of 64 bits, one a sample, is made of 64 genotypes of two bits.
BYTES_A_PLANE_WORD = 16
MISSING_BYTE = 0xFF


@kernel
def fill_planes(codes: Array, planes: Array, sums: Array) -> None:
    """Fill planes and sums, before as of samples without a call, from two-bit codes, uint8 (variants, bytes)."""
    padded = np.full(BYTES_A_PLANE_WORD * planes.shape[2], MISSING_BYTE, np.uint8)
    words = padded.view(np.uint64)
    for variant in range(len(codes)):
        row = codes[variant]
        for byte in range(len(row)):
            padded[byte] = row[byte]
        fill_row(words, planes[variant], sums[variant])


@part
def fill_row(words: Array, planes: Array, sums: Array) -> None:
    """Fill the planes of a variant from words of 32 genotypes, and its sums, before as of samples without a call."""
    one, lanes = uint64(1), uint64(LANES)
    for word in range(planes.shape[1]):
        first, second = words[2 * word], words[2 * word + 1]
        low = (first & lanes) | (second & lanes) << one
        high = (first >> one & lanes) | (second & ~lanes)
        planes[0, word], planes[1, word], planes[2, word] = ~(low & high), ~low, high & ~low
        called, homozygous = ones(planes[0, word]), ones(planes[1, word])
        sums[CALLS] += called
        sums[MISSING] -= called
        sums[SUM] += 2 * ones(planes[2, word]) - homozygous
        sums[SQUARES] += homozygous


@kernel
def mark_packed(planes: Array, sums: Array, stops: Array, threshold: float, band: Array) -> None:
    """Set ``band[i, d]`` where variants *i* and *i* + 1 + *d* are correlated."""
    for first in range(len(planes)):
        for second in range(first + 1, stops[first]):
            band[first, second - first - 1] = are_correlated(planes, sums, first, second, threshold)


@part
def are_correlated(planes: Array, sums: Array, first: int, second: int, threshold: float) -> bool:
    """Tell whether the squared correlation of two variants is above a threshold."""
    calls, sum_1, squares_1 = sums[first, CALLS], sums[first, SUM], sums[first, SQUARES]
    sum_2, squares_2 = sums[second, SUM], sums[second, SQUARES]
    if sums[first, MISSING] > 0 or sums[second, MISSING] > 0:
        calls, sum_1, squares_1, sum_2, squares_2 = _sums_of_both(planes[first], planes[second])
    products = _products(planes[first], planes[second])
    return is_above(calls, (sum_1, squares_1), (sum_2, squares_2), products, threshold)


@part
def _products(first: Array, second: Array) -> int:
    """Return the sum of the products of dosages less 1: 1 where both are homozygous alike, -1 where not alike."""
    homozygous, opposite = 0, 0
    for word in range(first.shape[1]):
        both = first[1, word] & second[1, word]
        homozygous += ones(both)
        opposite += ones(both & (first[2, word] ^ second[2, word]))
    return homozygous - 2 * opposite


@part
def _sums_of_both(first: Array, second: Array) -> tuple[int, int, int, int, int]:
    """Return the calls, and the sum and sum of squares of each variant, over the samples called in both."""
    calls, homozygous_1, alternate_1, homozygous_2, alternate_2 = 0, 0, 0, 0, 0
    for word in range(first.shape[1]):
        calls += ones(first[0, word] & second[0, word])
        homozygous_1 += ones(first[1, word] & second[0, word])
        alternate_1 += ones(first[2, word] & second[0, word])
        homozygous_2 += ones(second[1, word] & first[0, word])
        alternate_2 += ones(second[2, word] & first[0, word])
    return calls, 2 * alternate_1 - homozygous_1, homozygous_1, 2 * alternate_2 - homozygous_2, homozygous_2


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
    """Compare squares that are exact up to the last product; a constant variant has variance 0 and no correlation."""
    covariance = float(calls * products - sums_1[0] * sums_2[0])
    variance_1 = float(calls * sums_1[1] - sums_1[0] * sums_1[0])
    variance_2 = float(calls * sums_2[1] - sums_2[0] * sums_2[0])
    return covariance * covariance > threshold * (variance_1 * variance_2)

"""The kernels that find correlated variants for the CPU, and what a thread of a GPU shares with them.

``planes``, uint64 (variants, 3, words), hold a bit a sample, in any order: whether it has a call, whether its dosage
is not 1, and whether it is 2.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import kernel, ones, part, uint64

# The lower bit of each genotype of a word.
LANES = 0x5555555555555555
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
    sum_1, sum_2 = 2 * alternate_1 - homozygous_1, 2 * alternate_2 - homozygous_2
    # A product is 1 where both are homozygous alike, -1 where not alike; all is exact up to the last product.
    covariance = float(calls * (homozygous - 2 * opposite) - sum_1 * sum_2)
    variance_1, variance_2 = float(calls * homozygous_1 - sum_1 * sum_1), float(calls * homozygous_2 - sum_2 * sum_2)
    return covariance * covariance > threshold * (variance_1 * variance_2)

"""Packed genotypes as planes of bits, and what kernels for CPU and GPU compute with them for `linkage`."""

from whitewater.engines import Array
from whitewater.engines.kernel import ones, part, uint64

# The lower bit of each genotype of a word.
_LANES = 0x5555555555555555


@part
def fill_row(words: Array, planes: Array) -> None:
    """Fill the planes of a variant, uint64 (3, words), from words of 32 genotypes.

    They hold a bit a sample, in any order: whether it has a call, whether its dosage is not 1, and whether it is 2.
    """
    one, lanes = uint64(1), uint64(_LANES)
    for word in range(planes.shape[1]):
        first, second = words[2 * word], words[2 * word + 1]
        low = (first & lanes) | (second & lanes) << one
        high = (first >> one & lanes) | (second & ~lanes)
        planes[0, word], planes[1, word], planes[2, word] = ~(low & high), ~low, high & ~low


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

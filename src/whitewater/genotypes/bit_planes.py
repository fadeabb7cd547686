"""Bit planes of packed genotypes, and correlations from them: device functions of CPU and GPU kernels for `linkage`."""

from whitewater.engines import Array
from whitewater.engines.kernel import ones, part, uint64

# The lower bit of each genotype in a word.
_LOWER_BITS = 0x5555555555555555


@part
def fill_row(words: Array, planes: Array) -> None:
    """Fill the planes of a variant, uint64 (3, words), from words of 32 genotypes.

    They hold a bit per sample, in any order: whether it has a call, whether its dosage is not 1, and whether it is 2.
    """
    one, lower = uint64(1), uint64(_LOWER_BITS)
    for word in range(planes.shape[1]):
        first, second = words[2 * word], words[2 * word + 1]
        low = (first & lower) | (second & lower) << one
        high = (first >> one & lower) | (second & ~lower)
        planes[0, word], planes[1, word], planes[2, word] = ~(low & high), ~low, high & ~low


@part
def are_correlated(first: Array, second: Array, threshold: float) -> bool:
    """Return whether the squared correlation of the dosages of two variants is above a threshold."""
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
    # Dosages less 1 have the product 1 if both are homozygous alike, -1 if for different alleles. All but the last
    # product is exact.
    covariance = float(calls * (homozygous - 2 * opposite) - sum_1 * sum_2)
    variance_1, variance_2 = float(calls * homozygous_1 - sum_1 * sum_1), float(calls * homozygous_2 - sum_2 * sum_2)
    return covariance * covariance > threshold * (variance_1 * variance_2)

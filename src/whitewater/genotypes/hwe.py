"""The exact test of Hardy-Weinberg equilibrium."""

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import kernel, part

# Terms are relative to that of the sample, which is 1: so small ones change no digit of the sum.
NEGLIGIBLE = 1e-20
# Two terms that are equal in exact arithmetic differ by the rounding of a few thousand factors.
TIE = 1 + 1e-9


def hwe_p_values(counts: Array) -> Array:
    """Test each variant: the probability of a number of heterozygotes at most as probable as the one observed.

    ``counts``, integers (variants, 3 or more), are the samples with 0, 1 and 2 copies of the alternate allele. Returns
    float64 (variants,); 1 where there is no call; 0 below about 1e-300.

    The number of heterozygotes is taken given the numbers of both alleles (Wigginton, Cutler and Abecasis 2005, A note
    on exact tests of Hardy-Weinberg equilibrium, equation 1); the p-value is their P_HWE, not the mid-p. The terms are
    summed outwards from the observed one, until they are negligible, so that a variant costs the distance to the
    expected number and some standard deviations, not the number of samples.
    """
    return _p_values(np.ascontiguousarray(counts[:, :3], np.int64))


@kernel
def _p_values(counts: Array) -> Array:
    p_values = np.empty(len(counts))
    for variant in range(len(counts)):
        reference, heterozygous, alternate = counts[variant, 0], counts[variant, 1], counts[variant, 2]
        more_all, more_rare = _sums(reference, heterozygous, alternate, -1.0)
        less_all, less_rare = _sums(reference, heterozygous, alternate, 1.0)
        p_values[variant] = (1.0 + more_rare + less_rare) / (1.0 + more_all + less_all)
    return p_values


@part
def _sums(reference: float, heterozygous: float, alternate: float, step: float) -> tuple[float, float]:
    """Return the sum of the terms with fewer homozygotes (step -1) or more (1), and that of those that are at most 1.

    The terms rise to one peak and fall behind it (their ratio falls, to 0 behind the last), so a small one that falls
    ends the sum.
    """
    term, total, rare = 1.0, 0.0, 0.0
    while True:
        if step < 0:
            ratio = 4.0 * reference * alternate / ((heterozygous + 2.0) * (heterozygous + 1.0))
        else:
            ratio = heterozygous * (heterozygous - 1.0) / (4.0 * (reference + 1.0) * (alternate + 1.0))
        if ratio <= 0.0 or (ratio < 1.0 and term * ratio < NEGLIGIBLE):
            return total, rare
        term *= ratio
        total += term
        if term <= TIE:
            rare += term
        reference, alternate, heterozygous = reference + step, alternate + step, heterozygous - 2.0 * step

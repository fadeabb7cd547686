"""The exact test of Hardy-Weinberg equilibrium."""

import numpy as np

from whitewater.engines.device import Array
from whitewater.engines.kernel import kernel, part

# Terms are relative to that of the observed count, which is 1, so smaller ones change no digit of the sum.
NEGLIGIBLE = 1e-20
# Terms that are equal in exact arithmetic may differ by the rounding of a few thousand factors.
TIE = 1 + 1e-9


def hwe_p_values(counts: Array) -> Array:
    """Return the p-value of each variant: of heterozygote counts no more probable than the observed one.

    ``counts``, integers (variants, 3 or more), are the samples with 0, 1 and 2 copies of the alternate allele. Returns
    float64 (variants,): 1 without calls, 0 below about 1e-300.

    The test is conditional on the allele counts (Wigginton, Cutler and Abecasis 2005, A note on exact tests of
    Hardy-Weinberg equilibrium, equation 1). The p-value is their P_HWE, not the mid-p. Terms are summed outward from
    the observed count until they are negligible, so the cost does not grow with the number of samples.
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
    """Return the sum of all terms with fewer homozygotes (step -1) or more (1), and that of the terms at most 1.

    The ratio of successive terms falls, so they have a single peak, and a negligible falling term ends the sum.
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

"""How dosages are centred and scaled, variant by variant.

A dosage g becomes (g - mean) * scale, with mean = ploidy * p and scale = 1 / sqrt(ploidy p (1 - p)): the standard
deviation that a variant of allele frequency p has under Hardy-Weinberg equilibrium, so that each one counts alike
(Patterson, Price and Reich 2006, PLoS Genetics 2:e190). A missing call becomes 0, the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater.config.genomics import Scaling

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]


@dataclass(frozen=True)
class VariantScaling:
    """The numbers that dosages are scaled by, each float64 (variants,).

    ``mean`` is the observed one, 0 without calls; ``scale`` is what is multiplied with, 0 where the variant is
    constant; ``allele_frequency`` is the observed one, NaN without calls.
    """

    mean: Floats
    scale: Floats
    allele_frequency: Floats

    @property
    def varying(self) -> int:
        """The number of variants that are not constant."""
        return int((self.scale > 0).sum())

    def at(self, rows: npt.NDArray[np.intp]) -> VariantScaling:
        """Return those of some variants."""
        return VariantScaling(self.mean[rows], self.scale[rows], self.allele_frequency[rows])


def scaling(counts: Counts, settings: Scaling) -> VariantScaling:
    """Derive mean and scale of each variant from its ``counts``, (variants, ploidy + 2): dosages 0 to ploidy, missing.

    The mean is always the observed one, whatever the convention of p in the scale, so that scaled dosages sum to 0.
    """
    dosages = counts[:, :-1].astype(np.float64)
    ploidy = dosages.shape[1] - 1
    alleles = dosages @ np.arange(ploidy + 1)
    called = ploidy * dosages.sum(axis=1)
    observed = np.divide(alleles, called, out=np.full(len(counts), np.nan), where=called > 0)
    p = (1 + alleles) / (2 + called) if settings.frequency == "patterson" else observed
    varying = (dosages > 0).sum(axis=1) > 1
    variance = ploidy * p * (1 - p) if settings.variance == "binomial" else np.ones(len(counts))
    scale = np.zeros(len(counts))
    scale[varying] = 1 / np.sqrt(variance[varying])
    return VariantScaling(np.nan_to_num(ploidy * observed), scale, observed)


def scaled_dosages(found: VariantScaling, *, ploidy: int) -> npt.NDArray[np.float32]:
    """Return the table that genotypes are looked up in: float32 (variants, ploidy + 2), a missing call 0."""
    table = np.zeros((len(found.mean), ploidy + 2), np.float32)
    table[:, :-1] = (np.arange(ploidy + 1) - found.mean[:, None]) * found.scale[:, None]
    return table


def total_variance(counts: Counts, table: npt.NDArray[np.float32], *, varying: int) -> float:
    """Return the trace of the covariance of the samples: the sum of all its eigenvalues, without reading a genotype."""
    return float(np.einsum("ij,ij,ij->", counts, table, table, dtype=np.float64)) / varying

"""The faults of real call sets, and how often the model makes them.

The shares are believable sizes, not counts of a data set. What misses calls is heterogeneous, as it is in reality:
rates of variants and of samples follow Beta distributions, and a call is missing with the product of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whitewater_apps.genomics.synthetic.chromosome import Chromosome, Genotypes

# Parameters of the Beta distributions: the larger their sum, the more alike the rates are.
VARIANT_CONCENTRATION = 50.0
SAMPLE_CONCENTRATION = 200.0
LEAST_RATE = 1e-9  # so that variants without a missing call can be chosen

Rates = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dirt:
    """Faults by what they hit."""

    multiallelic: float = 0.02  # share of variants that get a second alternate allele
    low_quality: float = 0.03  # share of variants whose filter has failed
    dropout: float = 0.01  # share of variants that lose heterozygotes
    lost_heterozygotes: float = 0.6  # share of their heterozygotes called as homozygotes
    poor_samples: tuple[float, ...] = (0.15, 0.25)  # shares of missing calls of samples of poor quality


DIRT = Dirt()


def merge_neighbors(chromosome: Chromosome, *, share: float, random: np.random.Generator) -> Chromosome:
    """Give a share of the variants a second alternate allele, and return the variants that are left.

    Recurrent mutation makes such sites too, but only few. So the mutation of the next variant is moved here: copies
    that have it, and not the alternate allele of this one, carry allele 2; the next variant is gone. Alleles still
    follow the genealogy. Only variants and neighbors with one alternate allele each are taken, where both alternates
    occur and are different bases.
    """
    alleles, genotypes = chromosome.alleles.copy(), chromosome.genotypes.copy()
    alternates = (alleles[:, 1:] != "").sum(axis=1)
    here, other = genotypes[:-1], alleles[1:, 1]
    second = (here == 0) & (genotypes[1:] > 0)
    fits = (alternates[:-1] == 1) & (alternates[1:] == 1) & second.any(axis=(1, 2)) & (here > 0).any(axis=(1, 2))
    fits &= (other != alleles[:-1, 0]) & (other != alleles[:-1, 1])
    fits &= np.arange(len(fits)) % 2 == 0  # no variant is in two pairs
    wanted = min(round(share * len(alleles)), int(fits.sum()))
    rows = np.sort(random.choice(np.flatnonzero(fits), wanted, replace=False))
    genotypes[rows] += np.int8(2) * second[rows]
    alleles[rows, 2] = other[rows]
    left = np.setdiff1d(np.arange(len(alleles)), rows + 1)
    return Chromosome(chromosome.positions[left], alleles[left], genotypes[left])


def drop_heterozygotes(
    genotypes: Genotypes, *, variants: float, heterozygotes: float, random: np.random.Generator
) -> Genotypes:
    """Return genotypes (variants, samples, 2) in which some variants are out of Hardy-Weinberg equilibrium.

    A share of the variants suffers allelic dropout: a share of their heterozygous calls shows one of its alleles twice.
    """
    count = len(genotypes)
    hit = np.sort(random.choice(count, round(variants * count), replace=False))
    calls = genotypes[hit]
    lost = (calls[..., 0] != calls[..., 1]) & (random.random(calls.shape[:2]) < heterozygotes)
    seen = np.take_along_axis(calls, random.integers(2, size=(*calls.shape[:2], 1)), axis=2)
    result = genotypes.copy()
    result[hit] = np.where(lost[..., np.newaxis], seen, calls)
    return result


def draw_rates(count: int, *, mean: float, concentration: float, random: np.random.Generator) -> Rates:
    """Draw the shares of missing calls of variants or of ordinary samples; all are 0 where the mean is."""
    if mean == 0:
        return np.zeros(count)
    return random.beta(mean * concentration, (1 - mean) * concentration, count)


def sample_rates(count: int, *, mean: float, poor: tuple[float, ...], random: np.random.Generator) -> Rates:
    """Draw the shares of missing calls of samples; ``poor`` are those of a few, unless calls are never missing."""
    rates = draw_rates(count, mean=mean, concentration=SAMPLE_CONCENTRATION, random=random)
    if mean > 0:
        chosen = random.choice(count, min(len(poor), count), replace=False)
        rates[chosen] = poor[: len(chosen)]
    return rates


def low_quality(rates: Rates, *, share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose a share of the variants, preferring those that miss calls: their filter has failed."""
    # The shortest of exponential waits: a weighted sample without replacement (Efraimidis and Spirakis 2006).
    waits = random.exponential(size=len(rates)) / (rates + LEAST_RATE)
    failed = np.zeros(len(rates), bool)
    failed[np.argsort(waits)[: round(share * len(rates))]] = True
    return failed


def miss(
    genotypes: Genotypes, *, variants: Rates, samples: Rates, mean: float, random: np.random.Generator
) -> Genotypes:
    """Return genotypes (variants, samples, 2) without some calls: both alleles are -1 there.

    The probability is the product of the rates of the variant and of the sample over their mean.
    """
    rates = np.outer(variants, samples) / (mean or 1)
    missing = random.random(rates.shape) < rates
    return np.where(missing[..., np.newaxis], np.int8(-1), genotypes)

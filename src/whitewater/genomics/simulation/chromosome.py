"""Chromosomes of unrelated people: ancestry and mutations by msprime (Baumdicker et al. 2022, Genetics 220:iyab229)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.genomics.simulation.demography import ADMIXTURE, american_admixture

if TYPE_CHECKING:
    import tskit

# Crossovers a base and generation, about the human mean.
RECOMBINATION_RATE = 1e-8
# Generations in which each individual has two parents (discrete-time Wright-Fisher) before the coalescent takes over,
# which is exact only where the sample is small against the population: the admixture lies among them.
WRIGHT_FISHER_GENERATIONS = ADMIXTURE + 8
BASES = 4


@dataclass(frozen=True)
class Chromosome:
    """The variants of one chromosome, by position.

    Attributes
    ----------
    positions
        int64 (variants,), 1-based, ascending, all different.
    alleles
        Text (variants, 4): the reference, which is the ancestral base, then alternates; "" behind the last.
    haplotypes
        int8 (variants, people, 2): the number of the allele on each of a person's two copies.
    """

    positions: npt.NDArray[np.int64]
    alleles: npt.NDArray[Any]
    haplotypes: npt.NDArray[np.int8]


def simulate_trees(
    samples: Mapping[str, int], *, length: float, mutation_rate: float, random: np.random.Generator
) -> tskit.TreeSequence:
    """Return the genealogies of one chromosome with their mutations.

    Chromosomes are simulated one by one. That is what being unlinked amounts to here: what two chromosomes of a person
    share through a pulse of admixture halves each generation, and 12 have passed.

    Parameters
    ----------
    samples
        Diploid individuals of each population of the demography, at least one in all.
    length
        Length of the chromosome in bases.
    mutation_rate
        Mutations a base and generation, between any two bases alike (JC69); several may hit one site.
    random
        Equal states give equal trees.
    """
    import msprime

    recent = msprime.DiscreteTimeWrightFisher(duration=WRIGHT_FISHER_GENERATIONS)
    seeds = random.integers(1, 2**31, size=2)
    trees = msprime.sim_ancestry(
        dict(samples),
        demography=american_admixture(),
        sequence_length=round(length),
        recombination_rate=RECOMBINATION_RATE,
        model=[recent, msprime.StandardCoalescent()],
        random_seed=int(seeds[0]),
    )
    return msprime.sim_mutations(trees, rate=mutation_rate, random_seed=int(seeds[1]))


def chromosome_of(trees: tskit.TreeSequence) -> Chromosome:
    """Return the variants of the trees' sites; position 0 of a tree is base 1 of the chromosome."""
    haplotypes = trees.genotype_matrix().astype(np.int8, copy=False)
    alleles = np.full((trees.num_sites, BASES), "", dtype=np.dtypes.StringDType())
    for row, variant in enumerate(trees.variants(samples=[], isolated_as_missing=False)):
        alleles[row, : len(variant.alleles)] = variant.alleles
    return Chromosome(
        positions=trees.sites_position.astype(np.int64) + 1,
        alleles=alleles,
        haplotypes=haplotypes.reshape(trees.num_sites, trees.num_individuals, 2),
    )

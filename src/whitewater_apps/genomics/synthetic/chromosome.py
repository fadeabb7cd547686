"""Chromosomes of unrelated people: ancestry and mutations by msprime (Baumdicker et al. 2022, Genetics 220:iyab229).

The history is that of three continents and of a population that descends from all of them: the model of the simulations
of Browning et al. (2018), "Ancestry-specific recent effective population size in the Americas", PLoS Genetics
14:e1007385, which adds an admixed population to the model of Gravel et al. (2011), "Demographic history and rare allele
sharing among human populations", PNAS 108:11983. stdpopsim lists it as AmericanAdmixture_4B11. Sizes are diploid
individuals, times generations ago, rates a generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import msprime
    import tskit

Genotypes = npt.NDArray[np.int8]

ANCESTRAL_SIZE, AFRICAN_EXPANSION, AFRICAN_SIZE = 7310, 5920, 14474  # the last from the expansion until today
OUT_OF_AFRICA, OUT_OF_AFRICA_SIZE, OUT_OF_AFRICA_MIGRATION = 2040, 1861, 1.5e-4  # migration with Africa
EURASIAN_SPLIT, ADMIXTURE = 920, 12
# Size at the beginning and growth, since the split of Eurasia or the admixture.
GROWN = {
    "EUR": (1032, 0.0038, EURASIAN_SPLIT),
    "ASIA": (554, 0.0048, EURASIAN_SPLIT),
    "ADMIX": (30000, 0.05, ADMIXTURE),
}
MIGRATION = {("AFR", "EUR"): 2.5e-5, ("AFR", "ASIA"): 7.8e-6, ("EUR", "ASIA"): 3.11e-5}
ANCESTRY = {"AFR": 1 / 6, "EUR": 1 / 3, "ASIA": 1 / 2}
# Crossovers a base and generation, about the human mean.
RECOMBINATION_RATE = 1e-8
# Generations in which each individual has two parents (discrete-time Wright-Fisher) before the coalescent takes over,
# which is exact only where the sample is small against the population: the admixture lies among them.
WRIGHT_FISHER_GENERATIONS = ADMIXTURE + 8
BASES = 4


@dataclass(frozen=True)
class Chromosome:
    """The variants of one chromosome, by position."""

    positions: npt.NDArray[np.int64]  # (variants,), 1-based, ascending, all different
    alleles: npt.NDArray[Any]  # text (variants, 4): the reference, the ancestral base, then alternates; "" behind them
    genotypes: Genotypes  # (variants, people, 2): the allele on each of a person's two copies, -1 missing


def american_admixture() -> msprime.Demography:
    """Return the model; its sampled populations are AFR, EUR, ASIA and ADMIX."""
    import msprime

    model = msprime.Demography()
    model.add_population(name="AFR", initial_size=AFRICAN_SIZE)
    for name, (size, growth, generations) in GROWN.items():
        model.add_population(name=name, initial_size=size * exp(growth * generations), growth_rate=growth)
    model.add_population(name="OUT_OF_AFRICA", initial_size=OUT_OF_AFRICA_SIZE)
    model.add_population(name="EXPANDED", initial_size=AFRICAN_SIZE)
    model.add_population(name="ANCESTRAL", initial_size=ANCESTRAL_SIZE)
    for populations, rate in MIGRATION.items():
        model.set_symmetric_migration_rate(populations, rate)
    model.add_admixture(ADMIXTURE, derived="ADMIX", ancestral=list(ANCESTRY), proportions=list(ANCESTRY.values()))
    model.add_population_split(EURASIAN_SPLIT, derived=["EUR", "ASIA"], ancestral="OUT_OF_AFRICA")
    model.add_symmetric_migration_rate_change(EURASIAN_SPLIT, ["AFR", "OUT_OF_AFRICA"], OUT_OF_AFRICA_MIGRATION)
    model.add_population_split(OUT_OF_AFRICA, derived=["AFR", "OUT_OF_AFRICA"], ancestral="EXPANDED")
    model.add_population_split(AFRICAN_EXPANSION, derived=["EXPANDED"], ancestral="ANCESTRAL")
    return model


def simulate_trees(
    samples: Mapping[Any, int], *, length: float, mutation_rate: float, random: np.random.Generator
) -> tskit.TreeSequence:
    """Return the genealogies of one chromosome with their mutations.

    Chromosomes are simulated one by one. That is what being unlinked amounts to here: what two chromosomes of a person
    share through a pulse of admixture halves each generation, and 12 have passed. ``samples`` are diploid individuals
    of each population, at least one in all; any two bases mutate into each other alike (JC69), several times at a site.
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
    genotypes = trees.genotype_matrix().astype(np.int8, copy=False)
    alleles = np.full((trees.num_sites, BASES), "", dtype=np.dtypes.StringDType())
    for row, variant in enumerate(trees.variants(samples=[], isolated_as_missing=False)):
        alleles[row, : len(variant.alleles)] = variant.alleles
    positions = trees.sites_position.astype(np.int64) + 1
    return Chromosome(positions, alleles, genotypes.reshape(trees.num_sites, trees.num_individuals, 2))

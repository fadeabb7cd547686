"""A documented model of genotypes: a published demography, families, and the faults of real call sets.

Chromosomes of unrelated people have ancestry and mutations by msprime (Baumdicker et al. 2022, Genetics 220:iyab229).
The history is that of three continents and of a population that descends from all of them: the model of the simulations
of Browning et al. (2018), "Ancestry-specific recent effective population size in the Americas", PLoS Genetics
14:e1007385, which adds an admixed population to the model of Gravel et al. (2011), "Demographic history and rare allele
sharing among human populations", PNAS 108:11983. stdpopsim lists it as AmericanAdmixture_4B11. Sizes are diploid
individuals, times generations ago, rates a generation.

The shares of faults are believable sizes, not counts of a data set. What misses calls is heterogeneous, as it is in
reality: rates of variants and of samples follow Beta distributions, and a call is missing with the product of the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater_apps.genomics.config import Simulate

if TYPE_CHECKING:
    import msprime
    import tskit

Genotypes = npt.NDArray[np.int8]
Rates = npt.NDArray[np.float64]

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
# Parameters of the Beta distributions: the larger their sum, the more alike the rates are.
VARIANT_CONCENTRATION = 50.0
SAMPLE_CONCENTRATION = 200.0
LEAST_RATE = 1e-9  # so that variants without a missing call can be chosen
POOR_SAMPLES = (0.15, 0.25)  # shares of missing calls of samples of poor quality
DIRT = {
    "multiallelic": 0.02,  # share of variants that get a second alternate allele
    "low_quality": 0.03,  # share of variants whose filter has failed
    "dropout": 0.01,  # share of variants that lose heterozygotes
    "lost_heterozygotes": 0.6,  # share of their heterozygotes called as homozygotes
}
TEXT = np.dtypes.StringDType()


@dataclass(frozen=True)
class Chromosome:
    """The variants of one chromosome, by position."""

    positions: npt.NDArray[np.int64]  # (variants,), 1-based, ascending, all different
    alleles: npt.NDArray[Any]  # text (variants, 4): the reference, the ancestral base, then alternates; "" behind them
    genotypes: Genotypes  # (variants, people, 2): the allele on each of a person's two copies, -1 missing


# And which variants have failed the filter, (variants,).
Called = tuple[Chromosome, npt.NDArray[np.bool_]]


class Person(NamedTuple):
    """A founder, child or duplicate; ``mother``, ``father`` and ``original`` are indices of earlier people, or -1."""

    sample: str
    population: str
    role: str
    mother: int = -1
    father: int = -1
    original: int = -1


def american_admixture() -> "msprime.Demography":
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
) -> "tskit.TreeSequence":
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


def chromosome_of(trees: "tskit.TreeSequence") -> Chromosome:
    """Return the variants of the trees' sites; position 0 of a tree is base 1 of the chromosome."""
    genotypes = trees.genotype_matrix().astype(np.int8, copy=False)
    alleles = np.full((trees.num_sites, len("ACGT")), "", TEXT)
    for row, variant in enumerate(trees.variants(samples=[], isolated_as_missing=False)):
        alleles[row, : len(variant.alleles)] = variant.alleles
    positions = trees.sites_position.astype(np.int64) + 1
    return Chromosome(positions, alleles, genotypes.reshape(trees.num_sites, trees.num_individuals, 2))


def draw_people(samples: Mapping[Any, int], *, families: int, duplicates: int) -> list[Person]:
    """Return all people: the founders of each population, then children, then duplicates.

    A family is two founders of one population and their two children; the populations get families in turn. The
    duplicates are those of the last founders, who are the last to be parents.
    """
    numbered = [(name, n) for name, count in samples.items() for n in range(1, count + 1)]
    founders = [Person(f"{name}_{n:03d}", name, "founder") for name, n in numbered]
    # A father is of an even number, and the mother is the founder before him.
    fathers = sorted((n, place) for place, (_, n) in enumerate(numbered) if n % 2 == 0)
    children = [
        Person(f"family_{family:03d}_child_{child}", founders[father].population, "child", father - 1, father)
        for family, (_, father) in enumerate(fathers[:families], start=1)
        for child in (1, 2)
    ]
    again = [
        Person(f"{founders[place].sample}_duplicate", founders[place].population, "duplicate", original=place)
        for place in range(len(founders) - duplicates, len(founders))
    ]
    return [*founders, *children, *again]


def inherit(
    founders: Chromosome, people: Sequence[Person], *, crossovers: float, length: float, random: np.random.Generator
) -> Genotypes:
    """Return the haplotypes of all people, int8 (variants, people, 2), from those of the founders, who come first.

    A child's first haplotype is a gamete of the mother, the second one of the father. It begins on either copy and
    changes it at each of the ``crossovers``, their mean number; they fall uniformly, their number Poisson: Haldane's
    model (1919), without interference.
    """
    haplotypes = np.empty((len(founders.positions), len(people), 2), np.int8)
    haplotypes[:, : founders.genotypes.shape[1]] = founders.genotypes
    for place, person in enumerate(people):
        if person.role == "duplicate":
            haplotypes[:, place] = haplotypes[:, person.original]
        if person.role == "child":
            for copy, parent in enumerate((person.mother, person.father)):
                at = np.sort(random.uniform(1, length + 1, random.poisson(crossovers)))
                side = (random.integers(2) + np.searchsorted(at, founders.positions)) % 2
                haplotypes[:, place, copy] = haplotypes[np.arange(len(side)), parent, side]
    return haplotypes


def merge_neighbors(chromosome: Chromosome, *, share: float, random: np.random.Generator) -> Chromosome:
    """Give a share of the variants a second alternate allele, and return the variants that are left.

    Recurrent mutation makes such sites too, but only few. So the mutation of the next variant is moved here: copies
    that have it, and not the alternate allele of this one, carry allele 2; the next variant is gone. Alleles still
    follow the genealogy. Only variants and neighbors with one alternate allele each are taken, where both alternates
    occur and are different bases.
    """
    positions, alleles, genotypes = chromosome.positions, chromosome.alleles.copy(), chromosome.genotypes.copy()
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
    return Chromosome(*(np.delete(values, rows + 1, axis=0) for values in (positions, alleles, genotypes)))


def drop_heterozygotes(
    genotypes: Genotypes, *, variants: float, heterozygotes: float, random: np.random.Generator
) -> Genotypes:
    """Return genotypes (variants, samples, 2) in which some variants are out of Hardy-Weinberg equilibrium.

    A share of the variants suffers allelic dropout: a share of their heterozygous calls shows one of its alleles twice.
    """
    count, result = len(genotypes), genotypes.copy()
    hit = np.sort(random.choice(count, round(variants * count), replace=False))
    calls = genotypes[hit]
    lost = (calls[..., 0] != calls[..., 1]) & (random.random(calls.shape[:2]) < heterozygotes)
    seen = np.take_along_axis(calls, random.integers(2, size=(*calls.shape[:2], 1)), axis=2)
    result[hit] = np.where(lost[..., np.newaxis], seen, calls)
    return result


def draw_rates(
    count: int, *, mean: float, concentration: float, random: np.random.Generator, poor: Sequence[float] = ()
) -> Rates:
    """Draw the shares of missing calls of variants or samples, ``poor`` for a few; all are 0 where the mean is."""
    if mean == 0:
        return np.zeros(count)
    rates = random.beta(mean * concentration, (1 - mean) * concentration, count)
    rates[random.choice(count, min(len(poor), count), replace=False)] = poor[:count]
    return rates


def miss(genotypes: Genotypes, *, rates: Rates, random: np.random.Generator) -> Genotypes:
    """Return genotypes (variants, samples, 2) of which each call is missing at its rate: both alleles are -1 there."""
    missing = random.random(rates.shape) < rates
    return np.where(missing[..., np.newaxis], np.int8(-1), genotypes)


def simulate_chromosome(settings: Simulate, people: Sequence[Person], rates: Rates, *, number: int) -> Called:
    """Return the calls of a chromosome, numbered from 1, and which variants have failed the filter.

    ``rates`` are the samples' shares of missing calls; a call is missing with the product of its two over their mean.
    """
    random, mean = np.random.default_rng((settings.seed, number)), settings.missing_fraction
    length, mutation_rate = settings.chromosome_length, settings.mutation_rate
    trees = simulate_trees(settings.samples_by_population, length=length, mutation_rate=mutation_rate, random=random)
    made = merge_neighbors(chromosome_of(trees), share=DIRT["multiallelic"], random=random)
    genotypes = inherit(made, people, crossovers=RECOMBINATION_RATE * length, length=length, random=random)
    of_variants = draw_rates(len(genotypes), mean=mean, concentration=VARIANT_CONCENTRATION, random=random)
    # Variants that miss calls are preferred. The shortest of exponential waits are a weighted sample without
    # replacement (Efraimidis and Spirakis 2006).
    waits = random.exponential(size=len(of_variants)) / (of_variants + LEAST_RATE)
    failed = np.zeros(len(waits), bool)
    failed[np.argsort(waits)[: round(DIRT["low_quality"] * len(waits))]] = True
    seen = drop_heterozygotes(
        genotypes, variants=DIRT["dropout"], heterozygotes=DIRT["lost_heterozygotes"], random=random
    )
    called = miss(seen, rates=np.outer(of_variants, rates) / (mean or 1), random=random)
    return Chromosome(made.positions, made.alleles, called), failed

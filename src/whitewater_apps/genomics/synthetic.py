"""A model of genotypes: a published demography, families, and the problems of real call sets.

msprime simulates ancestry and mutations (Baumdicker et al. 2022, Genetics 220:iyab229) under the model of Browning et
al. (2018), "Ancestry-specific recent effective population size in the Americas", PLoS Genetics 14:e1007385, which is
AmericanAdmixture_4B11 in stdpopsim: three continents (Gravel et al. 2011, PNAS 108:11983) and a population admixed from
all of them. Sizes are diploid individuals, times generations ago, rates per generation.

Rates of problems are plausible, not estimates. Calls are missing with the product of a rate of the variant and one of
the sample, which follow Beta distributions.
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
# Initial size, growth rate and start: the split of Eurasia or the admixture.
GROWTH = {
    "EUR": (1032, 0.0038, EURASIAN_SPLIT),
    "ASIA": (554, 0.0048, EURASIAN_SPLIT),
    "ADMIX": (30000, 0.05, ADMIXTURE),
}
MIGRATION = {("AFR", "EUR"): 2.5e-5, ("AFR", "ASIA"): 7.8e-6, ("EUR", "ASIA"): 3.11e-5}
ANCESTRY = {"AFR": 1 / 6, "EUR": 1 / 3, "ASIA": 1 / 2}
# Crossovers per base and generation, about the human mean.
RECOMBINATION_RATE = 1e-8
# Recent generations with two parents per individual (discrete-time Wright-Fisher), including the admixture. The
# coalescent, used before them, is exact only for samples small against the population.
WRIGHT_FISHER_GENERATIONS = ADMIXTURE + 8
# Parameters of the Beta distributions: the larger their sum, the more alike the rates are.
VARIANT_CONCENTRATION = 50.0
SAMPLE_CONCENTRATION = 200.0
LEAST_RATE = 1e-9  # so that variants without missing calls can be chosen
POOR_SAMPLES = (0.15, 0.25)  # fractions of missing calls of samples of poor quality
PROBLEM_RATES = {
    "multiallelic": 0.02,  # fraction of variants that get a second alternate allele
    "low_quality": 0.03,  # fraction of variants that fail the filter
    "dropout": 0.01,  # fraction of variants that lose heterozygotes
    "lost_heterozygotes": 0.6,  # fraction of their heterozygotes called as homozygotes
}
TEXT = np.dtypes.StringDType()


@dataclass(frozen=True)
class Chromosome:
    """The variants of one chromosome, by position."""

    positions: npt.NDArray[np.int64]  # (variants,), 1-based, ascending, unique
    alleles: npt.NDArray[Any]  # text (variants, 4): the reference, which is ancestral, alternates, and "" as padding
    genotypes: Genotypes  # (variants, people, 2): the allele on each of a person's two copies, -1 missing


# A chromosome, and which of its variants fail the filter, bool (variants,).
Calls = tuple[Chromosome, npt.NDArray[np.bool_]]


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
    for name, (size, growth, generations) in GROWTH.items():
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

    Chromosomes are simulated independently, as unlinked ones are: correlations by a pulse of admixture halve each
    generation, and 12 have passed. ``samples`` are diploid individuals of each population, at least one in all.
    Mutations follow JC69 and may recur at a site.
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


def chromosome_from_trees(trees: "tskit.TreeSequence") -> Chromosome:
    """Return the variants of all sites; position 0 of a tree is base 1 of the chromosome."""
    genotypes = trees.genotype_matrix().astype(np.int8, copy=False)
    alleles = np.full((trees.num_sites, len("ACGT")), "", TEXT)
    for row, variant in enumerate(trees.variants(samples=[], isolated_as_missing=False)):
        alleles[row, : len(variant.alleles)] = variant.alleles
    positions = trees.sites_position.astype(np.int64) + 1
    return Chromosome(positions, alleles, genotypes.reshape(trees.num_sites, trees.num_individuals, 2))


def draw_people(samples: Mapping[Any, int], *, families: int, duplicates: int) -> list[Person]:
    """Return all people: the founders of each population, then children, then duplicates.

    A family is two founders of one population and two children; populations get families in turn. The last founders,
    who are the last to be parents, have duplicates.
    """
    numbers = [(name, n) for name, count in samples.items() for n in range(1, count + 1)]
    founders = [Person(f"{name}_{n:03d}", name, "founder") for name, n in numbers]
    # Fathers have even numbers; the mother is the founder before.
    fathers = sorted((n, index) for index, (_, n) in enumerate(numbers) if n % 2 == 0)
    children = [
        Person(f"family_{family:03d}_child_{child}", founders[father].population, "child", father - 1, father)
        for family, (_, father) in enumerate(fathers[:families], start=1)
        for child in (1, 2)
    ]
    copies = [
        Person(f"{founders[index].sample}_duplicate", founders[index].population, "duplicate", original=index)
        for index in range(len(founders) - duplicates, len(founders))
    ]
    return [*founders, *children, *copies]


def inherit(
    founders: Chromosome, people: Sequence[Person], *, crossovers: float, length: float, random: np.random.Generator
) -> Genotypes:
    """Return the haplotypes of all people, int8 (variants, people, 2); the founders come first.

    A child has a gamete of the mother, then one of the father. A gamete starts on either copy of the parent and
    switches at each crossover. The number of crossovers is Poisson with mean ``crossovers``, their positions uniform:
    Haldane's model (1919), without interference.
    """
    haplotypes = np.empty((len(founders.positions), len(people), 2), np.int8)
    haplotypes[:, : founders.genotypes.shape[1]] = founders.genotypes
    for index, person in enumerate(people):
        if person.role == "duplicate":
            haplotypes[:, index] = haplotypes[:, person.original]
        if person.role == "child":
            for copy, parent in enumerate((person.mother, person.father)):
                switches = np.sort(random.uniform(1, length + 1, random.poisson(crossovers)))
                side = (random.integers(2) + np.searchsorted(switches, founders.positions)) % 2
                haplotypes[:, index, copy] = haplotypes[np.arange(len(side)), parent, side]
    return haplotypes


def merge_neighbors(chromosome: Chromosome, *, fraction: float, random: np.random.Generator) -> Chromosome:
    """Give a fraction of the variants a second alternate allele, and return the remaining variants.

    Recurrent mutation makes few such sites, so the mutation of the next variant is moved here: copies that have it, and
    not the alternate allele of this one, get allele 2, and the next variant is removed. Alleles still follow the
    genealogy. Both variants must have one alternate allele, which occurs and differs from the other.
    """
    positions, alleles, genotypes = chromosome.positions, chromosome.alleles.copy(), chromosome.genotypes.copy()
    alternates = (alleles[:, 1:] != "").sum(axis=1)
    first, other = genotypes[:-1], alleles[1:, 1]
    second = (first == 0) & (genotypes[1:] > 0)
    eligible = (alternates[:-1] == 1) & (alternates[1:] == 1) & second.any(axis=(1, 2)) & (first > 0).any(axis=(1, 2))
    eligible &= (other != alleles[:-1, 0]) & (other != alleles[:-1, 1])
    eligible &= np.arange(len(eligible)) % 2 == 0  # no variant is in two pairs
    count = min(round(fraction * len(alleles)), int(eligible.sum()))
    rows = np.sort(random.choice(np.flatnonzero(eligible), count, replace=False))
    genotypes[rows] += np.int8(2) * second[rows]
    alleles[rows, 2] = other[rows]
    return Chromosome(*(np.delete(values, rows + 1, axis=0) for values in (positions, alleles, genotypes)))


def drop_heterozygotes(
    genotypes: Genotypes, *, variants: float, heterozygotes: float, random: np.random.Generator
) -> Genotypes:
    """Return genotypes (variants, samples, 2) with some variants out of Hardy-Weinberg equilibrium.

    Allelic dropout: ``variants`` is the fraction of variants in which ``heterozygotes``, a fraction of the heterozygous
    calls, show one of their alleles twice.
    """
    count, result = len(genotypes), genotypes.copy()
    rows = np.sort(random.choice(count, round(variants * count), replace=False))
    calls = genotypes[rows]
    drops = (calls[..., 0] != calls[..., 1]) & (random.random(calls.shape[:2]) < heterozygotes)
    alleles = np.take_along_axis(calls, random.integers(2, size=(*calls.shape[:2], 1)), axis=2)
    result[rows] = np.where(drops[..., np.newaxis], alleles, calls)
    return result


def draw_rates(
    count: int, *, mean: float, concentration: float, random: np.random.Generator, poor: Sequence[float] = ()
) -> Rates:
    """Draw fractions of missing calls of variants or samples, ``poor`` for a few; all are 0 if the mean is."""
    if mean == 0:
        return np.zeros(count)
    rates = random.beta(mean * concentration, (1 - mean) * concentration, count)
    rates[random.choice(count, min(len(poor), count), replace=False)] = poor[:count]
    return rates


def remove_calls(genotypes: Genotypes, *, rates: Rates, random: np.random.Generator) -> Genotypes:
    """Return genotypes (variants, samples, 2) in which calls are missing, both alleles -1, at their rates."""
    missing = random.random(rates.shape) < rates
    return np.where(missing[..., np.newaxis], np.int8(-1), genotypes)


def simulate_chromosome(settings: Simulate, people: Sequence[Person], rates: Rates, *, number: int) -> Calls:
    """Return the calls of a chromosome, numbered from 1, and which variants fail the filter.

    ``rates`` are the samples' fractions of missing calls. A call is missing with the product of this and the variant's
    rate, over the mean.
    """
    random, mean = np.random.default_rng((settings.seed, number)), settings.missing_fraction
    length, mutation_rate = settings.chromosome_length, settings.mutation_rate
    trees = simulate_trees(settings.samples_by_population, length=length, mutation_rate=mutation_rate, random=random)
    founders = merge_neighbors(chromosome_from_trees(trees), fraction=PROBLEM_RATES["multiallelic"], random=random)
    genotypes = inherit(founders, people, crossovers=RECOMBINATION_RATE * length, length=length, random=random)
    variant_rates = draw_rates(len(genotypes), mean=mean, concentration=VARIANT_CONCENTRATION, random=random)
    # Prefer variants with missing calls: the shortest exponential waits are a weighted sample without replacement
    # (Efraimidis and Spirakis 2006).
    waits = random.exponential(size=len(variant_rates)) / (variant_rates + LEAST_RATE)
    failed = np.zeros(len(waits), bool)
    failed[np.argsort(waits)[: round(PROBLEM_RATES["low_quality"] * len(waits))]] = True
    dropout, lost = PROBLEM_RATES["dropout"], PROBLEM_RATES["lost_heterozygotes"]
    genotypes = drop_heterozygotes(genotypes, variants=dropout, heterozygotes=lost, random=random)
    calls = remove_calls(genotypes, rates=np.outer(variant_rates, rates) / (mean or 1), random=random)
    return Chromosome(founders.positions, founders.alleles, calls), failed

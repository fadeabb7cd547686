"""The source `generated`: seeded genotypes of people of several continents, as VCF Zarr, and who they are.

The parts of the model are documented where they are, in `whitewater.genomics.simulation`: `demography` (the history of
the populations), `chromosome` (genealogies and mutations), `people` (families), `dirt` (faults and their rates) and
`store` (the layout of the file).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from whitewater.config.genomics import Simulate
from whitewater.errors import ConfigError
from whitewater.genomics.simulation.chromosome import RECOMBINATION_RATE, chromosome_of, simulate_trees
from whitewater.genomics.simulation.dirt import (
    DIRT,
    drop_heterozygotes,
    low_quality,
    merge_neighbours,
    miss,
    sample_rates,
    variant_rates,
)
from whitewater.genomics.simulation.people import Person, draw_people, inherit, write_labels
from whitewater.genomics.simulation.store import VariantBlock, write_vcz
from whitewater.step import Output, Run

logger = logging.getLogger(__name__)


def simulate(run: Run[Simulate], *, store: Output, labels: Output) -> None:
    """Write simulated genotypes as VCF Zarr, and a table of the samples: sample, population, role, mother, father.

    Equal settings give equal bytes, and a chromosome does not depend on how many others there are.

    Raises
    ------
    ConfigError
        If no variant came about.
    """
    settings = run.settings
    people = draw_people(_founders(settings), families=settings.families, duplicates=settings.duplicates)
    variants = write_vcz(
        store,
        _chromosomes(settings, people),
        contigs={str(number): round(settings.chromosome_length) for number in _numbers(settings)},
        samples=[person.name for person in people],
    )
    if not variants:
        raise ConfigError("genomics.simulate: no site has mutated. Raise chromosome_length or mutation_rate.")
    write_labels(people, labels)
    roles = Counter(person.role for person in people)
    run.note(variants=variants, samples=len(people), roles=dict(roles), dirt=asdict(DIRT))
    logger.info("simulated %d variants of %d samples", variants, len(people))


def _chromosomes(settings: Simulate, people: Sequence[Person]) -> Iterator[VariantBlock]:
    rates = sample_rates(
        len(people), mean=settings.missing_fraction, poor=DIRT.poor_samples, random=_random(settings, 0)
    )
    return (simulate_chromosome(settings, people, rates, number=number) for number in _numbers(settings))


def simulate_chromosome(
    settings: Simulate, people: Sequence[Person], rates: npt.NDArray[np.float64], *, number: int
) -> VariantBlock:
    """Return the calls of a chromosome, numbered from 1; ``rates`` are the samples' shares of missing calls."""
    random = _random(settings, number)
    trees = simulate_trees(
        _founders(settings),
        length=settings.chromosome_length,
        mutation_rate=settings.mutation_rate,
        random=random,
    )
    chromosome = merge_neighbours(chromosome_of(trees), share=DIRT.multiallelic, random=random)
    genotypes = inherit(
        chromosome.haplotypes,
        people,
        positions=chromosome.positions,
        recombination_rate=RECOMBINATION_RATE,
        length=settings.chromosome_length,
        random=random,
    )
    called, failed = _call(genotypes, rates, mean=settings.missing_fraction, random=random)
    contig = np.full(len(called), number - 1, np.int32)
    return VariantBlock(contig, chromosome.positions, chromosome.alleles, failed, called)


def _call(
    genotypes: npt.NDArray[np.int8], rates: npt.NDArray[np.float64], *, mean: float, random: np.random.Generator
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """Return genotypes with the faults of calling them, and which variants have failed the filter."""
    of_variants = variant_rates(len(genotypes), mean=mean, random=random)
    failed = low_quality(of_variants, share=DIRT.low_quality, random=random)
    seen = drop_heterozygotes(genotypes, variants=DIRT.dropout, heterozygotes=DIRT.lost_heterozygotes, random=random)
    return miss(seen, variants=of_variants, samples=rates, mean=mean, random=random), failed


def _founders(settings: Simulate) -> dict[str, int]:
    return dict[str, int](settings.samples_by_population.items())


def _numbers(settings: Simulate) -> range:
    return range(1, settings.chromosomes + 1)


def _random(settings: Simulate, number: int) -> np.random.Generator:
    """Return the stream of random numbers of a chromosome; 0 is that of the samples."""
    return np.random.default_rng((settings.seed, number))

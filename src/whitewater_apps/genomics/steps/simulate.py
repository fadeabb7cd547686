"""The source `generated`: seeded genotypes of people of several continents, as VCF Zarr, and who they are.

The parts of the model are documented where they are, in `whitewater_apps.genomics.synthetic`: `chromosome` (the history
of the populations, genealogies and mutations), `people` (families), `dirt` (faults and their rates) and `store` (the
layout of the file).
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from whitewater.errors import ConfigError
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Simulate
from whitewater_apps.genomics.synthetic import dirt
from whitewater_apps.genomics.synthetic.chromosome import RECOMBINATION_RATE, Chromosome, chromosome_of, simulate_trees
from whitewater_apps.genomics.synthetic.dirt import DIRT
from whitewater_apps.genomics.synthetic.people import Person, draw_people, inherit, write_labels
from whitewater_apps.genomics.synthetic.store import write_vcz

logger = logging.getLogger(__name__)


def simulate(run: Run[Simulate], *, store: Output, labels: Output) -> None:
    """Write simulated genotypes as VCF Zarr, and a table of the samples: sample, population, role, mother, father.

    Equal settings give equal bytes, and a chromosome does not depend on how many others there are.

    Raises ConfigError if no variant came about.
    """
    settings = run.settings
    people = draw_people(settings.samples_by_population, families=settings.families, duplicates=settings.duplicates)
    # A stream of random numbers for the samples, 0, and one for each chromosome.
    random = np.random.default_rng((settings.seed, 0))
    rates = dirt.sample_rates(len(people), mean=settings.missing_fraction, poor=DIRT.poor_samples, random=random)
    numbers = range(1, settings.chromosomes + 1)
    variants = write_vcz(
        store,
        (simulate_chromosome(settings, people, rates, number=number) for number in numbers),
        contigs={str(number): round(settings.chromosome_length) for number in numbers},
        samples=[person.name for person in people],
    )
    if not variants:
        raise ConfigError("genomics.simulate: no site has mutated. Raise chromosome_length or mutation_rate.")
    write_labels(people, labels)
    roles = Counter(person.role for person in people)
    run.note(variants=variants, samples=len(people), roles=dict(roles), dirt=asdict(DIRT))
    logger.info("simulated %d variants of %d samples", variants, len(people))


def simulate_chromosome(
    settings: Simulate, people: Sequence[Person], rates: npt.NDArray[np.float64], *, number: int
) -> tuple[Chromosome, npt.NDArray[np.bool_]]:
    """Return the calls of a chromosome, numbered from 1, and which variants have failed the filter.

    ``rates`` are the samples' shares of missing calls.
    """
    random, mean = np.random.default_rng((settings.seed, number)), settings.missing_fraction
    length, mutation_rate = settings.chromosome_length, settings.mutation_rate
    trees = simulate_trees(settings.samples_by_population, length=length, mutation_rate=mutation_rate, random=random)
    made = dirt.merge_neighbors(chromosome_of(trees), share=DIRT.multiallelic, random=random)
    genotypes = inherit(
        made.genotypes, people, positions=made.positions, recombination_rate=RECOMBINATION_RATE, length=length,
        random=random,
    )  # fmt: skip
    of_variants = dirt.draw_rates(len(genotypes), mean=mean, concentration=dirt.VARIANT_CONCENTRATION, random=random)
    failed = dirt.low_quality(of_variants, share=DIRT.low_quality, random=random)
    seen = dirt.drop_heterozygotes(
        genotypes, variants=DIRT.dropout, heterozygotes=DIRT.lost_heterozygotes, random=random
    )
    called = dirt.miss(seen, variants=of_variants, samples=rates, mean=mean, random=random)
    return replace(made, genotypes=called), failed


if __name__ == "__main__":
    main(simulate)

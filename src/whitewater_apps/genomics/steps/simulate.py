"""Step `simulate`, the source `generated`: write people simulated by `whitewater_apps.genomics.synthetic` as VCF Zarr.

VCF Zarr: Czech et al. 2025, GigaScience 14:giaf049. The store has Zarr format 3.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.errors import ConfigError
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics import synthetic
from whitewater_apps.genomics.config import Simulate
from whitewater_apps.genomics.synthetic import PROBLEM_RATES, TEXT, Calls

logger = logging.getLogger(__name__)
VERSION = "0.5"
# Chunks and codecs are those of bio2zarr.
CHUNK_VARIANTS, CHUNK_SAMPLES = 10_000, 1_000
COMPRESSION_LEVEL = 7
FILTERS = {"PASS": "All filters passed", "LOW_QUALITY": "Quality is low"}


def simulate(run: Run[Simulate], *, store: Output, labels: Output) -> None:
    """Write simulated genotypes as VCF Zarr, and a table of the samples: sample, population, role, mother, father.

    Equal settings give equal bytes, and a chromosome does not depend on the number of others.

    Raises ConfigError if there is no variant.
    """
    settings = run.settings
    samples, families, duplicates = settings.samples_by_population, settings.families, settings.duplicates
    people = synthetic.draw_people(samples, families=families, duplicates=duplicates)
    # Random streams: 0 for the samples, then one for each chromosome.
    random, mean = np.random.default_rng((settings.seed, 0)), settings.missing_fraction
    poor, concentration = synthetic.POOR_SAMPLES, synthetic.SAMPLE_CONCENTRATION
    rates = synthetic.draw_rates(len(people), mean=mean, concentration=concentration, poor=poor, random=random)
    numbers = range(1, settings.chromosomes + 1)
    variants = write_vcz(
        store,
        (synthetic.simulate_chromosome(settings, people, rates, number=number) for number in numbers),
        contigs={str(number): round(settings.chromosome_length) for number in numbers},
        samples=[person.sample for person in people],
    )
    if not variants:
        raise ConfigError("genomics.simulate: no site has mutated. Raise chromosome_length or mutation_rate.")
    table = pd.DataFrame(people).drop(columns="original")
    parents = {parent: table[parent].map(table["sample"]) for parent in ("mother", "father")}
    table.assign(**parents).to_csv(labels, index=False)
    roles, problems = Counter(person.role for person in people), {**PROBLEM_RATES, "poor_samples": poor}
    run.note(variants=variants, samples=len(people), roles=dict(roles), dirt=problems)
    logger.info("simulated %d variants of %d samples", variants, len(people))


def write_vcz(path: Path, chromosomes: Iterable[Calls], *, contigs: Mapping[str, int], samples: Sequence[str]) -> int:
    """Write a store, one chromosome in memory at a time; return the number of variants.

    ``contigs`` are names and lengths. Chunks of the fill value are written, too, so that a missing chunk is known to be
    lost. Variants are named contig:position.
    """
    import zarr
    from zarr.codecs import BloscCodec

    root = zarr.open_group(
        path, mode="w-", zarr_format=3, attributes={"vcf_zarr_version": VERSION, "source": "whitewater"}
    )
    largest = {"variants": CHUNK_VARIANTS, "samples": min(len(samples), CHUNK_SAMPLES)}
    arrays: dict[str, zarr.Array[Any]] = {}

    def write(name: str, values: npt.NDArray[Any], *dimensions: str) -> None:
        """Append values to an array, or create it."""
        if name in arrays:
            arrays[name].append(values)
            return
        bits = name.startswith("call_genotype") or values.dtype == np.bool_
        arrays[name] = root.create_array(
            name,
            data=values,
            chunks=tuple(largest.get(name, size) for name, size in zip(dimensions, values.shape, strict=True)),
            compressors=BloscCodec(cname="zstd", clevel=COMPRESSION_LEVEL, shuffle="bitshuffle" if bits else "shuffle"),
            dimension_names=dimensions,
            config={"write_empty_chunks": True},
        )

    names = np.array(list(contigs), TEXT)
    write("sample_id", np.array(samples, TEXT), "samples")
    write("contig_id", names, "contigs")
    write("contig_length", np.array(list(contigs.values()), np.int64), "contigs")
    write("filter_id", np.array(list(FILTERS), TEXT), "filters")
    write("filter_description", np.array(list(FILTERS.values()), TEXT), "filters")
    written = 0
    for number, (chromosome, failed) in enumerate(chromosomes):
        positions, alleles, missing = chromosome.positions, chromosome.alleles, chromosome.genotypes < 0
        write("variant_contig", np.full(len(failed), number, np.int32), "variants")
        write("variant_position", positions.astype(np.int32), "variants")
        write("variant_length", np.strings.str_len(alleles[:, 0]).astype(np.int32), "variants")
        write("variant_id", names[number] + ":" + positions.astype(TEXT), "variants")
        write("variant_id_mask", np.zeros(len(failed), bool), "variants")
        write("variant_allele", alleles, "variants", "alleles")
        write("variant_filter", np.stack([~failed, failed], axis=1), "variants", "filters")
        write("call_genotype", chromosome.genotypes, "variants", "samples", "ploidy")
        write("call_genotype_mask", missing, "variants", "samples", "ploidy")
        write("call_genotype_phased", np.asarray(~missing.any(axis=2)), "variants", "samples")
        written += len(failed)
    return written


if __name__ == "__main__":
    main(simulate)

"""The source `generated`: seeded genotypes of people of several continents, and who they are.

`whitewater_apps.genomics.synthetic` says how they are made. They are written as VCF Zarr (Czech et al. 2025,
GigaScience 14:giaf049), in Zarr format 3, one chromosome at a time.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.errors import ConfigError
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import Simulate
from whitewater_apps.genomics.synthetic import DIRT, Chromosome, Person, draw_people, sample_rates, simulate_chromosome

logger = logging.getLogger(__name__)
VERSION = "0.5"
# Chunks and codecs are bio2zarr's.
CHUNK_VARIANTS, CHUNK_SAMPLES = 10_000, 1_000
COMPRESSION_LEVEL = 7
FILTERS = {"PASS": "All filters passed", "LOW_QUALITY": "Quality is low"}
TEXT = np.dtypes.StringDType()
# Dimensions after the variants.
DIMENSIONS = {
    "variant_allele": ("alleles",),
    "variant_filter": ("filters",),
    "call_genotype": ("samples", "ploidy"),
    "call_genotype_mask": ("samples", "ploidy"),
    "call_genotype_phased": ("samples",),
}


def simulate(run: Run[Simulate], *, store: Output, labels: Output) -> None:
    """Write simulated genotypes as VCF Zarr, and a table of the samples: sample, population, role, mother, father.

    Equal settings give equal bytes, and a chromosome does not depend on how many others there are.

    Raises ConfigError if no variant came about.
    """
    settings = run.settings
    people = draw_people(settings.samples_by_population, families=settings.families, duplicates=settings.duplicates)
    # A stream of random numbers for the samples, 0, and one for each chromosome.
    random = np.random.default_rng((settings.seed, 0))
    rates = sample_rates(len(people), mean=settings.missing_fraction, poor=DIRT.poor_samples, random=random)
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


def write_labels(people: Sequence[Person], path: Path) -> None:
    """Write who is who as CSV: sample, population, role, mother and father, the names of the parents or empty."""
    import pandas as pd

    names = [*(person.name for person in people), ""]  # index -1 is the empty name
    rows = [(*person[:3], names[person.mother], names[person.father]) for person in people]
    pd.DataFrame(rows, columns=["sample", "population", "role", "mother", "father"]).to_csv(path, index=False)


def write_vcz(
    path: Path,
    chromosomes: Iterable[tuple[Chromosome, npt.NDArray[np.bool_]]],
    *,
    contigs: Mapping[str, int],
    samples: Sequence[str],
    chunk_variants: int = CHUNK_VARIANTS,
) -> int:
    """Write a store of chromosomes, each with which variants have failed the filter; return the number of variants.

    ``path`` does not exist yet, and ``contigs`` are names and lengths. Every chunk is written, also one that holds
    nothing but the fill value, so that an absent one is a lost one. A chromosome at most is in memory.
    """
    import zarr
    from zarr.codecs import BloscCodec

    root = zarr.open_group(
        path, mode="w-", zarr_format=3, attributes={"vcf_zarr_version": VERSION, "source": "whitewater"}
    )
    names = np.array(list(contigs), TEXT)
    arrays: dict[str, zarr.Array[Any]] = {}

    def write(name: str, values: npt.NDArray[Any], dimensions: Sequence[str]) -> None:
        """Append values to an array, which is made of the first ones."""
        if name in arrays:
            arrays[name].append(values)
            return
        largest = {"variants": chunk_variants, "samples": min(len(samples), CHUNK_SAMPLES)}
        chunks = [largest.get(each, size) for each, size in zip(dimensions, values.shape, strict=True)]
        bits = name.startswith("call_genotype") or values.dtype == np.bool_
        shuffle: Any = "bitshuffle" if bits else "shuffle"
        arrays[name] = root.create_array(
            name,
            data=values,
            chunks=tuple(chunks),
            compressors=BloscCodec(cname="zstd", clevel=COMPRESSION_LEVEL, shuffle=shuffle),
            dimension_names=list(dimensions),
            config={"write_empty_chunks": True},
        )

    write("sample_id", np.array(samples, TEXT), ["samples"])
    write("contig_id", names, ["contigs"])
    write("contig_length", np.array(list(contigs.values()), np.int64), ["contigs"])
    write("filter_id", np.array(list(FILTERS), TEXT), ["filters"])
    write("filter_description", np.array(list(FILTERS.values()), TEXT), ["filters"])
    written = 0
    for number, (chromosome, failed) in enumerate(chromosomes):
        for name, values in _columns(chromosome, failed, number, names).items():
            write(name, values, ["variants", *DIMENSIONS.get(name, ())])
        written += len(failed)
    return written


def _columns(
    chromosome: Chromosome, failed: npt.NDArray[np.bool_], contig: int, contigs: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    """Return the values of the arrays that go by variant; variants are named contig:position."""
    missing = chromosome.genotypes < 0
    return {
        "variant_contig": np.full(len(failed), contig, np.int32),
        "variant_position": chromosome.positions.astype(np.int32),
        "variant_length": np.strings.str_len(chromosome.alleles[:, 0]).astype(np.int32),
        "variant_id": contigs[contig] + ":" + chromosome.positions.astype(TEXT),
        "variant_id_mask": np.zeros(len(failed), bool),
        "variant_allele": chromosome.alleles,
        "variant_filter": np.stack([~failed, failed], axis=1),
        "call_genotype": chromosome.genotypes,
        "call_genotype_mask": missing,
        "call_genotype_phased": ~missing.any(axis=2),
    }


if __name__ == "__main__":
    main(simulate)

"""Step `relatedness`: the kinship of all pairs of samples, and the samples that the components are computed from."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whitewater.genomics.decisions import kept_rows, read_decisions
from whitewater.genomics.genotype_folder import GenotypeFolder, open_genotypes
from whitewater.genomics.kinship import Rows, kinship_of_pairs
from whitewater.genomics.kinship_tiles import BINS, Pairs
from whitewater.genomics.unrelated import choose_samples
from whitewater.store import write_json

if TYPE_CHECKING:
    import pandas as pd

    from whitewater.config.genomics import Relatedness
    from whitewater.step import Output, Run

logger = logging.getLogger(__name__)
# The least kinship of each degree: halfway between the powers of two that are expected, on the scale of logarithms.
DEGREES = {"duplicate": 2**-1.5, "first": 2**-2.5, "second": 2**-3.5, "third": 2**-4.5}
NO_PAIRS = Pairs(np.empty((0, 5), np.int64), np.empty(0), np.zeros(BINS, np.int64), 0)


def relatedness(
    run: Run[Relatedness], *, genotypes: Path, variants: Path, kinship: Output, summary: Output, samples: Output
) -> None:
    """Find relatives over the kept variants, and a large set of samples without relatives.

    The call rate of a sample is that over all variants of the source, kept or not.
    """
    folder = open_genotypes(genotypes)
    limit = run.settings.maximum_kinship
    pairs = _pairs(run, folder, kept_rows(read_decisions(variants, folder), variants))
    described = folder.samples_table()
    chosen = choose_samples(_with_call_rate(described, folder), pairs.related[pairs.kinship > limit, :2], run.settings)
    related = pairs_table(pairs, described["sample"])
    found = summarise(related, pairs, unrelated=int(chosen["used"].sum()), maximum_kinship=limit)
    related.to_parquet(kinship, index=False)
    chosen.to_parquet(samples, index=False)
    write_json(summary, found)
    run.note(samples=folder.samples, unrelated=found["unrelated"], related_pairs=found["pairs"], **found["degrees"])
    logger.info("%d of %d samples are used; %d pairs are related", found["unrelated"], folder.samples, found["pairs"])


def _pairs(run: Run[Relatedness], folder: GenotypeFolder, rows: Rows) -> Pairs:
    if run.settings.method == "none":
        return NO_PAIRS
    threshold = min(run.settings.maximum_kinship, DEGREES["third"])
    with run.cluster() as client:
        return kinship_of_pairs(run, folder, rows, threshold=threshold, client=client)


def pairs_table(pairs: Pairs, names: pd.Series[str]) -> pd.DataFrame:
    """Return the pairs of the third degree and closer, with the names of the samples, most related first."""
    import pandas as pd

    near = pairs.kinship >= DEGREES["third"]
    related = pairs.related[near]
    table = pd.DataFrame(related[:, 2:], columns=["variants", "het_het", "ibs0"])
    table.insert(0, "sample_1", names.to_numpy()[related[:, 0]])
    table.insert(1, "sample_2", names.to_numpy()[related[:, 1]])
    return table.astype({"sample_1": "str", "sample_2": "str"}).assign(kinship=pairs.kinship[near])


def summarise(related: pd.DataFrame, pairs: Pairs, *, unrelated: int, maximum_kinship: float) -> dict[str, Any]:
    """Count the pairs by degree, and the kinship of all pairs in bins.

    ``pairs`` counts the related ones, ``undefined`` those in which a sample has no heterozygous call, out of the
    histogram, whose first bin holds all kinship below its end, too. ``maximum_kinship`` is the limit that was set.
    """
    least = np.array([*DEGREES.values()])
    degree = np.searchsorted(-least, -related["kinship"].to_numpy())
    counts = np.bincount(degree, minlength=len(least)).tolist()
    edges = (np.arange(BINS + 1) / BINS - 0.5).tolist()
    return {
        "pairs": len(related),
        "degrees": dict(zip(DEGREES, counts, strict=True)),
        "histogram": {"edges": edges, "counts": pairs.histogram.tolist()},
        "undefined": pairs.undefined,
        "maximum_kinship": maximum_kinship,
        "unrelated": unrelated,
    }


def _with_call_rate(samples: pd.DataFrame, folder: GenotypeFolder) -> pd.DataFrame:
    return samples[["sample", "label"]].assign(call_rate=1 - samples["count_missing"] / folder.variants)

"""Step `relatedness`: the kinship of all pairs of samples, and the samples that the components are computed from."""

import heapq
import logging
from collections.abc import Iterable, Sequence
from math import erfc, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.errors import ConfigError, InputError, shorten_list
from whitewater.genotypes.config import Relatedness
from whitewater.genotypes.genotypes import GenotypeFolder, open_genotypes
from whitewater.genotypes.kinship import BINS, Pairs, kinship_of_pairs
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.decisions import DEGREES, FALSE_PAIRS, read_decisions

logger = logging.getLogger(__name__)
NO_PAIRS = Pairs(np.empty((0, 5), np.int64), np.empty(0), np.zeros(BINS, np.int64), 0)


def relatedness(
    run: Run[Relatedness], *, genotypes: Path, variants: Path, kinship: Output, summary: Output, samples: Output
) -> None:
    """Find relatives over the kept variants, and a large set of samples without relatives.

    The call rate of a sample is that over all variants of the source, kept or not.

    Raises ConfigError if the samples are not diploid, and InputError if the samples or the variants are too few to tell
    relatives from strangers.
    """
    folder, limit = open_genotypes(genotypes), run.settings.maximum_kinship
    decisions, rows = read_decisions(variants, folder)
    pairs = NO_PAIRS
    chance: dict[str, float | None] = {"standard_error": None, "chance_pairs": None}
    if run.settings.method == "king":
        chance = _chance(folder, decisions["allele_frequency"].to_numpy()[rows], run.settings)
        with run.workers() as workers:
            pairs = kinship_of_pairs(run, folder, rows, threshold=min(limit, DEGREES["third"]), workers=workers)
    described = folder.samples_table()
    called = described[["sample", "label"]].assign(call_rate=1 - described["count_missing"] / folder.variants)
    chosen = choose_samples(called, pairs.related[pairs.kinship > limit, :2], run.settings)
    near, names = pairs.kinship >= DEGREES["third"], described["sample"].array
    one, other, variants_of_both, het_het, ibs0 = pairs.related[near].T
    related = pd.DataFrame({
        "sample_1": names.take(one), "sample_2": names.take(other), "variants": variants_of_both, "het_het": het_het,
        "ibs0": ibs0, "kinship": pairs.kinship[near],
    })  # fmt: skip
    degree = np.searchsorted(-np.array([*DEGREES.values()]), -related["kinship"].to_numpy())
    counts: dict[str, Any] = {
        "pairs": len(related),
        "degrees": dict(zip(DEGREES, np.bincount(degree, minlength=len(DEGREES)).tolist(), strict=True)),
        # Of all pairs but the undefined ones, in which a sample has no heterozygous call; the first bin holds all
        # kinship below its end, too.
        "histogram": {"edges": (np.arange(BINS + 1) / BINS - 0.5).tolist(), "counts": pairs.histogram.tolist()},
        "undefined": pairs.undefined,
        "maximum_kinship": limit,
        "unrelated": int(chosen["used"].sum()),
        **chance,
    }
    related.to_parquet(kinship, index=False)
    chosen.to_parquet(samples, index=False)
    write_json(summary, counts)
    run.note(samples=folder.samples, unrelated=counts["unrelated"], related_pairs=counts["pairs"], **counts["degrees"])
    logger.info("%d of %d samples are used; %d pairs are related", counts["unrelated"], folder.samples, counts["pairs"])


def kinship_of_strangers(frequencies: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the standard error of the kinship of two strangers of one population.

    At a variant of frequency p both are heterozygous with a probability of h^2, h = 2 p (1 - p), and homozygous for
    different alleles with one of h^2 / 2. If variants are independent, the variance of (het_het - 2 ibs0) / (sum of
    heterozygous calls of both) so is 3/4 sum h^2 / (sum h)^2; its root is at least 0.87 / sqrt(variants). The mean is
    below 0, for KING-robust divides by the smaller number of heterozygous calls, not by the mean of both.
    """
    heterozygous = 2 * frequencies * (1 - frequencies)
    total = heterozygous.sum()
    mean = -np.sqrt((heterozygous * (1 - heterozygous)).sum() / np.pi) / (2 * total)
    return float(mean), float(np.sqrt(0.75 * (heterozygous**2).sum()) / total)


def _chance(
    folder: GenotypeFolder, frequencies: npt.NDArray[np.float64], settings: Relatedness
) -> dict[str, float | None]:
    """Return how far the kinship of strangers is off, and how many pairs of them would be relatives by chance.

    Refuse samples and variants that do not tell relatives from strangers, and warn of those that hardly do.
    """
    if folder.ploidy != 2:
        raise ConfigError(
            f"{folder.path} holds samples of ploidy {folder.ploidy}, but KING-robust kinship is for diploids. "
            "Set genomics.relatedness.method to none, or name a source of diploid genotypes."
        )
    samples, limit = folder.samples, settings.maximum_kinship
    if samples < settings.minimum_samples:
        raise InputError(
            f"There are {samples} samples. With fewer than {settings.minimum_samples} "
            "(genomics.relatedness.minimum_samples) the variants that differ among them, and are not linked, do not "
            "tell relatives from strangers. Give more samples, or set genomics.relatedness.method to none."
        )
    mean, error = kinship_of_strangers(frequencies)
    expected = (samples - 1) * erfc((limit - mean) / error / sqrt(2)) / 2
    precision = f"The kinship of two strangers at {len(frequencies):,} variants has a standard error of {error:.2g}"
    if expected > settings.maximum_chance_relatives:
        raise InputError(
            f"{precision}: by chance, each of {samples:,} samples would have {expected:,.1f} relatives, with a kinship "
            f"above {limit:g}. Keep more variants (genomics.variant_qc, genomics.ld_prune), set "
            "genomics.relatedness.method to none, or raise genomics.relatedness.maximum_chance_relatives, which is "
            f"{settings.maximum_chance_relatives:g}."
        )
    pairs = samples * expected / 2
    if pairs >= FALSE_PAIRS:
        logger.warning("%s. Pairs of strangers that come out as relatives by chance: up to %.0f", precision, pairs)
    return {"standard_error": error, "chance_pairs": pairs}


def choose_samples(samples: "pd.DataFrame", relatives: npt.NDArray[np.int64], settings: Relatedness) -> "pd.DataFrame":
    """Return the samples with columns ``used`` (bool) and ``reason`` (text, empty where used).

    Of several reasons the first counts: excluded by name, held out by label, call rate, relative of a sample that is
    used.

    ``samples`` has columns sample, label (null where there is none) and call_rate; ``relatives``, int64 (pairs, 2), are
    places of samples that are relatives.

    Raises InputError if there is no sample or label of a name in the settings, or no sample is left.
    """
    names, labels, call_rate = samples["sample"], samples["label"], samples["call_rate"]
    for key, asked, known in (
        ("exclude", settings.exclude, names.tolist()),
        ("hold_out_labels", settings.hold_out_labels, sorted(labels.dropna().unique())),
    ):
        if unknown := sorted({*asked} - {*known}):
            raise InputError(f"genomics.relatedness.{key} names {', '.join(unknown)}, which no sample has. Known: "
                             f"{shorten_list(known) or 'none'}.")  # fmt: skip
    reasons = call_rate.map("call rate {:.4g}".format).where(call_rate < settings.minimum_call_rate, "").astype(object)
    reasons[labels.isin(settings.hold_out_labels)] = "held out"
    reasons[names.isin(settings.exclude)] = "excluded"
    candidates = np.flatnonzero(reasons == "").tolist()
    for place, relative in keep_unrelated(candidates, relatives, call_rate.tolist()).items():
        reasons.iloc[place] = f"relative of {names.iloc[relative]}"
    if all(reasons):
        raise InputError(
            f"None of the {len(reasons)} samples is left, for the reasons: {', '.join(sorted(set(reasons))[:5])}. "
            "Change minimum_call_rate, exclude or hold_out_labels in genomics.relatedness."
        )
    return samples.assign(used=reasons == "", reason=reasons.astype("str"))


def keep_unrelated(
    candidates: Iterable[int], relatives: npt.NDArray[np.int64], call_rate: Sequence[float]
) -> dict[int, int]:
    """Return the candidates that must go, so that no two relatives stay, each with a relative that stays.

    Again and again the candidate with the fewest relatives left is kept, and these go; of equals, the one with the
    higher call rate, then the first. So none of those that went could come back: each has a relative that stays. To
    find the largest set is NP-hard; this finds it in forests, and in what families look like mostly.
    """
    near: dict[int, set[int]] = {place: set() for place in candidates}
    for one, other in relatives.tolist():
        if one in near and other in near:
            near[one].add(other)
            near[other].add(one)
    waiting = [(len(others), -call_rate[place], place) for place, others in near.items()]
    heapq.heapify(waiting)
    gone: dict[int, int] = {}
    while waiting:
        degree, _, kept = heapq.heappop(waiting)
        # Entries of candidates that went, or lost a relative since, are out of date; of the latter, newer ones wait.
        if kept not in near or degree != len(near[kept]):
            continue
        going = near.pop(kept)
        gone |= dict.fromkeys(going, kept)
        others = set().union(*(near.pop(place) for place in going))
        for place in others & near.keys():
            near[place] -= going
            heapq.heappush(waiting, (len(near[place]), -call_rate[place], place))
    return gone


if __name__ == "__main__":
    main(relatedness)

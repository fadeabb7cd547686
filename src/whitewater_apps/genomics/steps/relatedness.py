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


def relatedness(
    run: Run[Relatedness], *, genotypes: Path, variants: Path, kinship: Output, summary: Output, samples: Output
) -> None:
    """Find relatives over the kept variants, and a large set of samples without relatives.

    The call rate of a sample is over all variants of the source, kept or not.

    Raises ConfigError if the samples are not diploid, and InputError if samples or variants are too few to recognize
    relatives, the settings name an unknown sample or label, or no sample is left.
    """
    folder, limit = open_genotypes(genotypes), run.settings.maximum_kinship
    decisions, rows = read_decisions(variants, folder)
    pairs = Pairs(np.empty((0, 5), np.int64), np.empty(0), np.zeros(BINS, np.int64), 0)
    chance: dict[str, float | None] = {"standard_error": None, "chance_pairs": None}
    if run.settings.method == "king":
        chance = _check_precision(folder, decisions["allele_frequency"].to_numpy()[rows], run.settings)
        with run.workers() as workers:
            pairs = kinship_of_pairs(run, folder, rows, threshold=min(limit, DEGREES["third"]), workers=workers)
    table = folder.samples_table()
    call_rates = table[["sample", "label"]].assign(call_rate=1 - table["count_missing"] / folder.variants)
    selection = select_samples(call_rates, pairs.related[pairs.kinship > limit, :2], run.settings)
    related, names = pairs.kinship >= DEGREES["third"], table["sample"].array
    first, second, called_in_both, het_het, ibs0 = pairs.related[related].T
    relatives = pd.DataFrame({
        "sample_1": names.take(first), "sample_2": names.take(second), "variants": called_in_both, "het_het": het_het,
        "ibs0": ibs0, "kinship": pairs.kinship[related],
    })  # fmt: skip
    degree = np.searchsorted(-np.array([*DEGREES.values()]), -relatives["kinship"].to_numpy())
    counts: dict[str, Any] = {
        "pairs": len(relatives),
        "degrees": dict(zip(DEGREES, np.bincount(degree, minlength=len(DEGREES)).tolist(), strict=True)),
        "histogram": {"edges": (np.arange(BINS + 1) / BINS - 0.5).tolist(), "counts": pairs.histogram.tolist()},
        "undefined": pairs.undefined,
        "maximum_kinship": limit,
        "unrelated": int(selection["used"].sum()),
        **chance,
    }
    relatives.to_parquet(kinship, index=False)
    selection.to_parquet(samples, index=False)
    write_json(summary, counts)
    run.note(samples=folder.samples, unrelated=counts["unrelated"], related_pairs=counts["pairs"], **counts["degrees"])
    logger.info("%d of %d samples are used; %d pairs are related", counts["unrelated"], folder.samples, counts["pairs"])


def kinship_of_unrelated(frequencies: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the standard error of the kinship of two unrelated samples of one population.

    At a variant of frequency p, with h = 2 p (1 - p), both are heterozygous with probability h^2, and homozygous for
    different alleles with probability h^2 / 2. For independent variants, the variance of (het_het - 2 ibs0) / (sum of
    heterozygous calls of both) is then 3/4 sum h^2 / (sum h)^2; its root is at least 0.87 / sqrt(variants). The mean is
    below 0, because KING-robust divides by the smaller number of heterozygous calls instead of their mean.
    """
    heterozygous = 2 * frequencies * (1 - frequencies)
    total = heterozygous.sum()
    mean = -np.sqrt((heterozygous * (1 - heterozygous)).sum() / np.pi) / (2 * total)
    return float(mean), float(np.sqrt(0.75 * (heterozygous**2).sum()) / total)


def _check_precision(
    folder: GenotypeFolder, frequencies: npt.NDArray[np.float64], settings: Relatedness
) -> dict[str, float | None]:
    """Return the standard error of kinship, and the expected pairs of relatives by chance; warn if there are any."""
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
            "tell relatives from unrelated samples. Give more samples, or set genomics.relatedness.method to none."
        )
    mean, error = kinship_of_unrelated(frequencies)
    expected = (samples - 1) * erfc((limit - mean) / error / sqrt(2)) / 2
    precision = f"The kinship of unrelated samples at {len(frequencies):,} variants has a standard error of {error:.2g}"
    if expected > settings.maximum_chance_relatives:
        raise InputError(
            f"{precision}: by chance, each of {samples:,} samples would have {expected:,.1f} relatives with a kinship "
            f"above {limit:g}. Keep more variants (genomics.variant_qc, genomics.ld_prune), set "
            "genomics.relatedness.method to none, or raise genomics.relatedness.maximum_chance_relatives from "
            f"{settings.maximum_chance_relatives:g}."
        )
    pairs = samples * expected / 2
    if pairs >= FALSE_PAIRS:
        logger.warning("%s. Unrelated pairs that look like relatives by chance: up to %.0f", precision, pairs)
    return {"standard_error": error, "chance_pairs": pairs}


def select_samples(samples: "pd.DataFrame", relatives: npt.NDArray[np.int64], settings: Relatedness) -> "pd.DataFrame":
    """Return the samples with columns ``used`` (bool) and ``reason`` (text, empty if used).

    The reason is the first of: excluded by name, held out by label, call rate, relative of a used sample. ``samples``
    has columns sample, label (null if none) and call_rate; ``relatives``, int64 (pairs, 2), are indices of samples.
    """
    names, labels, call_rate = samples["sample"], samples["label"], samples["call_rate"]
    for key, values, known in (
        ("exclude", settings.exclude, names.tolist()),
        ("hold_out_labels", settings.hold_out_labels, sorted(labels.dropna().unique())),
    ):
        if unknown := sorted({*values} - {*known}):
            raise InputError(f"genomics.relatedness.{key} names {', '.join(unknown)}, which no sample has. Known: "
                             f"{shorten_list(known) or 'none'}.")  # fmt: skip
    reasons = call_rate.map("call rate {:.4g}".format).where(call_rate < settings.minimum_call_rate, "").astype(object)
    reasons[labels.isin(settings.hold_out_labels)] = "held out"
    reasons[names.isin(settings.exclude)] = "excluded"
    candidates = np.flatnonzero(reasons == "").tolist()
    for index, relative in find_relatives_to_remove(candidates, relatives, call_rate.tolist()).items():
        reasons.iloc[index] = f"relative of {names.iloc[relative]}"
    if all(reasons):
        raise InputError(
            f"None of the {len(reasons)} samples is left, for the reasons: {', '.join(sorted(set(reasons))[:5])}. "
            "Change minimum_call_rate, exclude or hold_out_labels in genomics.relatedness."
        )
    return samples.assign(used=reasons == "", reason=reasons.astype("str"))


def find_relatives_to_remove(
    candidates: Iterable[int], relatives: npt.NDArray[np.int64], call_rate: Sequence[float]
) -> dict[int, int]:
    """Return candidates whose removal leaves no relatives, each with a relative that stays.

    Greedily, the candidate with the fewest remaining relatives is kept (then the one with the higher call rate, then
    the first), and these are removed. None of them could be kept as well. Finding the largest set is NP-hard; this
    finds it in forests, and in most families.
    """
    remaining: dict[int, set[int]] = {index: set() for index in candidates}
    for one, other in relatives.tolist():
        if one in remaining and other in remaining:
            remaining[one].add(other)
            remaining[other].add(one)
    queue = [(len(others), -call_rate[index], index) for index, others in remaining.items()]
    heapq.heapify(queue)
    removed: dict[int, int] = {}
    while queue:
        degree, _, kept = heapq.heappop(queue)
        # Entries are stale if their candidate was removed or has lost a relative; the latter was queued again.
        if kept not in remaining or degree != len(remaining[kept]):
            continue
        neighbors = remaining.pop(kept)
        removed |= dict.fromkeys(neighbors, kept)
        second_neighbors = set().union(*(remaining.pop(index) for index in neighbors))
        for index in second_neighbors & remaining.keys():
            remaining[index] -= neighbors
            heapq.heappush(queue, (len(remaining[index]), -call_rate[index], index))
    return removed


if __name__ == "__main__":
    main(relatedness)

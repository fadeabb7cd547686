"""Step `variant_qc`: keep each variant, or list the rules that it breaks, from the counts in the variants table."""

import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater import lazy_pandas as pd
from whitewater.errors import ConfigError, InputError, IntegrityError, shorten_list
from whitewater.genotypes.genotypes import open_genotypes
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import LAST_POSITION, VariantQc, parse_region
from whitewater_apps.genomics.decisions import IDENTITY

logger = logging.getLogger(__name__)
# By reason, in order: which variants break the rule, and how to let more of them pass.
Rules = dict[str, tuple[npt.ArrayLike, str]]


def variant_qc(run: Run[VariantQc], *, genotypes: Path, variants: Output) -> None:
    """Decide on each variant by the rules of section ``genomics.variant_qc``."""
    folder = open_genotypes(genotypes)
    if run.settings.hwe_p_value > 0 and folder.ploidy != 2:
        raise ConfigError(
            f"variant_qc.hwe_p_value is set, but the exact test is for diploids and these samples have ploidy "
            f"{folder.ploidy}: set it to 0."
        )
    table = folder.variants_table()
    names = [*(f"count_{dosage}" for dosage in range(folder.ploidy + 1)), "count_missing"]
    counts: npt.NDArray[np.int64] = table[names].to_numpy(np.int64)
    wrong = np.flatnonzero(counts.sum(axis=1) != folder.samples)
    if len(wrong):
        raise IntegrityError(
            f"{folder.path}/variants.parquet: the counts of {len(wrong)} variants, first in row {wrong[0]}, are not "
            f"those of {folder.samples} samples. Run ingest again."
        )
    statistics = variant_statistics(counts, ploidy=folder.ploidy)
    rules = apply_rules(table, statistics, run.settings)
    broken = np.stack([np.asarray(is_broken, bool) for is_broken, _ in rules.values()], axis=1)
    kept, by_reason = ~broken.any(axis=1), dict(zip(rules, broken.sum(axis=0).tolist(), strict=True))
    identity = {name: pa.array(table[name]) for name in IDENTITY}
    measures = statistics[["call_rate", "allele_frequency", "allele_count", "hwe_p_value"]]
    columns = {str(name): column.to_numpy() for name, column in measures.items()}
    names = pa.DictionaryArray.from_arrays(np.nonzero(broken)[1].astype(np.int32), list(rules)).dictionary_decode()
    reasons = pa.ListArray.from_arrays(np.append(0, broken.sum(axis=1).cumsum()).astype(np.int32), names)
    pq.write_table(pa.table({**identity, **columns, "kept": kept, "reasons": reasons}), variants)
    facts = {"variants": len(broken), "kept": int(kept.sum()), "rejected": int((~kept).sum())}
    run.note(**facts, rejected_by_reason=by_reason)
    if not facts["kept"]:
        most = max(by_reason, key=lambda reason: by_reason[reason])
        raise InputError(
            f"None of {len(broken)} variants is kept. Most of them, {by_reason[most]}, have the reason {most!r}: "
            f"{rules[most][1]}."
        )
    logger.info("%(variants)d variants read, %(kept)d kept, %(rejected)d rejected", facts)


def variant_statistics(counts: npt.NDArray[np.int64], *, ploidy: int) -> "pd.DataFrame":
    """Compute statistics from the numbers of samples with 0 to ploidy alternate alleles, and, last, without a call.

    Frequencies are NaN without calls; hwe_p_value is NaN for other ploidies than two. one_genotype is true if all calls
    are equal, even if they are heterozygous.
    """
    from whitewater.genotypes.hwe import hwe_p_values

    called = pd.Series(counts[:, :-1].sum(axis=1))
    alternate = counts[:, :-1] @ np.arange(ploidy + 1)
    rarer = np.minimum(alternate, ploidy * called - alternate)
    return pd.DataFrame(
        {
            "call_rate": called / counts.sum(axis=1),
            "allele_frequency": alternate / (ploidy * called),
            "allele_count": alternate,
            "rarer_frequency": rarer / (ploidy * called),
            "rarer_count": rarer,
            "one_genotype": counts[:, :-1].max(axis=1) == called,
            "hwe_p_value": hwe_p_values(counts) if ploidy == 2 else np.nan,
        }
    )


def apply_rules(table: "pd.DataFrame", statistics: "pd.DataFrame", settings: VariantQc) -> Rules:
    """Find the variants that break each rule."""
    contigs = [(contig, 1, LAST_POSITION) for contig in settings.contigs]
    regions, excluded_regions = map(parse_region, settings.regions), map(parse_region, settings.exclude_regions)
    in_contigs = _in_regions(table, contigs, setting="contigs") | (not settings.contigs)
    in_regions = _in_regions(table, regions, setting="regions") | (not settings.regions)
    excluded = _in_regions(table, excluded_regions, setting="exclude_regions")
    # Without calls the frequency is NaN, and the rule is broken.
    rare = ~(statistics["rarer_frequency"] >= settings.minimum_allele_frequency)
    few_alleles = statistics["rarer_count"] < settings.minimum_allele_count
    unbalanced = statistics["hwe_p_value"] < settings.hwe_p_value
    return {
        "multiallelic": (table["multiallelic"], "set ingest.multiallelic to collapse"),
        "filter": (~table["filter_pass"] & settings.only_filter_pass, "set variant_qc.only_filter_pass to false"),
        "contig": (~in_contigs, "name other variant_qc.contigs"),
        "region": (~in_regions, "name other variant_qc.regions"),
        "excluded region": (excluded, "name smaller variant_qc.exclude_regions"),
        "call rate": (statistics["call_rate"] < settings.minimum_call_rate, "lower variant_qc.minimum_call_rate"),
        "allele frequency": (rare, "lower variant_qc.minimum_allele_frequency"),
        "allele count": (few_alleles, "lower variant_qc.minimum_allele_count"),
        # All heterozygous: the alleles are frequent, but the variant does not distinguish samples.
        "no variance": (statistics["one_genotype"], "give samples that differ, or more of them"),
        "Hardy-Weinberg equilibrium": (unbalanced, "lower variant_qc.hwe_p_value"),
    }


def _in_regions(
    table: "pd.DataFrame", regions: Iterable[tuple[str, int, int]], *, setting: str
) -> npt.NDArray[np.bool_]:
    """Return which variants are in a region. Raises InputError if a contig has no variant."""
    codes, names = table["contig"].factorize()
    code_of = {str(name): code for code, name in enumerate(names)}
    inside = np.zeros(len(table), bool)
    for contig, first, last in regions:
        if contig not in code_of:
            known = shorten_list(list(code_of))
            raise InputError(f"variant_qc.{setting} names contig {contig!r}, which no variant is on. Known: {known}.")
        inside |= (codes == code_of[contig]) & table["position"].between(first, last).to_numpy(bool)
    return inside


if __name__ == "__main__":
    main(variant_qc)

"""Step `variant_qc`: every variant is kept, or listed with all rules that it breaks; counts tell, no call is read."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import ConfigError, InputError, IntegrityError, shorten_list
from whitewater.genotypes.folder import GenotypeFolder, open_genotypes
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import VariantQc
from whitewater_apps.genomics.decisions import IDENTITY

if TYPE_CHECKING:
    import pandas as pd


logger = logging.getLogger(__name__)
DIPLOID = 2
# Each reason, and what lets more variants pass.
REMEDIES = {
    "multiallelic": "set ingest.multiallelic to collapse",
    "filter": "set variant_qc.only_filter_pass to false",
    "contig": "name other variant_qc.contigs",
    "region": "name other variant_qc.regions",
    "excluded region": "name smaller variant_qc.exclude_regions",
    "call rate": "lower variant_qc.minimum_call_rate",
    "allele frequency": "lower variant_qc.minimum_allele_frequency",
    "allele count": "lower variant_qc.minimum_allele_count",
    "no variance": "give samples that differ, or more of them",
    "Hardy-Weinberg equilibrium": "lower variant_qc.hwe_p_value",
}
REASONS = tuple(REMEDIES)
LAST_POSITION = 2**63 - 1
# A contig, and its first and last position, 1-based, both included.
Region = tuple[str, int, int]


@dataclass(frozen=True)
class Statistics:
    """What the rules are about; float64 (variants,), int64 where it is a count."""

    call_rate: npt.NDArray[np.float64]
    allele_frequency: npt.NDArray[np.float64]
    """Alternate alleles / called alleles; NaN where no sample has a call."""
    allele_count: npt.NDArray[np.int64]
    """Alternate alleles."""
    rarer_frequency: npt.NDArray[np.float64]
    rarer_count: npt.NDArray[np.int64]
    one_genotype: npt.NDArray[np.bool_]
    """All called samples have the same genotype, which may be the heterozygous one."""
    hwe_p_value: npt.NDArray[np.float64]
    """NaN for ploidies other than two."""


def variant_qc(run: Run[VariantQc], *, genotypes: Path, variants: Output) -> None:
    """Decide on each variant by the rules of section ``genomics.variant_qc``."""
    folder = open_genotypes(genotypes)
    if run.settings.hwe_p_value > 0 and folder.ploidy != DIPLOID:
        raise ConfigError(
            f"variant_qc.hwe_p_value is set, but the exact test is for diploids and these samples have ploidy "
            f"{folder.ploidy}: set it to 0."
        )
    table = folder.variants_table()
    measured = measure(_counts(table, folder), ploidy=folder.ploidy)
    broken = broken_rules(table, measured, run.settings)
    decisions = _decisions(table, measured, broken)
    _note(run, decisions, broken)
    pq.write_table(decisions, variants)


def measure(counts: npt.NDArray[np.int64], *, ploidy: int) -> Statistics:
    """Compute the statistics of variants.

    Parameters
    ----------
    counts
        (variants, ploidy + 2): samples with 0 to ploidy copies of the alternate allele, then those without a call.
    """
    from whitewater.genotypes.hwe import hwe_p_values

    called = counts[:, :-1].sum(axis=1)
    alternate = counts[:, :-1] @ np.arange(ploidy + 1)
    rarer = np.minimum(alternate, ploidy * called - alternate)
    return Statistics(
        call_rate=_ratio(called, counts.sum(axis=1)),
        allele_frequency=_ratio(alternate, ploidy * called),
        allele_count=alternate,
        rarer_frequency=_ratio(rarer, ploidy * called),
        rarer_count=rarer,
        one_genotype=counts[:, :-1].max(axis=1) == called,
        hwe_p_value=hwe_p_values(counts) if ploidy == DIPLOID else np.full(len(counts), np.nan),
    )


def broken_rules(table: "pd.DataFrame", measured: Statistics, settings: VariantQc) -> npt.NDArray[np.bool_]:
    """Return which rules each variant breaks: (variants, rules), in the order of `REASONS`."""
    inside = {
        "contigs": [(contig, 1, LAST_POSITION) for contig in settings.contigs],
        "regions": [_parsed(region) for region in settings.regions],
        "exclude_regions": [_parsed(region) for region in settings.exclude_regions],
    }
    marked = {name: _within(table, regions, setting=f"variant_qc.{name}") for name, regions in inside.items()}
    by_reason = {
        "multiallelic": table["multiallelic"].to_numpy(bool),
        "filter": ~table["filter_pass"].to_numpy(bool) & settings.only_filter_pass,
        "contig": ~marked["contigs"] & bool(settings.contigs),
        "region": ~marked["regions"] & bool(settings.regions),
        "excluded region": marked["exclude_regions"],
        "call rate": measured.call_rate < settings.minimum_call_rate,
        # Written so that a variant without calls, whose frequency is NaN, breaks it.
        "allele frequency": ~(measured.rarer_frequency >= settings.minimum_allele_frequency),
        "allele count": measured.rarer_count < settings.minimum_allele_count,
        # Heterozygous in all samples: the alleles are frequent, and yet it tells no two samples apart.
        "no variance": measured.one_genotype,
        "Hardy-Weinberg equilibrium": measured.hwe_p_value < settings.hwe_p_value,
    }
    return np.stack([by_reason[reason] for reason in REASONS], axis=1)


def reason_lists(broken: npt.NDArray[np.bool_]) -> pa.ListArray:
    """Return the names of the rules that each variant breaks, ``broken`` being (variants, rules)."""
    _, rules = np.nonzero(broken)
    names = pa.DictionaryArray.from_arrays(rules.astype(np.int32), list(REASONS)).dictionary_decode()
    offsets = np.concatenate([[0], broken.sum(axis=1).cumsum()]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, names)


def _counts(table: "pd.DataFrame", folder: GenotypeFolder) -> npt.NDArray[np.int64]:
    names = [*(f"count_{dosage}" for dosage in range(folder.ploidy + 1)), "count_missing"]
    counts: npt.NDArray[np.int64] = table[names].to_numpy(np.int64)
    wrong = np.flatnonzero(counts.sum(axis=1) != folder.samples)
    if len(wrong):
        raise IntegrityError(
            f"{folder.path}/variants.parquet: the counts of {len(wrong)} variants, first in row {wrong[0]}, are not "
            f"those of {folder.samples} samples. Run ingest again."
        )
    return counts


def _ratio(numerator: npt.NDArray[np.int64], denominator: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        quotient: npt.NDArray[np.float64] = numerator / denominator
    return quotient


def _decisions(table: "pd.DataFrame", measured: Statistics, broken: npt.NDArray[np.bool_]) -> pa.Table:
    return pa.table(
        {
            **{name: pa.array(table[name]) for name in IDENTITY},
            "call_rate": measured.call_rate,
            "allele_frequency": measured.allele_frequency,
            "allele_count": measured.allele_count,
            "hwe_p_value": measured.hwe_p_value,
            "kept": ~broken.any(axis=1),
            "reasons": reason_lists(broken),
        }
    )


def _note(run: Run[VariantQc], decisions: pa.Table, broken: npt.NDArray[np.bool_]) -> None:
    """Record what became of the variants; refuse a result without any."""
    import pyarrow.compute as pc

    kept = int(pc.sum(decisions["kept"]).as_py() or 0)
    rejected = int(pc.sum(pc.greater(pc.list_value_length(decisions["reasons"]), 0)).as_py() or 0)
    if kept + rejected != len(broken):
        raise IntegrityError(
            f"Of {len(broken)} variants {kept} are kept and {rejected} have a reason not to be. Report this as a bug."
        )
    by_reason = dict(zip(REASONS, broken.sum(axis=0).tolist(), strict=True))
    run.note(variants=len(broken), kept=kept, rejected=rejected, rejected_by_reason=by_reason)
    if not kept:
        most = max(by_reason, key=lambda reason: by_reason[reason])
        raise InputError(
            f"None of {len(broken)} variants is kept. Most of them, {by_reason[most]}, have the reason {most!r}: "
            f"{REMEDIES[most]}."
        )
    logger.info("%d variants read, %d kept, %d rejected", len(broken), kept, rejected)


def _parsed(region: str) -> Region:
    """Read ``contig`` or ``contig:first-last``."""
    contig, _, positions = region.partition(":")
    first, _, last = positions.partition("-")
    return contig, int(first or 1), int(last or LAST_POSITION)


def _within(variants: "pd.DataFrame", regions: Sequence[Region], *, setting: str) -> npt.NDArray[np.bool_]:
    """Mark the variants that are in any of the regions; refuse one on whose contig there is none."""
    codes, names = variants["contig"].factorize()
    code_of = {str(name): code for code, name in enumerate(names)}
    positions = variants["position"].to_numpy()
    marked = np.zeros(len(variants), bool)
    for contig, first, last in regions:
        if contig not in code_of:
            raise InputError(
                f"{setting} names contig {contig!r}, which no variant is on. There are {shorten_list(list(code_of))}."
            )
        marked |= (codes == code_of[contig]) & (positions >= first) & (positions <= last)
    return marked


if __name__ == "__main__":
    main(variant_qc)

"""Variants are kept or listed with every rule that they break; the statistics are PLINK's."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tests.helpers.genotype_folders import make_folder
from tests.helpers.genotype_stores import write_plink
from tests.helpers.plink2 import needs_plink2, plink2
from whitewater.engines import resolve
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.step import Output, Run
from whitewater_apps.genomics.config import VariantQc
from whitewater_apps.genomics.steps.variant_qc import variant_qc

OFF = {"minimum_call_rate": 0, "minimum_allele_frequency": 0, "minimum_allele_count": 1}


def decide(folder: Path, **settings: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Run the step; return its table and its facts."""
    run = Run("genomics", "variant_qc", resolve("cpu"), VariantQc(**settings))
    variant_qc(run, genotypes=folder, variants=Output(folder.with_suffix(".parquet")))
    return pd.read_parquet(folder.with_suffix(".parquet")), run.facts


def random_dosages(variants: int, samples: int, *, seed: int = 0) -> npt.NDArray[np.int8]:
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet([2, 0.6, 0.4, 0.3], variants)
    return np.stack([generator.choice([0, 1, 2, -1], samples, p=share) for share in shares]).astype(np.int8)


def in_regions(contig: str, position: int) -> bool:
    return contig == "2L" or (contig == "2R" and 200 <= position <= 800) or (contig == "X" and position <= 10)


def reasons_of(table: pd.DataFrame, row: int) -> list[str]:
    return list(table["reasons"].iloc[row])


def test_every_variant_has_all_its_reasons_and_no_others(tmp_path: Path) -> None:
    dosages = random_dosages(400, 60)
    dosages[7], dosages[8] = 1, 2
    generator = np.random.default_rng(1)
    contigs = np.sort(generator.choice(["2L", "2R", "X"], 400)).tolist()
    columns = {
        "contig": contigs,
        "position": generator.choice([1, 10, 11, 99, 100, 199, 200, 300, 301, 500, 800, 801], 400),
        "multiallelic": generator.random(400) < 0.1,
        "filter_pass": generator.random(400) < 0.8,
    }
    folder = make_folder(tmp_path / "data", dosages, columns=columns)
    settings: dict[str, Any] = {
        "minimum_call_rate": 0.8,
        "minimum_allele_frequency": 0.05,
        "minimum_allele_count": 4,
        "hwe_p_value": 1e-3,
        "contigs": ("2L", "2R"),
        "regions": ("2L", "2R:200-800", "X:1-10"),
        "exclude_regions": ("2L:100-300",),
    }
    table, facts = decide(folder.path, **settings)

    for row in range(400):
        calls = dosages[row][dosages[row] >= 0].astype(float)
        alleles = min(calls.sum(), 2 * len(calls) - calls.sum())
        contig, position = contigs[row], columns["position"][row]
        expected = {
            "multiallelic": columns["multiallelic"][row],
            "filter": not columns["filter_pass"][row],
            "contig": contig == "X",
            "region": not in_regions(contig, position),
            "excluded region": contig == "2L" and 100 <= position <= 300,
            "call rate": len(calls) / 60 < 0.8,
            "allele frequency": not len(calls) or alleles / (2 * len(calls)) < 0.05,
            "allele count": alleles < 4,
            "no variance": len(set(calls)) < 2,
            "Hardy-Weinberg equilibrium": table["hwe_p_value"][row] < 1e-3,
        }
        assert reasons_of(table, row) == [reason for reason in expected if expected[reason]]
        assert table["kept"][row] == (not any(expected.values()))
    assert facts["kept"] + facts["rejected"] == facts["variants"] == 400
    assert facts["kept"] == table["kept"].sum() > 0
    assert facts["rejected_by_reason"] == {
        reason: sum(reason in each for each in table["reasons"]) for reason in expected
    }
    assert min(facts["rejected_by_reason"].values()) > 0


@needs_plink2
def test_statistics_equal_those_of_plink2(tmp_path: Path) -> None:
    dosages = random_dosages(300, 101)
    table, _ = decide(make_folder(tmp_path / "data", dosages).path, **OFF)
    plink2("--bfile", write_plink(tmp_path / "plink", dosages), "--freq", "--missing", "--hardy", cwd=tmp_path)
    frequency = pd.read_csv(tmp_path / "plink2.afreq", sep="\t")
    # PLINK prints six digits.
    np.testing.assert_allclose(table["allele_frequency"], frequency["ALT_FREQS"], rtol=1e-5)
    np.testing.assert_allclose(table["allele_count"], frequency["ALT_FREQS"] * frequency["OBS_CT"], rtol=1e-5)
    missing = pd.read_csv(tmp_path / "plink2.vmiss", sep="\t")["F_MISS"]
    np.testing.assert_allclose(1 - table["call_rate"], missing, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(table["hwe_p_value"], pd.read_csv(tmp_path / "plink2.hardy", sep="\t")["P"], rtol=1e-5)


@needs_plink2
def test_kept_variants_equal_those_of_plink2(tmp_path: Path) -> None:
    dosages = random_dosages(500, 200)
    folder = make_folder(tmp_path / "data", dosages)
    table, _ = decide(
        folder.path, minimum_call_rate=0.75, minimum_allele_frequency=0.05, minimum_allele_count=30, hwe_p_value=1e-20
    )
    filters: list[str | float] = ["--geno", 0.25, "--maf", 0.05, "--mac", 30, "--hwe", 1e-20, "--write-snplist"]
    plink2("--bfile", write_plink(tmp_path / "plink", dosages), *filters, cwd=tmp_path)
    assert table["id"][table["kept"]].tolist() == (tmp_path / "plink2.snplist").read_text().split()


def test_limits_themselves_are_kept(tmp_path: Path) -> None:
    dosages = np.zeros((2, 100), np.int8)
    dosages[0, :2], dosages[0, 95:] = 1, -1
    dosages[1, :2] = 1
    table, _ = decide(
        make_folder(tmp_path / "data", dosages).path,
        minimum_call_rate=0.95,
        minimum_allele_frequency=0.01,
        minimum_allele_count=2,
    )
    assert table["kept"].tolist() == [True, True]


def test_a_variant_without_calls_is_rejected_and_its_frequency_is_not_a_number(tmp_path: Path) -> None:
    dosages = np.array([[-1] * 4, [0, 1, 2, 1]], np.int8)
    table, _ = decide(make_folder(tmp_path / "data", dosages).path, **OFF)
    assert np.isnan(table["allele_frequency"][0])
    assert reasons_of(table, 0) == ["allele frequency", "allele count", "no variance"]
    assert reasons_of(table, 1) == []


def test_alleles_of_other_ploidies_are_counted_and_hwe_is_not_tested(tmp_path: Path) -> None:
    dosages = np.array([[0, 4, 3, -1], [1, 1, 0, 0]], np.int8)
    table, _ = decide(make_folder(tmp_path / "data", dosages, ploidy=4).path, **OFF)
    assert table["allele_count"].tolist() == [7, 2]
    assert table["allele_frequency"].tolist() == [7 / 12, 2 / 16]
    assert table["hwe_p_value"].isna().all()


def test_hwe_of_other_ploidies_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "data", np.array([[0, 4, 3, -1]], np.int8), ploidy=4)
    with pytest.raises(ConfigError, match="ploidy 4: set it to 0"):
        decide(folder.path, hwe_p_value=1e-6)


@pytest.mark.parametrize("setting", ["contigs", "regions", "exclude_regions"])
def test_an_unknown_contig_is_refused_and_the_known_ones_are_named(tmp_path: Path, setting: str) -> None:
    folder = make_folder(tmp_path / "data", random_dosages(3, 8), columns={"contig": ["2L", "2R", "X"]})
    with pytest.raises(InputError, match=rf"{setting} names contig '3L'.*Known: 2L, 2R, X\."):
        decide(folder.path, **{setting: ("3L",)})


def test_a_contig_may_be_named_like_a_region(tmp_path: Path) -> None:
    contigs = ["HLA*01:02-03", "6"]
    folder = make_folder(tmp_path / "data", np.array([[0, 1, 2]] * 2, np.int8), columns={"contig": contigs})
    assert decide(folder.path, contigs=contigs[:1], **OFF)[0]["kept"].tolist() == [True, False]


def test_nothing_kept_is_an_error_that_names_the_rule_and_the_setting(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "data", np.array([[0, 1, -1], [2, 1, -1], [0, 0, 0]], np.int8))
    with pytest.raises(InputError, match=r"None of 3 .* 2, have the reason 'call rate': lower .*minimum_call_rate"):
        decide(folder.path, minimum_call_rate=0.9, minimum_allele_count=1)


def test_counts_of_other_samples_are_refused(tmp_path: Path) -> None:
    dosages = random_dosages(5, 8)
    folder = make_folder(
        tmp_path / "data", dosages, columns={"count_0": (dosages == 0).sum(axis=1) + (np.arange(5) == 3)}
    )
    with pytest.raises(IntegrityError, match="counts of 1 variants, first in row 3, are not those of 8 samples"):
        decide(folder.path)

"""Genotypes of few samples, or at few variants: refused where they tell nothing, said where they tell little."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended
from tests.helpers.genotype_stores import Sites, write_plink
from tests.helpers.real_data import needs_real_data, real_data

RESULTS = "results/genomics/cpu"
PLINK = {"ingest": {"source": "plink", "plink": {"prefix": "cohort"}}}
HAPMAP3 = "genomics/hapmap3/HM3_thinned_autosomal_overlap"
Dosages = npt.NDArray[np.int64]


def strangers(variants: int, *, of_each: int, populations: int = 3) -> Dosages:
    """Return the dosages of people of populations that differ, (variants, people)."""
    random = np.random.default_rng(4)
    ancestral = random.uniform(0.05, 0.95, (variants, 1))
    frequency = random.beta(9 * ancestral, 9 * (1 - ancestral), (variants, populations))
    return random.binomial(2, np.repeat(frequency, of_each, axis=1))


def spread_sites(variants: int) -> Sites:
    """Return sites on 22 contigs."""
    contigs = [str(1 + 22 * row // variants) for row in range(variants)]
    return Sites(contigs, [1_000 * row for row in range(1, variants + 1)], [f"rs{row}" for row in range(variants)],
                 ["G"] * variants, ["A"] * variants)  # fmt: skip


def run(clone: Clone, dosages: Dosages, target: str, **settings: Any) -> Ended:
    """Run what a target needs on genotypes written as PLINK files."""
    write_plink(clone / "cohort", dosages, sites=spread_sites(len(dosages)))
    return clone.run("genomics", PLINK | settings, f"{RESULTS}/{target}")


def results(clone: Clone) -> Ended:
    return clone.start("python", "-m", "whitewater", "results", PYTHONPATH=str(clone / "src")).ended()


def test_variants_of_one_genotype_are_left_out_with_their_reason(fresh: Clone) -> None:
    dosages = strangers(2_000, of_each=4)
    dosages[:3] = [[0], [1], [2]]
    dosages[3] = [1, -1, *[1] * 10]
    lax = {"minimum_allele_frequency": 0, "minimum_allele_count": 1, "minimum_call_rate": 0}
    ended = run(fresh, dosages, "variants.parquet", variant_qc=lax, ld_prune={"method": "none"})
    assert ended.status == 0, ended.terminal
    table = pd.read_parquet(fresh / f"{RESULTS}/variants.parquet")
    constant = [len(set(calls[calls >= 0])) < 2 for calls in dosages]
    assert table["kept"].tolist() == [not each for each in constant]
    assert ["no variance" in reasons for reasons in table["reasons"]] == constant
    assert [list(each) for each in table["reasons"][[1, 3]]] == [["no variance"]] * 2


def test_three_strangers_are_refused_instead_of_being_duplicates(fresh: Clone) -> None:
    ended = run(fresh, strangers(8_000, of_each=1), "relatedness.json")
    assert ended.message.startswith("InputError: There are 3 samples. With fewer than 10 ")
    assert "genomics.relatedness.minimum_samples" in ended.message
    assert not (fresh / f"{RESULTS}/kinship.parquet").exists()


def test_strangers_of_three_populations_are_no_relatives(fresh: Clone) -> None:
    ended = run(fresh, strangers(8_000, of_each=4), "relatedness.json")
    assert ended.status == 0, ended.terminal
    found = fresh.json(f"{RESULTS}/relatedness.json")
    assert found["degrees"] | {"third": 0} == dict.fromkeys(("duplicate", "first", "second", "third"), 0)
    assert found["unrelated"] == 12
    assert "With 12 samples, fewer than 50," in ended.terminal


@pytest.mark.slow
def test_variants_too_few_to_tell_relatives_are_refused_unless_that_is_asked_for(fresh: Clone) -> None:
    dosages = strangers(40, of_each=50)
    ended = run(fresh, dosages, "relatedness.json")
    assert ended.message.startswith("InputError: The kinship of unrelated samples at ")
    for word in ("each of 150 samples would have", "genomics.ld_prune", "genomics.relatedness.method to none"):
        assert word in ended.message
    ended = run(fresh, dosages, "relatedness.json", relatedness={"maximum_chance_relatives": 150})
    assert ended.status == 0, ended.terminal
    found = fresh.json(f"{RESULTS}/relatedness.json")
    assert found["chance_pairs"] > 150
    assert f"Unrelated pairs that look like relatives by chance: up to {found['chance_pairs']:.0f}" in ended.terminal


@needs_real_data
def test_forty_variants_of_hapmap3_make_nobody_a_relative(fresh: Clone) -> None:
    prefix = real_data(f"{HAPMAP3}.bed").with_suffix("")
    lines = prefix.with_suffix(".bim").read_text().splitlines(keepends=True)
    samples = prefix.with_suffix(".fam").read_text()
    calls = np.fromfile(prefix.with_suffix(".bed"), np.uint8)[3:].reshape(len(lines), -1)
    chosen = np.linspace(0, len(lines) - 1, 40).astype(int)
    (fresh / "cohort.bed").write_bytes(b"\x6c\x1b\x01" + calls[chosen].tobytes())
    (fresh / "cohort.bim").write_text("".join(lines[row] for row in chosen))
    (fresh / "cohort.fam").write_text(samples)
    ended = fresh.run("genomics", PLINK, f"{RESULTS}/relatedness.json")
    assert "each of 957 samples would have " in ended.message


# ---- what the results say


def test_results_of_data_without_relatives_are_told(copied: Clone) -> None:
    nobody = {"relatedness": {"method": "none", "minimum_call_rate": 0}}
    ended = copied.run("genomics", nobody, f"{RESULTS}/projected.parquet")
    assert ended.status == 0, ended.terminal
    assert pd.read_parquet(copied / f"{RESULTS}/projected.parquet").empty
    told = results(copied)
    assert told.status == 0, told.terminal
    assert "components are significant" in told.terminal
    assert "projected:" not in told.terminal


def test_results_that_cannot_be_told_do_not_hide_those_of_the_other_applications(copied: Clone) -> None:
    (copied / f"{RESULTS}/eigenvalues.json").write_text(json.dumps({"eigenvalues": []}))
    told = results(copied)
    assert told.status == 1
    assert "Traceback" not in told.terminal
    assert "cannot be summarized: KeyError: 'tracy_widom'" in told.terminal
    for sentence in ("Tips in yellow taxis", "ranks first"):
        assert sentence in told.terminal


# ---- a map of few samples, and of few components


@pytest.mark.slow
def test_few_samples_have_no_map_but_everything_else(fresh: Clone) -> None:
    few = {"pca": {"components": 3}, "umap": {"neighbors": 15}, "plot": {"formats": ["png"], "components": 2}}
    write_plink(fresh / "cohort", strangers(4_000, of_each=4), sites=spread_sites(4_000))
    ended = fresh.run("genomics", PLINK | few)
    assert ended.status == 0, ended.terminal
    assert "no map is made: 12 samples are not more than genomics.umap.neighbors, 15" in ended.terminal
    table = pd.read_parquet(fresh / f"{RESULTS}/umap.parquet")
    assert len(table) == 12
    assert table[["UMAP1", "UMAP2"]].isna().all(axis=None)
    quality = fresh.json(f"{RESULTS}/umap.json")
    assert (quality["trustworthiness"], quality["components"], quality["samples"]) == (None, 3, 12)
    assert (fresh / f"{RESULTS}/plots/umap.png").stat().st_size > 1_000
    assert f"{RESULTS}/umap.parquet" in {each["path"] for each in fresh.json(f"{RESULTS}/manifest.json")["outputs"]}
    told = results(fresh)
    assert told.status == 0, told.terminal
    assert "No map was made: 12 samples are not more than umap.neighbors, 15." in told.terminal


def test_a_map_is_asked_for_more_components_than_are_computed_only_in_vain(fresh: Clone) -> None:
    fresh.write("mine.yaml", {"genomics": {"pca": {"components": 4}, "umap": {"components": 5}}})
    ended = fresh.snakemake("--dry-run", "--", "genomics", files=("tiny.yaml", "mine.yaml"))
    assert ended.message.startswith("ConfigError:")
    assert "umap.components is 5, but pca.components is 4" in ended.message

"""The genomics workflow on tiny simulated data: its files, what a change runs again, faults, and what was killed."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tests.guarantees.running import REMOTE, Clone, Ended, contents, inputs_of, leftovers, sha256, staging
from tests.helpers.genotype_stores import write_plink

RESULTS = "results/genomics/cpu"
GENOTYPES = "data/genomics/genotypes"
STEPS = ("variant_qc", "ld_prune", "relatedness", "pack", "pca", "project", "umap", "plot")
PICTURES = (
    "pcs_1_2", "pcs_3_4", "scree", "loadings_by_position", "umap", "missingness", "variant_quality", "kinship",
)  # fmt: skip
# Worker processes start in seconds, so a step is caught in the middle for sure.
SLOW_START = "cluster={kind: processes}"


def dry_run(clone: Clone, overrides: Mapping[str, Any], *arguments: str) -> Ended:
    """Say what would run with overrides of the section `genomics`."""
    return clone.dry_run({"genomics": overrides}, *arguments)


def genomics(*steps: str) -> set[str]:
    return {f"genomics_{step}" for step in steps}


def random_dosages(variants: int, samples: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(1).integers(-1, 3, (variants, samples))


# ---- a complete run


def test_the_first_run_runs_every_step_once(first_run: tuple[Clone, Ended]) -> None:
    _, ended = first_run
    assert ended.status == 0, ended.terminal
    ran = {job for job in ended.jobs if job.startswith("genomics_")}
    assert ran == genomics("simulate", "ingest", *STEPS, "manifest")


@pytest.mark.slow
def test_the_application_alone_finds_the_same_results_done(finished: Clone) -> None:
    for arguments in (("--snakefile", "workflows/genomics/Snakefile"), ("--", "genomics")):
        ended = finished.snakemake(*arguments)
        assert ended.status == 0, ended.terminal
        assert "Nothing to be done" in ended.terminal


def test_results_are_exactly_the_documented_files(finished: Clone) -> None:
    found = {path.name for path in (finished / RESULTS).iterdir() if not path.name.startswith(".")}
    assert found == {
        "variant_qc.parquet", "variants.parquet", "kinship.parquet", "relatedness.json", "unrelated.parquet", "packed",
        "pcs.parquet", "samples.parquet", "eigenvalues.json", "loadings.zarr", "projected.parquet", "umap.parquet",
        "umap.json", "plots", "manifest.json",
    }  # fmt: skip
    drawn = {path.name for path in (finished / RESULTS / "plots").iterdir() if not path.name.startswith(".")}
    assert drawn == {f"{picture}.{form}" for picture in PICTURES for form in ("png", "svg")}


def test_data_are_exactly_the_documented_files(finished: Clone) -> None:
    found = {path.name for path in (finished / "data/genomics").iterdir() if not path.name.startswith(".")}
    assert found == {"simulated.vcz", "simulated_labels.csv", "genotypes", "inputs.json"}


def test_every_step_leaves_a_log_a_record_and_a_benchmark(finished: Clone) -> None:
    assert set(contents(finished / "logs/genomics")) == {
        *(f"{step}.{form}" for step in ("simulate", "ingest") for form in ("log", "json", "jsonl")),
        *(f"cpu/{step}.{form}" for step in STEPS for form in ("log", "json", "jsonl")),
        *(f"cpu/manifest.{form}" for form in ("log", "jsonl")),
    }


def test_the_manifest_has_the_checksum_of_every_output_and_input(finished: Clone) -> None:
    manifest = finished.json(f"{RESULTS}/manifest.json")
    assert set(manifest["steps"]) == {"simulate", "ingest", *STEPS}
    outputs = {each["path"]: each["sha256"] for each in manifest["outputs"]}
    assert {f"{RESULTS}/pcs.parquet", f"{RESULTS}/loadings.zarr", "data/genomics/simulated.vcz"} <= outputs.keys()
    assert outputs == {path: sha256(finished / path) for path in outputs}
    inputs = manifest["inputs"]["files"]
    assert [each["sha256"] for each in inputs] == [sha256(finished / each["path"]) for each in inputs]


def test_every_sample_is_in_the_components_or_projected_and_every_variant_is_accounted_for(finished: Clone) -> None:
    read = pd.read_parquet
    simulated = pd.read_csv(finished / "data/genomics/simulated_labels.csv")
    pcs, projected, samples = (read(finished / f"{RESULTS}/{name}.parquet") for name in ("pcs", "projected", "samples"))
    assert sorted([*pcs["sample"], *projected["sample"]]) == sorted(simulated["sample"])
    assert samples["sample"].tolist() == simulated["sample"].tolist()
    assert (samples["reason"] == "").tolist() == samples["used"].tolist()
    variants = read(finished / f"{RESULTS}/variants.parquet")
    assert len(variants) == len(read(finished / GENOTYPES / "variants.parquet"))
    assert ((variants["reasons"].str.len() == 0) == variants["kept"]).all()
    assert variants["kept"].sum() == len(read(finished / RESULTS / "packed/variants.parquet"))


def test_no_child_is_in_the_components_with_a_parent(finished: Clone) -> None:
    simulated = pd.read_csv(finished / "data/genomics/simulated_labels.csv").set_index("sample")
    used = set(pd.read_parquet(finished / f"{RESULTS}/pcs.parquet")["sample"])
    children = simulated[simulated["role"] == "child"]
    assert len(children) == 4
    assert not [name for name, row in children.iterrows() if name in used and used & {row["mother"], row["father"]}]


def test_the_first_component_separates_africa_from_the_rest(finished: Clone) -> None:
    pcs = pd.read_parquet(finished / f"{RESULTS}/pcs.parquet")
    african = pcs["label"] == "AFR"
    others = pcs.loc[pcs["label"].isin(["EUR", "ASIA"]), "PC1"]
    assert pcs.loc[african, "PC1"].min() > others.max() or pcs.loc[african, "PC1"].max() < others.min()


def test_a_run_leaves_nothing_unfinished(finished: Clone) -> None:
    assert [path for path in leftovers(finished) if "genomics" in path] == []


@pytest.mark.slow
def test_the_report_holds_every_picture_and_opens_without_a_network(finished: Clone, tmp_path: Path) -> None:
    ended = finished.start(
        sys.executable, "-m", "snakemake", "--snakefile", "workflows/genomics/Snakefile", "--configfile", "tiny.yaml",
        "--report", str(tmp_path / "report.html"),
    ).ended()  # fmt: skip
    assert ended.status == 0, ended.terminal
    page = (tmp_path / "report.html").read_text()
    for picture in PICTURES:
        assert base64.b64encode((finished / f"{RESULTS}/plots/{picture}.png").read_bytes()).decode() in page, picture
    assert not REMOTE.search(page)


def test_the_table_of_results_tells_what_was_found(finished: Clone) -> None:
    ended = finished.start(sys.executable, "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert ended.status == 0, ended.terminal
    for said in (
        f"{RESULTS}/loadings.zarr/",
        f"{RESULTS}/plots/  {2 * len(PICTURES)} files",
        "47 samples; ",
        "PC1 explains",
    ):
        assert said in ended.terminal


@pytest.mark.slow
def test_one_core_gives_the_same_bytes(copied: Clone, finished: Clone) -> None:
    again = ("--cores", "1", "--forcerun", "genomics_ingest", "--", f"{RESULTS}/projected.parquet")
    ended = copied.snakemake(*again)
    assert ended.status == 0, ended.terminal
    assert genomics("ingest", "relatedness", "pca", "project") <= ended.jobs
    for name in ("variants", "kinship", "pcs", "projected"):
        assert (copied / f"{RESULTS}/{name}.parquet").read_bytes() == (
            finished / f"{RESULTS}/{name}.parquet"
        ).read_bytes()
    assert contents(copied / f"{RESULTS}/loadings.zarr") == contents(finished / f"{RESULTS}/loadings.zarr")


# ---- what a change runs again


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        ({"simulate": {"seed": 3}}, {"simulate", "ingest", *STEPS}),
        ({"variant_qc": {"hwe_p_value": 1e-6}}, set(STEPS)),
        ({"ld_prune": {"r2": 0.1}}, set(STEPS) - {"variant_qc"}),
        ({"relatedness": {"hold_out_labels": ["ADMIX"]}}, {"relatedness", "pca", "project", "umap", "plot"}),
        ({"pca": {"components": 12}}, {"pca", "project", "umap", "plot"}),
        ({"project": {"method": "simple"}}, {"project", "plot"}),
        ({"umap": {"seed": 8}}, {"umap", "plot"}),
        ({"plot": {"formats": ["svg"]}}, {"plot"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_changed_key_runs_its_step_again_and_what_follows_from_it(
    finished: Clone, overrides: Mapping[str, Any], steps: set[str]
) -> None:
    assert dry_run(finished, overrides).jobs == {*genomics(*steps, "manifest"), "all"}


def test_outliers_are_a_step_only_where_rounds_are_asked_for(finished: Clone) -> None:
    ended = dry_run(finished, {"outliers": {"iterations": 5}})
    assert ended.jobs == {*genomics("outliers", "pca", "project", "umap", "plot", "manifest"), "all"}
    assert f"{RESULTS}/without_outliers.parquet" in inputs_of(ended, "genomics_pca")


@pytest.mark.slow
def test_outliers_are_taken_out_and_the_manifest_gathers_their_record(copied: Clone) -> None:
    settings = {"outliers": {"iterations": 2, "standard_deviations": 3.0}}
    files = ("tiny.yaml", copied.write("mine.yaml", {"genomics": settings}))
    ended = copied.snakemake("--", f"{RESULTS}/pcs.parquet", files=files)
    assert ended.status == 0, ended.terminal
    assert "logs/genomics/cpu/outliers.json" in inputs_of(dry_run(copied, settings), "genomics_manifest")
    selected = pd.read_parquet(copied / f"{RESULTS}/samples.parquet")
    assert set(pd.read_parquet(copied / f"{RESULTS}/pcs.parquet")["sample"]) == set(
        selected.loc[selected["used"], "sample"]
    )


def test_as_many_pairs_of_components_are_drawn_as_asked_for(finished: Clone) -> None:
    target = f"{RESULTS}/plots/pcs_4_5.png"
    ended = dry_run(finished, {"plot": {"components": 5}}, "--", target)
    assert ended.jobs == {"genomics_plot"}
    assert f"{RESULTS}/plots/pcs_3_4.png" in ended.terminal


@pytest.fixture
def plink(fresh: Clone) -> Clone:
    """A clone whose source are PLINK files, ingested."""
    (fresh / "my data").mkdir()
    write_plink(fresh / "my data/cohort", random_dosages(200, 30))
    fresh.write("tiny.yaml", {"genomics": {"ingest": {"source": "plink", "plink": {"prefix": "my data/cohort"}}}})
    ended = fresh.snakemake("--", GENOTYPES)
    assert ended.status == 0, ended.terminal
    assert ended.jobs == genomics("ingest")
    return fresh


@pytest.mark.slow
def test_local_files_are_ingested_without_a_simulation_and_again_when_they_change(plink: Clone) -> None:
    assert "Nothing to be done" in plink.snakemake("--dry-run", "--", GENOTYPES).terminal
    write_plink(plink / "my data/cohort", random_dosages(201, 30))
    assert plink.snakemake("--dry-run", "--", GENOTYPES).jobs == genomics("ingest")


@pytest.mark.slow
def test_a_second_data_set_that_changed_is_projected_again(finished: Clone, copied: Clone) -> None:
    write_plink(copied / "second", random_dosages(50, 10))
    missing, there = ({"project": {"second": name}} for name in ("not there", "second"))
    target = f"{RESULTS}/projected.parquet"
    for overrides, listed in ((missing, False), (there, True)):
        ended = dry_run(copied, overrides, "--", target)
        assert ended.jobs == genomics("project")
        assert ("second.bed, second.bim, second.fam" in ended.terminal) == listed


# ---- what cannot be used


def test_missing_plink_files_stop_the_workflow_with_their_name(fresh: Clone) -> None:
    fresh.write("tiny.yaml", {"genomics": {"ingest": {"source": "plink", "plink": {"prefix": "chort"}}}})
    ended = fresh.snakemake("--", "genomics")
    assert ended.status == 1
    assert "Traceback" not in ended.terminal
    (message,) = ended.messages
    assert message.startswith("InputError: ")
    assert "chort." in message.splitlines()[0]
    assert "logs/genomics/ingest.log (check log file(s) for error details)" in ended.terminal
    assert not list((fresh / "results").rglob("*"))


def test_wrong_keys_and_a_source_without_a_place_are_told_at_once(finished: Clone) -> None:
    wrong = {"genomics": {"pca": {"componets": 5}, "ld_prune": {"r2": 2}, "ingest": {"source": "vcz"}}}
    ended = finished.snakemake(files=("tiny.yaml", finished.write("wrong.yaml", wrong)))
    assert ended.message.startswith("ConfigError:\n")
    told = ended.message.splitlines()[1:]
    assert len(told) == 3
    assert "wrong.yaml: genomics.pca.componets = 5: no such key; did you mean 'components'?" in told
    assert "wrong.yaml: genomics.ld_prune.r2 = 2: input should be less than or equal to 1" in told
    assert any("source is 'vcz', but vcz.store is empty" in each for each in told)


@pytest.mark.parametrize(
    ("step", "outputs"),
    [
        ("ingest", [GENOTYPES, "data/genomics/inputs.json", "logs/genomics/ingest.json"]),
        ("variant_qc", [f"{RESULTS}/variant_qc.parquet", "logs/genomics/cpu/variant_qc.json"]),
    ],
)
def test_a_step_that_failed_runs_again_although_the_results_of_an_earlier_run_are_there(
    copied: Clone, step: str, outputs: list[str]
) -> None:
    for path in (copied / output for output in outputs):  # Snakemake removes what a failed step had made before
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert genomics(step) <= dry_run(copied, {}, "--", "genomics").jobs


# ---- what was killed


@pytest.mark.slow
@pytest.mark.parametrize(("step", "output"), [("ingest", GENOTYPES), ("pack", f"{RESULTS}/packed")])
def test_a_killed_step_leaves_nothing_visible_and_the_next_run_makes_the_right_result(
    copied: Clone, finished: Clone, step: str, output: str
) -> None:
    run = copied.start_snakemake("--config", SLOW_START, "--forcerun", f"genomics_{step}", "--", output)
    begun = staging(copied, output)
    run.step(step).kill()
    ended = run.ended()
    assert ended.status == 1
    assert f"Error in rule genomics_{step}" in ended.terminal
    assert begun.exists()
    assert not (copied / output).exists()

    again = copied.snakemake("--", output)
    assert again.status == 0, again.terminal
    assert contents(copied / output) == contents(finished / output)
    assert leftovers(copied) == []


@pytest.mark.slow
def test_an_interrupted_run_ends_cleanly_and_the_next_one_needs_no_unlock(copied: Clone, finished: Clone) -> None:
    run = copied.start_snakemake("--config", SLOW_START, "--forcerun", "genomics_ingest", "--", GENOTYPES)
    staging(copied, GENOTYPES)
    os.killpg(run.process.pid, signal.SIGINT)  # as Ctrl-C does
    ended = run.ended()
    assert ended.status == 1
    assert "genomics ingest was interrupted and left nothing unfinished." in ended.terminal
    again = copied.snakemake("--", GENOTYPES)
    assert again.status == 0, again.terminal
    assert contents(copied / GENOTYPES) == contents(finished / GENOTYPES)
    assert leftovers(copied) == []

"""What a user sets reaches the steps that use it and no other; what cannot be used is refused before any job."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.guarantees.running import ROOT, Clone, Ended
from tests.helpers.raw_files import TRIP, write_csv

# Makes any machine one without a usable GPU.
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
QUALITY = "results/taxi/cpu/quality.json"
TIPS = {"trips": "trips", "zones": "zones", "tables": "tips_by_hour.parquet"}


def dry_run(clone: Clone, overrides: Mapping[str, Any], *arguments: str) -> Ended:
    """Say what would run with overrides from a second configuration file."""
    ended = clone.snakemake("--dry-run", *arguments, files=("tiny.yaml", clone.write("mine.yaml", overrides)), **NO_GPU)
    assert ended.status == 0, ended.terminal
    return ended


def test_a_changed_key_of_a_step_runs_that_step_again_and_what_follows_from_it(finished: Clone) -> None:
    ended = dry_run(finished, {"taxi": {"tips": {"confidence": 0.9}}})
    assert ended.jobs == {"taxi_tips", "taxi_plot", "taxi_manifest", "all"}


def test_changed_cluster_settings_run_nothing_again(finished: Clone) -> None:
    ended = dry_run(finished, {"cluster": {"kind": "processes", "performance_report": True}})
    assert "Nothing to be done" in ended.terminal


def test_a_result_that_was_removed_is_made_again(copied: Clone) -> None:
    (copied / "results/taxi/cpu/plots/data_quality.svg").unlink()
    assert dry_run(copied, {"device": "cpu"}).jobs == {"taxi_plot", "taxi_manifest", "all"}


def test_a_step_that_failed_runs_again_although_the_results_of_an_earlier_run_are_there(copied: Clone) -> None:
    for path in ("data/taxi/inputs.json", "data/taxi/zones.csv", "logs/taxi/fetch.json"):
        (copied / path).unlink()  # as Snakemake removes what a failed step had made before
    assert "taxi_fetch" in dry_run(copied, {}).jobs


def test_a_raw_file_that_changed_is_fetched_again(fresh: Clone) -> None:
    raw = write_csv(fresh / "yellow 2019.csv", [TRIP])
    fresh.write("tiny.yaml", {"taxi": {"fetch": {"source": "files", "files": {"paths": ["yellow*.csv"]}}}})
    fetched = "data/taxi/inputs.json"
    assert fresh.snakemake("--", fetched).status == 0
    assert "Nothing to be done" in fresh.snakemake("--dry-run", "--", fetched).terminal
    write_csv(raw, [TRIP, TRIP])
    assert fresh.snakemake("--dry-run", "--", fetched).jobs == {"taxi_fetch"}


def test_a_file_of_overrides_changes_one_nested_key_and_leaves_its_neighbors(finished: Clone) -> None:
    overrides = {"taxi": {"clean": {"ranges": {"duration": {"at_most": 3600}}}}}
    ended = dry_run(finished, overrides, "results/taxi/cpu/quality.json")
    assert ended.jobs == {"taxi_clean"}
    assert "'duration': {'above': 0.0, 'at_least': None, 'below': None, 'at_most': 3600.0}" in ended.terminal
    assert "'fare_amount': {'above': 0.0, 'at_least': None, 'below': None, 'at_most': 1000.0}" in ended.terminal


def test_a_part_of_a_mapping_is_merged_with_its_default_and_null_removes_a_bound(fresh: Clone) -> None:
    # Of -1, 1, 3 and 7 hours; the default is more than 0 and at most 6.
    ends = ["07:00:00", "09:00:00", "11:00:00", "15:00:00"]
    write_csv(fresh / "trips.csv", [TRIP.replace("08:10:00", end) for end in ends])
    fetched = {"source": "files", "files": {"paths": ["trips.csv"]}}
    kept = {}
    for name, bounds in (("merged", {"at_most": 7200}), ("removed", {"at_most": None})):
        ended = fresh.run("taxi", {"fetch": fetched, "clean": {"ranges": {"duration": bounds}}}, QUALITY)
        assert ended.status == 0, ended.terminal
        kept[name] = fresh.json(QUALITY)["totals"]["rows_out"]
    assert kept == {"merged": 1, "removed": 3}


def test_bounds_that_no_value_can_meet_are_refused_before_any_job_in_every_application(fresh: Clone) -> None:
    ranges = {
        "duration": {"above": 5, "at_most": 1},
        "fare_amount": {"at_least": 2000},
        "speed": {"at_most": 1, "below": 1},
    }
    wrong = {
        "taxi": {"clean": {"ranges": ranges}},
        "genomics": {"ld_prune": {"window": 10}, "variant_qc": {"regions": ["6:200-100"]}},
        "pagerank": {"simulate": {"links": float("inf")}},
        "recsys": {"split": {"valid_share": 0.5, "test_share": 0.5}},
    }
    ended = fresh.snakemake(files=("tiny.yaml", fresh.write("wrong.yaml", wrong)))
    told = ended.message.splitlines()[1:]
    for place, why in {
        "taxi.clean.ranges.duration": "no value is above 5 and at most 1",
        "taxi.clean.ranges.fare_amount": "no value is at least 2000 and at most 1000",
        "taxi.clean.ranges.speed": "below and at_most are both given",
        "genomics.ld_prune": "step is 20, larger than window, 10",
        "genomics.variant_qc.regions.0": "the region ends before it begins: write it as 6:100-200",
        "pagerank.simulate.links": "input should be a finite number",
        "recsys.split": "their sum must be below 1",
    }.items():
        assert [line for line in told if line.startswith(f"wrong.yaml: {place}") and why in line], (place, told)
    assert len(told) == 7


def test_text_given_with_config_becomes_the_type_of_its_key(finished: Clone) -> None:
    nested = "taxi={tips: {confidence: 0.9}, plot: {zones: 7}, model: {folds: 3, ridge_alphas: [0.5]}}"
    ended = finished.snakemake("--dry-run", "--config", nested)
    assert ended.status == 0, ended.terminal
    for settings in ("{'confidence': 0.9}", "'folds': 3", "'ridge_alphas': [0.5]"):
        assert settings in ended.terminal
    assert "taxi_plot" in ended.jobs


def test_all_wrong_keys_and_values_are_told_at_once_with_file_and_remedy(finished: Clone) -> None:
    wrong = {"devcie": "gpu", "cluster": {"kind": "proceses"}, "taxi": {"plot": {"zone": 3, "zones": "many"}}}
    ended = finished.snakemake(files=("tiny.yaml", finished.write("wrong.yaml", wrong)))
    assert ended.message.startswith("ConfigError:\n")
    assert set(ended.message.splitlines()[1:]) == {
        "wrong.yaml: devcie = 'gpu': no such key; did you mean 'device'?",
        "wrong.yaml: cluster.kind = 'proceses': input should be 'auto', 'threads', 'processes' or 'attach'; "
        "did you mean 'processes'?",
        "wrong.yaml: taxi.plot.zone = 3: no such key; did you mean 'zones'?",
        "wrong.yaml: taxi.plot.zones = 'many': input should be a valid integer, unable to parse string as an integer",
    }


@pytest.mark.parametrize(
    "command",
    [
        ("make", "-o", ".venv/.cpu", "run", "CONFIG=broken.yaml"),
        (sys.executable, "-m", "snakemake", "--configfile", "broken.yaml"),
        (sys.executable, "-m", "whitewater", "config", "--configfile", "broken.yaml"),
        (sys.executable, "-m", "whitewater", "doctor", "--configfile", "broken.yaml"),
    ],
    ids=["make run", "snakemake", "config", "doctor"],
)
def test_an_own_file_that_is_no_yaml_is_told_with_its_line_and_a_remedy(fresh: Clone, command: Sequence[str]) -> None:
    (fresh / ".venv").symlink_to(sys.prefix)
    (fresh / "broken.yaml").write_text("taxi:\n  clean:\n    ranges: {duration: {at_most: 3600}\n  plot: {}\n")
    ended = fresh.start(*command, PYTHONPATH=str(ROOT / "src")).ended()
    assert ended.status in {1, 2}
    assert "Traceback" not in ended.terminal
    assert len(re.findall("broken.yaml, line 4, column .* begins in line 3.*Indent with spaces", ended.terminal)) == 1
    assert not (fresh / "results").exists()


def test_a_missing_file_is_told_last_without_a_traceback_and_where_targets_belong(fresh: Clone) -> None:
    for given, end in ((["mine.yaml"], ""), (["tiny.yaml", "taxi"], " --configfile takes several files: ")):
        ended = fresh.start(sys.executable, "-m", "snakemake", "--configfile", *given, V="").ended()
        assert ended.status == 1
        assert "Traceback" not in ended.terminal
        last = ended.terminal.splitlines()[-1]
        assert last.startswith(f"ConfigError: {given[-1]}: No such file or directory.{end}")


@pytest.mark.parametrize("snakefile", ["Snakefile", "workflows/genomics/Snakefile"])
def test_a_file_of_the_project_that_is_no_yaml_is_told_with_its_line(fresh: Clone, snakefile: str) -> None:
    (fresh / "config/taxi.yaml").write_text("taxi:\n\tclean: {}\n")
    ended = fresh.snakemake("--dry-run", "--snakefile", snakefile)
    assert ended.message.startswith("ConfigError: config/taxi.yaml, line 2, column 1: found character")


def test_a_wrong_value_given_with_config_is_told_to_be_from_there(finished: Clone) -> None:
    ended = finished.snakemake("--config", "device=tpu")
    assert ended.message == (
        "ConfigError:\n--config: device = 'tpu': input should be 'cpu', 'gpu' or 'auto'; did you mean 'gpu'?"
    )


def test_a_step_run_by_hand_refuses_wrong_settings_and_clusters_alike(fresh: Clone) -> None:
    settings = fresh.step("tips", TIPS, settings={"confidance": 0.9, "confidence": 2}).message
    assert "--settings: confidence" in settings
    assert "--settings: confidance" in settings
    assert "--cluster: kind" in fresh.step("tips", TIPS, cluster={"kind": "proceses"}).message


def test_gpu_without_a_gpu_ends_before_the_first_job_with_one_message(finished: Clone) -> None:
    ended = finished.snakemake("--config", "device=gpu", **NO_GPU)
    assert ended.message.startswith("DeviceError: device=gpu, but no usable NVIDIA GPU was found.")
    for part in ("libcuda.so.1", "cudf", "device=cpu", "envs/gpu.lock", "`whitewater doctor`"):
        assert part in ended.message
    assert "rule taxi_" not in ended.terminal
    assert not (finished / "results/taxi/gpu").exists()


def test_gpu_without_a_gpu_can_still_be_dry_run(finished: Clone) -> None:
    ended = finished.snakemake("--dry-run", "--config", "device=gpu", **NO_GPU)
    assert ended.status == 0, ended.terminal
    assert {"taxi_standardize", "taxi_clean", "taxi_tips", "taxi_model", "taxi_manifest"} <= ended.jobs
    assert "output: results/taxi/gpu/manifest.json" in ended.terminal


def test_a_step_run_by_hand_on_a_gpu_that_is_not_there_is_refused(fresh: Clone) -> None:
    message = fresh.step("tips", TIPS, device="gpu", **NO_GPU).message
    assert message.startswith("DeviceError: ")


def test_auto_says_which_device_it_took(fresh: Clone) -> None:
    ended = fresh.snakemake("--config", "device=auto", "--", "data/taxi/zones.csv", **NO_GPU)
    assert ended.status == 0, ended.terminal
    assert len([line for line in ended.terminal.splitlines() if line.startswith("device=auto took cpu: ")]) == 1


def test_the_workflows_pass_snakemakes_lint(fresh: Clone) -> None:
    ended = fresh.start(sys.executable, "-m", "snakemake", "--lint").ended()
    assert ended.status == 0, ended.terminal
    assert "your workflow is in a good condition" in ended.terminal


def test_the_workflows_are_formatted(fresh: Clone) -> None:
    ended = fresh.start("snakefmt", "--check", "Snakefile", "workflows").ended()
    assert ended.status == 0, ended.terminal


def test_little_data_leaves_a_core_to_the_other_applications_and_much_takes_all(copied: Clone) -> None:
    read = {"taxi_clean": "results/taxi/cpu/standardized", "genomics_ld_prune": "data/genomics/genotypes"}
    for step, folder in read.items():
        assert threads(dry_run(copied, {}, "--forcerun", step), step) == "1"
        with (copied / folder / "more").open("wb") as more:
            more.truncate(2**30)  # takes no room on the disk
        assert threads(dry_run(copied, {}, "--forcerun", step), step) == "2"


def threads(ended: Ended, rule: str) -> str:
    """Return the threads of a job, which Snakemake lists where they are more than one."""
    job = ended.terminal.partition(f"rule {rule}:")[2].partition("Shell command")[0]
    listed = re.search(r"threads: (\d+)", job)
    return listed[1] if listed else "1"

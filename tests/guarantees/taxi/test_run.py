"""A run on small generated data leaves exactly what is documented, and a second one has nothing to do."""

import base64
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from tests.guarantees.running import REMOTE, Clone, Ended, contents, leftovers, sha256
from whitewater.testing.guarantees import check_nothing_to_do

RESULTS = "results/taxi/cpu"
TABLES = ("hour", "weekday_hour", "month", "payment_type", "passenger_count", "borough", "zone")
PICTURES = (
    "tip_fraction_by_hour",
    "tip_fraction_by_weekday_hour",
    "tip_fraction_by_borough",
    "tip_fraction_by_zone",
    "data_quality",
    "predicted_against_observed",
)
STEPS = ("standardize", "clean", "tips", "model", "plot")


def partitions(clone: Clone, data_set: str) -> set[str]:
    """Name the file of each service and month that has rows; tiny data is one partition, named as its first part."""
    return {
        f"{data_set}/service={month['service']}/year={int(month['month'][:4])}/month={int(month['month'][5:])}"
        "/part-0000-0000-0000.parquet"
        for month in clone.json(f"{RESULTS}/quality.json")["by_month"]
        if (month["rows_out"] if data_set == "trips" else month["rows_in"] - month["rows_out"])
    }


def test_the_first_run_succeeds_and_runs_every_step_once(first_run: tuple[Clone, Ended]) -> None:
    _, ended = first_run
    assert ended.status == 0, ended.terminal
    jobs = {job for job in ended.jobs if not job.startswith(("genomics_", "pagerank_", "recsys_"))}
    assert jobs == {"taxi_fetch", *(f"taxi_{step}" for step in STEPS), "taxi_manifest", "all"}


def test_a_second_run_does_nothing(finished: Clone) -> None:
    check_nothing_to_do(finished)


def test_the_application_alone_finds_the_same_results_done(finished: Clone) -> None:
    ended = finished.snakemake("--snakefile", "workflows/taxi/Snakefile")
    assert ended.status == 0
    assert "Nothing to be done" in ended.terminal


def test_the_application_alone_makes_the_same_results(finished: Clone, fresh: Clone) -> None:
    target = f"{RESULTS}/tips_by_zone.parquet"
    ended = fresh.snakemake("--snakefile", "workflows/taxi/Snakefile", target)
    assert ended.status == 0, ended.terminal
    assert ended.jobs == {"fetch", "standardize", "clean", "tips"}
    for name in ("trips", "quarantine"):
        assert contents(fresh / f"{RESULTS}/{name}") == contents(finished / f"{RESULTS}/{name}")
    assert (fresh / target).read_bytes() == (finished / target).read_bytes()


def test_results_are_exactly_the_documented_files(finished: Clone) -> None:
    found = {name for name in contents(finished / RESULTS) if not name.startswith((".", "standardized/", "plots/."))}
    assert found == {
        *partitions(finished, "trips"),
        *partitions(finished, "quarantine"),
        "quality.json",
        *(f"tips_by_{table}.{form}" for table in TABLES for form in ("parquet", "csv")),
        "model/metrics.json",
        "model/model.json",
        "model/predictions.parquet",
        "model/yellow/ridge.json",
        "model/yellow/forest.treelite",
        *(f"plots/{picture}.{form}" for picture in PICTURES for form in ("png", "svg")),
        "manifest.json",
    }


def test_every_step_leaves_a_log_a_record_and_a_benchmark(finished: Clone) -> None:
    assert set(contents(finished / "logs/taxi")) == {
        *(f"fetch.{form}" for form in ("log", "json", "jsonl")),
        *(f"cpu/{step}.{form}" for step in STEPS for form in ("log", "json", "jsonl")),
        *(f"cpu/manifest.{form}" for form in ("log", "jsonl")),
    }


def test_a_run_leaves_nothing_unfinished(finished: Clone) -> None:
    assert leftovers(finished) == []


def test_the_manifest_has_the_checksum_of_every_output_and_input(finished: Clone) -> None:
    manifest = finished.json(f"{RESULTS}/manifest.json")
    outputs = {each["path"]: each["sha256"] for each in manifest["outputs"]}
    assert {f"{RESULTS}/trips", f"{RESULTS}/quality.json", f"{RESULTS}/model", "data/taxi/zones.csv"} <= outputs.keys()
    assert outputs == {path: sha256(finished / path) for path in outputs}
    inputs = [*manifest["inputs"]["files"], manifest["inputs"]["zones"]]
    assert [each["sha256"] for each in inputs] == [sha256(finished / each["path"]) for each in inputs]


def test_the_manifest_says_where_each_step_ran(finished: Clone) -> None:
    steps = finished.json(f"{RESULTS}/manifest.json")["steps"]
    assert set(steps) == {"fetch", *STEPS}
    assert {record["device"]["name"] for record in steps.values()} == {"cpu"}
    assert all(
        record["host"] and record["seconds"] > 0 and record["peak_memory_bytes"] > 0 for record in steps.values()
    )


def test_the_defaults_of_keys_that_nobody_set_are_in_the_manifest(finished: Clone) -> None:
    config = finished.json(f"{RESULTS}/manifest.json")["config"]
    assert config["fetch"]["generated"] == {
        "scale": 0.001, "months": ["2019-03"], "services": ["yellow", "green"], "seed": 2019
    }  # fmt: skip
    assert config["tips"] == {"confidence": 0.95}


def test_rows_in_are_rows_out_and_rows_in_quarantine_file_by_file(finished: Clone) -> None:
    quality = finished.json(f"{RESULTS}/quality.json")
    raw = finished / "data/taxi/generated"
    lines = (raw / "yellow_tripdata_2019-03.csv").read_bytes().splitlines()
    rows = {"yellow": len([line for line in lines if line]) - 1,
            "green": pq.read_metadata(raw / "green_tripdata_2019-03.parquet").num_rows}  # fmt: skip
    kept, rejected = (pd.read_parquet(finished / f"{RESULTS}/{name}") for name in ("trips", "quarantine"))
    for file in quality["files"]:
        assert file["rows_in"] == rows[file["service"]]
        assert file["rows_out"] == (kept["service"] == file["service"]).sum()
        assert file["quarantined"] == (rejected["service"] == file["service"]).sum()
        assert file["rows_in"] == file["rows_out"] + file["quarantined"]
    assert quality["totals"] == {"rows_in": sum(rows.values()), "rows_out": len(kept), "quarantined": len(rejected)}
    assert len(rejected) > 0
    assert (rejected["reasons"].str.len() > 0).all()


def test_the_report_holds_every_picture_and_opens_without_a_network(finished: Clone, tmp_path: Path) -> None:
    ended = finished.start(
        sys.executable, "-m", "snakemake", "--configfile", "tiny.yaml", "--report", str(tmp_path / "report.html")
    ).ended()
    assert ended.status == 0, ended.terminal
    page = (tmp_path / "report.html").read_text()
    for picture in PICTURES:
        assert base64.b64encode((finished / f"{RESULTS}/plots/{picture}.png").read_bytes()).decode() in page, picture
    assert not REMOTE.search(page)


def test_the_table_of_results_names_every_result(finished: Clone) -> None:
    ended = finished.start(sys.executable, "-m", "whitewater", "results", PYTHONPATH="src").ended()
    assert ended.status == 0, ended.terminal
    named = [f"tips_by_{table}.{{csv,parquet}}" for table in TABLES]
    named += [f"plots/  {2 * len(PICTURES)} files"]
    named += ["trips/", "quarantine/", "quality.json", "model/", "manifest.json"]
    assert [name for name in named if f"{RESULTS}/{name}" not in ended.terminal] == []


def test_dasks_performance_report_is_saved_when_asked_for_and_opens_without_a_network(copied: Clone) -> None:
    paths = {"trips": f"{RESULTS}/trips", "zones": "data/taxi/zones.csv", "tables": "tips_by_hour.parquet"}
    ended = copied.step("tips", paths, cluster={"performance_report": True})
    assert ended.status == 0, ended.terminal
    page = (copied / "logs/tips.dask.html").read_text()
    assert "Dask Performance Report" in page
    assert "Bokeh" in page
    assert not REMOTE.search(page)

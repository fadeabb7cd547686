"""Steps, workers and Snakemake itself killed with `kill -9`: what follows gives the result of a run undisturbed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.guarantees.running import (
    DEADLINE,
    Clone,
    Running,
    contents,
    eventually,
    leftovers,
    listed,
    make_clone,
    workers,
)
from tests.raw_files import write_parquet, write_zones, yellow_frame

STANDARDISED = "results/taxi/cpu/standardised"
# Worker processes start in seconds, so a step is caught in the middle for sure.
SLOW_START = "cluster={kind: processes}"


def staging(clone: Clone, output: str) -> Path:
    """Wait until a step has begun to write an output; return where it writes."""
    final = clone / output
    return eventually(lambda: next(iter(final.parent.glob(f".{final.name}.*.part")), None), what=f"work on {output}")


def start_again(clone: Clone) -> Running:
    """Start to standardise anew, by worker processes, though it was done before."""
    return clone.start_snakemake("--config", SLOW_START, "--forcerun", "taxi_standardise", "--", STANDARDISED)


def test_a_killed_step_leaves_nothing_visible_and_the_next_run_makes_the_right_result(
    copied: Clone, finished: Clone
) -> None:
    run = start_again(copied)
    begun = staging(copied, STANDARDISED)
    run.step("standardise").kill()
    ended = run.ended()
    assert ended.status == 1
    assert "Error in rule taxi_standardise" in ended.terminal
    assert begun.exists()
    assert not (copied / STANDARDISED).exists()

    again = copied.snakemake("--", STANDARDISED)
    assert again.status == 0, again.terminal
    assert contents(copied / STANDARDISED) == contents(finished / STANDARDISED)
    assert leftovers(copied) == []


def test_a_killed_snakemake_is_run_again_after_unlock_and_its_orphan_cannot_overwrite(
    copied: Clone, finished: Clone
) -> None:
    run = start_again(copied)
    staging(copied, STANDARDISED)
    orphan = run.step("standardise")
    # Stopped, it waits for the moment at which it would do harm: when the next run has ended.
    orphan.suspend()
    run.kill()
    assert orphan.is_running()

    refused = copied.snakemake("--", STANDARDISED)
    assert refused.status == 1
    assert "--unlock" in refused.terminal
    assert copied.start("snakemake", "--unlock").ended().status == 0
    again = copied.snakemake("--", STANDARDISED)
    assert again.status == 0, again.terminal
    assert "taxi_standardise" in again.jobs
    written = {path: path.stat().st_mtime_ns for path in (copied / STANDARDISED).iterdir()}

    orphan.resume()
    psutil.wait_procs([orphan], timeout=DEADLINE)
    assert "A newer run of the same step has begun" in run.ended().terminal
    assert contents(copied / STANDARDISED) == contents(finished / STANDARDISED)
    assert {path: path.stat().st_mtime_ns for path in (copied / STANDARDISED).iterdir()} == written
    assert leftovers(copied) == []


def test_an_interrupted_run_ends_cleanly_and_the_next_one_needs_no_unlock(copied: Clone, finished: Clone) -> None:
    run = start_again(copied)
    staging(copied, STANDARDISED)
    os.killpg(run.process.pid, signal.SIGINT)  # as Ctrl-C does
    ended = run.ended()
    assert ended.status == 1
    assert "taxi standardise was interrupted and left nothing unfinished." in ended.terminal
    assert "Traceback" not in ended.terminal
    assert not (copied / STANDARDISED).exists()
    again = copied.snakemake("--", STANDARDISED)
    assert again.status == 0, again.terminal
    assert contents(copied / STANDARDISED) == contents(finished / STANDARDISED)
    assert leftovers(copied) == []


@pytest.fixture(scope="module")
def standardised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone with a raw file of four row groups, standardised into as many parts, and a table of zones."""
    clone = make_clone(tmp_path_factory.mktemp("standardised") / "clone")
    path = write_parquet(yellow_frame(240_000), clone / "yellow.parquet", row_group_size=60_000)
    clone.write("inputs.json", listed(path))
    write_zones(clone / "zones.csv")
    ended = clone.step("standardise", {"inputs": "inputs.json", "standardised": "undisturbed/standardised"})
    assert ended.status == 0, ended.terminal
    yield clone
    clone.end()


def start_clean(clone: Clone, folder: str, *, kind: str) -> Running:
    """Start to clean, with the outputs in a folder."""
    outputs = {"trips": f"{folder}/trips", "quarantine": f"{folder}/quarantine", "quality": f"{folder}/quality.json"}
    inputs = {"standardised": "undisturbed/standardised", "zones": "zones.csv"}
    return clone.start_step("clean", {**inputs, **outputs}, cluster={"kind": kind})


def kill_workers(running: Running, begun: Path) -> None:
    """Kill all worker processes of a step as soon as one of them has begun to write the first file of its output."""
    eventually(lambda: next((path for path in begun.rglob("*") if path.is_file()), None), what="the first file")
    for worker in workers(psutil.Process(running.process.pid)):
        worker.kill()


def test_what_killed_workers_were_standardising_is_standardised_again(standardised: Clone) -> None:
    paths = {"inputs": "inputs.json", "standardised": "disturbed/standardised"}
    running = standardised.start_step("standardise", paths, cluster={"kind": "processes"})
    kill_workers(running, staging(standardised, "disturbed/standardised"))
    ended = running.ended()
    assert ended.status == 0, ended.terminal
    assert "Restarting worker" in standardised.log("standardise")
    assert contents(standardised / "disturbed/standardised") == contents(standardised / "undisturbed/standardised")


def test_what_killed_workers_were_cleaning_is_cleaned_again(standardised: Clone) -> None:
    undisturbed = start_clean(standardised, "undisturbed", kind="threads").ended()
    assert undisturbed.status == 0, undisturbed.terminal
    running = start_clean(standardised, "disturbed", kind="processes")
    kill_workers(running, staging(standardised, "disturbed/trips"))
    ended = running.ended()
    assert ended.status == 0, ended.terminal
    assert "Restarting worker" in standardised.log("clean")
    for name in ("trips", "quarantine"):
        assert contents(standardised / f"disturbed/{name}") == contents(standardised / f"undisturbed/{name}")
    assert standardised.json("disturbed/quality.json") == standardised.json("undisturbed/quality.json")

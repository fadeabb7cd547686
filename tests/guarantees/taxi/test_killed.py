"""Steps, workers and Snakemake itself killed with `kill -9`: what follows gives the result of a run undisturbed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.guarantees.running import (
    DEADLINE,
    MINE,
    Clone,
    Running,
    contents,
    eventually,
    leftovers,
    make_clone,
    sha256,
    staging,
    workers,
)  # fmt: skip
from tests.helpers.raw_files import write_parquet, write_zones, yellow_frame
from whitewater.testing.guarantees import SLOW_START, check_killed_step

STANDARDIZED = "results/taxi/cpu/standardized"
QUALITY = "results/taxi/cpu/quality.json"


def start_again(clone: Clone) -> Running:
    """Start to standardize anew, by worker processes, though it was done before."""
    return clone.start_snakemake("--config", SLOW_START, "--forcerun", "taxi_standardize", "--", STANDARDIZED)


def test_a_killed_step_leaves_nothing_visible_and_the_next_run_makes_the_right_result(
    copied: Clone, finished: Clone
) -> None:
    check_killed_step(copied, finished, application="taxi", step="standardize", output=STANDARDIZED)


@pytest.mark.slow
def test_a_killed_snakemake_is_run_again_after_unlock_and_its_orphan_cannot_overwrite(
    copied: Clone, finished: Clone
) -> None:
    run = start_again(copied)
    staging(copied, STANDARDIZED)
    orphan = run.step("standardize")
    # Stopped, it waits for the moment at which it would do harm: when the next run has ended.
    orphan.suspend()
    run.kill()
    assert orphan.is_running()

    refused = copied.snakemake("--", STANDARDIZED)
    assert refused.status == 1
    assert "--unlock" in refused.terminal
    assert copied.start("snakemake", "--unlock").ended().status == 0
    again = copied.snakemake("--", STANDARDIZED)
    assert again.status == 0, again.terminal
    assert "taxi_standardize" in again.jobs
    written = {path: path.stat().st_mtime_ns for path in (copied / STANDARDIZED).iterdir()}

    orphan.resume()
    psutil.wait_procs([orphan], timeout=DEADLINE)
    assert "A newer run of the same step has begun" in run.ended().terminal
    assert contents(copied / STANDARDIZED) == contents(finished / STANDARDIZED)
    assert {path: path.stat().st_mtime_ns for path in (copied / STANDARDIZED).iterdir()} == written
    assert leftovers(copied) == []


def test_an_interrupted_run_ends_cleanly_and_the_next_one_needs_no_unlock(copied: Clone, finished: Clone) -> None:
    run = start_again(copied)
    staging(copied, STANDARDIZED)
    os.killpg(run.process.pid, signal.SIGINT)  # as Ctrl-C does
    ended = run.ended()
    assert ended.status == 1
    assert "taxi standardize was interrupted and left nothing unfinished." in ended.terminal
    assert "Traceback" not in ended.terminal
    assert not (copied / STANDARDIZED).exists()
    again = copied.snakemake("--", STANDARDIZED)
    assert again.status == 0, again.terminal
    assert contents(copied / STANDARDIZED) == contents(finished / STANDARDIZED)
    assert leftovers(copied) == []


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone with a raw file that is 12 tasks to standardize, and 3 to clean, both done by threads."""
    clone = make_clone(tmp_path_factory.mktemp("cleaned") / "clone")
    write_parquet(yellow_frame(1_200_000), clone / "yellow.parquet", row_group_size=100_000)
    write_zones(clone / "zones.csv")
    fetched = {"source": "files", "files": {"paths": ["yellow.parquet"], "zones": "zones.csv"}}
    ended = clone.run("taxi", {"fetch": fetched, "standardize": {"block_rows": 100_000}}, QUALITY)
    assert ended.status == 0, ended.terminal
    yield clone
    clone.end()


def kill_workers(step: psutil.Process, begun: Path) -> None:
    """Kill all worker processes of a step as soon as one of them has begun to write the first file of its output."""
    eventually(lambda: next((path for path in begun.rglob("*") if path.is_file()), None), what="the first file")
    for worker in workers(step):
        worker.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "written"),
    [("standardize", ["standardized"]), ("clean", ["trips", "quarantine", "quality.json"])],
)
def test_what_killed_workers_were_working_on_is_done_again(cleaned: Clone, step: str, written: list[str]) -> None:
    places = [cleaned / f"results/taxi/cpu/{name}" for name in written]
    undisturbed = [sha256(place) for place in places]
    target = f"results/taxi/cpu/{written[0]}"
    run = cleaned.start_snakemake("--config", SLOW_START, "--forcerun", f"taxi_{step}", "--", target, files=MINE)
    kill_workers(run.step(step), staging(cleaned, target))
    ended = run.ended()
    assert ended.status == 0, ended.terminal
    assert "Restarting worker" in (cleaned / f"logs/taxi/cpu/{step}.log").read_text()
    assert [sha256(place) for place in places] == undisturbed
    assert leftovers(cleaned) == []

"""What a user sees of a run: a line a step, warnings, and what went wrong last, with its log."""

import re

import pytest

from tests.guarantees.running import Clone, leftovers

CLEANED = "results/taxi/cpu/quality.json"
LINE = re.compile(r"^\d\d:\d\d:\d\d taxi (\w+) +\d+\.\d s$", re.MULTILINE)
SHORT = {"V": ""}


@pytest.fixture
def cleaned(fresh: Clone) -> Clone:
    ended = fresh.snakemake("--", CLEANED, **SHORT)
    assert ended.status == 0, ended.terminal
    assert LINE.findall(ended.terminal) == ["fetch", "standardize", "clean"]
    assert len(ended.terminal.splitlines()) <= 8, ended.terminal
    assert "3 jobs to run" in ended.terminal
    return fresh


def test_steps_are_a_line_each_a_second_run_says_that_all_is_done_and_v_shows_what_snakemake_says(
    cleaned: Clone,
) -> None:
    assert "Nothing to be done" in cleaned.snakemake("--", CLEANED, **SHORT).terminal
    assert "simulated" in (cleaned / "logs/taxi/fetch.log").read_text()
    again = cleaned.snakemake("--forcerun", "taxi_clean", "--", CLEANED, V="1")
    assert "rule taxi_clean:" in again.terminal
    assert "trips read" in again.terminal


def test_the_error_of_a_step_is_the_last_thing_on_the_screen_with_its_log(fresh: Clone) -> None:
    (fresh / "mine.csv").write_text("from,to\n1,2\n")
    section = {"fetch": {"source": "files", "files": {"paths": ["mine.csv"]}}}
    ended = fresh.run("taxi", section, CLEANED, **SHORT)
    assert ended.status == 1
    *_, error, log = ended.terminal.splitlines()
    assert error.startswith("InputError: mine.csv: columns not understood: 'from', 'to'")
    assert log == "taxi standardize has failed; its log: logs/taxi/cpu/standardize.log"
    assert ended.terminal.count("not understood") == 1
    assert "location is in the borough Unknown" in ended.terminal, "warnings are shown"
    assert "Traceback" in (fresh / "logs/taxi/cpu/standardize.log").read_text()


@pytest.mark.slow
def test_of_a_step_that_was_killed_the_screen_tells_the_signal_and_the_log(cleaned: Clone) -> None:
    run = cleaned.start_snakemake(
        "--config", "cluster={kind: processes}", "--forcerun", "taxi_standardize", "--", CLEANED, **SHORT
    )
    run.step("standardize").kill()
    ended = run.ended()
    assert ended.status == 1
    assert "SIGKILL" in ended.terminal
    assert ended.terminal.splitlines()[-1].startswith("taxi standardize has failed; its log: ")
    assert cleaned.snakemake("--", CLEANED, **SHORT).status == 0
    assert leftovers(cleaned) == []

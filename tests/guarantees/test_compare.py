"""`whitewater compare` tells what differs between two runs: settings, rows, times and findings."""

import json
import sys

import pytest

from tests.guarantees.running import MINE, Clone


def compare(clone: Clone, *arguments: str) -> tuple[int, str]:
    ended = clone.start(sys.executable, "-m", "whitewater", "compare", *arguments).ended()
    return ended.status, ended.terminal


def test_a_run_that_is_missing_is_an_error_that_names_those_there_are(finished: Clone) -> None:
    status, terminal = compare(finished, ".", "mine")
    assert status == 1
    assert terminal.startswith("InputError: results/mine/ has no finished results. Runs with results: '.'. Name two")


def test_a_run_equals_itself_and_has_rows_times_and_findings(finished: Clone) -> None:
    status, terminal = compare(finished, ".", ".", "--json")
    assert status == 0
    applications = json.loads(terminal)["applications"]
    assert set(applications) == {"taxi on cpu", "genomics on cpu", "pagerank on cpu", "recsys on cpu"}
    assert applications["taxi on cpu"]["rows"]["tips_by_hour.csv"]
    for each in applications.values():
        assert each["settings"] == {}
        assert each["seconds"]
        assert each["found"]
        for kind in ("rows", "seconds", "found"):
            assert all(first == second for first, second in each[kind].values())


@pytest.mark.slow
def test_a_changed_setting_and_the_rows_that_it_changed_are_shown(copied: Clone) -> None:
    copied.write(MINE[-1], {"run": {"name": "mine"}, "taxi": {"clean": {"ranges": {"trip_distance": {"at_most": 3}}}}})
    ended = copied.snakemake("--", "taxi", files=MINE)
    assert ended.status == 0, ended.terminal
    status, terminal = compare(copied, ".", "mine", "--json")
    assert status == 0
    applications = json.loads(terminal)["applications"]
    taxi = applications["taxi on cpu"]
    assert {key: pair[1] for key, pair in taxi["settings"].items()} == {"clean.ranges.trip_distance.at_most": 3}
    kept, fewer = taxi["rows"]["trips"]
    assert 0 < fewer < kept
    assert "clean.ranges.trip_distance.at_most" in compare(copied, ".", "mine")[1]

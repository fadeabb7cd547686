"""`whitewater compare`: two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.library.cli.test_results import fill
from whitewater.cli import compare
from whitewater.errors import InputError

pytestmark = pytest.mark.usefixtures("tiny")


def make(place: Path, *, largest: int, seconds: float) -> None:
    manifest = fill(place) / "manifest.json"
    record = {"seconds": seconds, "facts": {}}
    told = {"whitewater": "1.0", "config": {"clean": {"largest": largest}}, "steps": {"clean": record}}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | told))


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("results/tiny/cpu"), largest=9, seconds=2.0)
    make(Path("results/mine/tiny/cpu"), largest=1234567, seconds=1.5)


def test_json_has_the_settings_that_differ_and_the_rows_seconds_and_findings_of_both(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("results/mine/tiny/cpu/notes.txt").touch()
    assert compare.main([".", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "runs": [".", "mine"],
        "applications": {
            "tiny on cpu": {
                "settings": {"clean.largest": [9, 1234567]},
                "rows": {"trips": [1234, 1234], "tips_by_hour.csv": [5, 5]},
                "seconds": {"clean": [2.0, 1.5]},
                "found": {"7 files or folders.": [True, None], "8 files or folders.": [None, True]},
            }
        },
    }


def test_as_text_each_item_is_a_line_and_a_finding_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([".", "mine"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "tiny on cpu"
    for line in ("settings clean.largest 9 1,234,567", "rows trips 1,234 1,234", "seconds clean 2.0 1.5"):
        assert line in lines
    assert "both: 7 files or folders." in lines


def test_what_one_run_alone_has_is_shown_without_a_value_of_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    make(Path("results/mine/tiny/gpu"), largest=9, seconds=1.0)
    assert compare.main([".", "mine", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["applications"]["tiny on gpu"]
    assert found["settings"]["clean.largest"] == [None, 9]
    assert found["rows"]["trips"] == [None, 1234]


def test_a_run_without_results_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(InputError, match=r"results/yours/ has no finished results. Runs with results: '.', 'mine'"):
        compare.main([".", "yours"])


def test_as_text_what_one_run_alone_has_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    make(Path("results/mine/tiny/gpu"), largest=9, seconds=1.0)
    assert compare.main([".", "mine"]) == 0
    assert "tiny on gpu: only in mine" in capsys.readouterr().out.splitlines()

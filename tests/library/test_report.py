"""The cover of a report: the graph of the steps, small tables, and what changed since."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.library.cli.test_results import OUTPUTS, fill
from whitewater.report import cover, tables

pytestmark = pytest.mark.usefixtures("tiny")
# What each step reads, besides what those before it read.
READ = {
    "fetch": [],
    "clean": ["fetched"],
    "tips": ["trips", "fetched"],
    "model": ["trips"],
    "plot": ["tips_by_hour.csv", "model", "trips"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    place = fill(Path("results/tiny/cpu"))
    steps = {
        step: {"seconds": 1.25, "facts": {}, "inputs": {name: str(place / name) for name in names}}
        for step, names in READ.items()
    }
    outputs = [{"path": str(place / name), "step": step} for name, step in {**OUTPUTS, "fetched": "fetch"}.items()]
    (place / "fetched").touch()
    manifest = {"format": 1, "application": "tiny", "config": {"clean": {"largest": 9}}, "steps": steps,
                "outputs": outputs}  # fmt: skip
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


def made(place: Path, **configured: Any) -> str:
    section = {"clean": {"largest": 9, **configured}}
    return " ".join(cover(place, section, tables(place).values(), report=Path("results/report.html")).split())


def test_steps_stand_below_those_they_read_from_and_an_arrow_that_follows_from_others_is_left_out(place: Path) -> None:
    html = made(place)
    named = re.findall(r'<text x="[\d.]+" y="([\d.]+)" font-weight="bold">(\w+)<', html)
    heights = {name: float(y) for y, name in named}
    assert heights["fetch"] < heights["clean"] < heights["tips"] == heights["model"] < heights["plot"]
    # fetch to clean, clean to tips and model, these to plot; not fetch to tips, nor clean to plot.
    assert html.count("<path ") == 5


def test_names_in_backticks_are_code(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater.report.read_headline", lambda _: ["The group `a<b` matters most."])
    assert "<li>The group <code>a&lt;b</code> matters most.</li>" in made(place)


def test_small_tables_findings_and_links_that_go_from_the_report_are_on_the_cover(place: Path) -> None:
    html = made(place)
    assert "<li>8 files or folders.</li>" in html
    assert "<summary>Table: tips_by_hour</summary>" in html
    assert re.search(r"<th>hour</th>.*<td>4</td>", html)
    assert '<a href="tiny/cpu/manifest.json">manifest</a>' in html
    assert max(map(len, cover(place, {}, tables(place).values(), report=Path("report.html")).splitlines())) <= 2000


def test_only_a_setting_that_is_another_now_is_told(place: Path) -> None:
    assert "not of the present configuration" not in made(place)
    assert '<code>clean.largest</code>: ran with 9, configured is "&lt;5"' in made(place, largest="<5")

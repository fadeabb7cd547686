"""`whitewater results`: what the last run made, where it is, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from whitewater.cli import results

pytestmark = pytest.mark.usefixtures("tiny")
OUTPUTS = {
    "trips": "clean",
    "quality.json": "clean",
    "tips_by_hour.csv": "tips",
    "tips_by_hour.parquet": "tips",
    "model": "model",
    "plots/tip_fraction_by_hour.png": "plot",
    "plots/tip_fraction_by_hour.svg": "plot",
    "plots/data_quality.png": "plot",
}


def fill(place: Path) -> Path:
    """A directory of results as a run leaves it, small."""
    (place / "trips" / "service=yellow").mkdir(parents=True)
    (place / "model").mkdir()
    (place / "plots").mkdir()
    for part, rows in enumerate((1_000, 234)):
        pd.DataFrame({"fare_amount": [1.0] * rows}).to_parquet(
            place / "trips" / "service=yellow" / f"part-{part}.parquet"
        )
    table = pd.DataFrame({"hour": range(5)})
    table.to_parquet(place / "tips_by_hour.parquet", index=False)
    table.to_csv(place / "tips_by_hour.csv", index=False)
    for name in ("quality.json", "model/metrics.json"):
        (place / name).write_text("{}")
    for name in ("tip_fraction_by_hour.png", "tip_fraction_by_hour.svg", "data_quality.png"):
        (place / "plots" / name).write_bytes(b"x" * 1_500)
    listed = [{"path": str(place / name), "step": step} for name, step in OUTPUTS.items()]
    downloaded = {"path": "data/tiny/inputs.json", "step": "fetch"}
    (place / "manifest.json").write_text(json.dumps({"format": 1, "outputs": [downloaded, *listed]}))
    return place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return fill(Path("results/tiny/cpu"))


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert results.main([]) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_each_result_is_listed_with_its_rows_size_and_place(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    assert "7 files or folders." in lines
    size = sum(part.stat().st_size for part in place.rglob("part-*.parquet"))
    assert f"clean 1,234 {size / 1000:.1f} kB results/tiny/cpu/trips/" in lines
    assert "plot 4.5 kB results/tiny/cpu/plots/ 3 files" in lines
    assert any(line.startswith("tips 5 ") and line.endswith("tips_by_hour.{csv,parquet}") for line in lines)
    assert any(line.startswith("manifest") and line.endswith("results/tiny/cpu/manifest.json") for line in lines)
    assert not any("inputs.json" in line for line in lines)


def test_results_are_in_the_order_of_the_steps(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [line.split()[0] for line in shown(capsys) if "results/tiny/cpu/" in line]
    assert steps == ["clean", "clean", "tips", "model", "plot", "manifest"]


def test_performance_reports_of_dask_are_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Path("logs/tiny/cpu/tips.dask.html")
    report.parent.mkdir(parents=True)
    report.write_bytes(b"x" * 2_000)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["steps"] = {"clean": {"facts": {}}, "tips": {"facts": {"performance_report": str(report)}}}
    (place / "manifest.json").write_text(json.dumps(manifest))
    assert "tips 2.0 kB logs/tiny/cpu/tips.dask.html" in shown(capsys)


def test_what_is_missing_is_not_made_yet(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "quality.json").unlink()
    (place / "plots" / "tip_fraction_by_hour.svg").unlink()
    lines = shown(capsys)
    assert "clean results/tiny/cpu/quality.json not made yet: run snakemake again" in lines
    assert "plot results/tiny/cpu/plots/ 3 files not made yet: run snakemake again" in lines
    assert "Report with all pictures: not made yet: run snakemake --report results/report.html" in lines


def test_each_device_has_a_table_of_its_own_and_an_unfinished_run_is_said(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(Path("results/tiny/gpu"))
    lines = shown(capsys)
    assert lines.index("tiny on cpu") < lines.index("tiny on gpu")
    Path("results/tiny/gpu/manifest.json").unlink()
    assert "results/tiny/gpu/ not made yet: run snakemake again" in shown(capsys)


@pytest.mark.parametrize("left", ["", "results/tiny/cpu/trips", "results/notes/cpu"])
def test_without_a_finished_run_the_remedy_is_told_and_the_status_is_1(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(left).mkdir(parents=True, exist_ok=True)
    assert results.main([]) == 1
    advice = capsys.readouterr().err
    assert "run snakemake" in advice
    assert ("make run" in advice) == (not left.startswith("results/tiny"))


def test_a_directory_of_other_files_has_no_rows(place: Path) -> None:
    expected: dict[str, Any] = {"trips": 1_234, "model": None, "quality.json": None, "tips_by_hour.parquet": 5}
    assert {name: results.rows(place / name) for name in expected} == expected

"""The command finds the index, prints what it found, and says clearly what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import whitewater
from tests.apps.pagerank.indexes import make_index
from tests.helpers.pagerank_search_oracle import Page
from whitewater.errors import ConfigError, InputError
from whitewater_apps.pagerank.query import main

# As `whitewater pagerank query` calls it.
COMMAND = """
import sys
from whitewater.errors import WhitewaterError
from whitewater_apps.pagerank.query import main
try:
    status = main(sys.argv[1:])
except WhitewaterError as error:
    print(error, file=sys.stderr)
    status = 1
heavy = {"pandas", "numba", "scipy", "dask", "distributed", "sklearn"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else status)
"""
PAGES = [
    Page(1, "https://example.org/floods", "Floods", "How the city keeps flood water out.", 0.1),
    Page(2, "https://example.org/dikes", "Dikes \x1b[31mand dams", "A dike for flood control; flood maps.", 0.8),
    Page(3, "https://example.org/sky", "", "", 0.1),
]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_index(tmp_path / "results/pagerank/gpu/index", PAGES, stemmer="english").path


def ask(*arguments: str, cwd: Path, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(Path(whitewater.__file__).parents[1]), "PYTHONIOENCODING": encoding}
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=cwd, env=environment, capture_output=True, encoding=encoding,
        timeout=60, check=False,
    )  # fmt: skip


def test_a_process_finds_the_index_prints_the_best_first_and_imports_nothing_heavy(index: Path, tmp_path: Path) -> None:
    done = ask("flood", "nowhere", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines() if line]
    assert lines[0] == "No document has 'nowhere'."
    assert lines[1:4] == [
        "1. Dikes [31mand dams", "https://example.org/dikes", "A dike for **flood** control; **flood** maps",
    ]  # fmt: skip
    assert "= text" in lines[4]
    assert lines[5] == "2. Floods"
    assert lines[-1] == "2 of 2 documents"
    assert "\x1b" not in done.stdout


def test_a_terminal_that_lacks_letters_gets_marks_for_them(index: Path, tmp_path: Path) -> None:
    assert "'?t?'" in ask("été", cwd=tmp_path, encoding="ascii").stdout


def test_no_index_is_one_clear_line(tmp_path: Path) -> None:
    done = ask("flood", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "there is no index at results/pagerank/cpu/index or" in done.stderr


def test_that_nothing_matches_is_said_and_is_not_an_error(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere"]) == 0
    assert capsys.readouterr().out.splitlines() == ["No document has 'nowhere'.", "Nothing matches 'nowhere'."]


def test_the_index_of_the_cpu_comes_first(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_index(tmp_path / "results/pagerank/cpu/index", [Page(1, "https://cpu.org/", "", "flood", 1.0)])
    assert main(["flood"]) == 0
    assert "https://cpu.org/" in capsys.readouterr().out


def test_numbers_of_the_command_change_the_scores(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = []
    for numbers in ([], ["--k1", "0"], ["--b", "0"], ["--prior", "0"], ["--half", "9"]):
        main(["flood", "--json", *numbers])
        scores.append(json.loads(capsys.readouterr().out)["results"][0]["score"])
    assert len(set(scores)) == 5


def test_what_cannot_be_asked_says_why(index: Path) -> None:
    with pytest.raises(ConfigError, match="limit = 0: input should be greater"):
        main(["flood", "--limit", "0"])
    with pytest.raises(InputError, match="asks for nothing"):
        main(["the"])
    with pytest.raises(InputError, match="no index at elsewhere"):
        main(["flood", "--index", "elsewhere"])


def test_an_index_of_an_earlier_run_is_asked_only_by_its_name(index: Path) -> None:
    manifest = index.parent / "manifest.json"
    manifest.write_text(json.dumps({"format": 1, "outputs": [{"path": "results/pagerank/gpu/index"}]}))
    assert main(["flood"]) == 0
    manifest.write_text(json.dumps({"format": 1, "outputs": [{"path": "results/pagerank/gpu/ranks.parquet"}]}))
    with pytest.raises(InputError, match="results/pagerank/gpu/index is of an earlier run"):
        main(["flood"])
    assert main(["flood", "--index", str(index)]) == 0

"""A project from each template, made where nothing of a checkout is: it runs, is tested, and gives the same results.

Each takes minutes: its packages are installed, and the application runs there and here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from tests.guarantees.running import TINY, make_clone
from whitewater.template.locks import lock_of
from whitewater.template.source import library_wheel

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/new-project.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
# What the page commits is committed by somebody.
AUTHOR = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# A project of each template has an odd name, and one a package of another name.
NAMES = {
    "taxi": ("taxi2", ()),
    "genomics": ("a1_b2_c3_d4_e5_f6_g7", ()),
    "pagerank": ("my_links", ("--package", "linked")),
    "recsys": ("trips", ()),
}
# The locks hold other packages for these than for 3.11.
NEWER = ("python3.13", "python3.12")
# Tells times, versions and digests of code.
DIFFERS = {"manifest.json", "report.html"}
PICTURES = {".png", ".svg"}


def run(folder: Path, *command: str | Path, first: Path = Path(sys.executable).parent) -> str:
    """Run a command that must succeed, with the programs of an environment first.

    Nobody's PYTHONPATH counts, and REAL_DATA is this repository's: a project has names of its own for what lies there.
    """
    ours = {"PYTHONPATH", "MAKEFLAGS", "REAL_DATA"}
    variables = {name: value for name, value in os.environ.items() if name not in ours} | AUTHOR
    variables["PATH"] = f"{first}{os.pathsep}{variables['PATH']}"
    ended = subprocess.run(
        list(map(str, command)), cwd=folder, env=variables, check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def results(folder: Path, name: str, template: str) -> dict[str, bytes]:
    """Return the bytes of each result, by its path below those of the application.

    What tells the paths of raw files, below ``data/<name>``, tells them as if they were those of the template: in
    text, and in the rows of quarantine, whose bytes are those of the table then.
    """
    found = {}
    for path in (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        content = path.read_bytes().replace(f"data/{name}/".encode(), f"data/{template}/".encode())
        if path.parent.name == "quarantine":
            rows = pd.read_parquet(path).replace(f"data/{name}/", f"data/{template}/", regex=True)
            content = rows.to_csv().encode()
        if path.name not in DIFFERS and path.suffix not in PICTURES:
            found[str(path.relative_to(folder))] = content
    return found


def check_results(folder: Path, name: str, template: str) -> None:
    """Check that a project made in a folder has the results of its template on the same small data."""
    clone = make_clone(folder / "clone")
    ended = clone.run(template, {})
    assert ended.status == 0, ended.terminal
    made = results(folder / name / "results" / name / "cpu", name, template)
    assert made == results(clone / "results" / template / "cpu", template, template)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The programs of an environment that has the wheel, and of other packages those of the extra `minimal` alone."""
    folder = tmp_path / "environment"
    lock = tmp_path / "requirements.txt"
    needed = [*DECLARED["dependencies"], *DECLARED["optional-dependencies"]["minimal"]]
    lock.write_text(lock_of((ROOT / "envs/cpu.lock").read_text(), needed))
    name, content = library_wheel()
    (tmp_path / name).write_bytes(content)
    python = folder / "bin/python"
    run(tmp_path, sys.executable, "-m", "venv", "--without-pip", folder)
    run(tmp_path, "uv", "pip", "install", "--python", python, "--require-hashes", "--requirement", lock)
    run(tmp_path, "uv", "pip", "install", "--python", python, "--offline", "--no-deps", tmp_path / name)
    return folder / "bin"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_commands_of_the_page_lead_to_a_project_of_ones_own(installed: Path, tmp_path: Path) -> None:
    assert len(COMMANDS) >= PAGE.count("\n## ") > 0
    shown = run(tmp_path, "bash", "-euxo", "pipefail", "-c", "\n".join(COMMANDS), first=installed)
    assert "Nothing to be done" in shown or "Nothing to do" in shown, shown
    made = tmp_path / "bikes/results/mine/bikes/cpu"
    assert json.loads((made / "quality.json").read_text())["totals"] == {
        "rows_in": 14 * 24 + 1, "rows_out": 14 * 24, "quarantined": 1
    }  # fmt: skip
    table = pd.read_parquet(made / "wind_by_hour.parquet")
    assert table["mean"].tolist() == [10 * hour + 7.5 for hour in range(24)]
    assert set(table["counter"]) == {"Bridge"}
    # Its first command made the project that ran before anything was changed.
    check_results(tmp_path, "bikes", "minimal")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("template", TINY)
def test_a_project_runs_once_passes_its_tests_and_gives_the_results_of_its_template(
    template: str, tmp_path: Path
) -> None:
    name, more = NAMES[template]
    run(tmp_path, "whitewater", "new", name, "--from", template, *more)
    project = tmp_path / name
    small = tmp_path / "small.yaml"
    small.write_text(json.dumps({name: TINY[template]}))
    shown = run(project, "make", "run", f"CONFIG={small}")
    assert re.search(rf"^\d\d:\d\d:\d\d {name} \w+ +\d+\.\d s$", shown, re.MULTILINE), shown
    assert (project / "results/report.html").exists()
    assert "Nothing to be done" in run(project, "make", "run", f"CONFIG={small}")
    run(project, "make", "test")
    # Nor do the packages that the tests need change a step.
    assert "Nothing to be done" in run(project, "make", "run", f"CONFIG={small}")
    assert run(project, "git", "status", "--porcelain") == ""
    check_results(tmp_path, name, template)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_project_runs_and_passes_its_tests_with_the_packages_of_a_newer_python(tmp_path: Path) -> None:
    # As `make test-newer`: a shim of pyenv may stand for a version that is not installed.
    tried = [subprocess.run([each, "-c", "import ensurepip"], check=False) for each in NEWER if shutil.which(each)]
    if not (python := next((str(each.args[0]) for each in tried if not each.returncode), "")):
        pytest.skip(f"none of {', '.join(NEWER)} is on the PATH")
    run(tmp_path, sys.executable, "-m", "whitewater", "new", "b", "--from", "minimal")
    run(tmp_path / "b", "make", f"PYTHON={python}", "run", "test")
    assert (tmp_path / "b/results/b/cpu/manifest.json").exists()
    assert python in str(*(tmp_path / "b/.venv/lib").iterdir())

"""A copy of this repository that keeps one of the applications runs and passes its tests, by what the README says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guarantees.running import Clone

ROOT = Path(__file__).parents[2]
DELETE = re.search(r"^    (rm -r .*)\n    (whitewater config)$", (ROOT / "README.md").read_text(), re.MULTILINE)
# All that is collected takes minutes: these look at the tree, what it declares and what an application needs of it.
FAST = (
    "tests/apps/minimal/test_minimal.py",
    "tests/contract/test_tutorial.py",
    "tests/library/test_config_files.py",
    "tests/library/test_source.py",
    "tests/workflows/test_rule_environments.py",
)


@pytest.fixture
def copy(tmp_path: Path) -> Clone:
    """What git has of the checkout, and what is new in it, copied; one application is kept."""
    assert DELETE
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    folder = tmp_path / "copy"
    for name in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    clone = Clone(folder)
    succeed(clone, "git", "init", "--quiet")
    succeed(clone, "git", "add", "--all")
    for line in DELETE.groups():
        succeed(clone, "bash", "-c", line)
    return clone


def succeed(clone: Clone, *command: str) -> str:
    """Run a command with the packages of the copy, as if they were installed from there."""
    ended = clone.start(*command, PYTHONPATH=str(clone / "src")).ended()
    assert ended.status == 0, ended.terminal
    return ended.terminal


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_is_left_of_a_copy_is_linted_runs_and_passes_its_tests(copy: Clone) -> None:
    applications = (path.name for path in (copy / "src/whitewater_apps").iterdir() if path.is_dir())
    assert sorted({*applications} - {"__pycache__"}) == ["minimal", "taxi"]
    for command in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["snakefmt", "--check", "workflows"]):
        succeed(copy, sys.executable, "-m", *command)
    tiny = {"scale": 0.001, "months": ["2019-03"], "services": ["yellow"]}
    copy.write("tiny.yaml", {"taxi": {"fetch": {"generated": tiny}}})
    succeed(copy, "snakemake", "--cores", "2", "--configfile", "tiny.yaml")
    assert (copy / "results/taxi/cpu/manifest.json").exists()
    pytest_here = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider")
    collected = succeed(copy, *pytest_here, "--collect-only")
    assert "this copy lacks pagerank: workflows/pagerank was deleted" in collected
    succeed(copy, *pytest_here, "-m", "not slow", *FAST)

"""A step or an application that is added passes lint and its tests at once, and is in the plan of the next run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.library.template.conftest import Installed


class Workplace:
    """A copy of the project in which its applications are installed, as `make` installs them."""

    def __init__(self, project: Path, installed: Installed, folder: Path) -> None:
        self.folder = Path(shutil.copytree(project, folder / "bikes"))
        self.path = [installed.folder, self.folder / "src", folder / "packages"]
        self.declare("bikes")

    def declare(self, *names: str) -> None:
        """Do what installing the project does for its entry points."""
        information = self.path[-1] / "bikes-0.dist-info"
        information.mkdir(parents=True, exist_ok=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: bikes\nVersion: 0\n")
        lines = [f"{name} = {name}.application:{name.upper()}" for name in names]
        (information / "entry_points.txt").write_text("\n".join(["[whitewater.applications]", *lines, ""]))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a Python module in the project."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, self.path)), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.folder,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )

    def succeed(self, *command: str) -> str:
        """Run a Python module that must succeed."""
        ended = self.run(*command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def workplace(project: Path, installed: Installed, tmp_path: Path) -> Workplace:
    return Workplace(project, installed, tmp_path)


def lint(workplace: Workplace) -> None:
    workplace.succeed("ruff", "check", "--no-cache")
    workplace.succeed("ruff", "format", "--no-cache", "--check")
    workplace.succeed("snakefmt", "--check", "workflows")
    workplace.succeed("whitewater", "config", "--check")


@pytest.mark.slow
def test_a_step_is_linted_tested_and_planned(workplace: Workplace) -> None:
    told = workplace.succeed("whitewater", "add", "step", "speeds")
    assert "src/bikes/steps/speeds.py written" in told
    lint(workplace)
    workplace.succeed("pytest", "-q", "-p", "no:cacheprovider", "tests/apps/bikes/test_speeds.py")
    assert "bikes_speeds" in workplace.run("snakemake", "--dry-run", "--cores", "1").stdout
    assert "example: 1" in (workplace.folder / "config/bikes.yaml").read_text()


@pytest.mark.slow
def test_an_application_is_linted_and_planned_beside_the_first(workplace: Workplace) -> None:
    workplace.succeed("whitewater", "add", "application", "weather")
    workplace.declare("bikes", "weather")
    lint(workplace)
    planned = workplace.run("snakemake", "--dry-run", "--cores", "1").stdout
    assert "bikes_aggregate" in planned
    assert "weather_aggregate" in planned
    text = (workplace.folder / "pyproject.toml").read_text()
    assert 'weather = "weather.application:WEATHER"' in text
    assert 'packages = ["src/weather", "src/bikes"]' in text
    assert (workplace.folder / "envs/weather-gpu.post-deploy.sh").exists()


@pytest.mark.slow
def test_what_is_there_is_not_written_over(workplace: Workplace) -> None:
    for arguments in (["step", "aggregate"], ["application", "bikes"]):
        ended = workplace.run("whitewater", "add", *arguments)
        assert ended.returncode == 1
        assert "Choose another name." in ended.stderr
    command = ["git", "-C", str(workplace.folder), "status", "--porcelain"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == ""

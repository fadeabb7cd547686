"""A step whose package is not installed ends with one message: the package, the step, and how to install it."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.guarantees.running import Clone

# The first is imported with the step's module, the others while the step runs.
ABSENT = {"numba": "recsys_fit", "polars": "taxi_standardize", "msprime": "genomics_simulate"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment that has what that of the tests has, but for some packages."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if each.name not in ABSENT:
            (packages / each.name).symlink_to(each)
    return folder / "bin" / "python"


@pytest.mark.parametrize("package", ABSENT)
def test_a_job_tells_the_package_that_its_step_lacks(fresh: Clone, python: Path, package: str) -> None:
    application, step = ABSENT[package].split("_")
    command = [str(python), "-m", "snakemake", "--cores", "2", "--configfile", "tiny.yaml", "--until", ABSENT[package]]
    message = fresh.start(*command, "--", application).ended().message
    assert message.startswith(f"PackageError: {application} {step} needs the package '{package}', which is not ")
    assert "`make run`" in message
    assert f"pip install '.[{application}]'" in message
    (log,) = (fresh / "logs" / application).rglob(f"{step}.log")
    assert f"ModuleNotFoundError: No module named '{package}'" in log.read_text()


def test_a_step_by_hand_tells_it_alike_and_its_log_has_the_traceback(fresh: Clone, python: Path) -> None:
    command = [str(python), "-m", "whitewater", "recsys", "fit", "--log", "fit.log"]
    ended = fresh.start(*command, PYTHONPATH=os.fspath(fresh / "src")).ended()
    assert ended.status == 1
    assert ended.message.startswith("PackageError: recsys fit needs the package 'numba'")
    assert "ModuleNotFoundError" in (fresh / "fit.log").read_text()

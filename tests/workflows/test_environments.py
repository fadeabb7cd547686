"""The locks and conda files of envs/ agree with each other and with what was asked for."""

import csv
import os
import re
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
ENVS = ROOT / "envs"
LOCKS = ("bootstrap", "cpu", "dev", "bench", "docs", "gpu")
CONDA = sorted(file.stem for file in ENVS.glob("*.yaml"))
with (ENVS / "channels.csv").open() as _file:
    PUBLISHED = {row["package"]: row for row in csv.DictReader(_file)}
LINUX_PYTHON_311 = {
    "implementation_name": "cpython",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}


def entries(lock: str) -> dict[str, list[str]]:
    """Return the hashes of each requirement of a lock."""
    text = (ENVS / f"{lock}.lock").read_text()
    blocks = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", text).strip())
    return {block.split(" \\")[0]: re.findall(r"--hash=(sha256:[0-9a-f]{64})\b", block) for block in blocks}


def locked(lock: str) -> dict[str, set[str]]:
    """Return the versions of each package of a lock, several where they differ by platform or Python."""
    versions: dict[str, set[str]] = {}
    for line in entries(lock):
        requirement = Requirement(line)
        versions.setdefault(requirement.name, set()).add(str(requirement.specifier))
    return versions


def requested(name: str) -> list[Requirement]:
    """Return what an input file asks for, included files among it."""
    found: list[Requirement] = []
    for line in (ENVS / f"{name}.in").read_text().splitlines():
        if line.startswith("-r "):
            found += requested(line.removeprefix("-r ").removesuffix(".in"))
        else:
            found.append(Requirement(line))
    return found


def conda_pins(name: str) -> dict[str, str]:
    """Return the version of each package of a conda file, by its name in the locks."""
    own = {row["conda"]: package for package, row in PUBLISHED.items()}
    dependencies = yaml.safe_load((ENVS / f"{name}.yaml").read_text())["dependencies"]
    from_pypi = dependencies.pop()["pip"] if isinstance(dependencies[-1], dict) else []
    assert ("pip" in dependencies) == bool(from_pypi)
    pins = dict(re.split("==?", line) for line in [*dependencies, *from_pypi] if line != "pip")
    return {own.get(package, package): version for package, version in pins.items()}


@pytest.mark.parametrize("name", CONDA)
def test_conda_file_names_the_channels_of_its_packages_and_no_default_one(name: str) -> None:
    *channels, last = yaml.safe_load((ENVS / f"{name}.yaml").read_text())["channels"]
    assert last == "nodefaults"
    packages = conda_pins(name).keys() - {"python", "cuda-version"}
    assert set(channels) == {PUBLISHED[package]["channel"] for package in packages} - {""}


def test_the_list_of_channels_says_where_each_package_was_seen() -> None:
    for package, row in PUBLISHED.items():
        repository = {"rapidsai": "rapidsai/", "bioconda": "bioconda/bioconda-recipes", "": ""}
        start = repository.get(row["channel"], "conda-forge/[a-z0-9-]+-feedstock")
        assert re.match(f"{start}.*@[0-9a-f]{{7}}" if start else "$", row["seen"]), package
        assert bool(row["conda"]) == bool(row["channel"]), package


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_holds_nccl_for_one_cuda_at_most(lock: str) -> None:
    assert [name for name in locked(lock) if "nccl" in name] in ([], ["nvidia-nccl-cu13"])


def test_gpu_lock_holds_nccl() -> None:
    assert "nvidia-nccl-cu13" in locked("gpu")


def test_no_two_installed_packages_hold_the_same_file() -> None:
    own = {"xgboost", "xgboost-cpu"}  # the Makefile puts those of the GPU back where both are installed
    holders: dict[str, set[str]] = {}
    # A package that is asked for its name reads its metadata again.
    for name, package in {each.name: each for each in distributions()}.items():
        for file in () if name in own else package.files or ():
            if file.suffix != ".pyc":
                holders.setdefault(str(file), set()).add(name)
    assert {file: names for file, names in holders.items() if len(names) > 1} == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_requirement_has_one_version_and_hashes(lock: str) -> None:
    assert entries(lock)
    for line, hashes in entries(lock).items():
        assert re.fullmatch(r"==[^,]+", str(Requirement(line).specifier)), line
        assert hashes, f"{line} has no hash"


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_satisfies_what_was_asked_for(lock: str) -> None:
    versions = locked(lock)
    for requirement in requested(lock):
        for pin in versions[requirement.name.lower()]:
            assert requirement.specifier.contains(pin.removeprefix("==")), f"{requirement} is locked at {pin}"


@pytest.mark.parametrize("lock", ["dev", "bench", "docs", "gpu"])
def test_lock_holds_the_cpu_lock_at_the_same_versions(lock: str) -> None:
    versions = locked(lock)
    # XGBoost without a GPU is a package of another name, and what it needs is that package's.
    own = {"xgboost", "xgboost-cpu", "nvidia-nccl-cu12", "nvidia-nccl-cu13"} if lock == "gpu" else set()
    assert {name: versions[name] for name in locked("cpu").keys() - own} == {
        name: pins for name, pins in locked("cpu").items() if name not in own
    }


def test_packages_shared_by_any_two_locks_have_the_same_versions() -> None:
    locks = {lock: locked(lock) for lock in LOCKS}
    different = {
        (name, first, second)
        for first in LOCKS
        for second in LOCKS
        for name in locks[first].keys() & locks[second].keys()
        if locks[first][name] != locks[second][name]
    }
    assert not different


@pytest.mark.parametrize("name", CONDA)
def test_conda_file_has_the_release_lines_of_the_lock(name: str) -> None:
    lock = {
        requirement.name.removesuffix("-cpu"): Version(str(requirement.specifier).removeprefix("=="))
        for requirement in map(Requirement, entries("gpu" if name.endswith("-gpu") else "cpu"))
        if requirement.marker is None or requirement.marker.evaluate(LINUX_PYTHON_311)
    }
    pins = conda_pins(name)
    assert pins.pop("python") == "3.11"
    assert pins.pop("cuda-version", None) == ("13" if name.endswith("-gpu") else None)
    for package, version in pins.items():
        assert lock[package].release[:2] == Version(version).release[:2], package
        assert PUBLISHED[package]["conda"] or str(lock[package]) == version, package


@pytest.mark.parametrize("lock", [lock for lock in LOCKS if lock != "bootstrap"])
def test_make_installs_a_lock_and_then_the_checkout_and_again_when_pyproject_changes(lock: str) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "--what-if=pyproject.toml", f".venv/.{lock}"]
    plan = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout
    assert plan.index(f"--require-hashes --requirement envs/{lock}.lock") < plan.index(
        "--no-build-isolation --editable ."
    )


def test_no_target_needs_a_path_but_the_one_that_runs_without_an_environment() -> None:
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if "PYTHONPATH" in line]
    assert lines
    assert [line for line in lines if "-m whitewater.cli.clean" not in line] == []


@pytest.mark.parametrize("file", sorted(ENVS.iterdir()), ids=lambda file: file.name)
def test_no_file_names_an_index_or_a_place_on_a_machine(file: Path) -> None:
    if file.is_file():
        text = file.read_text()
        assert not re.search(r"://|--(extra-)?index-url|--find-links|-i ", text)
        assert not re.search(r"(?m)(?<![\w.])/(work|opt|home|root|tmp)/", text)

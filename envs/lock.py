"""Write every lock and conda file of this folder: ``make lock``, or ``make lock UPGRADE=1`` for the newest versions.

All locks are compiled against one resolution of everything, so that a package has the same version in each of them.
The conda files follow the versions of what an application imports; what those packages need in turn is left to conda.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from whitewater.application import Application, applications, in_project
from whitewater.code_digest import reachable_parts
from whitewater.template.locks import names

FOLDER = Path(__file__).resolve().parent
LOCKS = ("bootstrap", "cpu", "dev", "bench", "docs", "gpu")
# What its packages need is in each of the others, beside which it is installed.
BESIDE = "slurm"
PYTHON = "3.11"  # the oldest supported; the locks are universal and carry markers for the newer ones

# Where conda has each package, under which name, and the recipe that says so; without a channel it comes from PyPI.
with (FOLDER / "channels.csv").open() as _file:
    PUBLISHED = {row["package"]: row for row in csv.DictReader(_file)}
CHANNELS = ("rapidsai", "conda-forge", "bioconda")  # the first that has a package is asked alone
# Snakemake starts the jobs of a conda environment from outside it; `whitewater new` runs outside of it, too.
NOT_IN_CONDA = {"pygments", "ruff", "snakemake"}


def compile_requirements(sources: list[str], target: Path, *options: str) -> None:
    """Resolve requirement files of this folder; versions that ``target`` already holds are kept where they fit."""
    always = ["--quiet", "--no-emit-index-url", "--no-emit-find-links", "--python-version", PYTHON]
    command = [
        "uv",
        "pip",
        "compile",
        *always,
        "--excludes",
        "excluded.in",
        *options,
        "--output-file",
        str(target),
        *sources,
    ]
    subprocess.run(command, cwd=FOLDER, check=True, env={"UV_SYSTEM_CERTS": "1"} | os.environ)


def write_lock(name: str, *options: str) -> None:
    """Write the lock of ``<name>.in``: for every platform and supported Python, with hashes.

    It says which packages need each, from which `whitewater new` takes those of one application.
    """
    lock = FOLDER / f"{name}.lock"
    header = ["--custom-compile-command", "make lock"]
    compile_requirements([f"{name}.in"], lock, "--universal", "--generate-hashes", *header, *options)
    # Where the constraints are in this run.
    lock.write_text(re.sub(r"(?m)^ *#(?: via)? +-c .*\n", "", lock.read_text()))


def locked_together(scratch: Path, *, upgrade: bool) -> Path:
    """Resolve all requirement files at once, near the versions of the present locks unless told to upgrade them."""
    union = scratch / "union.txt"
    if not upgrade:
        present = [FOLDER / f"{name}.lock" for name in LOCKS]
        union.write_text("".join(lock.read_text() for lock in present if lock.exists()))
    compile_requirements([f"{name}.in" for name in LOCKS], union, "--universal", "--no-header")
    return union


def imported_on_gpus(application: Application, packages: set[str]) -> set[str]:
    """Return those of the packages of the extra ``gpu`` that the steps of an application import."""
    steps = (f"{application.package}.steps.{step}" for step in application.operations)
    parts = (part for step in steps for part in reachable_parts(step, FOLDER.parent / "src").values())
    modules = {name.partition(".")[0] for part in parts for name, _ in part.imports}
    return {each for each in packages if re.sub(r"-cu(da)?\d+x?$", "", each) in modules}


def conda_packages() -> dict[str, set[str]]:
    """Return what each conda file holds: what light rules import, and what each application does on either device."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]
    every = names(project["dependencies"]) - NOT_IN_CONDA
    extras = {name: names(lines) for name, lines in project["optional-dependencies"].items()}
    files = {"base": names((FOLDER / "base.in").read_text().splitlines()) - NOT_IN_CONDA}
    known = {name: each for name, each in applications(in_project(FOLDER.parent)).items() if name in extras}
    for name, application in known.items():
        files[f"{name}-cpu"] = every | extras[name]
        files[f"{name}-gpu"] = files[f"{name}-cpu"] | imported_on_gpus(application, extras["gpu"] - {"xgboost"})
    # The benchmarks compare all applications, and start GPU clusters.
    files["benchmarks-cpu"] = every.union(*(extras[name] for name in known))
    files["benchmarks-gpu"] = files["benchmarks-cpu"] | extras["gpu"]
    return files


def locked_versions(lock: str) -> dict[str, str]:
    """Return the version of each package of a lock on Linux and the one Python that the conda files name."""
    linux = {"sys_platform": "linux", "platform_machine": "x86_64", "python_full_version": f"{PYTHON}.0"}
    environment = {**linux, "python_version": PYTHON, "platform_python_implementation": "CPython"}
    found = map(Requirement, re.findall(r"(?m)^(\w[^\\\n]*)", (FOLDER / f"{lock}.lock").read_text()))
    return {
        each.name.removesuffix("-cpu"): str(each.specifier).removeprefix("==")
        for each in found
        if each.marker is None or each.marker.evaluate(environment)
    }


def write_conda_file(name: str, packages: set[str], versions: dict[str, str]) -> None:
    """Write a conda file such as ``taxi-cpu.yaml``: release lines, since a channel may lack one patch release."""
    if missing := packages - PUBLISHED.keys():
        raise SystemExit(
            f"envs/channels.csv lacks {', '.join(sorted(missing))}: add the channel, name and recipe of each"
        )
    published = {package: PUBLISHED[package] for package in sorted(packages)}
    channels = {row["channel"] for row in published.values()}
    from_conda = sorted(
        f"{row['conda']}={'.'.join(versions[package].split('.')[:2])}"
        for package, row in published.items()
        if row["conda"]
    )
    from_pypi = [f"{package}=={versions[package]}" for package, row in published.items() if not row["conda"]]
    lines = [
        "# Written by `make lock`.",
        "channels:",
        *(f"  - {channel}" for channel in CHANNELS if channel in channels),
        "  - nodefaults",  # not the channel whose license companies must buy
        "dependencies:",
        *(f"  - {package}" for package in [f"python={PYTHON}", *from_conda]),
        *(["  - cuda-version=13"] if "rapidsai" in channels else []),
        *(["  - pip", "  - pip:", *(f"      - {package}" for package in from_pypi)] if from_pypi else []),
    ]
    (FOLDER / f"{name}.yaml").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write all locks, then the conda files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="move to the newest versions that the .in files allow")
    upgrade: bool = parser.parse_args().upgrade
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        union = locked_together(scratch, upgrade=upgrade)
        for name in LOCKS:
            write_lock(name, "--upgrade", "--constraints", str(union))
        write_lock(BESIDE, "--no-deps", *(["--upgrade"] if upgrade else []))
    for name, packages in conda_packages().items():
        write_conda_file(name, packages, locked_versions("gpu" if name.endswith("-gpu") else "cpu"))


if __name__ == "__main__":
    main()

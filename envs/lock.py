"""Write every lock and conda file of this folder: ``make lock``, or ``make lock UPGRADE=1`` for the newest versions.

All locks are compiled against one resolution of everything, so that a package has the same version in each of them.
The conda files repeat the versions of what an application imports; what those packages need in turn is left to conda.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LOCKS = ("bootstrap", "base", "cpu", "dev", "bench", "gpu")
PYTHON = "3.11"  # the oldest supported; the locks are universal and carry markers for the newer ones

# bioconda publishes cyvcf2; `nodefaults` keeps out the channel whose license companies must buy.
CONDA_CHANNELS = {
    "base": ["conda-forge", "nodefaults"],
    "cpu": ["conda-forge", "bioconda", "nodefaults"],
    "gpu": ["rapidsai", "conda-forge", "bioconda", "nvidia", "nodefaults"],
}
# Names that differ; conda-forge's `dask` and `matplotlib` are bundles of much more than the packages of those names.
CONDA_NAMES = {
    "cupy-cuda13x": "cupy",
    "dask": "dask-core",
    "matplotlib": "matplotlib-base",
    "xgboost": "py-xgboost",
    "xgboost-cpu": "py-xgboost-cpu",
    "xxhash": "python-xxhash",
}
# What no conda channel is known to publish; conda files install it with pip.
ONLY_ON_PYPI = frozenset({"ada-url", "fastwarc"})
# Snakemake starts the jobs of a conda environment from outside it, and another channel publishes it.
NOT_IN_CONDA = frozenset({"pygments", "snakemake"})


def compile_requirements(sources: list[str], target: Path, *options: str) -> None:
    """Resolve requirement files of this folder; versions that ``target`` already holds are kept where they fit."""
    always = ["--quiet", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--python-version", PYTHON]
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
    """Write the lock of ``<name>.in``: for every platform and supported Python, with hashes."""
    header = ["--custom-compile-command", "make lock"]
    compile_requirements([f"{name}.in"], FOLDER / f"{name}.lock", "--universal", "--generate-hashes", *header, *options)


def locked_together(scratch: Path, *, upgrade: bool) -> Path:
    """Resolve all requirement files at once, near the versions of the present locks unless told to upgrade them."""
    union = scratch / "union.txt"
    if not upgrade:
        present = [FOLDER / f"{name}.lock" for name in LOCKS]
        union.write_text("".join(lock.read_text() for lock in present if lock.exists()))
    compile_requirements([f"{name}.in" for name in LOCKS], union, "--universal", "--no-header")
    return union


def requested(source: Path) -> list[str]:
    """Return the names of the packages that a requirements file asks for, those of the files it includes among them."""
    names: list[str] = []
    for line in source.read_text().splitlines():
        if line.startswith("-r "):
            names += requested(source.with_name(line.removeprefix("-r ")))
        elif line:
            names.append(re.split(r"[^A-Za-z0-9._-]", line)[0].lower())
    return names


def versions_for_conda(name: str, scratch: Path) -> dict[str, str]:
    """Return the version of each package of a lock on Linux and the one Python that the conda files name."""
    plain = scratch / f"{name}.txt"
    platform = ["--python-platform", "x86_64-manylinux_2_28", "--no-header"]
    compile_requirements([f"{name}.in"], plain, *platform, "--constraints", f"{name}.lock")
    return dict(line.split("==") for line in plain.read_text().splitlines())


def write_conda_file(name: str, scratch: Path) -> None:
    """Write a conda file such as ``cpu.yaml`` at the versions of the lock beside it."""
    versions = versions_for_conda(name, scratch)
    # A requirement with a marker of another platform is in no resolution for this one.
    wanted = sorted(set(requested(FOLDER / f"{name}.in")) & set(versions) - NOT_IN_CONDA)
    packages = [
        f"{CONDA_NAMES.get(package, package.removesuffix('-cu13'))}={versions[package]}"
        for package in wanted
        if package not in ONLY_ON_PYPI
    ]
    from_pypi = [f"{package}=={versions[package]}" for package in wanted if package in ONLY_ON_PYPI]
    lines = [
        f"# Written by `make lock` from {name}.in at the versions of {name}.lock.",
        "channels:",
        *(f"  - {channel}" for channel in CONDA_CHANNELS[name]),
        "dependencies:",
        *(f"  - {package}" for package in [f"python={PYTHON}", *packages]),
        *(["  - cuda-version=13"] if name == "gpu" else []),
        "  - pip",
        "  - pip:",
        *(f"      - {package}" for package in from_pypi),
    ]
    (FOLDER / f"{name}.yaml").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write all locks, then the conda files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="move to the newest versions that the .in files allow")
    upgrade = parser.parse_args().upgrade
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        union = locked_together(scratch, upgrade=upgrade)
        for name in LOCKS:
            write_lock(name, "--upgrade", "--constraints", str(union))
        for name in CONDA_CHANNELS:
            write_conda_file(name, scratch)


if __name__ == "__main__":
    main()

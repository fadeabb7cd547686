"""What was measured where: hardware, versions and the state of the source."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Machine(BaseModel):
    """The machine, as far as it bears on the figures; memory in bytes."""

    model_config = ConfigDict(frozen=True)

    processor: str
    cores: int
    memory_bytes: int
    gpus: tuple[str, ...]
    kernel: str
    python: str
    load_average_before: float


class Revision(BaseModel):
    """The commit of the source; ``changed`` when files differ from it, reports of benchmarks aside."""

    model_config = ConfigDict(frozen=True)

    commit: str
    changed: bool


def describe_machine() -> Machine:
    """Return the machine that this process may use, and how busy it was in the last minute."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=tuple(_lines("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")),
        kernel=platform.release(),
        python=platform.python_version(),
        load_average_before=os.getloadavg()[0],
    )


def device_memory_used() -> int | None:
    """Return the bytes that are in use on the fullest GPU, by whatever process; None where there is none."""
    found = _lines("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
    return max((int(line) << 20 for line in found), default=None)


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of the named packages; those that are not installed are left out."""
    installed = {}
    for package in packages:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def revision(repository: Path) -> Revision:
    """Return the commit that a checkout stands on; ``unknown`` where there is none."""
    git = ("git", "-C", str(repository))
    commit = _lines(*git, "rev-parse", "--verify", "--quiet", "HEAD")
    differing = _lines(*git, "status", "--porcelain", "--", ":/", ":/!benchmarks/results")
    return Revision(commit=commit[0] if commit else "unknown", changed=bool(differing))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _lines(*command: str) -> list[str]:
    """Return what a program prints, nothing where it is missing or fails."""
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []

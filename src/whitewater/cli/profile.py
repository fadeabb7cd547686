"""What a profile of Snakemake asks of this machine: a plugin, SLURM, conda, Apptainer. `whitewater doctor` tries it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from whitewater.config_files import read_source

BUILT_IN = ("local", "dryrun", "touch")
SLURM_COMMANDS = ("sbatch", "srun", "squeue", "scontrol", "sinfo", "scancel")
ANSWER_SECONDS = 20
# What installs the command of each way to deploy software.
DEPLOYMENT = {"conda": "Miniforge", "apptainer": "Apptainer"}


@dataclass(frozen=True)
class Check:
    """One thing that was tried, what was found, and the remedy where it failed."""

    name: str
    status: Literal["ok", "warn", "fail", "skip"]
    found: str
    fix: str = ""


def read_profile(folder: Path) -> Mapping[str, Any]:
    """Return the options of a profile by their long names.

    Raises ConfigError if there is none, or it is not YAML.
    """
    values = read_source(folder / "config.yaml").values
    return {name.replace("_", "-"): value for name, value in values.items()}


def runs_elsewhere(options: Mapping[str, Any]) -> bool:
    """Return whether jobs run on other machines than this one."""
    return options.get("executor", "local") not in BUILT_IN


def check_profile(folder: Path, options: Mapping[str, Any], *, device: str) -> Iterator[Check]:
    """Try what a profile asks for."""
    if runs_elsewhere(options):
        package = f"snakemake-executor-plugin-{options['executor']}"
        if find_spec(package.replace("-", "_")):
            yield Check("executor plugin", "ok", package)
        else:
            fix = f"Install it beside Snakemake: pip install {package}; envs/dev.lock has the version tried with SLURM."
            yield Check("executor plugin", "fail", f"{package} is not installed", fix)
    if options.get("executor") == "slurm":
        yield check_slurm(device=device, cores=int(options.get("max-threads", 1)))
    methods = options.get("software-deployment-method", options.get("sdm", []))
    for method in [methods] if isinstance(methods, str) else methods:
        if method in DEPLOYMENT:
            file = folder / "config.yaml"
            yield check_command(method, fix=f"Install {DEPLOYMENT[method]}, or remove `{method}` from {file}.")


def check_slurm(*, device: str, cores: int) -> Check:
    """Ask SLURM for partitions that are up, with nodes of as many cores as a job may ask for, and on a GPU run GPUs."""
    if missing := [name for name in SLURM_COMMANDS if shutil.which(name) is None]:
        fix = "Start runs on a login node of the cluster, where SLURM's commands are on the PATH."
        return Check("SLURM", "fail", f"not on the PATH: {', '.join(missing)}", fix)
    try:
        partitions = subprocess.run(
            ["sinfo", "--noheader", "--format=%P %a %D %c %G"],
            capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True,
        ).stdout  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        text = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        problem = text.strip().rpartition("\n")[2]
        return Check("SLURM", "fail", problem, "See whether its controller runs: scontrol ping")
    up = [fields for fields in map(str.split, partitions.splitlines()) if fields[1] == "up"]
    if not up:
        return Check("SLURM", "fail", "no partition is up", "See why: sinfo --list-reasons")
    if device == "gpu" and not any("gpu" in fields[4] for fields in up):
        fix = "Ask for a partition that has some, `default-resources: slurm_partition=...`, or set device to cpu."
        return Check("SLURM", "fail", "no partition that is up has GPUs", fix)
    if cores > (most := max(int(fields[3].rstrip("+")) for fields in up)):
        fix = f"Set cores and max-threads of the profile to {most}."
        return Check("SLURM", "fail", f"jobs may ask for {cores} cores, and no node has more than {most}", fix)
    return Check("SLURM", "ok", ", ".join(f"{name}: {nodes} nodes" for name, _, nodes, *_ in up))


def check_command(name: str, *, fix: str) -> Check:
    """Start a command that the profile asks for."""
    path = shutil.which(name)
    if path is None:
        return Check(name, "fail", "not on the PATH", fix)
    process = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if process.returncode:
        return Check(name, "fail", f"{path} --version fails: {process.stderr.strip()}", fix)
    return Check(name, "ok", process.stdout.strip())

"""``whitewater doctor``: check what this machine can run. Each line is the result of an actual test."""

import argparse
import json
import logging
import os
import platform
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import dask.system
from packaging.requirements import Requirement
from rich.console import Console
from rich.text import Text

from whitewater.application import Application, applications, in_project, load
from whitewater.config_files import read_configuration, read_source
from whitewater.engines import memory
from whitewater.engines.config import Cluster, Engine, choose_engine
from whitewater.engines.gpu_check import first_version, gpu_names, missing_gpu
from whitewater.errors import ConfigError, WhitewaterError, shorten_list
from whitewater.io.download import Downloads
from whitewater.process import usable_cores

LEAST_MEMORY = 1_000_000_000  # on generated data no step took more than 0.6 GB; other steps run beside it
LEAST_DISK = 1_000_000_000
SLURM_COMMANDS = ("sbatch", "srun", "squeue", "scontrol", "sinfo", "scancel")
ANSWER_SECONDS = 20
COLORS = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}
# What to install for each of Snakemake's software deployment methods.
DEPLOYMENT = {"conda": "Miniforge", "apptainer": "Apptainer"}


@dataclass(frozen=True)
class Check:
    """The outcome of one test. Without an explicit status, a check with a ``fix`` has failed."""

    name: str
    found: str
    fix: str = ""
    status: Literal["", "ok", "warn", "fail", "skip"] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", self.status or ("fail" if self.fix else "ok"))


def run(config: Mapping[str, Any], *, root: Path, profile: Path | None = None) -> list[Check]:
    """Test everything that a run in the folder ``root`` needs; ``profile`` is Snakemake's profile folder."""
    device = config["device"]
    options = read_profile(profile) if profile else {}
    cluster = Cluster.model_validate(config["cluster"])
    return [
        Check("Python", f"{platform.python_version()} ({sys.executable})"),
        check_packages(root / "envs" / f"{device}.lock"),
        check_cores(),
        check_memory(),
        check_disk(root),
        *(check_write_access(root / folder) for folder in ("results", "data", "logs")),
        check_gpu(needed=device == "gpu" and not cluster.attached and not runs_elsewhere(options)),
        *(check_profile(profile, options, device=device) if profile else ()),
        *([check_tls(cluster.tls)] if cluster.tls else ()),
        check_scheduler(cluster, choose_engine(config, device)),
        *(
            check_sources(application, config[name], downloads=root / "data" / name)
            for name, application in applications([name for name in in_project(root) if name in config]).items()
            if application.check
        ),
    ]


def check_sources(application: Application, section: Mapping[str, Any], *, downloads: Path) -> Check:
    """Test the data sources of an application by the function ``check`` that it declares."""
    name = f"sources of {application.name}"
    try:
        sources = load(application.check)(application.settings.model_validate(section), Downloads(downloads))
    except ImportError as error:
        return Check(name, str(error), f"Install what it needs: pip install 'whitewater[{application.name}]'")
    except WhitewaterError as error:
        fix = f"Correct the section `{application.name}` of the configuration, or bring what it names."
        return Check(name, str(error), fix)
    return Check(name, sources) if sources else Check(name, "simulated, nothing is read", status="skip")


def check_packages(lock: Path) -> Check:
    """Compare the installed packages with a lock, or without one with the requirements of Whitewater."""
    declared = _declared_packages(without={"dev"} if lock.exists() else {"dev", "gpu"})
    requirements = [package for packages in declared.values() for package in packages]
    if lock.exists():
        name, needed = f"packages of {lock.name}", {package.name for package in requirements}
        locked = [Requirement(line.strip()) for line in re.findall(r"(?m)^(\w[^\\\n]*)", lock.read_text())]
        requirements = [package for package in locked if package.marker is None or package.marker.evaluate()]
        command = f"uv pip install --require-hashes --requirement {lock.parent.name}/{lock.name}"
    elif declared:
        name, needed = "packages", {package.name for package in declared.get("", ())}
        command = f"pip install '.[{','.join(filter(None, declared))}]'"
    else:
        return Check("packages", "Whitewater is not installed", "In a checkout: pip install --editable .")
    wrong = {}
    for package in requirements:
        # Wheels of RAPIDS and CuPy have CUDA's version in their names; XGBoost without CUDA is `xgboost-cpu`.
        plain_name = re.sub(r"-cu(da)?\d+x?$", "", package.name)
        version = first_version(package.name, plain_name, f"{package.name}-cpu")
        if version is None or not package.specifier.contains(version, prereleases=True):
            # Only a missing direct requirement: in a conda environment other packages may have different names.
            is_fatal = version is None and package.name in needed
            wrong[f"{package.name}{package.specifier} ({version or 'missing'})"] = is_fatal
    if not wrong:
        return Check(name, f"{len(requirements)} packages, all with the required versions")
    found = shorten_list(sorted(wrong, key=lambda package: not wrong[package]))
    fix = f"`make run` installs them; in an environment of your own: {command}"
    return Check(name, found, fix, "fail" if any(wrong.values()) else "warn")


def _declared_packages(*, without: Collection[str]) -> dict[str, list[Requirement]]:
    """Return Whitewater's requirements by extra, under ``""`` those without one; empty if it is not installed."""
    declared: dict[str, list[Requirement]] = {}
    with suppress(metadata.PackageNotFoundError):
        for requirement in map(Requirement, metadata.requires("whitewater") or ()):
            extras = re.findall(r'extra == "([\w-]+)"', str(requirement.marker or ""))
            declared.setdefault(extras[0] if extras else "", []).append(requirement)
    return {extra: packages for extra, packages in declared.items() if extra not in without}


def check_cores() -> Check:
    """Count the cores that this process may use, by its affinity and its control group's quota."""
    cores, quota = usable_cores(), dask.system.cpu_count()
    if quota >= cores:
        return Check("cores", str(cores))
    fix = f"Give Snakemake no more than the quota: --cores {quota}"
    return Check("cores", f"{cores}, but the control group's quota is {quota}", fix, "warn")


def check_memory() -> Check:
    """Compare the available memory, of the system and the control group, with what a run needs."""
    free = memory.available()
    fix = f"End other programs; a run needs {LEAST_MEMORY / 1e9:g} GB."
    return Check("memory", f"{free / 1e9:.1f} GB available", fix if free < LEAST_MEMORY else "")


def check_disk(root: Path) -> Check:
    """Compare the free disk space of the results with what a run needs."""
    place = _nearest(root / "results")
    free = shutil.disk_usage(place).free
    fix = "Free some space, or make results/ a link to a larger disk."
    return Check("disk", f"{free / 1e9:.1f} GB free at {place}", fix if free < LEAST_DISK else "")


def check_write_access(folder: Path) -> Check:
    """Write, flush and remove a file in a folder, or in its nearest existing parent."""
    name = f"write access to {folder.name}/"
    place = _nearest(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".whitewater-doctor-") as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Check(name, f"{place}: {error.strerror}", f"Make {place} a folder that you may write to, with space.")
    return Check(name, f"wrote, flushed and removed a file in {place}")


def _nearest(path: Path) -> Path:
    """Return the path or its nearest parent that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


def check_gpu(*, needed: bool) -> Check:
    """Start the NVIDIA driver and list its devices."""
    if (problem := missing_gpu()) and not needed:
        return Check("GPU and driver", "not found, and not needed here", status="skip")
    fix = "Install the NVIDIA driver and the packages of envs/gpu.lock, or use --config device=cpu."
    return Check("GPU and driver", problem, fix) if problem else Check("GPU and driver", ", ".join(gpu_names()))


def check_tls(tls: Mapping[str, str]) -> Check:
    """Load the files of TLS, given by their keys in `cluster`, as a connection would."""
    files = ", ".join(tls.values())
    fix = "Name the PEM files that the cluster was started with; docs/clusters.md makes new ones."
    for name, file in tls.items():
        try:
            Path(file).read_bytes()
        except OSError as error:
            return Check("files of TLS", f"cluster.{name}, {file}: {error.strerror}", fix)
    try:
        context = ssl.create_default_context(cafile=tls["tls_ca_file"])
        context.load_cert_chain(tls["tls_cert"], tls["tls_key"])
    except ssl.SSLError as error:
        problem = f"not the certificates and key of a cluster, {files}: {error.reason or error}"
        return Check("files of TLS", problem, fix)
    return Check("files of TLS", files)


def check_scheduler(settings: Cluster, engine: Engine) -> Check:
    """Connect to the configured scheduler, or open a loopback port as a local scheduler would."""
    if settings.attached:
        from whitewater.engines.cluster import attach
        from whitewater.engines.workers import workers_of

        try:
            with attach(settings) as client:
                workers = len(workers_of(client))
        except WhitewaterError as error:
            return Check("scheduler", str(error), "Start it, or empty cluster.address and cluster.scheduler_file.")
        return Check("scheduler", f"{settings.address or settings.scheduler_file}, workers: {workers}")
    if engine == "local" and settings.kind == "threads" and not (settings.performance_report or settings.dashboard):
        return Check("scheduler port", "not needed for cluster.kind=threads", status="skip")
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
            port = server.getsockname()[1]
    except OSError as error:
        fix = "Let local programs listen on 127.0.0.1, or set cluster.kind to threads."
        return Check("scheduler port", f"127.0.0.1: {error}", fix)
    return Check("scheduler port", f"listened and connected on 127.0.0.1:{port}")


def read_profile(folder: Path) -> Mapping[str, Any]:
    """Return the options of a profile by their long names."""
    values = read_source(folder / "config.yaml").values
    return {name.replace("_", "-"): value for name, value in values.items()}


def runs_elsewhere(options: Mapping[str, Any]) -> bool:
    """Tell whether jobs run on other machines."""
    return options.get("executor", "local") not in ("local", "dryrun", "touch")


def check_profile(folder: Path, options: Mapping[str, Any], *, device: str) -> Iterator[Check]:
    """Test what a profile needs."""
    if runs_elsewhere(options):
        package = f"snakemake-executor-plugin-{options['executor']}"
        fix = f"Install it beside Snakemake: pip install {package}; envs/slurm.lock has the version tried with SLURM."
        is_installed = find_spec(package.replace("-", "_"))
        found = package if is_installed else f"{package} is not installed"
        yield Check("executor plugin", found, "" if is_installed else fix)
    if options.get("executor") == "slurm":
        yield check_slurm(device=device, cores=int(options.get("max-threads", 1)))
    methods = options.get("software-deployment-method", options.get("sdm", []))
    for method in [methods] if isinstance(methods, str) else methods:
        if method in DEPLOYMENT:
            file = folder / "config.yaml"
            yield check_command(method, fix=f"Install {DEPLOYMENT[method]}, or remove `{method}` from {file}.")


def check_slurm(*, device: str, cores: int) -> Check:
    """Ask SLURM for a partition that is up and has enough cores on one node and, for a GPU run, GPUs."""
    if missing := [name for name in SLURM_COMMANDS if shutil.which(name) is None]:
        fix = "Start runs on a login node of the cluster, where SLURM's commands are on the PATH."
        return Check("SLURM", f"not on the PATH: {', '.join(missing)}", fix)
    command = ["sinfo", "--noheader", "--format=%P %a %D %c %G"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        text = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        return Check("SLURM", text.strip().rpartition("\n")[2], "See whether its controller runs: scontrol ping")
    up = [fields for fields in map(str.split, process.stdout.splitlines()) if fields[1] == "up"]
    if not up:
        return Check("SLURM", "no partition is up", "See why: sinfo --list-reasons")
    if device == "gpu" and not any("gpu" in fields[4] for fields in up):
        fix = "Name a partition with GPUs, `default-resources: slurm_partition=...`, or set device to cpu."
        return Check("SLURM", "no partition that is up has GPUs", fix)
    if cores > (most := max(int(fields[3].rstrip("+")) for fields in up)):
        fix = f"Set cores and max-threads of the profile to {most}."
        return Check("SLURM", f"jobs may ask for {cores} cores, and no node has more than {most}", fix)
    return Check("SLURM", ", ".join(f"{name}: {nodes} nodes" for name, _, nodes, *_ in up))


def check_command(name: str, *, fix: str) -> Check:
    """Run a command that the profile needs with ``--version``."""
    path = shutil.which(name)
    if path is None:
        return Check(name, "not on the PATH", fix)
    process = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if process.returncode:
        return Check(name, f"{path} --version fails: {process.stderr.strip()}", fix)
    return Check(name, process.stdout.strip())


def main(arguments: list[str]) -> int:
    """Print all checks; return 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="whitewater doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a list of objects: name, status, found, fix")
    parser.add_argument("--device", choices=("cpu", "gpu", "auto"), help="check for this, not the configured device")
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], help="as for Snakemake: override config/")
    parser.add_argument("--workflow-profile", type=Path, help="as for Snakemake, such as profiles/slurm")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    # Clients of buckets would log tracebacks of the errors that the checks report.
    logging.getLogger().addHandler(logging.NullHandler())
    default = Path("profiles/default")
    try:
        profile = options.workflow_profile or (default if default.exists() else None)
        checks = run(read_configuration(root, options.configfile, device=options.device), root=root, profile=profile)
    except ConfigError as error:
        checks = [Check("configuration", str(error), "Correct these keys; docs/configuration.md lists all.")]
    failed = int(any(check.status == "fail" for check in checks))
    if options.json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
        return failed
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = f"  {check.name:{width}}  {check.found}"
        console.print(Text.assemble((f"{check.status:4}", COLORS[check.status]), line))
        if check.fix:
            console.print(Text(f"{'':{width + 8}}fix: {check.fix}", style="bold"))
    return failed

"""What this machine can run: ``python -m whitewater doctor``. Each line is something that was tried."""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from whitewater import memory
from whitewater.config import Cluster, Source, resolve
from whitewater.config.genomics import Genomics, Vcz
from whitewater.config.resolve import missing_gpu
from whitewater.errors import ConfigError, WhitewaterError
from whitewater.reachability import unreachable
from whitewater.redaction import redacted
from whitewater.remote import local_path
from whitewater.versions import versions

OLDEST_PYTHON = (3, 11)
FOLDERS = ("results", "data", "logs")
LEAST_MEMORY = 1_000_000_000  # on generated data no step took more than 0.6; others run beside it
LEAST_DISK = 1_000_000_000
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
REACH_SECONDS = 10.0
SHOWN = 5


@dataclass(frozen=True)
class Check:
    """One thing that was tried, what was found, and the remedy where it failed."""

    name: str
    status: Literal["ok", "warn", "fail", "skip"]
    found: str
    fix: str = ""


def run(config: Mapping[str, Any], *, root: Path) -> list[Check]:
    """Try everything that a run with this configuration will need.

    Parameters
    ----------
    config
        The resolved configuration.
    root
        The folder that runs start in, with ``envs/`` in it.
    """
    device = config["device"]
    return [
        check_python(),
        check_packages(root / "envs" / f"{device}.lock"),
        check_cores(),
        check_memory(),
        check_disk(root),
        *(check_write_access(root / folder) for folder in FOLDERS),
        check_gpu(needed=device == "gpu"),
        check_scheduler(Cluster.model_validate(config["cluster"])),
        check_taxi_source(config["taxi"]["fetch"]),
        check_genomics_source(config["genomics"]),
    ]


def check_python() -> Check:
    """Compare the interpreter with the oldest that is supported."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= OLDEST_PYTHON:
        return Check("Python", "ok", found)
    needed = ".".join(map(str, OLDEST_PYTHON))
    return Check("Python", "fail", found, f"Use Python {needed} or newer: make run PYTHON=/path/to/python{needed}")


def check_packages(lock: Path) -> Check:
    """Compare the installed distributions with those of a lock, where the lock's markers hold on this machine."""
    name = f"packages of {lock.name}"
    if not lock.exists():
        return Check(name, "fail", f"{lock} does not exist", "Run this in the folder of a Whitewater checkout.")
    locked, requested = _locked(lock), _requested(lock.with_suffix(".in"))
    found = {package: _installed(package) for package in locked}
    missing = [package for package in locked if found[package] is None]
    different = [
        f"{package} {found[package]} (lock: {version})"
        for package, version in locked.items()
        if found[package] not in {None, version}
    ]
    if not missing and not different:
        return Check(name, "ok", f"{len(locked)} packages, each at the locked version")
    missing.sort(key=lambda package: package not in requested)
    problems = [f"{what}: {_few(which)}" for what, which in (("missing", missing), ("different", different)) if which]
    # What is needed only by other packages may go by another name in an environment that conda made.
    status: Literal["fail", "warn"] = "fail" if requested.intersection(missing) else "warn"
    command = f"uv pip install --require-hashes --requirement {lock.parent.name}/{lock.name}"
    fix = f"`make run` installs them; in an environment of your own: {command}"
    return Check(name, status, "; ".join(problems), fix)


def _locked(lock: Path) -> dict[str, str]:
    """Return the version of each package whose marker holds on this machine."""
    from packaging.requirements import Requirement

    requirements = [Requirement(line.strip()) for line in re.findall(r"(?m)^(\w[^\\\n]*)", lock.read_text())]
    return {
        requirement.name: str(requirement.specifier).removeprefix("==")
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate()
    }


def _requested(source: Path) -> set[str]:
    """Return the packages that a lock was asked for, those of included files among them."""
    lines = source.read_text().splitlines()
    included = [source.with_name(line.removeprefix("-r ")) for line in lines if line.startswith("-r ")]
    named = {re.split(r"[<>=]", line)[0].lower() for line in lines if not line.startswith("-r ")}
    return named.union(*map(_requested, included))


def _installed(package: str) -> str | None:
    """Return a package's version; RAPIDS and CuPy name CUDA's version in their wheels, but not in conda's packages."""
    names = (package, re.sub(r"-cu(da)?\d+x?$", "", package))
    return next((version for version in versions(*names).values() if version), None)


def _few(items: Sequence[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more


def check_cores() -> Check:
    """Count the cores that this process may use, by its affinity and its control group's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    if quota < allowed:
        fix = f"Give Snakemake no more than the quota: --cores {max(1, math.floor(quota))}"
        return Check("cores", "warn", f"{allowed}, but the control group's quota is {quota:g}", fix)
    return Check("cores", "ok", str(allowed))


def _cpu_quota() -> float:
    """Return the cores that the control group grants, infinite where it sets no limit."""
    if not CPU_QUOTA.exists():
        return math.inf
    quota, period = CPU_QUOTA.read_text().split()
    return math.inf if quota == "max" else int(quota) / int(period)


def check_memory() -> Check:
    """Compare the memory that is free, to the system and in the control group, with what a run needs."""
    free = memory.available()
    found = f"{free / 1e9:.1f} GB available"
    if free >= LEAST_MEMORY:
        return Check("memory", "ok", found)
    return Check("memory", "fail", found, f"End other programs; a run needs {LEAST_MEMORY / 1e9:g} GB.")


def check_disk(root: Path) -> Check:
    """Compare the free space where results go with what a run needs."""
    place = _nearest(root / "results")
    free = shutil.disk_usage(place).free
    found = f"{free / 1e9:.1f} GB free at {place}"
    if free >= LEAST_DISK:
        return Check("disk", "ok", found)
    return Check("disk", "fail", found, "Free some space, or make results/ a link to a larger disk.")


def check_write_access(folder: Path) -> Check:
    """Write, flush and remove a file in a folder, or in the nearest parent where it does not exist yet."""
    name = f"write access to {folder.name}/"
    place = _nearest(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".whitewater-doctor-") as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        fix = f"Make {place} a folder that you may write to and that has space."
        return Check(name, "fail", f"{place}: {error.strerror}", fix)
    return Check(name, "ok", f"wrote, flushed and removed a file in {place}")


def _nearest(path: Path) -> Path:
    """Return the path itself where it exists, else its nearest parent that does."""
    return next(place for place in (path, *path.parents) if place.exists())


def check_gpu(*, needed: bool) -> Check:
    """Start the NVIDIA driver and list its devices."""
    problem = missing_gpu()
    if problem is None:
        return Check("GPU and driver", "ok", ", ".join(_gpu_names()))
    if not needed:
        return Check("GPU and driver", "skip", "absent, not needed for device=cpu")
    fix = "Install the NVIDIA driver and the packages of envs/gpu.lock, or use --config device=cpu."
    return Check("GPU and driver", "fail", problem, fix)


def _gpu_names() -> list[str]:
    """Return the names of the driver's devices, once ``missing_gpu`` has started it."""
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for device in range(count.value):
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode())
    return names


def check_scheduler(settings: Cluster) -> Check:
    """Connect to the configured scheduler, or listen and connect on the loopback interface as a local one would."""
    if settings.kind == "attach":
        return _check_attached_scheduler(settings)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
            port = server.getsockname()[1]
    except OSError as error:
        fix = "Let local programs listen on 127.0.0.1, or set cluster.kind to threads."
        return Check("scheduler port", "fail", f"127.0.0.1: {error}", fix)
    return Check("scheduler port", "ok", f"listened and connected on 127.0.0.1:{port}")


def _check_attached_scheduler(settings: Cluster) -> Check:
    from whitewater.cluster import attach

    try:
        with attach(settings) as client:
            workers = len(client.scheduler_info()["workers"])
    except WhitewaterError as error:
        return Check("scheduler", "fail", str(error), "Start it, or set cluster.kind to auto.")
    return Check("scheduler", "ok", f"{settings.address or settings.scheduler_file}, workers: {workers}")


def check_taxi_source(fetch: Mapping[str, Any]) -> Check:
    """Read the first byte of each place that the configured source of taxi trips names."""
    source = fetch["source"]
    name = f"taxi source: {source}"
    if source == "generated":
        return Check(name, "ok", "made on this machine; no network and no credentials are used")
    places = _tlc_files(fetch["tlc"]) if source == "tlc" else _own_files(fetch["files"])
    anonymous = source == "tlc" or fetch["files"]["anonymous"]
    problems = unreachable(places, anonymous=anonymous, seconds=REACH_SECONDS)
    if not problems:
        return Check(name, "ok", f"read the first byte of each: {_few(places)}")
    found = _few([f"{place}: {problem}" for place, problem in problems.items()])
    return Check(name, "fail", found, _source_fix(source, problems))


def _tlc_files(tlc: Mapping[str, Any]) -> list[str]:
    """Return the address of the first file; the others lie beside it."""
    return [f"{tlc['base_url']}/trip-data/{tlc['services'][0]}_tripdata_{tlc['months'][0]}.parquet"]


def _own_files(files: Mapping[str, Any]) -> list[str]:
    return [*files["paths"], *([files["zones"]] if files["zones"] else [])]


def _source_fix(source: str, places: Iterable[str]) -> str:
    if source == "tlc":
        return (
            "Check the network and taxi.fetch.tlc (base_url, services, months), or set taxi.fetch.source to generated."
        )
    buckets = any(place.startswith(("gs://", "gcs://", "s3://")) for place in places)
    credentials = "; a private bucket needs anonymous: false and credentials of its own tools" if buckets else ""
    return f"Correct taxi.fetch.files{credentials}."


def check_genomics_source(genomics: Mapping[str, Any]) -> Check:
    """Open each store, and read the first byte of each file, that the configured source of genotypes names."""
    settings = Genomics.model_validate(genomics)
    name = f"genomics source: {settings.ingest.source}"
    stores, files = _genotype_stores(settings), _genotype_files(settings)
    if not stores and not files:
        return Check(name, "ok", "made on this machine; no network and no credentials are used")
    problems = [*_not_opened(stores), *_not_read(files)]
    if problems:
        fix = (
            "Correct genomics.ingest or genomics.project.second; a private bucket needs anonymous: false and "
            "credentials of its own tools."
        )
        return Check(name, "fail", _few(problems), fix)
    return Check(name, "ok", f"opened each: {_few([redacted(place) for place in (*stores, *files)])}")


def _genotype_stores(settings: Genomics) -> dict[str, Vcz]:
    """Return each Zarr store with the settings that it is read by."""
    ingest, second = settings.ingest, settings.project.second
    stores: dict[str, Vcz] = {}
    if ingest.source == "vcz":
        stores[ingest.vcz.store] = ingest.vcz
    if ingest.source == "malariagen":
        stores |= dict.fromkeys(filter(None, (ingest.malariagen.store, ingest.malariagen.sites)), ingest.malariagen)
    if second and not _is_plink(second):
        stores[second] = Vcz(store=second)
    return stores


def _genotype_files(settings: Genomics) -> list[str]:
    ingest, second = settings.ingest, settings.project.second
    prefixes = [*([ingest.plink.prefix] if ingest.source == "plink" else []), *([second] if _is_plink(second) else [])]
    named = [f"{prefix}{suffix}" for prefix in prefixes for suffix in (".bed", ".bim", ".fam")]
    named += ingest.vcf.paths if ingest.source == "vcf" else ()
    named += [ingest.labels.table] if ingest.labels.table else []
    return [str(local_path(place) or place) for place in named]


def _is_plink(location: str) -> bool:
    """Say whether the second data set is PLINK files, as the step `project` does."""
    return Path(f"{location}.bed").expanduser().exists()


def _not_opened(stores: Mapping[str, Vcz]) -> list[str]:
    """Say which stores cannot be opened, and why: in little time, so with one further try at most."""
    from whitewater.zarr_arrays import open_group

    problems = []
    for store, settings in stores.items():
        try:
            open_group(
                str(local_path(store) or store),
                anonymous=settings.anonymous,
                endpoint=settings.endpoint,
                retries=min(settings.retries, 1),
                timeout=min(settings.timeout, REACH_SECONDS),
            )
        except WhitewaterError as error:
            problems.append(str(error))
    return problems


def _not_read(files: Iterable[str]) -> list[str]:
    problems = unreachable(files, anonymous=True, seconds=REACH_SECONDS)
    return [f"{redacted(place)}: {problem.replace(place, redacted(place))}" for place, problem in problems.items()]


def main(arguments: list[str]) -> int:
    """Print what was found, and return 1 when something that is needed failed."""
    options = _parser().parse_args(arguments)
    root = Path.cwd()
    try:
        checks = run(_configured(root, options.configfile, options.device), root=root)
    except ConfigError as error:
        checks = [Check("configuration", "fail", str(error), "Correct these keys; docs/configuration.md lists all.")]
    if options.json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        _print(checks)
    return int(any(check.status == "fail" for check in checks))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m whitewater doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a list of objects: name, status, found, fix")
    parser.add_argument(
        "--device", choices=["cpu", "gpu", "auto"], help="check for this device, not the configured one"
    )
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], help="as Snakemake's: over those in config/")
    return parser


def _configured(root: Path, files: Iterable[Path], device: str | None) -> dict[str, Any]:
    """Return the configuration that Snakemake would merge from the same files."""
    import yaml

    sources = []
    for file in (*sorted((root / "config").glob("*.yaml")), *files):
        if not file.exists():
            raise ConfigError(f"{file} does not exist.")
        sources.append(Source(str(file), yaml.safe_load(file.read_text()) or {}))
    if device:
        sources.append(Source("--device", {"device": device}))
    merged: dict[str, Any] = {}
    for source in sources:
        merged = _merged(merged, source.values)
    return resolve(merged, sources=sources)


def _merged(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(weak)
    for key, value in strong.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _print(checks: Sequence[Check]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    colours = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}
    width = max(len(check.name) for check in checks)
    for check in checks:
        console.print(
            Text.assemble((f"{check.status:4}", colours[check.status]), f"  {check.name:{width}}  {check.found}")
        )
        if check.fix:
            console.print(Text(f"{'':{width + 8}}fix: {check.fix}", style="bold"))

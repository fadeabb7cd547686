"""The manifest: what was made from what, where and how, with the SHA-256 of every input and output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whitewater.io.store import check_format, read_json

FORMAT = 1


def read_manifest(path: Path) -> dict[str, Any]:
    """Return what a manifest holds. Raises InputError if it has another format."""
    manifest: dict[str, Any] = read_versioned(path, FORMAT)
    return manifest


def read_performance_reports(manifest: Path) -> dict[str, Path]:
    """Return Dask's performance report of each step that left one. Raises InputError as `read_manifest`."""
    steps: dict[str, Any] = read_manifest(manifest).get("steps", {})
    reports = {step: each["facts"].get("performance_report") for step, each in steps.items()}
    return {step: Path(path) for step, path in reports.items() if path}


def flatten(section: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return the settings of a section with their whole keys: ``clean.ranges.fare_amount.above``."""
    flat: dict[str, Any] = {}
    for key, value in section.items():
        nested = isinstance(value, dict) and value
        flat |= flatten(value, f"{before}{key}.") if nested else {f"{before}{key}": value}
    return flat


def read_versioned(path: Path, known: int) -> Any:
    """Return what a manifest or a record holds. Raises InputError if it has another format than the known one."""
    value = read_json(path)
    version = value.get("format") if isinstance(value, dict) else None
    check_format(path, version, known, remedy="Run snakemake again.")
    return value


def is_of_last_run(path: Path) -> bool:
    """Return whether the manifest beside a result, such as ``results/pagerank/cpu/index``, names it.

    A run of another source leaves what it does not make, such as an index. Without a manifest all may be of that run.
    """
    manifest = path.parent / "manifest.json"
    return not manifest.exists() or path.name in {
        Path(output["path"]).name for output in read_manifest(manifest)["outputs"]
    }

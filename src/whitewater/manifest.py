"""The manifest of a run: inputs and outputs with their SHA-256, settings, versions, and a record of each step.

The step `manifest` of each application writes it. `whitewater.script` reads the step's annotations, so this module
cannot use ``from __future__ import annotations``.
"""

import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

import whitewater
from whitewater.config.base import Section
from whitewater.errors import IntegrityError, without_secrets
from whitewater.io.store import check_format, read_json, write_json
from whitewater.step import RECORD_FORMAT, Inputs, Output, Run

FORMAT = 1
# Keys of a record that the manifest has elsewhere.
_ELSEWHERE = {"format", "application", "step", "outputs"}


class Configured(Section):
    """The section of any application, which was validated before any rule ran."""

    model_config = ConfigDict(extra="allow")


def manifest(run: Run[Configured], *, records: Inputs, inputs: Path, manifest: Output) -> None:
    """Combine the records of all steps into the manifest of an application.

    Raises IntegrityError if a recorded output no longer exists, and InputError if a record has another format.
    """
    steps = {record["step"]: record for record in (read_versioned(path, RECORD_FORMAT) for path in records.values())}
    outputs = {
        output["path"]: {**output, "step": step}
        for step, record in steps.items()
        for output in record["outputs"].values()
    }
    if missing := [path for path in outputs if not Path(path).exists()]:
        raise IntegrityError(f"{', '.join(missing)} were written but no longer exist. Run the workflow again.")
    write_json(
        manifest,
        {
            "format": FORMAT,
            "whitewater": whitewater.__version__,
            "application": run.application,
            "git_commit": _commit(),
            "platform": platform.platform(),
            "config": without_secrets(run.settings.model_dump(mode="json")),
            "inputs": read_json(inputs),
            "outputs": sorted(outputs.values(), key=lambda output: str(output["path"])),
            "steps": {
                step: {key: value for key, value in record.items() if key not in _ELSEWHERE}
                for step, record in steps.items()
            },
        },
    )


def _commit() -> str | None:
    """Return the commit of the code, or None outside a git checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest. Raises InputError if it has another format."""
    return dict(read_versioned(path, FORMAT))


def read_performance_reports(manifest: Path) -> dict[str, Path]:
    """Return the paths of Dask's performance reports by step. Raises InputError as `read_manifest` does."""
    steps: dict[str, Any] = read_manifest(manifest).get("steps", {})
    reports = {step: record["facts"].get("performance_report") for step, record in steps.items()}
    return {step: Path(path) for step, path in reports.items() if path}


def flatten(section: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings of a section by their full keys: ``clean.ranges.fare_amount.above``."""
    flat: dict[str, Any] = {}
    for key, value in section.items():
        nested = isinstance(value, dict) and value
        flat |= flatten(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return flat


def read_versioned(path: Path, format: int) -> Any:
    """Read a manifest or a record. Raises InputError if it has another format."""
    value = read_json(path)
    version = value.get("format") if isinstance(value, dict) else None
    check_format(path, version, format, remedy="Run snakemake again.")
    return value


def is_of_last_run(path: Path) -> bool:
    """Tell whether the manifest beside a result, ``results/pagerank/cpu/index``, lists it; True without a manifest."""
    manifest = path.parent / "manifest.json"
    # A result that it does not list is from an earlier run with another source.
    return not manifest.exists() or path.name in {
        Path(output["path"]).name for output in read_manifest(manifest)["outputs"]
    }

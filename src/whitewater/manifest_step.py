"""Step `manifest`, which all applications have: what was made from what, where and how."""

import platform
import subprocess
from pathlib import Path

from pydantic import ConfigDict

import whitewater
from whitewater.config.base import Section
from whitewater.errors import IntegrityError, without_secrets
from whitewater.io.store import read_json, write_json
from whitewater.manifest import FORMAT, read_versioned
from whitewater.step import RECORD_FORMAT, Inputs, Output, Run

# What the manifest has of a record in other places.
_ELSEWHERE = {"format", "application", "step", "outputs"}


class Configured(Section):
    """The whole section of any application, which was checked before its rules."""

    model_config = ConfigDict(extra="allow")


def manifest(run: Run[Configured], *, records: Inputs, inputs: Path, manifest: Output) -> None:
    """Gather the records of all steps into the manifest of an application.

    Raises IntegrityError if an output that a record names is gone, and InputError if a record has another format.
    """
    steps = {record["step"]: record for record in (read_versioned(path, RECORD_FORMAT) for path in records.values())}
    outputs = {
        output["path"]: {**output, "step": step}
        for step, record in steps.items()
        for output in record["outputs"].values()
    }
    if missing := [path for path in outputs if not Path(path).exists()]:
        raise IntegrityError(f"{', '.join(missing)} were written but are gone. Run the workflow again.")
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
    source = Path(__file__).parent
    try:
        process = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=source, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()

"""Whitewater run as its user runs it, in a clone of this repository; see `whitewater.testing.running`."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from whitewater.testing import running
from whitewater.testing.running import (
    DEADLINE,
    MINE,
    Ended,
    Running,
    command_of,
    contents,
    eventually,
    leftovers,
    sha256,
    staging,
)

__all__ = [
    "DEADLINE",
    "MINE",
    "Ended",
    "Running",
    "contents",
    "eventually",
    "leftovers",
    "sha256",
    "staging",
]

ROOT = Path(__file__).parents[2]
# The small runs of the applications that are here: a copy of this repository may have deleted some.
TINY: dict[str, dict[str, Any]] = {
    name: import_module(f"tests.apps.{name}.test_guarantees").TINY
    for name in ("taxi", "genomics", "pagerank", "recsys")
    if (ROOT / "workflows" / name).exists()
}
# Scripts, pictures and styles that a page would load from elsewhere when it is opened.
REMOTE = re.compile(r"""<(?:script|img|link\b(?=[^>]*stylesheet))\b[^>]*\b(?:src|href)\s*=\s*["']?(?:https?:)?//""")


@dataclass(frozen=True)
class Clone(running.Clone):
    """A clone of this repository, in which single steps are run by hand, too."""

    def dry_run(self, overrides: Mapping[str, Any], *arguments: str) -> Ended:
        """Say what would run with a configuration over the tiny one."""
        ended = self.snakemake("--dry-run", *arguments, files=("tiny.yaml", self.write("mine.yaml", overrides)))
        assert ended.status == 0, ended.terminal
        return ended

    def start_step(
        self,
        name: str,
        paths: Mapping[str, str | Path],
        *,
        settings: Mapping[str, Any] | None = None,
        cluster: Mapping[str, Any] | None = None,
        application: str = "taxi",
        device: str = "cpu",
        through: Sequence[str] = (),
        **variables: str,
    ) -> Running:
        """Start a step by hand, as `python -m whitewater`, or ``through`` a command that starts it."""
        flags = [f"--settings={json.dumps(settings or {})}", f"--cluster={json.dumps(cluster or {})}"]
        flags += [f"--{flag}={path}" for flag, path in paths.items()]
        flags += [f"--device={device}", "--threads=2", f"--log={log_of(name)}", f"--record=logs/{name}.json"]
        command = (*through, sys.executable, "-m", "whitewater", application, name, *flags)
        return self.start(*command, PYTHONPATH=str(self.folder / "src"), **variables)

    def step(self, name: str, paths: Mapping[str, str | Path], **options: Any) -> Ended:
        """Run a step to its end; see `start_step`."""
        return self.start_step(name, paths, **options).ended()

    def log(self, name: str) -> str:
        """Return the log of a step that was run by hand."""
        return (self.folder / log_of(name)).read_text()


def log_of(step: str) -> str:
    """Return where `Clone.step` puts the log of a step."""
    return f"logs/{step}.log"


def make_clone(folder: Path) -> Clone:
    """Clone the repository as it stands."""
    return Clone(running.make_clone(ROOT, folder, TINY).folder)


def inputs_of(ended: Ended, rule: str) -> str:
    """Return the files that a dry run lists as inputs of a rule."""
    job = re.search(rf"^(?:local)?rule {rule}:\n +input: (.*)$", ended.terminal, re.MULTILINE)
    assert job, ended.terminal
    return job[1]


def workers(step: psutil.Process) -> list[psutil.Process]:
    """Return the worker processes of a step that are running."""
    return [each for each in step.children(recursive=True) if any("spawn_main" in word for word in command_of(each))]


def own_source(clone: Clone) -> None:
    """Give a clone a copy of the source, compiled kernels included, to edit."""
    (clone / "src").unlink()
    shutil.copytree(ROOT / "src", clone / "src")


def of_documentation(heading: str) -> list[str]:
    """Return the commands below a heading of docs/clusters.md, in which lines that end with a backslash go on."""
    section = (ROOT / "docs/clusters.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^    (?! )(.*)$", section.replace("\\\n        ", ""), re.MULTILINE)


def make_certificate(clone: Clone) -> None:
    """Make a certificate and its key as docs/clusters.md says."""
    for command in of_documentation("Several machines")[:2]:
        subprocess.run(shlex.split(command), cwd=clone.folder, check=True, capture_output=True)


def listed(*paths: Path) -> dict[str, Any]:
    """Return the list of trips that `fetch` would write of raw files."""
    return {"files": [
        {"path": str(path), "origin": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    ]}  # fmt: skip

"""Whitewater run as its user runs it, in a clone of this repository; see `whitewater.testing.running`."""

import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

from whitewater.testing import running
from whitewater.testing.running import (
    DEADLINE,
    MINE,
    Clone,
    Ended,
    Running,
    contents,
    eventually,
    find_step,
    leftovers,
    log_of,
    sha256,
    staging,
    workers,
)

__all__ = [
    "DEADLINE",
    "MINE",
    "Clone",
    "Ended",
    "Running",
    "contents",
    "eventually",
    "find_step",
    "leftovers",
    "log_of",
    "sha256",
    "staging",
    "workers",
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


def make_clone(folder: Path) -> Clone:
    """Clone the repository as it stands."""
    return running.make_clone(ROOT, folder, TINY)


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

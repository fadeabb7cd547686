"""Whether a result is of the last run: a run of another source leaves what it does not make, such as an index."""

from __future__ import annotations

from pathlib import Path

from whitewater.store import read_json

MANIFEST = "manifest.json"


def is_of_last_run(path: Path) -> bool:
    """Return whether the manifest beside a result names it; where there is none, nothing speaks against it.

    Parameters
    ----------
    path
        A file or folder in the directory of the results, such as ``results/pagerank/cpu/index``.
    """
    manifest = path.parent / MANIFEST
    if not manifest.exists():
        return True
    return path.name in {Path(output["path"]).name for output in read_json(manifest)["outputs"]}

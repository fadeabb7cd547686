"""A `Work` as an argument of a command, and back."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.published.row import Work
from whitewater import engines
from whitewater.engines.config import Cluster


def as_argument(work: Work) -> str:
    """Return work as JSON."""
    return json.dumps(
        {
            "device": work.device.name,
            "threads": work.threads,
            "scale": work.scale,
            "folder": str(work.folder),
            "cluster": work.cluster.model_dump(mode="json", exclude_defaults=True),
            "options": work.options,
        }
    )


def read_work(argument: str) -> Work:
    """Return the work that `as_argument` wrote."""
    given = json.loads(argument)
    return Work(
        device=engines.resolve(given["device"]),
        threads=given["threads"],
        scale=given["scale"],
        folder=Path(given["folder"]),
        cluster=Cluster.model_validate(given["cluster"]),
        options=given["options"],
    )

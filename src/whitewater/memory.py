"""How much memory there is, how much was used, and the refusal of work that would not fit."""

from __future__ import annotations

import logging
import resource
import sys
from pathlib import Path

from whitewater.errors import ResourceError

logger = logging.getLogger(__name__)
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def available() -> int:
    """Return the bytes that this process may still take, by the system's estimate and the control group's limit."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_limits()])


def peak() -> int:
    """Return the largest resident size that this process had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forecast(needed: int, *, what: str, remedy: str) -> None:
    """Log how much memory the work will need, and refuse it when there is less.

    Raises
    ------
    ResourceError
        If ``needed`` bytes are not available.
    """
    free = available()
    logger.info("%s needs about %.2f GB of memory; %.2f GB are available", what, needed / 1e9, free / 1e9)
    if needed > free:
        raise ResourceError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory, but {free / 1e9:.1f} GB are available. {remedy}"
        )


def _limits() -> list[int]:
    texts = [path.read_text().strip() for path in CGROUP_LIMITS if path.exists()]
    return [int(text) for text in texts if text.isdigit()]

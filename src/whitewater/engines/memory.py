"""Memory that is available, memory that was used, and errors for work that does not fit."""

import logging
import resource
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Protocol

from whitewater.errors import ResourceError

logger = logging.getLogger(__name__)
PROCESS, GROUPS = Path("/proc/self"), Path("/sys/fs/cgroup")
# For both versions of control groups: the file of the limit, and the memory.stat entry of memory that stays in use.
_GROUP_LIMITS = (("memory.limit_in_bytes", "total_rss"), ("memory.max", "anon"))
# Entries of a process's status, and the limits on them.
_PROCESS_LIMITS = {"VmSize": resource.RLIMIT_AS, "VmData": resource.RLIMIT_DATA}
# Environment variable: Polars keeps free memory for 10 s, not 0.5 s. On a busy machine, page faults for memory that it
# had returned took two thirds of the time of reading and writing trips.
KEPT_BY_POLARS = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000")


class HasMemory(Protocol):
    """The part of `whitewater.engines.Device` that forecasts need."""

    @property
    def name(self) -> str: ...
    def free_memory(self) -> int: ...
    def memory_place(self) -> str: ...


def available() -> int:
    """Return the bytes that this process may still use, by the system, its control groups and ``ulimit``."""
    import psutil

    return max(0, min([int(psutil.virtual_memory().available), *_left_of_groups(), *_left_of_process()]))


def peak() -> int:
    """Return the peak resident size of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forecast(needed: int, *, what: str, remedy: str, device: HasMemory | None = None) -> None:
    """Log the memory that this process needs, of the host or a ``device``; raise ResourceError if it has less."""
    if device is None or device.name == "cpu":
        check_fits(available(), needed, what=what, remedy=remedy)
    else:
        check_fits(device.free_memory(), needed, of=device.memory_place(), what=what, remedy=remedy)


def check_fits(free: int, needed: int, *, of: str = "", what: str, remedy: str) -> None:
    """Log the memory that the work needs, and raise ResourceError if less is free; ``of`` names another memory."""
    place = f" of {of}" if of else ""
    logger.info("%s needs about %.2g GB of memory%s; %.2g GB are available", what, needed / 1e9, place, free / 1e9)
    if needed > free:
        raise ResourceError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory{place}, but {free / 1e9:.1f} GB are available. "
            f"{remedy}"
        )


def _left_of_groups() -> Iterator[int]:
    """Yield what is left of the limits of the process's control group and its parents."""
    for folder, (name, used) in product(_groups(), _GROUP_LIMITS):
        limit = _text(folder / name).strip()
        if limit.isdigit():
            yield int(limit) - _entries(folder / "memory.stat").get(used, 0)


def _groups() -> Iterator[Path]:
    """Yield the folders of the control groups; in a container, only the topmost exists."""
    for line in _text(PROCESS / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            root = GROUPS / "memory" if controllers else GROUPS
            own = root / path.lstrip("/")
            yield from (folder for folder in [own, *own.parents] if folder.is_relative_to(root))


def _left_of_process() -> Iterator[int]:
    usage = _entries(PROCESS / "status")
    for entry, limit in _PROCESS_LIMITS.items():
        soft_limit, _ = resource.getrlimit(limit)
        if soft_limit != resource.RLIM_INFINITY and entry in usage:
            yield soft_limit - usage[entry]


def _entries(path: Path) -> dict[str, int]:
    """Return the numbers of lines such as ``anon 4096`` or ``VmData: 4 kB``, in bytes."""
    rows = [line.replace(":", " ").split() for line in _text(path).splitlines()]
    return {row[0]: int(row[1]) << (10 if row[2:] == ["kB"] else 0) for row in rows if row[1:] and row[1].isdigit()}


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""

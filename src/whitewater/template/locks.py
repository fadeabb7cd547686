"""Lock files of single applications, cut from the lock of all applications."""

import re
from collections import defaultdict
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from whitewater.errors import ConfigError

# A package with its version, hashes, and the packages that need it: `# via pandas`, or one on each line.
ENTRY = re.compile(r"(?m)^\w.*\n(?:^[ \t]+.*\n?)*")
NEEDED_BY = re.compile(r"(?m)^ +# (?:via |  )(\S+)")


def names(requirements: Iterable[str]) -> set[str]:
    """Return the package names of requirements."""
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def lock_of(lock: str, requirements: Iterable[str]) -> str:
    """Return the part of a lock that ``requirements`` need, or raise ConfigError if it lacks one of them."""
    entries = _entries(lock)
    present = {name for name, _ in entries}
    needs: dict[str, set[str]] = defaultdict(set)
    for name, entry in entries:
        for requirer in NEEDED_BY.findall(entry):
            needs[canonicalize_name(requirer)].add(name)
    needed, queue = set[str](), list[str](names(requirements))
    if missing := [name for name in queue if not {name, f"{name}-cpu"} & present]:
        raise ConfigError(f"the lock lacks {', '.join(sorted(missing))}. Run `make lock` where it was made.")
    while queue:
        name = queue.pop()
        for package in {name, f"{name}-cpu"} & present - needed:  # XGBoost without CUDA is `xgboost-cpu`
            needed.add(package)
            queue += needs[package]
    header = "".join(line for line in lock.splitlines(keepends=True)[:2] if line.startswith("#"))
    return header + "".join(entry for name, entry in entries if name in needed)


def extend_lock(lock: str, full_lock: str, requirements: Iterable[str]) -> str:
    """Add the packages that ``requirements`` need from a larger lock; existing entries are kept."""
    present = _entries(lock)
    known = {name for name, _ in present}
    more = [entry for entry in _entries(lock_of(full_lock, requirements)) if entry[0] not in known]
    header = lock.partition(present[0][1])[0]
    return header + "".join(entry for _, entry in sorted([*present, *more], key=lambda entry: entry[0]))


def _entries(lock: str) -> list[tuple[str, str]]:
    """Return the entries of a lock with their package names."""
    return [(canonicalize_name(re.split(r"[=<>@ ;]", entry)[0]), entry) for entry in ENTRY.findall(lock)]

"""The lock of one application: of a lock of all of them, the packages that it needs, directly or not."""

import re
from collections import defaultdict
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from whitewater.errors import ConfigError

# A package with its version, its hashes, and what needs it: `# via pandas`, or one a line.
ENTRY = re.compile(r"(?m)^\w.*\n(?:^[ \t]+.*\n?)*")
NEEDED_BY = re.compile(r"(?m)^ +# (?:via |  )(\S+)")


def names(requirements: Iterable[str]) -> set[str]:
    """Return the names of the packages that requirements ask for."""
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def lock_of(lock: str, requirements: Iterable[str]) -> str:
    """Return of a lock what ``requirements`` need, or raise ConfigError if it lacks one of them.

    Where it holds XGBoost without its CUDA code, under another name, that is what `xgboost` asks for, too.
    """
    entries = _entries(lock)
    present = {name for name, _ in entries}
    needs: dict[str, set[str]] = defaultdict(set)
    for name, entry in entries:
        for requirer in NEEDED_BY.findall(entry):
            needs[canonicalize_name(requirer)].add(name)
    wanted, waiting = set[str](), list[str](names(requirements))
    if missing := [name for name in waiting if not {name, f"{name}-cpu"} & present]:
        raise ConfigError(f"the lock lacks {', '.join(sorted(missing))}. Run `make lock` where it was made.")
    while waiting:
        needed = waiting.pop()
        for each in {needed, f"{needed}-cpu"} & present - wanted:
            wanted.add(each)
            waiting += needs[each]
    header = "".join(line for line in lock.splitlines(keepends=True)[:2] if line.startswith("#"))
    return header + "".join(entry for name, entry in entries if name in wanted)


def merged_lock(lock: str, whole: str, requirements: Iterable[str]) -> str:
    """Return a lock with the packages of a larger one that ``requirements`` need and it lacks; what it has stays."""
    present = _entries(lock)
    known = {name for name, _ in present}
    more = [entry for entry in _entries(lock_of(whole, requirements)) if entry[0] not in known]
    header = lock.partition(present[0][1])[0]
    return header + "".join(entry for _, entry in sorted([*present, *more], key=lambda entry: entry[0]))


def _entries(lock: str) -> list[tuple[str, str]]:
    """Return the packages of a lock by their names, each with its versions in turn."""
    return [(canonicalize_name(re.split(r"[=<>@ ;]", entry)[0]), entry) for entry in ENTRY.findall(lock)]

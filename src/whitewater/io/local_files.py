"""Files on this machine that a user names: found, and what tells one state of them from another."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from whitewater.errors import IntegrityError, shorten_list
from whitewater.io.remote import local_path
from whitewater.io.store import digests


def files_of(names: Iterable[str]) -> list[str]:
    """Return the files that paths, globs and ``file://`` URLs stand for, each once, sorted.

    Files that are missing, unreadable or remote are left out: the step that reads them says what is wrong.
    """
    return sorted({file for name in filter(None, names) for file in _files_of(name)})


def files_in(folder: str) -> list[str]:
    """Return all files of a local folder; none of one that is missing or elsewhere."""
    path = local_path(folder) if folder else None
    return [f"{directory}/{name}" for directory, _, names in os.walk(path or "") for name in names]


def matches(path: Path) -> list[Path]:
    """Return the files that a glob matches, sorted, or the path itself if it exists, brackets or not, or is not a glob.

    Hidden files are left out of a glob: they are unfinished ones, ours or a copying program's.
    """
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    anchor = Path(path.anchor)
    files = anchor.glob(str(path.relative_to(anchor)))
    return sorted(file for file in files if not file.is_dir() and not file.name.startswith("."))


def state_of(files: Iterable[str], described: str = "") -> str:
    """Return a digest of the names, sizes and times of files, and of what else ``described`` says."""
    return hashlib.sha256(repr((described, _states(files))).encode()).hexdigest()


@contextmanager
def refuse_changes(places: Iterable[str]) -> Iterator[None]:
    """Check that local files, and those in local folders, do not change while they are read.

    Raises IntegrityError if one has another size or time at the end, is gone, or is new.
    """
    places = list(places)
    before = _states(_all_files(places))
    yield
    after = _states(_all_files(places))
    if changed := sorted(file for file in before | after if before.get(file) != after.get(file)):
        raise IntegrityError(
            f"{shorten_list(changed)} changed while the step read it. Run again when nothing writes there."
        )


@contextmanager
def check_fetched(files: Sequence[Mapping[str, Any]], *, rule: str, threads: int) -> Iterator[None]:
    """Check, before and after they are read, that files are what the list of inputs says.

    ``files`` are the ``path``, ``bytes`` and ``sha256`` of each, as `rule` wrote them down.

    Raises IntegrityError if one has another size or SHA-256, or changes meanwhile.
    """
    paths = [file["path"] for file in files]
    with refuse_changes(paths):
        sizes = {path: size for path, (size, _) in _states(paths).items()}
        changed = [file["path"] for file in files if sizes.get(file["path"]) != file["bytes"]]
        if not changed:
            hashes = digests([Path(path) for path in paths], threads=threads)
            changed = [file["path"] for file in files if hashes[Path(file["path"])] != file["sha256"]]
        if changed:
            raise IntegrityError(f"{shorten_list(changed)} changed since {rule} wrote its checksum down. "
                                 f"Run again with `snakemake --forcerun {rule}`.")  # fmt: skip
        yield


def _states(files: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return size and time of each file that is there."""
    states = {}
    for file in files:
        with suppress(OSError):
            state = os.stat(file)  # noqa: PTH116, half the time of a path's, and a store has many files
            states[file] = (state.st_size, state.st_mtime_ns)
    return states


def _all_files(places: Sequence[str]) -> set[str]:
    return {*files_of(places), *(file for place in places for file in files_in(place))}


def _files_of(name: str) -> Iterator[str]:
    try:
        path = local_path(name)
        files = matches(path) if path else []
    except (OSError, RuntimeError, ValueError):  # a name that no file can have, or ~ of no user
        return
    yield from (str(file) for file in files if file.is_file())

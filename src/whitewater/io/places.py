"""Files that a user names by path, glob or URL: find or download them, and notice when they change."""

import glob
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from whitewater.errors import InputError, IntegrityError, redact, shorten_list
from whitewater.io.download import Downloads, Input, local_name
from whitewater.io.remote import TransferError, client_faults, filesystem_and_path, local_path, open_remote
from whitewater.io.store import digests

MOST_REMOTE_FILES = 5  # that `check_readable` opens
SECONDS = 10.0  # until it gives one of them up


def expand(place: str, *, anonymous: bool, key: str, example: str) -> list[str]:
    """Return the local paths or the URLs that a path, a glob or a URL stands for, sorted.

    Globs are those of local paths and ``file://`` (``*``, ``?``, ``[...]``, ``**``) and of buckets (``*``), read
    without credentials if ``anonymous``. Messages name the ``key`` of the configuration and an ``example`` of a file's
    name. Raises InputError if the file does not exist, the glob matches none, or the place is a directory.
    """
    if local := local_path(place):
        files = list(map(str, matches(local)))
        for name in files:
            if Path(name).is_dir():
                raise InputError(f"{place} is a directory. Name its files, such as {name}/{example}.")
            if not Path(name).is_file():
                raise InputError(f"{place} does not exist. Check {key}.")
            if os.fsencode(name).decode("utf-8", "replace") != name:
                raise InputError(f"{place} matches a file whose name is not UTF-8: {Path(name).name!a}. Rename it.")
    elif place.startswith(("http://", "https://")) or "*" not in place:
        return [place]
    else:
        with _explain_errors(place, key), client_faults(place):
            filesystem, path = filesystem_and_path(place, anonymous=anonymous)
            files = sorted(filesystem.unstrip_protocol(match) for match in filesystem.glob(path))
    if not files:
        raise InputError(f"{redact(place)} matches no file. Check {key}.")
    return files


def find(names: Iterable[str], *, downloads: Downloads, threads: int, key: str, example: str = "*") -> dict[str, Input]:
    """Return the files that paths, globs and URLs stand for, by place; remote ones are downloaded.

    Each file comes once, in the order of the names; the files of a glob in the order of the numbers in their names,
    day_2 before day_10. ``threads`` compute the checksums of local files; for the other parameters see `expand`.

    Raises InputError as `expand` does, or if a download fails or has changed.
    """
    expanded = (expand(name, anonymous=downloads.anonymous, key=key, example=example) for name in names)
    ordered = [place for places in expanded for place in sorted(places, key=_numeric_order)]
    # A file that is named twice, in different ways, keeps its first name.
    places = {place if "://" in place else str(Path(place).resolve()): place for place in reversed(ordered)}
    remote = [place for place in places.values() if "://" in place]
    files = dict(zip(remote, downloads.get(remote), strict=True)) if remote else {}
    local = [Path(place) for place in places.values() if "://" not in place]
    with _explain_errors("", key), refuse_changes(map(str, local)):
        hashes = digests(local, threads=threads)
        files |= {str(path): Input(str(path), str(path), path.stat().st_size, hashes[path]) for path in local}
    return {place: files[place] for place in dict.fromkeys(ordered) if place in files}


def check_readable(names: Iterable[str], *, downloads: Downloads, key: str, example: str = "*") -> list[str]:
    """Return the local paths and URLs that paths, globs and URLs stand for, sorted, after reading a byte of each.

    Of the remote files that are not yet downloaded, only the first `MOST_REMOTE_FILES` are read. Raises InputError as
    `expand` does, or if a file is empty or cannot be read or reached.
    """
    anonymous = downloads.anonymous
    places = {place for name in names for place in expand(name, anonymous=anonymous, key=key, example=example)}
    remote = sorted(place for place in places if "://" in place)
    missing = [url for url in remote if not (downloads.folder / local_name(url)).exists()]
    for place in [*sorted(places.difference(remote)), *missing[:MOST_REMOTE_FILES]]:
        with (
            _explain_errors(place, key),
            open_remote(place, anonymous=anonymous, timeout=SECONDS)
            if "://" in place
            else Path(place).open("rb") as file,
        ):
            if not file.read(1):
                raise InputError(f"{redact(place)} is empty. Check {key}.")
    return sorted(places)


def files_of(names: Iterable[str]) -> list[str]:
    """Return the files that paths, globs and ``file://`` URLs stand for, each once, sorted.

    Missing, unreadable and remote files are left out: the step that reads them reports them.
    """
    files: set[str] = set()
    for name in filter(None, names):
        with suppress(OSError, RuntimeError, ValueError):  # an invalid file name, or ~ of an unknown user
            path = local_path(name)
            files.update(str(file) for file in (matches(path) if path else ()) if file.is_file())
    return sorted(files)


def files_in(folder: str) -> list[str]:
    """Return all files of a local folder; none if it is missing or remote."""
    path = local_path(folder) if folder else None
    return [f"{directory}/{name}" for directory, _, names in os.walk(path or "") for name in names]


def matches(path: Path) -> list[Path]:
    """Return the files that a glob matches, sorted, or the path itself if it exists or is not a glob.

    Globs skip hidden files, which we and copying programs use for unfinished ones.
    """
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    anchor = Path(path.anchor)
    files = anchor.glob(str(path.relative_to(anchor)))
    return sorted(file for file in files if not file.is_dir() and not file.name.startswith("."))


def state_of(files: Iterable[str], extra: str = "") -> str:
    """Return a digest of the names, sizes and times of files, and of an ``extra`` text."""
    return hashlib.sha256(repr((extra, _file_states(files))).encode()).hexdigest()


@contextmanager
def refuse_changes(places: Iterable[str]) -> Iterator[None]:
    """Raise IntegrityError if local files, or files in local folders, are changed, added or removed meanwhile."""
    places = list(places)
    before = _file_states(_all_files(places))
    yield
    after = _file_states(_all_files(places))
    if changed := sorted(file for file in before | after if before.get(file) != after.get(file)):
        raise IntegrityError(
            f"{shorten_list(changed)} changed while the step read it. Run again when nothing writes there."
        )


@contextmanager
def check_fetched(files: Sequence[Mapping[str, Any]], *, rule: str, threads: int) -> Iterator[None]:
    """Raise IntegrityError if a file differs from the SHA-256 that ``rule`` recorded, or changes while it is read.

    ``files`` has ``path`` and ``sha256`` of each file.
    """
    recorded = {Path(file["path"]): file["sha256"] for file in files}
    with refuse_changes(map(str, recorded)):
        hashes = digests([path for path in recorded if path.is_file()], threads=threads)
        if changed := [str(path) for path in recorded if hashes.get(path) != recorded[path]]:
            raise IntegrityError(f"{shorten_list(changed)} changed since {rule} recorded its checksum. "
                                 f"Run again with `snakemake --forcerun {rule}`.")  # fmt: skip
        yield


@contextmanager
def _explain_errors(place: str, key: str) -> Iterator[None]:
    try:
        yield
    except TransferError as error:
        raise InputError(f"{redact(place)} cannot be reached: {error}. Check the network and the address.") from error
    except OSError as error:
        raise InputError(f"{error.filename or place} cannot be read: {error.strerror}. Check {key}.") from error


def _numeric_order(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", name)]


def _file_states(files: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return size and modification time of each file that exists."""
    states = {}
    for file in files:
        with suppress(OSError):
            state = os.stat(file)  # noqa: PTH116, twice as fast as Path.stat, and a store has many files
            states[file] = (state.st_size, state.st_mtime_ns)
    return states


def _all_files(places: Sequence[str]) -> set[str]:
    """Return local files, and all files in local folders."""
    return {*files_of(places), *chain.from_iterable(map(files_in, places))}

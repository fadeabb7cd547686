"""Files that a user names by path, glob or URL: found here or downloaded, and written down with checksums."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from whitewater.errors import InputError
from whitewater.io.download import Downloads, Input, local_name
from whitewater.io.local_files import matches, refuse_changes
from whitewater.io.redaction import redact
from whitewater.io.remote import TransferError, bucket_faults, filesystem_of, local_path, open_remote
from whitewater.io.store import digests

TRIED = 5  # remote files that `try_files` asks for at most, each for so many seconds
SECONDS = 10.0


def expand(place: str, *, anonymous: bool, key: str, example: str) -> list[str]:
    """Return the local paths or the URLs that a path, a glob or a URL stands for, sorted.

    Globs are those of local paths and ``file://`` (``*``, ``?``, ``[...]``, ``**``) and of buckets (``*``), which
    ``anonymous`` reads without credentials. ``key`` of the configuration names the place, and ``example`` is what its
    files might be called: for messages. Raises InputError if there is no such file, the glob matches none, or it is a
    directory.
    """
    here = local_path(place)
    if here is not None:
        return _expand_local(here, place, key=key, example=example)
    if place.startswith(("http://", "https://")) or "*" not in place:
        return [place]
    try:
        with bucket_faults(place):
            filesystem, path = filesystem_of(place, anonymous=anonymous)
            matches = [filesystem.unstrip_protocol(match) for match in filesystem.glob(path)]
    except TransferError as error:
        raise InputError(f"{redact(place)} cannot be listed: {error}. Check the network and the address.") from error
    if not matches:
        raise InputError(f"{redact(place)} matches no file. Check {key}.")
    return sorted(matches)


def find(names: Iterable[str], *, downloads: Downloads, threads: int, key: str, example: str = "*") -> dict[str, Input]:
    """Find or download the files that paths, globs and URLs stand for: the user's files where they are, by place.

    Each comes once, in the order in which it is named; the files of a glob are in the order of the numbers in their
    names, day_2 before day_10. ``threads`` compute the checksums of local files; for the others see `expand`.

    Raises InputError if there is no such file, a glob matches none, or a download fails or is not what it was.
    """
    expanded = (expand(name, anonymous=downloads.anonymous, key=key, example=example) for name in names)
    ordered = [place for places in expanded for place in sorted(places, key=_by_number)]
    # A file that is named twice, in whichever way, has the first name.
    places = {place if "://" in place else str(Path(place).resolve()): place for place in reversed(ordered)}
    remote = [place for place in places.values() if "://" in place]
    files = dict(zip(remote, downloads.get(remote), strict=True)) if remote else {}
    files |= _local([place for place in places.values() if "://" not in place], threads=threads, key=key)
    return {place: files[place] for place in dict.fromkeys(ordered) if place in files}


def try_files(names: Iterable[str], *, downloads: Downloads, key: str, example: str = "*") -> list[str]:
    """Return the local paths and URLs that paths, globs and URLs stand for, sorted, after a byte of each was read.

    Nothing is downloaded. What was downloaded before is not asked for, and of the others the first `TRIED` are.

    Raises InputError if there is no such file, a glob matches none, or a file is empty or cannot be read or reached.
    """
    anonymous = downloads.anonymous
    places = {place for name in names for place in expand(name, anonymous=anonymous, key=key, example=example)}
    remote = sorted(place for place in places if "://" in place)
    absent = [url for url in remote if not (downloads.folder / local_name(url)).exists()]
    for place in [*sorted(places.difference(remote)), *absent[:TRIED]]:
        is_remote = "://" in place
        try:
            with (
                open_remote(place, anonymous=anonymous, timeout=SECONDS) if is_remote else Path(place).open("rb")
            ) as stream:
                is_empty = not stream.read(1)
        except TransferError as error:
            raise InputError(
                f"{redact(place)} cannot be reached: {error}. Check the network and the address."
            ) from error
        except OSError as error:
            raise InputError(f"{place} cannot be read: {error.strerror}. Check {key}.") from error
        if is_empty:
            raise InputError(f"{redact(place)} is empty. Check {key}.")
    return sorted(places)


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", name)]


def _expand_local(path: Path, place: str, *, key: str, example: str) -> list[str]:
    files = matches(path)
    if not files:
        raise InputError(f"{place} matches no file. Check {key}.")
    for match in files:
        if match.is_dir():
            raise InputError(f"{place} is a directory. Name its files, such as {match}/{example}.")
        if not match.is_file():
            raise InputError(f"{place} does not exist. Check {key}.")
        if os.fsencode(match).decode("utf-8", "replace") != str(match):
            raise InputError(f"{place} matches a file whose name is not UTF-8: {match.name!a}. Rename it.")
    return list(map(str, files))


def _local(paths: Sequence[str], *, threads: int, key: str) -> dict[str, Input]:
    try:
        with refuse_changes(paths):
            hashes = digests(list(map(Path, paths)), threads=threads)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}. Check {key}.") from error
    return {path: Input(path, path, Path(path).stat().st_size, hashes[Path(path)]) for path in paths}

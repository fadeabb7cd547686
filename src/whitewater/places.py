"""Files that a user names by path, glob or URL: found here or downloaded, and written down with checksums."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from whitewater.download import Access, Expected, download
from whitewater.errors import InputError
from whitewater.local_files import matches, steady
from whitewater.redaction import redacted
from whitewater.remote import TransferError, bucket_faults, filesystem_of
from whitewater.store import digests

LOCAL = ("", "file", "local")


@dataclass(frozen=True)
class Input:
    """A file on this machine, and what the user named to get it, without secrets."""

    path: str
    origin: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Downloads:
    """Where downloads go: files into ``downloads``, what they are into ``registry.json``; what to expect, by URL.

    With ``refresh``, what was downloaded before is downloaded again.
    """

    directory: Path
    registry: Mapping[str, Expected]
    refresh: bool = False

    def get(self, urls: Sequence[str], access: Access) -> list[Input]:
        """Download files, in the order of ``urls``; see `whitewater.download.download`."""
        pins = self.directory / "registry.json"
        found = download(urls, directory=self.directory / "downloads", pins=pins, registry=self.registry, access=access,
                         refresh=self.refresh)  # fmt: skip
        return [Input(str(each.path), each.origin, each.size, each.sha256) for each in found]


def expand(place: str, *, anonymous: bool, key: str, example: str) -> list[str]:
    """Return the local paths or the URLs that a path, a glob or a URL stands for, sorted.

    Globs are those of local paths and ``file://`` (``*``, ``?``, ``[...]``, ``**``) and of buckets (``*``).

    Parameters
    ----------
    place
        The path, glob or URL.
    anonymous
        Whether buckets are read without credentials.
    key, example
        Key of the configuration that names it, and the names that its files might have: for messages.

    Raises
    ------
    InputError
        If there is no such file, the glob matches none, or it is a directory.
    """
    scheme = urlsplit(place).scheme if "://" in place else ""
    if scheme in LOCAL:
        path = url2pathname(urlsplit(place).path) if scheme else place
        return _expand_local(path, place, key=key, example=example)
    if scheme in ("http", "https") or "*" not in place:
        return [place]
    try:
        with bucket_faults(place, anonymous=anonymous):
            filesystem, path = filesystem_of(place, anonymous=anonymous)
            matches = [filesystem.unstrip_protocol(match) for match in filesystem.glob(path)]
    except TransferError as error:
        raise InputError(f"{redacted(place)} cannot be listed: {error}. Check the network and the address.") from error
    if not matches:
        raise InputError(f"{redacted(place)} matches no file. Check {key}.")
    return sorted(matches)


def distinct(places: Sequence[str]) -> list[str]:
    """Leave out what was named twice, in whichever way."""
    by_identity = {place if "://" in place else str(Path(place).resolve()): place for place in reversed(places)}
    return list(by_identity.values())


def obtain(places: Sequence[str], *, downloads: Downloads, access: Access, threads: int, key: str) -> dict[str, Input]:
    """Return what stands for each of the local paths and URLs: the files of the user where they are, or downloads.

    Raises
    ------
    InputError
        If a file cannot be read, or a download fails or is not what it was.
    """
    remote = [place for place in places if "://" in place]
    found = dict(zip(remote, downloads.get(remote, access), strict=True)) if remote else {}
    return found | _local([place for place in places if "://" not in place], threads=threads, key=key)


def _expand_local(path: str, place: str, *, key: str, example: str) -> list[str]:
    found = matches(Path(path).expanduser())
    if not found:
        raise InputError(f"{place} matches no file. Check {key}.")
    for match in found:
        if match.is_dir():
            raise InputError(f"{place} is a directory. Name its files, such as {match}/{example}.")
        if not match.is_file():
            raise InputError(f"{place} does not exist. Check {key}.")
        if os.fsencode(match).decode("utf-8", "replace") != str(match):
            raise InputError(f"{place} matches a file whose name is not UTF-8: {match.name!a}. Rename it.")
    return list(map(str, found))


def _local(paths: Sequence[str], *, threads: int, key: str) -> dict[str, Input]:
    found = {path: Path(path) for path in paths}
    try:
        with steady(paths):
            hashes = digests(list(found.values()), threads=threads)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}. Check {key}.") from error
    return {name: Input(name, name, path.stat().st_size, hashes[path]) for name, path in found.items()}

"""Downloads: tried again, resumed where they broke off, and never replaced in silence.

A download is *pinned*: its SHA-256 is noted the first time, and a later download of the same URL that gives
other bytes is an error, unless a refresh is asked for. A registry that comes with the code can say what to expect
before the first download. A file whose content does not fit its name, such as a login page, is neither kept nor pinned.
"""

import csv
import hashlib
import logging
import random
import re
import shutil
import threading
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from whitewater.errors import InputError, IntegrityError, ResourceError, WhitewaterError, redact
from whitewater.io.remote import RemoteFile, TransferError, open_remote
from whitewater.io.store import exclusive, put_in_place, read_json, sha256, write_bytes, write_json

logger = logging.getLogger(__name__)

REGISTRY = Path("config/datasets.csv")
# Where the working directory has none: that of the checkout which this module is of.
OWN_REGISTRY = Path(__file__).parents[3] / REGISTRY
AT_ONCE = 4
BLOCK = 1 << 20
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
PROGRESS_SECONDS = 5.0
HEAD = 4096
PARQUET = b"PAR1"
# How pages and messages of servers begin; no table, edge list or archive that is read here does.
PAGE = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:<(?:!doctype|!--|\?xml|html|head|body|script|error)|\{\s*")', re.IGNORECASE)
ENTRY = re.compile(r"([0-9a-f]{64})?,[0-9]*")  # checksum and size in the registry
REGISTRY_COLUMNS = ["name", "url", "sha256", "license", "size"]


@dataclass(frozen=True)
class Expected:
    """What a URL should give, or gave before; unknown parts are empty. ``source`` is the file that says so."""

    source: Path
    sha256: str
    size: int | None


@dataclass(frozen=True)
class Input:
    """A file on this machine, and what the user named to get it, without secrets."""

    path: str
    origin: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Downloads:
    """Where downloads go and how they are made; processes that share a directory take turns.

    Files go into ``downloads`` in it, named by a hash of the URL and its last part; ``registry.json`` pins them.
    """

    directory: Path
    registry: Mapping[str, Expected] = field(  # what to expect, by URL
        default_factory=lambda: read_registry(REGISTRY if REGISTRY.exists() else OWN_REGISTRY)
    )
    refresh: bool = False  # download files that are here already, too, and pin them; log those that changed
    anonymous: bool = True  # read buckets without credentials
    retries: int = 5  # further tries of each file
    timeout: float = 60.0  # seconds without data that end a try

    @property
    def folder(self) -> Path:
        return self.directory / "downloads"

    def get(self, urls: Sequence[str]) -> list[Input]:
        """Download files, four at once; one that is there already is not downloaded again without ``refresh``.

        ``urls`` are of http and https, and whatever fsspec opens (gs, s3 and others); they may hold secrets. The files
        are returned in their order.

        Raises InputError if a file cannot be had, or is not what it was before or should be; IntegrityError if one that
        was downloaded earlier has been changed here; and ResourceError if the disk is too small.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        done: dict[str, Input] = {}
        faults: list[WhitewaterError] = []
        trusted = 0
        stopped = threading.Event()
        pins = self.directory / "registry.json"
        with exclusive(self.directory / ".fetch.lock"), ThreadPoolExecutor(AT_ONCE) as pool:
            known: dict[str, Any] = read_json(pins) if pins.exists() else {}
            before = {name: Expected(pins, pin["sha256"], pin["size"]) for name, pin in known.items()}
            downloads = [_Download(url, self, before.get(local_name(url)), stopped) for url in dict.fromkeys(urls)]
            futures = {pool.submit(download.run): download for download in downloads}
            try:
                for future in as_completed(futures):
                    download = futures[future]
                    try:
                        file = done[download.url] = future.result()
                    except WhitewaterError as fault:  # the others go on: what they bring is there for the next run
                        logger.warning("%s", fault)
                        faults.append(fault)
                        continue
                    trusted += not any(expected.sha256 for expected in (download.pin, download.registered) if expected)
                    known[download.name] = {"url": file.origin, "sha256": file.sha256, "size": file.bytes}
                    write_json(pins, known)
            finally:
                stopped.set()
                pool.shutdown(cancel_futures=True)
        if trusted:
            logger.info("%s: noted SHA-256 of %d new downloads (trust on first use)", pins, trusted)
        if faults:
            raise type(faults[0])("\n".join(map(str, faults)))
        return [done[url] for url in urls]


def read_registry(path: Path) -> dict[str, Expected]:
    """Read a registry of datasets: CSV with the columns name, url, sha256, license and size; by URL.

    ``sha256`` and ``size`` are blank for files that nobody could download when they were entered: then the first
    download on a machine is what later ones are compared with. A registry that does not exist is empty.
    """
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = [*csv.reader(file)] or [[]]
    wrong = [row for row in rows if len(row) != len(REGISTRY_COLUMNS) or not ENTRY.fullmatch(f"{row[2]},{row[4]}")]
    if header != REGISTRY_COLUMNS or wrong:
        shown = ",".join([header, *wrong][-1])
        raise InputError(f"{path} is not a registry of datasets: {shown}. It needs the columns "
                         f"{','.join(REGISTRY_COLUMNS)}; SHA-256 in lower case hexadecimal, bytes.")  # fmt: skip
    return {url: Expected(path, digest, int(size) if size else None) for _, url, digest, _, size in rows}


def local_name(url: str) -> str:
    """Return the name that a URL's file has here; user and password do not change it."""
    parts = urlsplit(url)
    location = url.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1)
    name = re.sub(r"[^\w.-]", "_", unquote(parts.path).rpartition("/")[2])[-100:]
    return f"{hashlib.sha256(location.encode()).hexdigest()[:12]}-{name}"


class _Download:
    """One file on its way; ``stopped`` asks it to give up."""

    def __init__(self, url: str, settings: Downloads, pin: Expected | None, stopped: threading.Event) -> None:
        self.url, self.origin, self.settings, self.stopped = url, redact(url), settings, stopped
        self.pin, self.registered = pin, settings.registry.get(url)
        self.name = local_name(url)
        self.path, self.part = settings.folder / self.name, settings.folder / f"{self.name}.part"
        # Tells which version the part is of; without it the part is worth nothing.
        self.version = settings.folder / f"{self.name}.version"
        # What the file must be: as the registry says, and the pin, unless that is to be refreshed.
        self.binding = [entry for entry in (self.registered, None if settings.refresh else pin) if entry]

    def run(self) -> Input:
        """Return the file, which is downloaded if need be."""
        if self.path.exists() and self.pin is not None and not self.settings.refresh:
            return self._checked(self.path)
        for number in range(self.settings.retries + 1):
            try:
                self._attempt()
                break
            except TransferError as error:
                if number == self.settings.retries:
                    raise InputError(f"{self.origin} could not be downloaded in {number + 1} tries: {error}. "
                                     "Run again to go on where it stopped.") from error  # fmt: skip
                pause = min(max(error.wait, FIRST_PAUSE * 2**number * random.uniform(0.5, 1.0)), LONGEST_PAUSE)
                logger.warning("%s: %s; trying again in %.1f s", self.origin, error, pause)
                self.stopped.wait(pause)
        found = self._checked(self.part)
        put_in_place(self.part, self.path)
        self._discard()
        return found

    def _checked(self, file: Path) -> Input:
        """Return a file, or raise what is wrong with it; then a part is not kept."""
        found = Input(str(self.path), self.origin, file.stat().st_size, sha256(file))
        if file == self.path and self.pin and self.pin.sha256 != found.sha256:
            raise IntegrityError(f"{self.path} was changed since it was downloaded from {self.origin}. "
                                 "Remove it, so that it is downloaded again.")  # fmt: skip
        if fault := _fault_of(file, name=urlsplit(self.url).path):
            self._discard()
            raise InputError(f"{self.origin} {fault}. It was not kept. Open the address in a browser: a proxy or a "
                             "login page may stand before it.")  # fmt: skip
        for expected in self.binding:
            if expected.sha256 not in ("", found.sha256):
                self._discard()
                raise self._replacement(expected, f"it gives SHA-256 {found.sha256} and {found.bytes:,} bytes")
        if self.pin and self.pin.sha256 != found.sha256:
            logger.warning("%s was replaced upstream: %s had SHA-256 %s, now it is %s. The new file is used, because "
                           "refresh is set.", self.origin, self.pin.source, self.pin.sha256, found.sha256)  # fmt: skip
        return found

    def _discard(self) -> None:
        self.version.unlink(missing_ok=True)
        self.part.unlink(missing_ok=True)

    def _attempt(self) -> None:
        offset = self.part.stat().st_size if self.part.exists() and self.version.exists() else 0
        version = self.version.read_text(encoding="utf-8") if offset else ""
        anonymous, timeout = self.settings.anonymous, self.settings.timeout
        with open_remote(self.url, anonymous=anonymous, timeout=timeout, offset=offset, version=version) as opened:
            for expected in self.binding:
                if None not in (expected.size, opened.size) and expected.size != opened.size:
                    raise self._replacement(expected, f"the server now sends {opened.size:,} bytes")
            if opened.offset == 0:
                self._discard()
                write_bytes(self.version, opened.version.encode())
            size = self._copy(opened)
        if opened.size is None:
            logger.warning("%s: the server does not say how long the file is, so a cut cannot be noticed", self.origin)
        elif size != opened.size:
            if size > opened.size:
                self._discard()
            raise TransferError(f"the transfer ended after {size:,} of {opened.size:,} bytes")

    def _copy(self, opened: RemoteFile) -> int:
        """Append what is left to the part; return its size."""
        size, logged = opened.offset, time.monotonic()
        free, whole = shutil.disk_usage(self.part.parent).free, opened.size or 0
        if whole - size > free:
            raise ResourceError(f"{self.origin} needs {whole - size:,} bytes, but {self.part.parent} has only "
                                f"{free:,} bytes free. Free space, then run again.")  # fmt: skip
        with self.part.open("ab") as file:
            while data := opened.read(BLOCK):
                if self.stopped.is_set():
                    raise InputError(f"{self.origin}: the download was given up, because another one failed.")
                file.write(data)
                size += len(data)
                if time.monotonic() - logged > PROGRESS_SECONDS:
                    logged = time.monotonic()
                    of, extra = (f" of {whole / 1e6:,.0f}", {"progress": size / whole}) if whole else ("", {})
                    logger.info("%s: %.0f%s MB", self.origin, size / 1e6, of, extra=extra)
        return size

    def _replacement(self, expected: Expected, now: str) -> InputError:
        size = "" if expected.size is None else f" and {expected.size:,} bytes"
        remedy = (
            f"correct or remove its entry in {expected.source}"
            if expected is self.registered
            else "run the rule again with `--forcerun` and `--config refresh=True`"
        )
        return InputError(
            f"{self.origin} was replaced upstream: {expected.source} has SHA-256 {expected.sha256 or 'unknown'}{size}, "
            f"but {now}. Results would change. To accept the new file, {remedy}."
        )


def _fault_of(path: Path, *, name: str) -> str:
    """Say what is wrong with a download, by its ``name`` on the server; empty if nothing is seen."""
    with path.open("rb") as file:
        head = file.read(HEAD)
        file.seek(-min(len(PARQUET), len(head)), 2)
        tail = file.read()
    lower = name.lower()
    if not head:
        return "is empty"
    if lower.endswith((".parquet", ".pq")) and not (head.startswith(PARQUET) and tail == PARQUET):
        return f"is not a whole Parquet file: it begins with {head[:4]!r}"
    if lower.endswith(".zip") and not zipfile.is_zipfile(path):
        return f"is not a whole zip file: it begins with {head[:4]!r}"
    if lower.endswith((".gz", ".bgz")):
        if not head.startswith(b"\x1f\x8b"):
            return f"is not a gzip file: it begins with {head[:20]!r}"
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD)
        except zlib.error:  # told by the step that reads it, with the place
            return ""
    return f"is a page or a message, not data: it begins with {head[:20]!r}" if PAGE.match(head) else ""

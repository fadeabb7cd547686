"""Downloads that are retried, resumed, and checked against what the URL gave before.

The first download of a URL *pins* its SHA-256; later ones must match it, unless a refresh is requested. The registry of
datasets says what to expect before that. A file that does not fit its name, such as a login page, is discarded.
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
from whitewater.io.store import hold_lock, put_in_place, read_json, sha256, write_bytes, write_json

logger = logging.getLogger(__name__)

REGISTRY = Path("config/datasets.csv")
CONNECTIONS = 4
BLOCK = 1 << 20
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
PROGRESS_SECONDS = 5.0
HEAD = 4096
PARQUET = b"PAR1"
# How web pages and error messages begin; no table, edge list or archive that is read here does.
PAGE = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:<(?:!doctype|!--|\?xml|html|head|body|script|error)|\{\s*")', re.IGNORECASE)
ENTRY = re.compile(r"([0-9a-f]{64})?,[0-9]*")  # checksum and size in the registry
REGISTRY_COLUMNS = ["name", "url", "sha256", "license", "size"]


@dataclass(frozen=True)
class Expected:
    """What a URL should give, or gave before, according to the file ``source``; unknown parts are empty."""

    source: Path
    sha256: str
    size: int | None


@dataclass(frozen=True)
class Input:
    """A file on this machine, and the path or URL that the user gave, without secrets."""

    path: str
    origin: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Downloads:
    """Where and how to download; processes that share a directory take turns.

    Its folder ``downloads`` has the files, named by a hash of the URL and its last part; ``registry.json`` pins them.
    """

    directory: Path
    registry: Mapping[str, Expected] = field(  # by URL; without one in the working directory, that of our checkout
        default_factory=lambda: read_registry(REGISTRY if REGISTRY.exists() else Path(__file__).parents[3] / REGISTRY)
    )
    refresh: bool = False  # download and pin again; changed files are logged
    anonymous: bool = True  # read buckets without credentials
    retries: int = 5  # per file
    timeout: float = 60.0  # seconds without data

    @property
    def folder(self) -> Path:
        return self.directory / "downloads"

    def get(self, urls: Sequence[str]) -> list[Input]:
        """Download files, four at a time, and return them in order; without ``refresh``, existing files are kept.

        ``urls`` are of http, https or any protocol of fsspec (gs, s3 and others); they may hold secrets.

        Raises InputError if a download fails or differs from what is expected, IntegrityError if an earlier download
        was changed on this machine, and ResourceError if the disk is too small.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        files: dict[str, Input] = {}
        faults: list[WhitewaterError] = []
        first_uses = 0
        stop = threading.Event()
        pin_file = self.directory / "registry.json"
        with hold_lock(self.directory / ".fetch.lock"), ThreadPoolExecutor(CONNECTIONS) as pool:
            pins: dict[str, Any] = read_json(pin_file) if pin_file.exists() else {}
            expected = {name: Expected(pin_file, pin["sha256"], pin["size"]) for name, pin in pins.items()}
            downloads = [_Download(url, self, expected.get(local_name(url)), stop) for url in dict.fromkeys(urls)]
            futures = {pool.submit(download.run): download for download in downloads}
            try:
                for future in as_completed(futures):
                    download = futures[future]
                    try:
                        file = files[download.url] = future.result()
                    except WhitewaterError as fault:  # the other downloads continue, for the next run
                        logger.warning("%s", fault)
                        faults.append(fault)
                        continue
                    first_uses += not any(entry.sha256 for entry in (download.pin, download.registered) if entry)
                    pins[download.name] = {"url": file.origin, "sha256": file.sha256, "size": file.bytes}
                    write_json(pin_file, pins)
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)
        if first_uses:
            logger.info("%s: noted SHA-256 of %d new downloads (trust on first use)", pin_file, first_uses)
        if faults:
            raise type(faults[0])("\n".join(map(str, faults)))
        return [files[url] for url in urls]


def read_registry(path: Path) -> dict[str, Expected]:
    """Return the entries, by URL, of a registry of datasets: CSV with the columns name, url, sha256, license and size.

    ``sha256`` and ``size`` may be blank: the first download on a machine then sets them. A missing registry is empty.
    """
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = [*csv.reader(file)] or [[]]
    invalid = [row for row in rows if len(row) != len(REGISTRY_COLUMNS) or not ENTRY.fullmatch(f"{row[2]},{row[4]}")]
    if header != REGISTRY_COLUMNS or invalid:
        line = ",".join([header, *invalid][-1])
        raise InputError(f"{path} is not a registry of datasets: {line}. It needs the columns "
                         f"{','.join(REGISTRY_COLUMNS)}; SHA-256 in lower case hexadecimal, bytes.")  # fmt: skip
    return {url: Expected(path, digest, int(size) if size else None) for _, url, digest, _, size in rows}


def local_name(url: str) -> str:
    """Return the name of a URL's file on this machine; it does not depend on user and password."""
    parts = urlsplit(url)
    location = url.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1)
    name = re.sub(r"[^\w.-]", "_", unquote(parts.path).rpartition("/")[2])[-100:]
    return f"{hashlib.sha256(location.encode()).hexdigest()[:12]}-{name}"


class _Download:
    """One download; it gives up when ``stop`` is set."""

    def __init__(self, url: str, settings: Downloads, pin: Expected | None, stop: threading.Event) -> None:
        self.url, self.origin, self.settings, self.stop = url, redact(url), settings, stop
        self.pin, self.registered = pin, settings.registry.get(url)
        self.name = local_name(url)
        self.path, self.part = settings.folder / self.name, settings.folder / f"{self.name}.part"
        # Has the version of the part; without it, the part cannot be resumed.
        self.version = settings.folder / f"{self.name}.version"
        self.required = [entry for entry in (self.registered, None if settings.refresh else pin) if entry]

    def run(self) -> Input:
        """Return the file; download it unless it exists and is pinned."""
        if self.path.exists() and self.pin is not None and not self.settings.refresh:
            return self._check(self.path)
        for attempt in range(self.settings.retries + 1):
            try:
                self._resume()
                break
            except TransferError as error:
                if attempt == self.settings.retries:
                    raise InputError(f"{self.origin} could not be downloaded in {attempt + 1} tries: {error}. "
                                     "Run again to resume it.") from error  # fmt: skip
                pause = min(max(error.wait, FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.0)), LONGEST_PAUSE)
                logger.warning("%s: %s; trying again in %.1f s", self.origin, error, pause)
                self.stop.wait(pause)
        file = self._check(self.part)
        put_in_place(self.part, self.path)
        self._discard()
        return file

    def _check(self, path: Path) -> Input:
        """Return the file, or discard a part and raise what is wrong with it."""
        file = Input(str(self.path), self.origin, path.stat().st_size, sha256(path))
        if path == self.path and self.pin and self.pin.sha256 != file.sha256:
            raise IntegrityError(f"{self.path} was changed since it was downloaded from {self.origin}. "
                                 "Remove it, so that it is downloaded again.")  # fmt: skip
        if problem := _content_problem(path, name=urlsplit(self.url).path):
            self._discard()
            raise InputError(f"{self.origin} {problem}. It was not kept. Open the address in a browser: a proxy or a "
                             "login page may be in the way.")  # fmt: skip
        for expected in self.required:
            if expected.sha256 not in ("", file.sha256):
                self._discard()
                raise self._replacement(expected, f"it gives SHA-256 {file.sha256} and {file.bytes:,} bytes")
        if self.pin and self.pin.sha256 != file.sha256:
            logger.warning("%s was replaced upstream: %s had SHA-256 %s, now it is %s. The new file is used, because "
                           "refresh is set.", self.origin, self.pin.source, self.pin.sha256, file.sha256)  # fmt: skip
        return file

    def _discard(self) -> None:
        self.version.unlink(missing_ok=True)
        self.part.unlink(missing_ok=True)

    def _resume(self) -> None:
        offset = self.part.stat().st_size if self.part.exists() and self.version.exists() else 0
        version = self.version.read_text(encoding="utf-8") if offset else ""
        anonymous, timeout = self.settings.anonymous, self.settings.timeout
        with open_remote(self.url, anonymous=anonymous, timeout=timeout, offset=offset, version=version) as remote:
            for expected in self.required:
                if None not in (expected.size, remote.size) and expected.size != remote.size:
                    raise self._replacement(expected, f"the server now sends {remote.size:,} bytes")
            if remote.offset == 0:
                self._discard()
                write_bytes(self.version, remote.version.encode())
            size = self._append(remote)
        if remote.size is None:
            logger.warning("%s: the server does not send the file's size, so truncation goes unnoticed", self.origin)
        elif size != remote.size:
            if size > remote.size:
                self._discard()
            raise TransferError(f"the transfer ended after {size:,} of {remote.size:,} bytes")

    def _append(self, remote: RemoteFile) -> int:
        """Append the rest of the file to the part; return the size of the part."""
        size, last_log = remote.offset, time.monotonic()
        free, total = shutil.disk_usage(self.part.parent).free, remote.size or 0
        if total - size > free:
            raise ResourceError(f"{self.origin} needs {total - size:,} bytes, but {self.part.parent} has only "
                                f"{free:,} bytes free. Free space, then run again.")  # fmt: skip
        with self.part.open("ab") as file:
            while data := remote.read(BLOCK):
                if self.stop.is_set():
                    raise InputError(f"{self.origin}: the download was given up, because another one failed.")
                file.write(data)
                size += len(data)
                if time.monotonic() - last_log > PROGRESS_SECONDS:
                    last_log = time.monotonic()
                    of, extra = (f" of {total / 1e6:,.0f}", {"progress": size / total}) if total else ("", {})
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


def _content_problem(path: Path, *, name: str) -> str:
    """Say how the content of a download does not fit its ``name`` on the server; empty if it does."""
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
        except zlib.error:  # the step that reads the file reports it
            return ""
    return f"is a page or a message, not data: it begins with {head[:20]!r}" if PAGE.match(head) else ""

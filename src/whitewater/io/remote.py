"""Files elsewhere, over HTTP and in buckets: each can be opened in the middle, to go on where a transfer broke off."""

import io
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from types import MethodType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from whitewater import __version__
from whitewater.errors import InputError, redact

# The server of the TLC's pages refuses the agents of curl and Python.
USER_AGENT = f"whitewater/{__version__}"
# 400 is also what aiohttp calls an answer that it cannot read.
TRANSIENT = {400, 408, 425, 429, *range(500, 600)}
BUCKET_BLOCK = 8 << 20
WEB = ("http", "https")


class TransferError(Exception):
    """A transfer broke off, or did not begin, and may succeed when it is tried again, after ``wait`` seconds."""

    def __init__(self, reason: str, *, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class DamageError(TransferError):
    """Bytes came, but not those that were written; another try may bring them."""


class RefusedError(InputError):
    """Access to an object is refused."""


@dataclass(frozen=True)
class Opened:
    """An open file: its bytes from ``offset`` on, its whole size where known, and what tells this version of it."""

    take: Callable[[int], bytes]
    offset: int
    size: int | None
    version: str

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; empty at the end. Raises TransferError."""
        try:
            return self.take(size)
        except Exception as error:  # each protocol has errors of its own; nothing but the remote side is at work here
            raise TransferError(str(error) or type(error).__name__) from error


@contextmanager
def open_remote(url: str, *, anonymous: bool, timeout: float, offset: int = 0, version: str = "") -> Iterator[Opened]:
    """Open a remote file at ``offset`` if it is still the ``version`` that was being read, else at its start.

    ``url`` is of http or https, maybe with a user's name and password, or of whatever fsspec opens (gs, s3 and others).
    Buckets are read without credentials if ``anonymous``, and HTTP is given up after ``timeout`` seconds without data.

    Raises TransferError if it is worth trying again, and InputError if the file does not exist, or access is refused.
    """
    if url.startswith(("http://", "https://")):
        import requests

        # Compressed answers would have another length than the file.
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        if offset and version:  # the rest, on condition that it has not changed
            headers |= {"Range": f"bytes={offset}-", "If-Range": version}
        # Where the machine's certificates are, to which a company's proxy may have added its own.
        paths = ssl.get_default_verify_paths()
        trusted = os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath or True
        with client_faults(url):
            response = requests.get(url, headers=headers, timeout=timeout, stream=True, verify=trusted)
        with response:
            yield _open_answer(response, redact(url), offset=offset, version=version)
        return
    with client_faults(url):
        filesystem, path = filesystem_of(url, anonymous=anonymous)
        filesystem.invalidate_cache()
        size, current = filesystem.info(path)["size"], str(filesystem.ukey(path))
        stream = filesystem.open(path, "rb", block_size=BUCKET_BLOCK)
    start = offset if version == current and offset <= size else 0
    with stream:
        stream.seek(start)
        yield Opened(stream.read, start, size, current)


@cache
def file_system(scheme: str, anonymous: bool, endpoint: str = "", timeout: float = 60.0) -> Any:
    """Return the file system of fsspec, which tries once."""
    import fsspec

    if scheme not in (*WEB, "gs", "gcs", "s3", "s3a"):
        return fsspec.filesystem(scheme)
    from aiohttp import ClientTimeout  # as long to import as half of zarr

    options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
    limit = ClientTimeout(total=None, sock_connect=timeout, sock_read=timeout)
    if scheme in WEB:
        client = {"headers": {"User-Agent": USER_AGENT}, "timeout": limit}
        return fsspec.filesystem("http", client_kwargs=client, **options)
    if scheme in ("s3", "s3a"):
        limits = {"connect_timeout": timeout, "read_timeout": timeout, "retries": {"max_attempts": 0}}
        options |= {"anon": anonymous, "endpoint_url": endpoint or None, "max_concurrency": 1, "config_kwargs": limits}
        files = fsspec.filesystem("s3", **options)
        files.retries = 1
        return files
    # The class of `gcsfs` itself may ask over gRPC for the kind of the bucket, for a minute.
    from gcsfs.core import GCSFileSystem

    token = "anon" if anonymous else None
    files = GCSFileSystem(token=token, endpoint_url=endpoint or None, requests_timeout=limit, **options)
    files._request = MethodType(GCSFileSystem._request.__wrapped__, files)  # its own retries would take minutes
    return files


def filesystem_of(url: str, *, anonymous: bool) -> tuple[Any, str]:
    """Return fsspec's file system of a URL and the path in it."""
    filesystem = file_system(url.partition("://")[0], anonymous)
    return filesystem, filesystem._strip_protocol(url)


def local_path(place: str) -> Path | None:
    """Return the path of a local place, which may be spelled as a URL; None of a remote one."""
    if "://" not in place:
        return Path(place).expanduser()
    parts = urlsplit(place)
    return Path(url2pathname(parts.path)) if parts.scheme in ("file", "local") else None


@contextmanager
def client_faults(url: str) -> Iterator[None]:
    """Tell faults that stay from those that pass; see `client_fault`."""
    try:
        yield
    except Exception as error:  # each client has errors of its own, most of them of the network
        raise client_fault(error, redact(url)) from None  # whose texts may hold the URL with its secrets


def client_fault(error: BaseException, place: str) -> Exception:
    """Return what a client's error means: faults that may pass are TransferErrors, those that stay InputErrors."""
    if type(error).__name__ == "ClientPayloadError":  # aiohttp's; its cause has a status, of no answer
        return DamageError("the transfer was cut short")
    if (status := _status(error)) is not None:
        return _fault_of_status(status, getattr(error, "message", ""), getattr(error, "headers", None) or {}, place)
    root = error
    while cause := root.__cause__ or root.__context__:
        root = cause
    unknown_host = isinstance(root, socket.gaierror) and root.errno == socket.EAI_NONAME
    if unknown_host or isinstance(root, ssl.SSLCertVerificationError):
        return InputError(f"{place} cannot be reached: {root}. Check the address and the network.")
    staying = {
        FileNotFoundError: "does not exist. Check its name in the configuration.",
        ImportError: f"cannot be opened: {error}",
        ValueError: "is not an address: its protocol, host or port cannot be read. Correct it.",
    }
    for kind, fault in staying.items():
        if isinstance(error, kind):
            return InputError(f"{place} {fault}")
    return TransferError(f"{type(root).__name__}: {root}".removesuffix(": "))


def _fault_of_status(status: int, reason: str, headers: Mapping[str, str], place: str) -> Exception:
    answer = f"the server answered {status} {reason}".rstrip()
    if status in TRANSIENT:
        return TransferError(answer, wait=seconds_to_wait(headers.get("Retry-After")))
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return DamageError("it ends before the bytes that it should hold")
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return InputError(f"{place} is not published ({answer}). Check the address.")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return RefusedError(f"{place} may not be read: the server refuses it ({status} {reason}). Either it is not "
                            "published, or this network may not read it, or credentials are needed: those for a bucket "
                            "are used where the source has anonymous: false, those for a web server are in the "
                            "address.")  # fmt: skip
    return InputError(f"{place}: {answer}. Check the address.")


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that a client's error tells, each in its own way."""
    for cause in (error, error.__cause__):
        answer = getattr(cause, "response", None)  # of botocore
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
        status = status or getattr(cause, "status", None) or getattr(cause, "code", None)  # of aiohttp, of gcsfs
        if isinstance(status, int):
            return int(status)
    refused = re.search("Credentials|RefreshError|PermissionError", type(error).__name__)
    return int(HTTPStatus.FORBIDDEN) if refused or str(error).startswith("Forbidden") else None


def _open_answer(response: Any, url: str, *, offset: int, version: str) -> Opened:
    # ``bytes 5-9/10``, ``bytes 5-9/*`` or ``bytes */10``
    span, _, total = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    size = int(total) if total.isdecimal() else None
    if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        # The version is the same, and it has no bytes from ``offset`` on: an earlier run had read them all.
        return Opened(io.BytesIO().read, offset, size, version)
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        raise _fault_of_status(response.status_code, response.reason, response.headers, url)
    validator = response.headers.get("ETag", "")
    if not validator or validator.startswith("W/"):  # a weak one does not promise equal bytes
        validator = response.headers.get("Last-Modified", "")
    # ``read`` would lose what it has when a transfer breaks off.
    read = response.raw.read1
    if response.status_code != HTTPStatus.PARTIAL_CONTENT:
        length = response.headers.get("Content-Length")
        return Opened(read, 0, int(length) if length else None, validator)
    if (start := span.partition("-")[0]) != str(offset):
        raise TransferError(f"asked for the bytes from {offset}, the server sent those from {start}")
    return Opened(read, offset, size, validator)


def seconds_to_wait(retry_after: str | None) -> float:
    """Return how long a header Retry-After (RFC 9110, section 10.2.3) asks to wait; 0 where it says nothing."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())

"""Remote files, over HTTP and in buckets; each can be opened at an offset, to resume a transfer."""

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

USER_AGENT = f"whitewater/{__version__}"  # the server of the TLC (taxi trips) refuses those of curl and Python
TRANSIENT = {400, 408, 425, 429, *range(500, 600)}  # aiohttp also reports 400 for an answer that it cannot parse
BUCKET_BLOCK = 8 << 20
WEB = ("http", "https")


class TransferError(Exception):
    """A transfer failed, but may succeed when it is tried again after ``wait`` seconds."""

    def __init__(self, reason: str, *, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class DamageError(TransferError):
    """The bytes differ from those that were written; another try may return them."""


class RefusedError(InputError):
    """Access to an object is refused."""


@dataclass(frozen=True)
class RemoteFile:
    """An open remote file; ``read_bytes`` starts at ``offset``, and ``version`` changes with the contents."""

    read_bytes: Callable[[int], bytes]
    offset: int
    size: int | None  # of the whole file, if known
    version: str

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; empty at the end. Raises TransferError."""
        try:
            return self.read_bytes(size)
        except Exception as error:  # each protocol has its own errors, all of the remote side
            raise TransferError(str(error) or type(error).__name__) from error


@contextmanager
def open_remote(
    url: str, *, anonymous: bool, timeout: float, offset: int = 0, version: str = ""
) -> Iterator[RemoteFile]:
    """Open a remote file at ``offset`` if it still has the ``version`` that was read before, else at its start.

    ``url`` is of http or https, maybe with user and password, or of any protocol of fsspec (gs, s3 and others). Buckets
    are read without credentials if ``anonymous``; HTTP fails after ``timeout`` seconds without data. Raises
    TransferError if another try may help, and InputError if the file does not exist or access is refused.
    """
    if url.startswith(("http://", "https://")):
        import requests

        # A compressed response would differ from the file in length.
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        if offset and version:
            headers |= {"Range": f"bytes={offset}-", "If-Range": version}
        # The machine's own certificates may include those of a company's proxy.
        paths = ssl.get_default_verify_paths()
        certificates = os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath or True
        with client_faults(url):
            response = requests.get(url, headers=headers, timeout=timeout, stream=True, verify=certificates)
        with response:
            yield _open_response(response, redact(url), offset=offset, version=version)
        return
    with client_faults(url):
        filesystem, path = filesystem_and_path(url, anonymous=anonymous)
        filesystem.invalidate_cache()
        size, current = filesystem.info(path)["size"], str(filesystem.ukey(path))
        stream = filesystem.open(path, "rb", block_size=BUCKET_BLOCK)
    start = offset if version == current and offset <= size else 0
    with stream:
        stream.seek(start)
        yield RemoteFile(stream.read, start, size, current)


@cache
def open_filesystem(scheme: str, anonymous: bool, endpoint: str = "", timeout: float = 60.0) -> Any:
    """Return the fsspec file system of a protocol, with retries switched off."""
    import fsspec

    if scheme not in (*WEB, "gs", "gcs", "s3", "s3a"):
        return fsspec.filesystem(scheme)
    from aiohttp import ClientTimeout  # takes half as long to import as zarr

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
    # The default class of gcsfs may wait for a minute to ask over gRPC for the kind of the bucket.
    from gcsfs.core import GCSFileSystem

    token = "anon" if anonymous else None
    files = GCSFileSystem(token=token, endpoint_url=endpoint or None, requests_timeout=limit, **options)
    files._request = MethodType(GCSFileSystem._request.__wrapped__, files)  # without its retries, which take minutes
    return files


def filesystem_and_path(url: str, *, anonymous: bool) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it."""
    filesystem = open_filesystem(url.partition("://")[0], anonymous)
    return filesystem, filesystem._strip_protocol(url)


def local_path(place: str) -> Path | None:
    """Return the path of a local file, given as a path or a file:// URL; None for a remote one."""
    if "://" not in place:
        return Path(place).expanduser()
    parts = urlsplit(place)
    return Path(url2pathname(parts.path)) if parts.scheme in ("file", "local") else None


@contextmanager
def client_faults(url: str) -> Iterator[None]:
    """Raise the errors of clients as `client_fault` converts them."""
    try:
        yield
    except Exception as error:  # each client has its own errors
        raise client_fault(error, redact(url)) from None  # the client's error may hold the URL with its secrets


def client_fault(error: BaseException, place: str) -> Exception:
    """Convert a client's error: to a TransferError if another try may help, else to an InputError."""
    if type(error).__name__ == "ClientPayloadError":  # aiohttp's; its cause has a misleading status
        return DamageError("the transfer was cut short")
    if (status := _status(error)) is not None:
        return _status_fault(status, getattr(error, "message", ""), getattr(error, "headers", None) or {}, place)
    root = error
    while cause := root.__cause__ or root.__context__:
        root = cause
    is_unknown_host = isinstance(root, socket.gaierror) and root.errno == socket.EAI_NONAME
    if is_unknown_host or isinstance(root, ssl.SSLCertVerificationError):
        return InputError(f"{place} cannot be reached: {root}. Check the address and the network.")
    permanent = {
        FileNotFoundError: "does not exist. Check its name in the configuration.",
        ImportError: f"cannot be opened: {error}",
        ValueError: "is not an address: its protocol, host or port cannot be read. Correct it.",
    }
    for kind, problem in permanent.items():
        if isinstance(error, kind):
            return InputError(f"{place} {problem}")
    return TransferError(f"{type(root).__name__}: {root}".removesuffix(": "))


def _status_fault(status: int, reason: str, headers: Mapping[str, str], place: str) -> Exception:
    answer = f"the server answered {status} {reason}".rstrip()
    if status in TRANSIENT:
        return TransferError(answer, wait=seconds_to_wait(headers.get("Retry-After")))
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return DamageError("it is shorter than it should be")
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return InputError(f"{place} is not published ({answer}). Check the address.")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return RefusedError(
            f"{place} may not be read: the server refuses it ({status} {reason}). Either it is not published, or "
            "this network may not read it, or it needs credentials: for a bucket, set anonymous: false in the source; "
            "for a web server, put them in the address."
        )
    return InputError(f"{place}: {answer}. Check the address.")


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of a client's error; each client stores it in its own way."""
    for cause in (error, error.__cause__):
        answer = getattr(cause, "response", None)  # botocore
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
        status = status or getattr(cause, "status", None) or getattr(cause, "code", None)  # aiohttp, gcsfs
        if isinstance(status, int):
            return int(status)
    is_refused = re.search("Credentials|RefreshError|PermissionError", type(error).__name__)
    return int(HTTPStatus.FORBIDDEN) if is_refused or str(error).startswith("Forbidden") else None


def _open_response(response: Any, url: str, *, offset: int, version: str) -> RemoteFile:
    # ``bytes 5-9/10``, ``bytes 5-9/*`` or ``bytes */10``
    span, _, total = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    size = int(total) if total.isdecimal() else None
    if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        # The version is unchanged and ends at ``offset``: an earlier run read it all.
        return RemoteFile(io.BytesIO().read, offset, size, version)
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        raise _status_fault(response.status_code, response.reason, response.headers, url)
    validator = response.headers.get("ETag", "")
    if not validator or validator.startswith("W/"):  # a weak ETag does not promise equal bytes
        validator = response.headers.get("Last-Modified", "")
    # When a transfer breaks off, ``read`` would lose the bytes that it has buffered.
    read = response.raw.read1
    if response.status_code != HTTPStatus.PARTIAL_CONTENT:
        length = response.headers.get("Content-Length")
        return RemoteFile(read, 0, int(length) if length else None, validator)
    if (start := span.partition("-")[0]) != str(offset):
        raise TransferError(f"asked for the bytes from {offset}, the server sent those from {start}")
    return RemoteFile(read, offset, size, validator)


def seconds_to_wait(retry_after: str | None) -> float:
    """Return the seconds that a Retry-After header (RFC 9110, section 10.2.3) asks to wait; 0 without one."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())

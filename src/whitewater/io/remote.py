"""Files elsewhere, over HTTP and in buckets: each can be opened in the middle, to go on where a transfer broke off."""

from __future__ import annotations

import io
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
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
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
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

    Parameters
    ----------
    url
        http or https, maybe with a user's name and password, or whatever fsspec opens (gs, s3 and others).
    anonymous
        Whether buckets are read without credentials.
    timeout
        Seconds without data after which HTTP is given up.

    Raises TransferError if it is worth trying again, and InputError if the file does not exist, or access is refused.
    """
    if url.startswith(("http://", "https://")):
        with _request(url, timeout=timeout, offset=offset, version=version) as response:
            yield _open_answer(response, redact(url), offset=offset, version=version)
        return
    with bucket_faults(url):
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
def bucket_faults(url: str) -> Iterator[None]:
    """Tell faults that stay from those that pass."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{redact(url)} does not exist. Check its name in the configuration.") from error
    except (ImportError, ValueError) as error:
        raise InputError(f"{redact(url)} cannot be opened: {error}") from error
    except Exception as error:  # the clients of the stores have errors of their own, most of them of the network
        raise client_fault(error, redact(url)) from error


def client_fault(error: Exception, place: str) -> Exception:
    """Return what a client's error means: faults that may pass are TransferErrors, those that stay InputErrors."""
    status, fault = _status(error), f"{type(error).__name__}: {error}"
    if status is not None:  # the words of aiohttp may hold the URL
        fault = f"the server answered {status} {getattr(error, 'message', '')}".rstrip()
    if type(error).__name__ == "ClientPayloadError":  # aiohttp's; its cause has a status, of no answer
        return DamageError("the transfer was cut short")
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return DamageError("it ends before the bytes that it should hold")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return RefusedError(f"{place} may not be read: {fault}. Some buckets refuse what does not exist, too: "
                            "check the address. Credentials for a bucket are used where the source has "
                            "anonymous: false, those for a web server are in the address.")  # fmt: skip
    if status is None and isinstance(error, ImportError | ValueError):
        return InputError(f"{place} cannot be opened: {type(error).__name__}. Check the address.")
    headers = getattr(error, "headers", None) or {}
    return TransferError(fault.removesuffix(": "), wait=seconds_to_wait(headers.get("Retry-After")))


def _status(error: Exception) -> int | None:
    """Return the HTTP status that a client's error tells, each in its own way."""
    for cause in (error, error.__cause__):
        answer = getattr(cause, "response", None)  # of botocore
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
        status = status or getattr(cause, "status", None) or getattr(cause, "code", None)  # of aiohttp, of gcsfs
        if isinstance(status, int):
            return int(status)
    refused = re.search("Credentials|RefreshError|PermissionError", type(error).__name__)
    return int(HTTPStatus.FORBIDDEN) if refused or str(error).startswith("Forbidden") else None


def _request(url: str, *, timeout: float, offset: int, version: str) -> Any:
    """Ask for the rest of a file, on condition that it has not changed."""
    import requests

    # Compressed answers would have another length than the file.
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    if offset and version:
        headers |= {"Range": f"bytes={offset}-", "If-Range": version}
    # Where the machine's certificates are, to which a company's proxy may have added its own.
    paths = ssl.get_default_verify_paths()
    certificates = os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath or True
    try:
        return requests.get(url, headers=headers, timeout=timeout, stream=True, verify=certificates)
    except (OSError, ValueError) as error:  # requests' own errors are of both kinds
        raise _no_answer(error, redact(url)) from None  # their texts hold the URL with its secrets


def _open_answer(response: Any, url: str, *, offset: int, version: str) -> Opened:
    # ``bytes 5-9/10``, ``bytes 5-9/*`` or ``bytes */10``
    span, _, total = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    size = int(total) if total.isdecimal() else None
    if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        # The version is the same, and it has no bytes from ``offset`` on: an earlier run had read them all.
        return Opened(io.BytesIO().read, offset, size, version)
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        raise _refusal(response, url)
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


def _refusal(response: Any, url: str) -> Exception:
    status, answer = response.status_code, f"{response.status_code} {response.reason}"
    if status in TRANSIENT:
        return TransferError(f"the server answered {answer}", wait=seconds_to_wait(response.headers.get("Retry-After")))
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return InputError(f"{url} is not published (the server answered {answer}). Check the address.")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return InputError(f"{url}: the server refuses it ({answer}). Either it is not published, or it needs a user "
                          "and password, or this network may not read it.")  # fmt: skip
    return InputError(f"{url}: the server answered {answer}. Check the address.")


def seconds_to_wait(retry_after: str | None) -> float:
    """Return how long a header Retry-After asks to wait, from now on; 0 where it says nothing.

    Source: RFC 9110, section 10.2.3: a number of seconds, or a date.
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _no_answer(error: BaseException, url: str) -> Exception:
    if isinstance(error, ValueError):  # raised before anything is sent
        return InputError(f"{url} is not an address: its host or port cannot be read. Check the address.")
    while cause := error.__cause__ or error.__context__:
        error = cause
    unknown_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    if unknown_host or isinstance(error, ssl.SSLCertVerificationError):
        return InputError(f"{url} cannot be reached: {error}. Check the address and the network.")
    return TransferError(str(error) or type(error).__name__)

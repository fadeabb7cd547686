"""Files elsewhere: over HTTP, and in buckets. Each can be opened in the middle, to go on where a transfer broke off."""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import (
    HTTPBasicAuthHandler,
    HTTPPasswordMgrWithPriorAuth,
    OpenerDirector,
    build_opener,
    url2pathname,
)

from whitewater.errors import InputError
from whitewater.reachability import USER_AGENT
from whitewater.redaction import redacted

TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
BUCKET_BLOCK = 8 << 20
ANONYMOUSLY: dict[str, dict[str, Any]] = {
    "gs": {"token": "anon"}, "gcs": {"token": "anon"}, "s3": {"anon": True}, "s3a": {"anon": True},
}  # fmt: skip


class TransferError(Exception):
    """A transfer broke off, or did not begin, and may succeed when it is tried again, after ``wait`` seconds."""

    def __init__(self, reason: str, *, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class Stream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Opened:
    """An open file: its bytes from ``offset`` on, its whole size where known, and what tells this version of it."""

    stream: Stream
    offset: int
    size: int | None
    version: str

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; empty at the end. Raises TransferError."""
        try:
            return self.stream.read(size)
        except Exception as error:  # each protocol has errors of its own; nothing but the remote side is at work here
            raise TransferError(_reason(error)) from error


class Remote(Protocol):
    """A remote file."""

    @contextmanager
    def open(self, offset: int, version: str) -> Iterator[Opened]:
        """Open the file at ``offset`` if it is still the ``version`` that was being read, else at its start.

        Raises
        ------
        TransferError
            If it is worth trying again.
        InputError
            If it is not: the file does not exist, or access is refused.
        """


@dataclass(frozen=True)
class Http:
    """A file at an http or https URL, which may hold a user's name and password."""

    url: str
    timeout: float

    @contextmanager
    def open(self, offset: int, version: str) -> Iterator[Opened]:
        """Ask for the rest of the file, on condition that it has not changed; see `Remote.open`."""
        headers = {"Range": f"bytes={offset}-", "If-Range": version} if offset and version else {}
        response: Any
        try:
            response = self._opener(headers).open(_encoded(_without_user(self.url)), timeout=self.timeout)
        except HTTPError as error:
            response = error  # an answer too
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise _connection_fault(error, self.url) from error
        with response:
            yield _opened(response, self.url, offset=offset, version=version)

    def _opener(self, headers: Mapping[str, str]) -> OpenerDirector:
        parts = urlsplit(self.url)
        passwords = HTTPPasswordMgrWithPriorAuth()
        if parts.username:
            user, password = unquote(parts.username), unquote(parts.password or "")
            passwords.add_password(None, _without_user(self.url), user, password, is_authenticated=True)
        opener = build_opener(HTTPBasicAuthHandler(passwords))
        # The server of the TLC's pages refuses the agents of curl and Python.
        opener.addheaders = [("User-Agent", USER_AGENT), *headers.items()]
        return opener


@dataclass(frozen=True)
class Bucket:
    """An object that fsspec can open: gs://, s3:// and others."""

    url: str
    anonymous: bool

    @contextmanager
    def open(self, offset: int, version: str) -> Iterator[Opened]:
        """Open the object, at ``offset`` if what the store says of it has not changed; see `Remote.open`."""
        with bucket_faults(self.url, anonymous=self.anonymous):
            filesystem, path = filesystem_of(self.url, anonymous=self.anonymous)
            filesystem.invalidate_cache()
            size, current = filesystem.info(path)["size"], str(filesystem.ukey(path))
            stream = filesystem.open(path, "rb", block_size=BUCKET_BLOCK)
        with stream:
            start = offset if version == current and offset <= size else 0
            stream.seek(start)
            yield Opened(stream, start, size, current)


def filesystem_of(url: str, *, anonymous: bool) -> tuple[Any, str]:
    """Return fsspec's file system of a URL and the path in it."""
    import fsspec

    # gcsfs would ask over gRPC for the kind of the bucket, and wait a minute where gRPC does not get through.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    options: dict[str, Any] = {}
    if anonymous:
        options = ANONYMOUSLY.get(url.partition("://")[0], {})
    filesystem, path = fsspec.core.url_to_fs(url, **options)
    return filesystem, path


def local_path(place: str) -> Path | None:
    """Return the path of a local place, which may be spelled as a URL; None of a remote one."""
    if "://" not in place:
        return Path(place).expanduser()
    parts = urlsplit(place)
    return Path(url2pathname(parts.path)) if parts.scheme in ("file", "local") else None


@contextmanager
def bucket_faults(url: str, *, anonymous: bool) -> Iterator[None]:
    """Tell faults that stay from those that pass."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{redacted(url)} does not exist. Check its name in the configuration.") from error
    except PermissionError as error:
        remedy = (
            "set `anonymous` of the source to false to use your credentials" if anonymous else "check your credentials"
        )
        raise InputError(f"{redacted(url)} may not be read ({error}); {remedy}.") from error
    except (ImportError, ValueError) as error:
        raise InputError(f"{redacted(url)} cannot be opened: {error}") from error
    except Exception as error:  # the clients of the stores have errors of their own, most of them of the network
        raise TransferError(_reason(error)) from error


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _encoded(url: str) -> str:
    """Return a URL as it is sent: spaces, and letters that are not ASCII, percent-encoded; what is encoded stays so."""
    parts = urlsplit(url)
    safe = "!$%&'()*+,/:;=?@[]~"
    return urlunsplit(parts._replace(path=quote(parts.path, safe), query=quote(parts.query, safe), fragment=""))


def _opened(response: Any, url: str, *, offset: int, version: str) -> Opened:
    start, total = _content_range(response.headers.get("Content-Range", ""))
    if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        # The version is the same, and it has no bytes from ``offset`` on: an earlier run had read them all.
        return Opened(io.BytesIO(), offset, total, version)
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise _http_fault(response, url)
    validator = response.headers.get("ETag", "")
    if not validator or validator.startswith("W/"):  # a weak one does not promise equal bytes
        validator = response.headers.get("Last-Modified", "")
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        length = response.headers.get("Content-Length")
        return Opened(response, 0, int(length) if length else None, validator)
    if start != offset:
        raise TransferError(f"asked for the bytes from {offset}, the server sent those from {start}")
    return Opened(response, offset, total, validator)


def _content_range(text: str) -> tuple[int | None, int | None]:
    """Return start and total of ``bytes 5-9/10``, ``bytes 5-9/*`` or ``bytes */10``."""
    span, _, total = text.removeprefix("bytes ").partition("/")
    start = span.partition("-")[0]
    return (int(start) if start.isdecimal() else None), (int(total) if total.isdecimal() else None)


def _http_fault(response: Any, url: str) -> Exception:
    answer = f"{response.status} {response.reason}"
    if response.status in TRANSIENT:
        wait = response.headers.get("Retry-After", "")
        return TransferError(f"the server answered {answer}", wait=float(wait) if wait.isdecimal() else 0.0)
    if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return InputError(f"{redacted(url)} is not published (the server answered {answer}). Check the address.")
    if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return InputError(f"{redacted(url)}: the server refuses it ({answer}). Either it is not published, or it needs "
                          "a user and password, or this network may not read it.")  # fmt: skip
    return InputError(f"{redacted(url)}: the server answered {answer}. Check the address.")


def _connection_fault(error: Exception, url: str) -> Exception:
    cause = error.reason if isinstance(error, URLError) else error
    unknown_host = isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME
    if unknown_host or isinstance(cause, ssl.SSLCertVerificationError):
        return InputError(f"{redacted(url)} cannot be reached: {cause}. Check the address and the network.")
    if isinstance(cause, str | ValueError | http.client.InvalidURL):  # raised before anything is sent
        return InputError(f"{redacted(url)} is not an address: {cause}. Check the address.")
    return TransferError(_reason(error))


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error
    return str(cause) or type(cause).__name__

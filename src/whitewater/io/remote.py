"""Files elsewhere, over HTTP and in buckets: each can be opened in the middle, to go on where a transfer broke off."""

from __future__ import annotations

import io
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from whitewater import __version__
from whitewater.errors import InputError
from whitewater.io.redaction import redact

# The server of the TLC's pages refuses the agents of curl and Python.
USER_AGENT = f"whitewater/{__version__}"
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


@dataclass(frozen=True)
class Opened:
    """An open file: its bytes from ``offset`` on, its whole size where known, and what tells this version of it."""

    take: Callable[[int], bytes]
    close: Callable[[], None]
    offset: int
    size: int | None
    version: str

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; empty at the end. Raises TransferError."""
        try:
            return self.take(size)
        except Exception as error:  # each protocol has errors of its own; nothing but the remote side is at work here
            raise TransferError(_reason(error)) from error


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
        opened = _open_http(url, timeout=timeout, offset=offset, version=version)
    else:
        opened = _open_object(url, anonymous=anonymous, offset=offset, version=version)
    with closing(opened):
        yield opened


def filesystem_of(url: str, *, anonymous: bool) -> tuple[Any, str]:
    """Return fsspec's file system of a URL and the path in it."""
    import fsspec

    # gcsfs would ask over gRPC for the kind of the bucket, and wait a minute where gRPC does not get through.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    options = ANONYMOUSLY.get(url.partition("://")[0], {}) if anonymous else {}
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
        raise InputError(f"{redact(url)} does not exist. Check its name in the configuration.") from error
    except PermissionError as error:
        remedy = (
            "set `anonymous` of the source to false to use your credentials" if anonymous else "check your credentials"
        )
        raise InputError(f"{redact(url)} may not be read ({error}); {remedy}.") from error
    except (ImportError, ValueError) as error:
        raise InputError(f"{redact(url)} cannot be opened: {error}") from error
    except Exception as error:  # the clients of the stores have errors of their own, most of them of the network
        raise TransferError(_reason(error)) from error


def _open_object(url: str, *, anonymous: bool, offset: int, version: str) -> Opened:
    """Open an object at ``offset`` if what the store says of it has not changed."""
    with bucket_faults(url, anonymous=anonymous):
        filesystem, path = filesystem_of(url, anonymous=anonymous)
        filesystem.invalidate_cache()
        size, current = filesystem.info(path)["size"], str(filesystem.ukey(path))
        stream = filesystem.open(path, "rb", block_size=BUCKET_BLOCK)
    start = offset if version == current and offset <= size else 0
    stream.seek(start)
    return Opened(stream.read, stream.close, start, size, current)


def _open_http(url: str, *, timeout: float, offset: int, version: str) -> Opened:
    """Ask for the rest of the file, on condition that it has not changed."""
    import requests

    # Compressed answers would have another length than the file.
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    if offset and version:
        headers |= {"Range": f"bytes={offset}-", "If-Range": version}
    try:
        response = requests.get(url, headers=headers, timeout=timeout, stream=True, verify=_certificates())
    except (OSError, ValueError) as error:  # requests' own errors are of both kinds
        raise _no_answer(error, url) from None  # their texts hold the URL with its secrets
    try:
        return _open_answer(response, url, offset=offset, version=version)
    except Exception:
        response.close()
        raise


def _certificates() -> str | bool:
    """Return where the machine's certificates are, to which a company's proxy may have added its own."""
    paths = ssl.get_default_verify_paths()
    return os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath or True


def _open_answer(response: Any, url: str, *, offset: int, version: str) -> Opened:
    start, total = _content_range(response.headers.get("Content-Range", ""))
    status = response.status_code
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        # The version is the same, and it has no bytes from ``offset`` on: an earlier run had read them all.
        return Opened(io.BytesIO().read, response.close, offset, total, version)
    if status >= HTTPStatus.BAD_REQUEST:
        raise _refusal(response, redact(url))
    validator = response.headers.get("ETag", "")
    if not validator or validator.startswith("W/"):  # a weak one does not promise equal bytes
        validator = response.headers.get("Last-Modified", "")
    if status != HTTPStatus.PARTIAL_CONTENT:
        length = response.headers.get("Content-Length")
        start, total = 0, int(length) if length else None
    elif start != offset:
        raise TransferError(f"asked for the bytes from {offset}, the server sent those from {start}")
    # ``read`` would lose what it has when a transfer breaks off.
    return Opened(response.raw.read1, response.close, start, total, validator)


def _content_range(text: str) -> tuple[int | None, int | None]:
    """Return start and total of ``bytes 5-9/10``, ``bytes 5-9/*`` or ``bytes */10``."""
    span, _, total = text.removeprefix("bytes ").partition("/")
    start = span.partition("-")[0]
    return (int(start) if start.isdecimal() else None), (int(total) if total.isdecimal() else None)


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
        return InputError(f"{redact(url)} is not an address: its host or port cannot be read. Check the address.")
    while cause := error.__cause__ or error.__context__:
        error = cause
    unknown_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    if unknown_host or isinstance(error, ssl.SSLCertVerificationError):
        return InputError(f"{redact(url)} cannot be reached: {error}. Check the address and the network.")
    return TransferError(_reason(error))


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__

"""The bytes of a Zarr store by key: a directory, or objects behind gs://, s3:// or http(s)://.

An object that does not exist is `None` and nothing else is: a refusal, an outage and a cut transfer are errors, because
whoever reads a store would take them for chunks that were never written. Transfers are tried again here and only here;
the retries of the clients are switched off or not used, so that the time until an error is bounded.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import logging
import os
import random
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from whitewater.errors import InputError, IntegrityError
from whitewater.reachability import USER_AGENT
from whitewater.redaction import redacted
from whitewater.remote import ANONYMOUSLY, TRANSIENT, TransferError

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
AHEAD = 8  # objects that one reader asks for before it needs them
CONNECTIONS = 16  # transfers at once, of all readers of a process
SLOWEST = 10  # a transfer that goes on, however slowly, is given up after this many timeouts

Item = TypeVar("Item")
Result = TypeVar("Result")


class DamageError(TransferError):
    """Bytes came, but not those that were written; another try may bring them."""


class RefusedError(InputError):
    """Access to an object is refused."""


class Store(Protocol):
    """Objects by key. It is immutable, safe to share between threads, and can be sent to another process."""

    @property
    def name(self) -> str:
        """What the user calls the store, without secrets."""

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes | None:
        """Return an object, or a part of it; `None` if there is no such object.

        A negative ``start`` counts from the end. The answer is shorter than ``length`` where the object is.

        Raises
        ------
        InputError
            If it cannot be had: access is refused, or no try succeeded.
        IntegrityError
            If every try was cut short, or the disk fails.
        """

    def folders(self, path: str) -> list[str]:
        """Return the names of the folders right under ``path``. Raises InputError if that cannot be told."""

    def ahead(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply ``function``, which reads from this store, to the items, in order, before its results are needed."""

    def tried(self, what: str, attempt: Callable[[], Result]) -> Result:
        """Return what ``attempt`` returns, trying again where that can help.

        Raises
        ------
        IntegrityError
            If the last try raised DamageError; the message begins with ``what``.
        InputError
            If it raised another TransferError.
        """


def open_store(url: str, *, anonymous: bool, endpoint: str, retries: int, timeout: float) -> Store:
    """Return the store at a path or URL; nothing is read yet.

    Raises
    ------
    InputError
        If the protocol is not known.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or scheme == "file":
        return LocalStore(Path(rest if mark else url))
    access = {"name": redacted(url), "retries": retries, "timeout": timeout}
    if scheme in ("http", "https"):
        location, mark, query = url.partition("#")[0].partition("?")
        return HttpStore(**access, location=location.rstrip("/"), query=f"{mark}{query}")  # type: ignore[arg-type]
    if scheme in ("gs", "gcs", "s3", "s3a"):
        kind = GoogleStore if scheme in ("gs", "gcs") else S3Store
        return kind(**access, location=rest.strip("/"), anonymous=anonymous, endpoint=endpoint)  # type: ignore[arg-type]
    raise InputError(
        f"{redacted(url)}: the protocol {scheme} is not supported. Use a path, or gs://, s3:// or https://."
    )


@dataclass(frozen=True)
class LocalStore:
    """A directory."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes | None:
        try:
            with (self.path / key).open("rb", buffering=0 if length is None else -1) as file:
                if start:
                    size = os.fstat(file.fileno()).st_size
                    file.seek(max(start + size, 0) if start < 0 else start)
                return file.read() if length is None else file.read(length)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except PermissionError as error:
            raise InputError(f"{self.path / key} may not be read: {error.strerror}. Check its permissions.") from error
        except OSError as error:
            raise IntegrityError(f"{self.path / key} cannot be read: {error.strerror}. Check the disk.") from error

    def folders(self, path: str) -> list[str]:
        return sorted(each.name for each in (self.path / path).iterdir() if each.is_dir())

    def ahead(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return map(function, items)

    def tried(self, what: str, attempt: Callable[[], Result]) -> Result:
        try:
            return attempt()
        except DamageError as error:
            raise IntegrityError(f"{what} is damaged: {error}. Restore the store from its origin.") from error


@dataclass(frozen=True)
class RemoteStore:
    """Objects elsewhere: what all protocols have in common.

    Parameters
    ----------
    name
        The URL, without secrets.
    location
        Where the store is, as the protocol's client understands it.
    retries
        Further tries of a read that broke.
    timeout
        Seconds without an answer after which a try is given up.
    """

    name: str
    location: str
    retries: int
    timeout: float

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes | None:
        if length == 0:
            return b""
        stop = None if length is None or start < 0 else start + length
        span = (None, None) if (start, stop) == (0, None) else (start, stop)
        data = self.tried(f"{self.name}/{key}", lambda: self._read_once(key, *span))
        if data is None or length is None or len(data) <= length:
            return data
        # A server that knows no ranges sends the whole object, which is longer than any part of it.
        return data[start:] if start < 0 else data[start : start + length]

    def ahead(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        pool, waiting = _transfers(os.getpid()), collections.deque[Future[Result]]()
        remaining = iter(items)
        try:
            waiting.extend(pool.submit(function, item) for item in itertools.islice(remaining, AHEAD))
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in itertools.islice(remaining, 1))
        finally:
            for future in waiting:
                future.cancel()

    def tried(self, what: str, attempt: Callable[[], Result]) -> Result:
        for number in range(self.retries):
            try:
                return attempt()
            except TransferError as error:
                pause = min(max(error.wait, FIRST_PAUSE * 2**number * random.uniform(0.5, 1.0)), LONGEST_PAUSE)
                logger.warning("%s: %s; trying again in %.1f s", what, error, pause)
                time.sleep(pause)
        try:
            return attempt()
        except DamageError as error:
            raise IntegrityError(f"{what} is damaged: {error}, in {self.retries + 1} tries. If that stays, restore the "
                                 "store from its origin.") from error  # fmt: skip
        except TransferError as error:
            raise InputError(f"{what} could not be read in {self.retries + 1} tries: {error}. Check the network, then "
                             "run again.") from error  # fmt: skip

    def _read_once(self, key: str, start: int | None, stop: int | None) -> bytes | None:
        try:
            return self._wait(self._get(key, start, stop))
        except Exception as error:  # the clients have errors of their own; nothing but they are at work here
            fault = self._fault(error, key)
        if fault is not None:
            raise fault  # not from the client's error, which may hold the URL with its secrets
        return None

    def _wait(self, answer: Coroutine[Any, Any, Result]) -> Result:
        from fsspec.asyn import get_loop, sync

        result: Result = sync(get_loop(), asyncio.wait_for, answer, self.timeout * SLOWEST)
        return result

    def _fault(self, error: Exception, key: str) -> Exception | None:
        """Tell faults that stay from those that pass; `None` if the object just does not exist."""
        if isinstance(error, FileNotFoundError):
            return None
        if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
            return TransferError(f"no answer within {self.timeout:g} s")
        if isinstance(error, PermissionError):
            return self._refused(key, "the store forbids it")
        if isinstance(error, (ImportError, ValueError)):
            return InputError(f"{self.name} cannot be opened: {type(error).__name__}. Check the address.")
        if isinstance(error, (AttributeError, NameError, TypeError)):
            return error  # a mistake of a program is no fault of the network
        return _http_fault(error) or self._answer_fault(error, key) or TransferError(_reason(error))

    def _answer_fault(self, error: Exception, key: str) -> Exception | None:
        from aiohttp import ClientResponseError

        if not isinstance(error, ClientResponseError):
            return None
        answer = f"the server answered {error.status} {error.message}"
        if error.status in REFUSED:
            return self._refused(key, answer)
        return InputError(f"{self.name}/{key} cannot be read: {answer}. Check the address.")

    def _refused(self, key: str, answer: str) -> RefusedError:
        return RefusedError(f"{self.name}/{key} may not be read: {answer}. {self._remedy()} Some buckets refuse what "
                            "does not exist, too: check the address.")  # fmt: skip

    def _remedy(self) -> str:
        raise NotImplementedError

    def _get(self, key: str, start: int | None, stop: int | None) -> Coroutine[Any, Any, bytes]:
        raise NotImplementedError


@dataclass(frozen=True)
class HttpStore(RemoteStore):
    """Files of a web server; ``query`` is appended to each address, as shared access signatures need it."""

    query: str

    def _remedy(self) -> str:
        return "It may need a user and password, or a signature, in the address."

    def _get(self, key: str, start: int | None, stop: int | None) -> Coroutine[Any, Any, bytes]:
        return _get_http(f"{self.location}/{quote(key)}{self.query}", start, stop, timeout=self.timeout)

    def folders(self, path: str) -> list[str]:
        raise InputError(f"{self.name} has no consolidated metadata, and a web server does not list its files. "
                         "Consolidate the metadata with zarr.consolidate_metadata.")  # fmt: skip


@dataclass(frozen=True)
class BucketStore(RemoteStore):
    """Objects of a bucket; ``endpoint`` is the URL of another server that speaks the protocol, or empty."""

    anonymous: bool
    endpoint: str

    def _remedy(self) -> str:
        if self.anonymous:
            return "To use your credentials, set anonymous: false at the source (ingest.vcz.anonymous, for example)."
        return "Check that your credentials are valid for it."

    def _files(self) -> Any:
        raise NotImplementedError

    def folders(self, path: str) -> list[str]:
        return self.tried(f"{self.name}/{path}", lambda: self._folders_once(path))

    def _folders_once(self, path: str) -> list[str]:
        try:
            entries = self._wait(self._files()._ls(f"{self.location}/{path}".rstrip("/"), detail=True))
        except Exception as error:  # as in _read_once
            fault = self._fault(error, path)
        else:
            folders = (each["name"].rstrip("/") for each in entries if each["type"] == "directory")
            return sorted(each.rpartition("/")[2] for each in folders)
        if fault is not None:
            raise fault
        return []


@dataclass(frozen=True)
class GoogleStore(BucketStore):
    """Objects at Google Cloud Storage. gcsfs finds the credentials and lists; its reads would retry for minutes."""

    def _files(self) -> Any:
        import fsspec

        # gcsfs would ask over gRPC for the kind of the bucket, and wait a minute where gRPC does not get through.
        # The variable is read when gcsfs is imported.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        options = ANONYMOUSLY["gs"] if self.anonymous else {}
        return fsspec.filesystem("gs", endpoint_url=self.endpoint or None, use_listings_cache=False, **options)

    def _get(self, key: str, start: int | None, stop: int | None) -> Coroutine[Any, Any, bytes]:
        files, headers = self._files(), dict[str, str]()
        add_token = files.credentials.apply
        add_token(headers)
        address = files.url(f"{self.location}/{key}")
        return _get_http(address, start, stop, timeout=self.timeout, headers=headers)

    def _fault(self, error: Exception, key: str) -> Exception | None:
        from gcsfs.retry import HttpError
        from google.auth.exceptions import GoogleAuthError, TransportError

        if isinstance(error, GoogleAuthError) and not isinstance(error, TransportError):
            return self._refused(key, f"the credentials cannot be used ({type(error).__name__})")
        # These two are how gcsfs says it when it lists.
        refused = isinstance(error, HttpError) and error.code in REFUSED
        if refused or (isinstance(error, OSError) and str(error).startswith("Forbidden")):
            return self._refused(key, "the store forbids it")
        return super()._fault(error, key)


@dataclass(frozen=True)
class S3Store(BucketStore):
    """Objects at S3, or at a server that speaks its protocol."""

    def _files(self) -> Any:
        import fsspec

        limits = {"connect_timeout": self.timeout, "read_timeout": self.timeout, "retries": {"max_attempts": 0}}
        options = {"max_concurrency": 1, "config_kwargs": limits, "use_listings_cache": False}
        access = ANONYMOUSLY["s3"] if self.anonymous else {}
        files = fsspec.filesystem("s3", endpoint_url=self.endpoint or None, **options, **access)
        files.retries = 1  # of this instance, which has our limits and so is nobody else's
        return files

    def _get(self, key: str, start: int | None, stop: int | None) -> Coroutine[Any, Any, bytes]:
        answer: Coroutine[Any, Any, bytes] = self._files()._cat_file(f"{self.location}/{key}", start=start, end=stop)
        return answer

    def _fault(self, error: Exception, key: str) -> Exception | None:
        from botocore.exceptions import ClientError, NoCredentialsError  # type: ignore[import-untyped]

        if isinstance(error, NoCredentialsError):
            return self._refused(key, "no credentials were found")
        cause = error.__cause__ if isinstance(error.__cause__, ClientError) else error
        if isinstance(cause, ClientError):
            answer = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if answer in REFUSED:
                return self._refused(key, f"the server answered {answer}")
            if answer == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return DamageError("it ends before the bytes that it should hold")
        return super()._fault(error, key)


async def _get_http(
    url: str, start: int | None, stop: int | None, *, timeout: float, headers: Mapping[str, str] | None = None
) -> bytes:
    import fsspec
    from aiohttp import ClientTimeout

    limits = ClientTimeout(total=None, sock_connect=timeout, sock_read=timeout)
    client = {"headers": {"User-Agent": USER_AGENT}, "timeout": limits}
    files = fsspec.filesystem("http", client_kwargs=client, use_listings_cache=False)
    data: bytes = await files._cat_file(url, start=start, end=stop, headers=dict(headers or {}))
    return data


def _http_fault(error: Exception) -> Exception | None:
    """Return the fault that passes, if it is one of those that an HTTP client reports in a way of its own."""
    from aiohttp import ClientPayloadError, ClientResponseError

    if isinstance(error, ClientPayloadError):
        return DamageError("the transfer was cut short")
    if not isinstance(error, ClientResponseError):
        return None
    if error.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return DamageError("it ends before the bytes that it should hold")
    if error.status not in TRANSIENT:
        return None
    wait = error.headers.get("Retry-After", "") if error.headers else ""
    seconds = float(wait) if wait.isdecimal() else 0.0
    return TransferError(f"the server answered {error.status} {error.message}", wait=seconds)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@cache
def _transfers(process: int) -> ThreadPoolExecutor:
    """Return the threads that wait for transfers; those of a parent process would not run in its children."""
    return ThreadPoolExecutor(CONNECTIONS, thread_name_prefix=f"zarr-{process}")

"""A Zarr store that zarr-python reads strictly: what is absent or damaged is an error, never a fill value.

The store is a directory, or objects behind gs://, s3:// or http(s)://. An object that does not exist is absent and
nothing else is: a refusal, an outage and a cut transfer are errors. Transfers are tried again here and only here; the
retries of the clients are switched off, so that the time until an error is bounded.

It wraps none of zarr-python's stores: whatever is read comes by `StrictStore.get`, and a wrapper would forward other
ways of reading (such as zarr 3.4's `get_sync`) past it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import weakref
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from types import MethodType
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from whitewater.errors import InputError, IntegrityError
from whitewater.redaction import redacted
from whitewater.remote import TRANSIENT, USER_AGENT, TransferError

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
SLOWEST = 10  # a transfer that goes on, however slowly, is given up after this many timeouts
METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
NOT_STORED = 2**64 - 1  # offset and length of an inner chunk that a shard does not hold
BLOSC_HEADER = 16
Buffers = list[Buffer | None]


class DamageError(TransferError):
    """Bytes came, but not those that were written; another try may bring them."""


class RefusedError(InputError):
    """Access to an object is refused."""


class MissingChunkError(IntegrityError):
    """A chunk is not stored."""


@dataclass(frozen=True)
class Shards:
    """How an array's shards are cut and indexed (codec ``sharding_indexed``)."""

    shape: tuple[int, ...]  # of the array
    shard: tuple[int, ...]
    inner: tuple[int, ...]
    order: str  # byte order of the index, < or >
    checked: bool  # whether a CRC32C follows the index
    first: bool  # whether the index is at the start

    def check(self, number: tuple[int, ...], data: bytes, *, whole: bool) -> None:
        """Refuse a shard that lacks an inner chunk of the array, or whose index is damaged."""
        index = self._index(data)
        axes = zip(self.shape, number, self.shard, self.inner, strict=True)
        within = tuple(slice(-(-(size - place * shard) // inner)) for size, place, shard, inner in axes)
        absent = np.argwhere((index[within] == NOT_STORED).all(axis=-1))
        if len(absent):
            raise MissingChunkError(f"is a shard without its inner chunk {tuple(absent[0].tolist())}")
        if not index[within][..., 1].all():  # zarr-python takes no bytes for no chunk
            raise DamageError("an inner chunk has no bytes")
        if whole and index[within].sum(axis=-1).max(initial=0) > len(data):
            raise DamageError(f"its inner chunks would end behind its {len(data):,} bytes")

    def _index(self, data: bytes) -> NDArray[np.uint64]:
        """Return offset and length of the inner chunks, (*grid, 2), from the start or the end of what was read."""
        import numcodecs

        grid = tuple(shard // inner for shard, inner in zip(self.shard, self.inner, strict=True))
        size = 16 * int(np.prod(grid)) + 4 * self.checked
        index = data[:size] if self.first else data[-size:]
        if len(index) != size:
            raise DamageError(f"its index has {len(index):,} bytes instead of {size:,}")
        try:
            plain = numcodecs.get_codec({"id": "crc32c", "location": "end"}).decode(index) if self.checked else index
        except RuntimeError as error:
            raise DamageError(f"its index is wrong ({error})") from error
        return np.frombuffer(plain, f"{self.order}u8").astype(np.uint64).reshape(*grid, 2)


@dataclass(frozen=True)
class Chunks:
    """What the store must know of an array, of which it checks the chunks or shards."""

    filled: bool  # whether one that is not stored holds the fill value: the caller knows the writer
    blosc: bool  # whether each is a frame of Blosc, behind whose end Blosc would read
    shards: Shards | None

    def check(self, number: tuple[int, ...], data: bytes, part: ByteRequest | None) -> None:
        """Check what was read of a chunk or shard. Raises DamageError or MissingChunkError."""
        if isinstance(part, RangeByteRequest) and len(data) != part.end - part.start:
            raise DamageError(f"it ends before byte {part.end:,}")
        if self.blosc and (len(data) < BLOSC_HEADER or int.from_bytes(data[12:16], "little") != len(data)):
            raise DamageError(f"it has {len(data):,} bytes, and its header says another length")
        at_start = isinstance(part, RangeByteRequest) and part.start == 0
        if self.shards and (part is None or (at_start if self.shards.first else isinstance(part, SuffixByteRequest))):
            self.shards.check(number, data, whole=part is None)


class StrictStore(Store):
    """Objects by key, read only; safe to share between threads, and to be sent to another process.

    Attributes
    ----------
    name
        What the user calls the store, without secrets.
    folder
        Where it is, if it is a directory.
    retries
        Further tries of a read that broke; none of a directory.
    arrays
        The arrays whose chunks may be read, by name.
    """

    supports_writes = supports_deletes = False
    supports_listing = True

    def __init__(self, url: str, *, anonymous: bool, endpoint: str, retries: int, timeout: float) -> None:
        super().__init__(read_only=True)
        self._scheme, mark, rest = url.partition("://")
        self.folder = Path(rest if mark else url) if not mark or self._scheme == "file" else None
        self.name = redacted(url) if self.folder is None else str(self.folder)
        self.retries = retries if self.folder is None else 0
        self.arrays: dict[str, Chunks] = {}
        self._anonymous, self._endpoint, self._timeout = anonymous, endpoint, timeout
        self._is_web = self._scheme in ("http", "https")
        location, mark, query = url.partition("#")[0].partition("?") if self._is_web else (rest, "", "")
        self._address, self._query = location.rstrip("/"), mark + query
        if self.folder is None and self._scheme not in PROTOCOLS:
            raise InputError(f"{self.name}: the protocol {self._scheme} is not supported. Use a path, or gs://, s3:// "
                             "or https://.")  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Store.__hash__

    def __str__(self) -> str:
        return self.name

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_files"}  # these belong to one process

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return an object or a part of it; `None` if it is not there, and is metadata or a chunk that is filled in.

        Raises
        ------
        InputError
            If it cannot be had: access is refused, or no try succeeded.
        IntegrityError
            If a chunk is not stored, or every try of it was damaged, or the disk fails.
        """
        for tries in range(1, self.retries + 2):
            try:
                data = await self._read(key, byte_range)
                if not key.endswith(METADATA):
                    self._check(key, data, byte_range)
                return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)
            except TransferError as error:
                if tries > self.retries:
                    raise self._given_up(key, error) from None
                pause = min(max(error.wait, FIRST_PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1.0)), LONGEST_PAUSE)
                logger.warning("%s/%s: %s; trying again in %.1f s", self.name, key, error, pause)
                await asyncio.sleep(pause)
        raise AssertionError

    async def exists(self, key: str) -> bool:
        return await self._read(key, None) is not None

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names in a directory. Raises InputError if they cannot be told."""
        for name in await self._names(prefix):
            yield name

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> Buffers:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def set(self, key: str, value: Buffer) -> None:
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        raise NotImplementedError

    def list(self) -> AsyncIterator[str]:
        raise NotImplementedError

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        raise NotImplementedError

    def described(self, key: str) -> str:
        """Return array, store and number of a chunk, for messages."""
        name, _ = self._array_of(key)
        return f"array {name} of {self.name}: chunk {_number(key, name)} ({key})"

    def damaged(self, key: str, reason: object) -> IntegrityError:
        """Return the error of an object that every try brought damaged."""
        what = f"{self.name}/{key}" if key.endswith(METADATA) else self.described(key)
        tries = f", in {self.retries + 1} tries" if self.folder is None else ""
        return IntegrityError(f"{what} is damaged: {reason}{tries}. If that stays, restore the store from its origin.")

    def _given_up(self, key: str, error: TransferError) -> Exception:
        if isinstance(error, DamageError):
            return self.damaged(key, error)
        return InputError(f"{self.name}/{key} could not be read in {self.retries + 1} tries: {error}. Check the "
                          "network, then run again.")  # fmt: skip

    def _array_of(self, key: str) -> tuple[str, Chunks]:
        return next(each for each in tuple(self.arrays.items()) if key.startswith(f"{each[0]}/"))

    def _check(self, key: str, data: bytes | None, part: ByteRequest | None) -> None:
        name, chunks = self._array_of(key)
        if data is None and chunks.filled:
            return
        try:
            if data is None:
                raise MissingChunkError("is not stored")
            chunks.check(_number(key, name), data, part)
        except MissingChunkError as error:
            raise MissingChunkError(f"{self.described(key)} {error}; such chunks are {lost(name)}") from None

    async def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        """Read once, `None` if there is nothing. Raises TransferError if another try may help."""
        start, stop = _bounds(part)
        try:
            if self.folder is not None:
                return await asyncio.to_thread(_read_file, self.folder / key, start, stop)
            address = f"{self._address}/{quote(key) if self._is_web else key}{self._query}"
            answer = self._files._cat_file(address, start=start, end=stop)
            data: bytes = await asyncio.wait_for(answer, self._timeout * SLOWEST)
        except Exception as error:  # each client has errors of its own
            fault = self._fault(error, key)
            if fault is None:
                return None
            raise fault from None  # the client's error may hold the URL with its secrets
        return _cut(data, part)

    async def _names(self, prefix: str) -> Sequence[str]:
        if self.folder is not None:
            return sorted(each.name for each in (self.folder / prefix).iterdir())
        if self._is_web:
            raise InputError(f"{self.name} has no consolidated metadata, and a web server does not list its files. "
                             "Consolidate the metadata with zarr.consolidate_metadata.")  # fmt: skip
        try:
            found = await self._files._ls(f"{self._address}/{prefix}".rstrip("/"), detail=False)
        except Exception as error:  # as in _read
            fault = self._fault(error, prefix)
            if fault is None:
                return []
            raise self._given_up(prefix, fault) if isinstance(fault, TransferError) else fault from None
        return [each.rstrip("/").rpartition("/")[2] for each in found]

    @cached_property
    def _files(self) -> Any:
        """The file system of fsspec, which tries once; its connections are those of the thread of zarr-python."""
        files = PROTOCOLS[self._scheme](self._anonymous, self._endpoint, self._timeout)
        weakref.finalize(self, _close, files, asyncio.get_running_loop())
        return files

    def _fault(self, error: Exception, key: str) -> Exception | None:
        """Tell faults that stay from those that pass; `None` if the object just does not exist."""
        if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            return None
        if self.folder is not None:
            return _fault_of_disk(error, f"{self.name}/{key}")
        if type(error).__name__ == "ClientPayloadError":  # aiohttp's; its cause has a status, of no answer
            return DamageError("the transfer was cut short")
        return self._fault_of_answer(error, key) or self._fault_of_transfer(error)

    def _fault_of_answer(self, error: Exception, key: str) -> Exception | None:
        status = _status(error)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return RefusedError(f"{self.name}/{key} may not be read: {_reason(error)}. {self._remedy()} Some buckets "
                                "refuse what does not exist, too: check the address.")  # fmt: skip
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return DamageError("it ends before the bytes that it should hold")
        if status is None or status in TRANSIENT:
            return None
        return InputError(f"{self.name}/{key} cannot be read: {_reason(error)}. Check the address.")

    def _fault_of_transfer(self, error: Exception) -> Exception:
        if isinstance(error, TimeoutError):
            return TransferError(f"no answer within {self._timeout:g} s")
        if isinstance(error, ImportError | ValueError):
            return InputError(f"{self.name} cannot be opened: {type(error).__name__}. Check the address.")
        if isinstance(error, AttributeError | NameError | TypeError):
            return error  # a mistake of a program is no fault of the network
        return TransferError(_reason(error), wait=_wait(error))

    def _remedy(self) -> str:
        if self._is_web:
            return "It may need a user and password, or a signature, in the address."
        if self._anonymous:
            return "To use your credentials, set anonymous: false at the source (ingest.vcz.anonymous, for example)."
        return "Check that your credentials are valid for it."


def lost(names: str) -> str:
    """Say what may have become of chunks that are not stored, and what to do."""
    return (
        "lost, or were never written. Restore the store from its origin. If its writer omits chunks that hold only "
        "fill values, as zarr 3 does unless ZARR_ARRAY__WRITE_EMPTY_CHUNKS=True is set where it runs: rewrite the "
        f"store so, or list {names} in filled_arrays of the source."
    )


def _number(key: str, array: str) -> tuple[int, ...]:
    """Return the number of a chunk by its key."""
    return tuple(map(int, re.findall(r"\d+", key.removeprefix(array))))


def _bounds(part: ByteRequest | None) -> tuple[int | None, int | None]:
    if isinstance(part, RangeByteRequest):
        return part.start, part.end
    if isinstance(part, SuffixByteRequest):
        return -part.suffix, None
    if part is not None:
        raise NotImplementedError(f"{part} is not read")
    return None, None


def _cut(data: bytes, part: ByteRequest | None) -> bytes:
    """Cut what a server sent: one that knows no ranges sends the whole object, which is longer than a part of it."""
    start, stop = _bounds(part)
    expected = len(data) if start is None else -start if stop is None else stop - start
    return data if len(data) <= expected else data[start:stop]


def _read_file(path: Path, start: int | None, stop: int | None) -> bytes:
    with path.open("rb", buffering=0) as file:
        if start is None:
            return file.read()
        size = path.stat().st_size
        file.seek(max(start + size, 0) if start < 0 else start)
        return file.read(-1 if stop is None else stop - start)


def _fault_of_disk(error: Exception, place: str) -> Exception:
    if isinstance(error, PermissionError):
        return InputError(f"{place} may not be read: {error.strerror}. Check its permissions.")
    if isinstance(error, OSError):
        return IntegrityError(f"{place} cannot be read: {error.strerror}. Check the disk.")
    return error


def _status(error: Exception) -> int | None:
    """Return the HTTP status that a client's error tells, each in its own way."""
    for each in (error, error.__cause__):
        answer = getattr(each, "response", None)  # of botocore
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
        status = status or getattr(each, "status", None) or getattr(each, "code", None)  # of aiohttp, of gcsfs
        if isinstance(status, int):
            return status
    no_credentials = type(error).__name__ == "NoCredentialsError" or (
        type(error).__module__ == "google.auth.exceptions" and type(error).__name__ != "TransportError"
    )
    forbidden = isinstance(error, PermissionError) or str(error).startswith("Forbidden")
    return HTTPStatus.FORBIDDEN if forbidden or no_credentials else None


def _wait(error: Exception) -> float:
    """Return the seconds that the server asks to wait."""
    seconds = (getattr(error, "headers", None) or {}).get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _reason(error: Exception) -> str:
    status = _status(error)
    told = getattr(error, "message", "") or (HTTPStatus(status).phrase if status in set(HTTPStatus) else "")
    if status is not None:
        return f"the server answered {status} {told}".rstrip()
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _close(files: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections in the thread that they belong to: aiohttp complains of those that are left."""
    session = getattr(files, "_session", None) or getattr(files, "_s3", None)
    if session is not None and loop.is_running():
        closed = asyncio.run_coroutine_threadsafe(session.close(), loop)
        with suppress(RuntimeError, TimeoutError):
            if asyncio._get_running_loop() is not loop:
                closed.result(timeout=1)


def _web(anonymous: bool, endpoint: str, timeout: float) -> Any:
    import fsspec

    client = {"headers": {"User-Agent": USER_AGENT}, "timeout": _limits(timeout)}
    return fsspec.filesystem("http", asynchronous=True, skip_instance_cache=True, client_kwargs=client)


def _google(anonymous: bool, endpoint: str, timeout: float) -> Any:
    from gcsfs.core import (
        GCSFileSystem,
    )  # the one of `gcsfs` may ask over gRPC for the kind of the bucket, for a minute

    files = GCSFileSystem(
        token="anon" if anonymous else None,
        endpoint_url=endpoint or None,
        asynchronous=True,
        skip_instance_cache=True,
        use_listings_cache=False,
        requests_timeout=_limits(timeout),
    )
    files._request = MethodType(GCSFileSystem._request.__wrapped__, files)  # its own retries would take minutes
    return files


def _s3(anonymous: bool, endpoint: str, timeout: float) -> Any:
    import fsspec

    limits = {"connect_timeout": timeout, "read_timeout": timeout, "retries": {"max_attempts": 0}}
    files = fsspec.filesystem(
        "s3",
        anon=anonymous,
        endpoint_url=endpoint or None,
        asynchronous=True,
        skip_instance_cache=True,
        max_concurrency=1,
        config_kwargs=limits,
        use_listings_cache=False,
    )
    files.retries = 1
    return files


def _limits(timeout: float) -> Any:
    from aiohttp import ClientTimeout

    return ClientTimeout(total=None, sock_connect=timeout, sock_read=timeout)


PROTOCOLS = {"http": _web, "https": _web, "gs": _google, "gcs": _google, "s3": _s3, "s3a": _s3}

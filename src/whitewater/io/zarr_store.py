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
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from whitewater.errors import InputError, IntegrityError, WhitewaterError
from whitewater.io.redaction import redact
from whitewater.io.remote import WEB, DamageError, TransferError, client_fault, file_system

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
SLOWEST = 10  # a transfer that goes on, however slowly, is given up after this many timeouts
METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
NOT_STORED = 2**64 - 1  # offset and length of an inner chunk that a shard does not hold
BLOSC_HEADER = 16


class StrictStore(Store):
    """Objects by key, read only; safe to share between threads, and to be sent to another process.

    Attributes
    ----------
    name
        What the user calls the store, without secrets.
    retries
        Further tries of a read that broke; none of a directory.
    arrays
        Metadata of the arrays whose chunks may be read, by name.
    filled
        Arrays whose chunks hold the fill value where they are not stored: the caller knows the writer.
    """

    supports_writes = supports_deletes = False
    supports_listing = True

    def __init__(self, url: str, *, anonymous: bool, endpoint: str, retries: int, timeout: float) -> None:
        super().__init__(read_only=True)
        scheme, mark, rest = url.partition("://")
        self._scheme = scheme if mark else "file"
        location, mark, query = url.partition("#")[0].partition("?") if self._scheme in WEB else (rest or url, "", "")
        self._address, self._query = location.rstrip("/"), mark + query
        self._client, self._timeout = (self._scheme, anonymous, endpoint, timeout), timeout
        self._is_local = self._scheme == "file"
        self.name = str(Path(location)) if self._is_local else redact(url)
        self.retries = 0 if self._is_local else retries
        self.arrays: dict[str, Any] = {}
        self.filled: set[str] = set()
        if self._scheme not in ("file", *WEB, "gs", "gcs", "s3", "s3a"):
            raise InputError(f"{self.name}: the protocol {self._scheme} is not supported. Use a path, or gs://, s3:// "
                             "or https://.")  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Store.__hash__

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return an object or a part of it; `None` if it is not there, and is metadata or a chunk that is filled in.

        Raises InputError if it cannot be had: access is refused, or no try succeeded, and IntegrityError if a chunk is
        not stored, or every try of it was damaged.
        """
        for tries_left in reversed(range(self.retries + 1)):
            try:
                data = await self._read(key, byte_range)
                return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)
            except TransferError as error:
                if not tries_left:
                    raise self.last_error(key, error) from None
                pause = FIRST_PAUSE * 2 ** (self.retries - tries_left) * random.uniform(0.5, 1.0)
                pause = min(max(error.wait, pause), LONGEST_PAUSE)
                logger.warning("%s/%s: %s; trying again in %.1f s", self.name, key, error, pause)
                await asyncio.sleep(pause)
        raise AssertionError

    async def exists(self, key: str) -> bool:
        return await self.get(key) is not None

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names in a directory. Raises InputError if they cannot be told."""
        if self._scheme in WEB:
            raise InputError(f"{self.name} has no consolidated metadata, and a web server does not list its files. "
                             "Consolidate the metadata with zarr.consolidate_metadata.")  # fmt: skip
        try:
            paths = await self._ask("ls", prefix, detail=False)
        except TransferError as error:
            raise self.last_error(prefix, error) from None
        for path in paths or []:
            yield path.rstrip("/").rpartition("/")[2]

    async def _refuse(self, *_: Any) -> Any:
        raise NotImplementedError

    get_partial_values = set = delete = list = list_prefix = _refuse  # type: ignore[assignment]

    def last_error(self, key: str, fault: BaseException) -> WhitewaterError:
        """Return the error of an object that no try brought, or that all of them brought damaged."""
        tries = "" if self._is_local else f" in {self.retries + 1} tries"
        if isinstance(fault, TransferError) and not isinstance(fault, DamageError):
            return InputError(
                f"{self.name}/{key} could not be read{tries}: {fault}. Check the network, then run again."
            )
        reason = fault if isinstance(fault, DamageError) else f"it cannot be decoded ({type(fault).__name__}: {fault})"
        return IntegrityError(f"{self.name}/{key} is damaged{tries}: {reason}. If that stays, restore the store from "
                              "its origin.")  # fmt: skip

    async def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        """Read once and check; `None` if there is nothing. Raises TransferError if another try may help."""
        start, stop = _bounds(part)
        data: bytes | None = await self._ask("cat_file", key, start=start, end=stop)
        if data and part and len(data) > (-start if stop is None else stop - start):
            data = data[start:stop]  # a server that knows no ranges sends the whole object
        if key.endswith(METADATA):
            return data
        name = next(name for name in tuple(self.arrays) if key.startswith(f"{name}/"))
        if data is not None:
            number = tuple(map(int, re.findall(r"\d+", key.removeprefix(name))))
            lacking = _lacking(self.arrays[name], number, data, start, stop)
        else:
            lacking = "" if name in self.filled else "is not stored"
        if lacking:
            raise IntegrityError(
                f"{self.name}/{key} {lacking}; such chunks are lost, or were never written. Restore the store from its "
                "origin. If its writer omits chunks that hold only fill values, as zarr 3 does unless "
                "ZARR_ARRAY__WRITE_EMPTY_CHUNKS=True is set where it runs: rewrite the store so, or list "
                f"{name} in filled_arrays of the source."
            )
        return data

    async def _ask(self, method: str, key: str, **options: Any) -> Any:
        """Call the file system once, in its own thread; `None` if there is no such object."""
        address = f"{self._address}/{quote(key) if self._scheme in WEB else key}".rstrip("/") + self._query
        try:
            files = file_system(*self._client)
            if self._is_local:
                return await asyncio.to_thread(getattr(files, method), address, **options)
            answer = asyncio.run_coroutine_threadsafe(getattr(files, f"_{method}")(address, **options), files.loop)
            return await asyncio.wait_for(asyncio.wrap_future(answer), self._timeout * SLOWEST)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except Exception as error:  # each client has errors of its own
            place = f"{self.name}/{key}"
            if self._is_local and isinstance(error, OSError):
                raise InputError(f"{place} may not be read: {error}. Check its permissions, and the disk.") from error
            raise client_fault(error, place) from None  # the client's may hold the URL with its secrets


def _bounds(part: ByteRequest | None) -> tuple[Any, Any]:
    if isinstance(part, RangeByteRequest):
        return part.start, part.end
    if isinstance(part, SuffixByteRequest):
        return -part.suffix, None
    if part is not None:
        raise NotImplementedError(f"{part} is not read")
    return None, None


def _lacking(array: Any, number: tuple[int, ...], data: bytes, start: int | None, stop: int | None) -> str:
    """Say what a chunk or shard lacks, if anything. Raises DamageError where zarr-python would not notice damage."""
    if start is not None and stop is not None and len(data) != stop - start:
        raise DamageError(f"it ends before byte {stop:,}")
    if array.shards is not None:
        is_first = "start" in str(array.codecs[0].index_location)
        has_index = start is None or (start == 0 if is_first else stop is None)
        return _lacking_of_shard(array, number, data, is_first=is_first, whole=start is None) if has_index else ""
    codec = array.compressor if array.zarr_format == 2 else array.codecs[-1]
    is_blosc = "blosc" in type(codec).__name__.lower()  # it would read behind the end of its frame
    if is_blosc and (len(data) < BLOSC_HEADER or int.from_bytes(data[12:16], "little") != len(data)):
        raise DamageError(f"it has {len(data):,} bytes, and its header says another length")
    return ""


def _lacking_of_shard(array: Any, number: tuple[int, ...], data: bytes, *, is_first: bool, whole: bool) -> str:
    """Find inner chunks that zarr-python would fill in, by the shard's index, whose CRC32C zarr-python checks."""
    shape, shard, inner = (np.array(sizes, int) for sizes in (array.shape, array.shards, array.chunks))
    codecs = array.codecs[0].index_codecs
    size, checksum = 16 * int(np.prod(shard // inner)), 4 * (len(codecs) - 1)
    at = 0 if is_first else len(data) - size - checksum
    if not 0 <= at <= len(data) - size:
        raise DamageError(f"its index should have {size:,} bytes, but it has {len(data):,}")
    order = ">" if "big" in str(codecs[0].endian) else "<"
    index = np.frombuffer(data, f"{order}u8", size // 8, at).reshape(*shard // inner, 2)
    index = index[tuple(map(slice, -(-(shape - number * shard) // inner)))]  # what lies in the array
    absent = np.argwhere((index == NOT_STORED).all(axis=-1))
    if len(absent):
        return f"is a shard without its inner chunk {tuple(absent[0].tolist())}"
    if not index[..., 1].all():  # zarr-python takes no bytes for no chunk
        raise DamageError("an inner chunk has no bytes")
    if whole and index.sum(axis=-1).max(initial=0) > len(data):
        raise DamageError(f"its inner chunks would end behind its {len(data):,} bytes")
    return ""

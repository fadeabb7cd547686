"""Groups and arrays of a Zarr store, formats 2 and 3, read by zarr-python from a `StrictStore`.

::

    array = open_group("gs://bucket/cohort.vcz").array("call_genotype")
    array.read((slice(0, 10_000), slice(None)))  # NumPy array; dimensions that are left out are read whole

Numbers are in the machine's byte order. Text of any length is ``object`` (of `str`), fixed-width text ``U``, and
fixed-width bytes are text too.

A chunk that is not stored stops the read, although Zarr would fill it in: a lost file looks like one that was never
written. So does a chunk that cannot be decoded, or has another length. Blosc has no checksum: a byte that changed
in the middle of a frame can go unnoticed, and only the codecs crc32c, gzip and zstd with a checksum notice all.

The store is a directory, or objects behind gs://, s3:// or http(s)://. An object that does not exist is absent and
nothing else is: a refusal, an outage and a cut transfer are errors. Transfers are tried again here and only here; the
retries of the clients are switched off, so that the time until an error is bounded.

Errors: InputError where a store, array or its metadata is missing or not understood, access is refused, or a transfer
does not succeed in ``retries`` further tries; IntegrityError where a chunk is missing or damaged, with array and chunk.
"""

import asyncio
import itertools
import logging
import random
import re
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from whitewater.errors import InputError, IntegrityError, WhitewaterError, redact
from whitewater.io.remote import WEB, DamageError, RefusedError, TransferError, client_fault, file_system
from whitewater.process import usable_cores

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
SLOWEST = 10  # a transfer that goes on, however slowly, is given up after this many timeouts
METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
NOT_STORED = 2**64 - 1  # offset and length of an inner chunk that a shard does not hold
BLOSC_HEADER = 16
RESTORE = "Restore the store from its origin."
# Threads that decode chunks: more than cores, zarr-python's own choice, take a seventh more of their time.
zarr.config.set({"threading.max_workers": usable_cores()})


class StrictStore(Store):
    """Objects by key, read only; safe to share between threads, and to be sent to another process.

    It wraps none of zarr-python's stores: whatever is read comes by `get`, and a wrapper would forward other ways of
    reading (such as zarr 3.4's `get_sync`) past it.
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
        self.retries = 0 if self._is_local else retries  # further tries of a read that broke
        self.arrays: dict[str, Any] = {}  # metadata of the arrays whose chunks may be read, by name
        self.filled: set[str] = set()  # those whose chunks hold the fill value where they are not stored
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

        Raises InputError if it cannot be had, and IntegrityError if a chunk is not stored, or damaged in every try.
        """
        for number in range(self.retries + 1):
            try:
                data = await self._read(key, byte_range)
                return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)
            except TransferError as error:
                if number == self.retries:
                    raise self.last_error(key, error) from None
                pause = min(max(error.wait, FIRST_PAUSE * 2**number * random.uniform(0.5, 1.0)), LONGEST_PAUSE)
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
        start: Any = None
        stop: Any = None
        if isinstance(part, RangeByteRequest):
            start, stop = part.start, part.end
        elif isinstance(part, SuffixByteRequest):
            start = -part.suffix
        elif part is not None:
            raise NotImplementedError(f"{part} is not read")
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


@dataclass(frozen=True, eq=False)
class Array:
    """An array of a store; see the module. Made by `Group.array`."""

    name: str
    store: StrictStore = field(repr=False)
    shape: tuple[int, ...]
    chunks: tuple[int, ...]  # the shape of what one decoding gives
    dtype: np.dtype[Any]  # of what is read
    _array: zarr.Array[Any] = field(repr=False)

    @property
    def place(self) -> str:
        """What messages call the array."""
        return f"{self.store.name}: {self.name}"

    def read(self, selection: tuple[slice, ...] = ()) -> NDArray[Any]:
        """Return a part of the array: one slice a dimension, of step 1; those that are left out are whole."""
        if any(part.step not in (None, 1) for part in selection):
            raise ValueError(f"{self.name} is read by slices of step 1, not {selection}")
        try:
            values = np.asarray(self._array.get_basic_selection(selection))
        except Exception as error:  # each codec has errors of its own
            _cause(error)
            values = self._read_by_chunk(selection)
        try:
            return _readable(values)
        except UnicodeDecodeError as error:
            raise IntegrityError(f"{self.place} holds text that is not UTF-8 ({error.reason}).") from error

    def _read_by_chunk(self, selection: tuple[slice, ...]) -> NDArray[Any]:
        """Read chunks one by one after one was damaged, so that it can be tried again, and named."""
        slices = (*selection, *[slice(None)] * (len(self.shape) - len(selection)))
        bounds = [part.indices(size)[:2] for part, size in zip(slices, self.shape, strict=True)]
        starts, stops = np.array(bounds, int).reshape(-1, 2).T
        sizes = np.array(self._array.shards or self.chunks, int)
        out = np.empty(stops - starts, self._array.dtype)
        for number in itertools.product(*map(range, starts // sizes, -(-stops // sizes))):
            first = np.maximum(starts, np.multiply(number, sizes))
            last = np.minimum(stops, np.add(number, 1) * sizes)
            place = tuple(map(slice, first - starts, last - starts))
            for tries_left in reversed(range(max(1, self.store.retries))):
                try:
                    out[place] = self._array[tuple(map(slice, first.tolist(), last.tolist()))]
                    break
                except Exception as error:  # as in read
                    cause = _cause(error)
                    if not tries_left:
                        key = f"{self.name}/{self._array.metadata.encode_chunk_key(number)}"
                        raise self.store.last_error(key, cause) from error
        return out


@dataclass(frozen=True, eq=False)
class Group:
    """A group of arrays, with its attributes; see the module. Made by `open_group`."""

    store: StrictStore
    filled: frozenset[str]
    attributes: dict[str, Any]
    _group: zarr.Group = field(repr=False)

    @property
    def name(self) -> str:
        """The URL of the group, without secrets."""
        return self.store.name

    def names(self) -> list[str]:
        """Return the paths of all arrays, sorted. Over http, only of a store with consolidated metadata."""
        return sorted(name for name, member in self._group.members(max_depth=None) if isinstance(member, zarr.Array))

    def __contains__(self, name: object) -> bool:
        return isinstance(self._member(str(name)), zarr.Array)

    def array(self, name: str) -> Array:
        """Open an array."""
        array = self._member(name)
        if not isinstance(array, zarr.Array) or array.path != name:
            raise InputError(f"{self.name} has no array {name}. Check the name, and that the store is complete.")
        place = f"array {name} of {self.name} cannot be read: "
        if "pickle" in str((array.filters, array.serializer, array.compressors)).lower():
            raise InputError(f"{place}its chunks are pickled, and unpickling runs whatever code they hold. Write it "
                             "again as text (vlen-utf8) or numbers.")  # fmt: skip
        if min(array.shards or array.chunks, default=1) < 1 or min(array.shape, default=0) < 0:
            raise InputError(f"{place}its chunks are {array.chunks}. {RESTORE}")
        codecs = getattr(array.metadata, "codecs", ())
        is_sharded = any(isinstance(codec, ShardingCodec) for codec in codecs)
        if is_sharded and not _is_plain(*codecs):
            raise InputError(f"{place}its shards are transposed, compressed as a whole, or hold shards, or their index "
                             "has other codecs than bytes and crc32c. Write it again with plain shards.")  # fmt: skip
        self.store.arrays[name] = array.metadata
        if name in self.filled and not is_sharded:
            self.store.filled.add(name)
        dtype = _readable(np.empty(0, array.dtype)).dtype
        return Array(name, self.store, array.shape, array.chunks, dtype, array)

    def _member(self, name: str) -> Any:
        try:
            return self._group.get(name)
        except WhitewaterError:
            raise
        except Exception as error:  # zarr-python refuses metadata with errors of many types
            reason = f"its metadata is not understood ({type(error).__name__}: {error})"
            remedy = f"{RESTORE} If it has a codec of a package of its own, install that."
            raise InputError(f"array {name} of {self.name} cannot be read: {reason}. {remedy}") from error


def open_group(
    url: str | PathLike[str],
    *,
    anonymous: bool = True,
    endpoint: str = "",
    retries: int = 5,
    timeout: float = 60.0,
    filled: Collection[str] = (),
) -> Group:
    """Open a group of arrays, by its consolidated metadata if it has any.

    gs:// and s3:// are read without credentials if ``anonymous``, and from the server ``endpoint`` if it is not empty.
    A read that broke is tried again ``retries`` times; one without an answer is given up after ``timeout`` seconds.
    ``filled`` are arrays whose chunks (but not shards) hold the fill value where they are not stored: the caller knows
    the writer.
    """
    store = StrictStore(str(url), anonymous=anonymous, endpoint=endpoint, retries=retries, timeout=timeout)
    refused, reason = None, "it has none of zarr.json, .zmetadata and .zgroup"
    for version, consolidated in ((3, None), (2, None), (2, False)):
        try:
            group = zarr.open_group(store, mode="r", zarr_format=version, use_consolidated=consolidated)  # type: ignore[arg-type]
            return Group(store, frozenset(filled), group.attrs.asdict(), group)
        except RefusedError as error:  # some buckets refuse what does not exist
            refused = refused or error
        except FileNotFoundError:
            pass
        except WhitewaterError:
            raise
        except Exception as error:  # as in Group._member
            reason = f"its metadata is not understood ({type(error).__name__}: {error})"
            break
    raise refused or InputError(f"{store.name} is not a Zarr store or a group in one: {reason}. Check the address.")


def _is_plain(codec: Any, *others: Any) -> bool:
    """Whether shards are indexed in the one way in which zarr-python can be kept from filling in an inner chunk."""
    if others or any(isinstance(inner, ShardingCodec) for inner in codec.codecs):
        return False
    return [type(index_codec) for index_codec in codec.index_codecs] in ([BytesCodec], [BytesCodec, Crc32cCodec])


def _cause(error: BaseException) -> BaseException:
    """Return the first of the errors that zarr-python raises as a group for several ranges; raise one of Whitewater."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, WhitewaterError):
        raise error from None
    return error


def _readable(values: NDArray[Any]) -> NDArray[Any]:
    """Return text as `str`, fixed-width bytes too, and numbers in the machine's byte order."""
    if values.dtype.kind == "T":
        return values.astype(object)
    if values.dtype.kind == "S":
        try:
            return values.astype(f"U{max(values.dtype.itemsize, 1)}")  # ASCII: several times as fast as decoding each
        except UnicodeDecodeError:
            return np.char.decode(values, "utf-8")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


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

"""Groups and arrays of a Zarr store, formats 2 and 3, read by zarr-python from a `StrictStore`.

::

    array = open_group("gs://bucket/cohort.vcz").array("call_genotype")
    array.read((slice(0, 10_000), slice(None)))  # NumPy array; dimensions that are left out are read whole

A store is a directory, or objects behind gs://, s3:// or http(s)://. Numbers are in the machine's byte order. Text of
any length is ``object`` (of `str`); fixed-width text and bytes are ``U``. Only this module retries transfers: the
retries of the clients are off, so the time until an error is bounded.

Raises IntegrityError if a chunk is damaged, or missing, although Zarr would fill it in: a lost file looks like one that
was never written. Blosc has no checksum, so a changed byte in a frame can go unnoticed; crc32c, gzip and zstd with a
checksum detect it. All other faults of a store raise InputError.
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
from whitewater.io.remote import WEB, DamageError, RefusedError, TransferError, client_fault, open_filesystem
from whitewater.process import usable_cores

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
TIMEOUTS_PER_TRANSFER = 10  # even a transfer that makes progress is given up after this many timeouts
METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
NOT_STORED = 2**64 - 1  # offset and length of an inner chunk that a shard does not hold
BLOSC_HEADER = 16
RESTORE = "Restore the store from its origin."
# Decoding with more threads than cores, as zarr-python does by default, takes a seventh longer.
zarr.config.set({"threading.max_workers": usable_cores()})


class StrictStore(Store):
    """A read-only store for threads and pickle. All reads go through `get`.

    A wrapper of a zarr-python store would forward other reads (zarr 3.4's `get_sync`) past it.
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
        self.arrays: dict[str, Any] = {}  # metadata of the open arrays, by name
        self.filled: set[str] = set()  # open arrays whose missing chunks hold the fill value
        if self._scheme not in ("file", *WEB, "gs", "gcs", "s3", "s3a"):
            raise InputError(f"{self.name}: the protocol {self._scheme} is not supported. Use a path, or gs://, s3:// "
                             "or https://.")  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Store.__hash__

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return an object or a part of it, or `None` for missing metadata and for a missing chunk that is filled in.

        Raises InputError if all tries fail, and IntegrityError if a chunk is missing, or damaged in every try.
        """
        for attempt in itertools.count():
            try:
                data = await self._read(key, byte_range)
                break
            except TransferError as error:
                if attempt == self.retries:
                    raise self.error_of_last_try(key, error) from None
                pause = min(max(error.wait, FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.0)), LONGEST_PAUSE)
                logger.warning("%s/%s: %s; trying again in %.1f s", self.name, key, error, pause)
                await asyncio.sleep(pause)
        return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)

    async def exists(self, key: str) -> bool:
        return await self.get(key) is not None

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names in a directory. Raises InputError if it cannot be listed."""
        if self._scheme in WEB:
            raise InputError(f"{self.name} has no consolidated metadata, and a web server does not list its files. "
                             "Consolidate the metadata with zarr.consolidate_metadata.")  # fmt: skip
        try:
            paths = await self._call_file_system("ls", prefix, detail=False)
        except TransferError as error:
            raise self.error_of_last_try(prefix, error) from None
        for path in paths or []:
            yield path.rstrip("/").rpartition("/")[2]

    async def _refuse(self, *_: Any) -> Any:
        raise NotImplementedError

    get_partial_values = set = delete = list = list_prefix = _refuse  # type: ignore[assignment]

    def error_of_last_try(self, key: str, fault: BaseException) -> WhitewaterError:
        """Return the error for an object that could not be read, or was damaged, in every try."""
        tries = "" if self._is_local else f" in {self.retries + 1} tries"
        if isinstance(fault, TransferError) and not isinstance(fault, DamageError):
            return InputError(
                f"{self.name}/{key} could not be read{tries}: {fault}. Check the network, then run again."
            )
        reason = fault if isinstance(fault, DamageError) else f"it cannot be decoded ({type(fault).__name__}: {fault})"
        return IntegrityError(f"{self.name}/{key} is damaged{tries}: {reason}. If the error persists, restore the "
                              "store from its origin.")  # fmt: skip

    async def _read(self, key: str, byte_range: ByteRequest | None) -> bytes | None:
        """Read once and check; `None` if there is no object. Raises TransferError if another try may help."""
        start: Any = None
        stop: Any = None
        if isinstance(byte_range, RangeByteRequest):
            start, stop = byte_range.start, byte_range.end
        elif isinstance(byte_range, SuffixByteRequest):
            start = -byte_range.suffix
        elif byte_range is not None:
            raise NotImplementedError(f"{byte_range} is not read")
        data: bytes | None = await self._call_file_system("cat_file", key, start=start, end=stop)
        if data and byte_range and len(data) > (-start if stop is None else stop - start):
            data = data[start:stop]  # a server without support for ranges sends the whole object
        if key.endswith(METADATA):
            return data
        name = next(name for name in tuple(self.arrays) if key.startswith(f"{name}/"))
        if data is not None:
            chunk = tuple(map(int, re.findall(r"\d+", key.removeprefix(name))))
            problem = _missing_inner_chunk(self.arrays[name], chunk, data, start, stop)
        else:
            problem = "" if name in self.filled else "is not stored"
        if problem:
            raise IntegrityError(
                f"{self.name}/{key} {problem}; such chunks are lost, or were never written. {RESTORE} If its writer "
                "omits chunks that hold only fill values, as zarr 3 does unless ZARR_ARRAY__WRITE_EMPTY_CHUNKS=True is "
                f"set where it runs: rewrite the store with it, or list {name} in filled_arrays of the source."
            )
        return data

    async def _call_file_system(self, method: str, key: str, **options: Any) -> Any:
        """Call the file system once, in its own thread; `None` if there is no such object."""
        address = f"{self._address}/{quote(key) if self._scheme in WEB else key}".rstrip("/") + self._query
        try:
            files = open_filesystem(*self._client)
            if self._is_local:
                return await asyncio.to_thread(getattr(files, method), address, **options)
            answer = asyncio.run_coroutine_threadsafe(getattr(files, f"_{method}")(address, **options), files.loop)
            return await asyncio.wait_for(asyncio.wrap_future(answer), self._timeout * TIMEOUTS_PER_TRANSFER)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except Exception as error:  # each client has its own errors
            place = f"{self.name}/{key}"
            if self._is_local and isinstance(error, OSError):
                raise InputError(f"{place} cannot be read: {error}. Check its permissions, and the disk.") from error
            raise client_fault(error, place) from None  # the client's error may hold the URL with its secrets


@dataclass(frozen=True, eq=False)
class Array:
    """An array of a store."""

    name: str
    store: StrictStore = field(repr=False)
    shape: tuple[int, ...]
    chunks: tuple[int, ...]  # of a sharded array, the inner chunks
    dtype: np.dtype[Any]  # of the values that `read` returns
    _array: zarr.Array[Any] = field(repr=False)

    @property
    def place(self) -> str:
        """The name of the array in messages."""
        return f"{self.store.name}: {self.name}"

    def read(self, selection: tuple[slice, ...] = ()) -> NDArray[Any]:
        """Return a part of the array: a slice of step 1 for each dimension; the dimensions left out are read whole."""
        if any(part.step not in (None, 1) for part in selection):
            raise ValueError(f"{self.name} is read by slices of step 1, not {selection}")
        try:
            values = np.asarray(self._array.get_basic_selection(selection))
        except Exception as error:  # each codec has its own errors
            _first_cause(error)
            values = self._read_by_chunk(selection)
        try:
            return _convert_to_native(values)
        except UnicodeDecodeError as error:
            raise IntegrityError(f"{self.place} holds text that is not UTF-8 ({error.reason}).") from error

    def _read_by_chunk(self, selection: tuple[slice, ...]) -> NDArray[Any]:
        """Read chunk by chunk after one failed to decode, to retry that chunk and name it."""
        slices = (*selection, *[slice(None)] * (len(self.shape) - len(selection)))
        bounds = [part.indices(size)[:2] for part, size in zip(slices, self.shape, strict=True)]
        starts, stops = np.array(bounds, int).reshape(-1, 2).T
        sizes = np.array(self._array.shards or self.chunks, int)
        out = np.empty(stops - starts, self._array.dtype)
        for chunk in itertools.product(*map(range, starts // sizes, -(-stops // sizes))):
            first = np.maximum(starts, np.multiply(chunk, sizes))
            last = np.minimum(stops, np.add(chunk, 1) * sizes)
            target = tuple(map(slice, first - starts, last - starts))
            for tries_left in reversed(range(max(1, self.store.retries))):
                try:
                    out[target] = self._array[tuple(map(slice, first.tolist(), last.tolist()))]
                    break
                except Exception as error:  # as in read
                    cause = _first_cause(error)
                    if not tries_left:
                        key = f"{self.name}/{self._array.metadata.encode_chunk_key(chunk)}"
                        raise self.store.error_of_last_try(key, cause) from error
        return out


@dataclass(frozen=True, eq=False)
class Group:
    """A group of arrays with its attributes, made by `open_group`."""

    store: StrictStore
    filled: frozenset[str]
    attributes: dict[str, Any]
    _group: zarr.Group = field(repr=False)

    @property
    def name(self) -> str:
        """The URL of the group, without secrets."""
        return self.store.name

    def names(self) -> list[str]:
        """Return the paths of all arrays, sorted. Over HTTP this needs consolidated metadata."""
        return sorted(name for name, member in self._group.members(max_depth=None) if isinstance(member, zarr.Array))

    def __contains__(self, name: object) -> bool:
        return isinstance(self._member(str(name)), zarr.Array)

    def array(self, name: str) -> Array:
        """Open an array; its metadata is checked first."""
        array = self._member(name)
        if not isinstance(array, zarr.Array) or array.path != name:
            raise InputError(f"{self.name} has no array {name}. Check the name, and that the store is complete.")
        place = f"array {name} of {self.name} cannot be read: "
        if "pickle" in str((array.filters, array.serializer, array.compressors)).lower():
            raise InputError(f"{place}its chunks are pickled, and unpickling runs whatever code they hold. Rewrite it "
                             "as text (vlen-utf8) or numbers.")  # fmt: skip
        if min(array.shards or array.chunks, default=1) < 1 or min(array.shape, default=0) < 0:
            raise InputError(f"{place}its chunks are {array.chunks}. {RESTORE}")
        codecs: tuple[Any, ...] = getattr(array.metadata, "codecs", ())
        is_sharded = any(isinstance(codec, ShardingCodec) for codec in codecs)
        if is_sharded and not (len(codecs) == 1 and _is_plain(codecs[0])):
            raise InputError(f"{place}its shards are transposed, compressed as a whole, or hold shards, or their index "
                             "has other codecs than bytes and crc32c. Rewrite it with plain shards.")  # fmt: skip
        self.store.arrays[name] = array.metadata
        if name in self.filled and not is_sharded:
            self.store.filled.add(name)
        dtype = _convert_to_native(np.empty(0, array.dtype)).dtype
        return Array(name, self.store, array.shape, array.chunks, dtype, array)

    def _member(self, name: str) -> Any:
        try:
            return self._group.get(name)
        except WhitewaterError:
            raise
        except Exception as error:  # zarr-python refuses metadata with errors of many types
            raise InputError(
                f"array {name} of {self.name} cannot be read: its metadata is not understood ({type(error).__name__}: "
                f"{error}). If its codec comes from another package, install that. Otherwise: {RESTORE}"
            ) from error


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
    A failed read is retried ``retries`` times; without data for ``timeout`` seconds a read fails. ``filled`` are arrays
    whose writer omits chunks of fill values: their missing chunks, but not inner chunks of shards, are filled in.
    """
    store = StrictStore(str(url), anonymous=anonymous, endpoint=endpoint, retries=retries, timeout=timeout)
    refused, reason = None, "it has none of zarr.json, .zmetadata and .zgroup"
    for version, consolidated in ((3, None), (2, None), (2, False)):
        try:
            group = zarr.open_group(store, mode="r", zarr_format=version, use_consolidated=consolidated)  # type: ignore[arg-type]
            return Group(store, frozenset(filled), group.attrs.asdict(), group)
        except RefusedError as error:  # some buckets refuse access to missing objects
            refused = refused or error
        except FileNotFoundError:
            pass
        except WhitewaterError:
            raise
        except Exception as error:  # as in Group._member
            reason = f"its metadata is not understood ({type(error).__name__}: {error})"
            break
    raise refused or InputError(f"{store.name} is not a Zarr store or a group in one: {reason}. Check the address.")


def _is_plain(sharding: ShardingCodec) -> bool:
    """Return whether the index of the shards is of the kind that `_missing_inner_chunk` can check."""
    index_codecs = list(map(type, sharding.index_codecs))
    has_shards = any(isinstance(codec, ShardingCodec) for codec in sharding.codecs)
    return index_codecs in ([BytesCodec], [BytesCodec, Crc32cCodec]) and not has_shards


def _first_cause(error: BaseException) -> BaseException:
    """Return the first error of a group, which zarr-python raises for several ranges; raise it if it is ours."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, WhitewaterError):
        raise error from None
    return error


def _convert_to_native(values: NDArray[Any]) -> NDArray[Any]:
    """Return text and fixed-width bytes as `str`, and numbers in the machine's byte order."""
    if values.dtype.kind == "T":
        return values.astype(object)
    if values.dtype.kind == "S":
        try:
            return values.astype(f"U{max(values.dtype.itemsize, 1)}")  # ASCII: several times as fast as np.char.decode
        except UnicodeDecodeError:
            return np.char.decode(values, "utf-8")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _missing_inner_chunk(array: Any, chunk: tuple[int, ...], data: bytes, start: int | None, stop: int | None) -> str:
    """Describe an inner chunk that a shard lacks, if any. Raises DamageError for damage that zarr-python would miss."""
    if start is not None and stop is not None and len(data) != stop - start:
        raise DamageError(f"it ends before byte {stop:,}")
    if array.shards is not None:
        is_first = "start" in str(array.codecs[0].index_location)
        has_index = start is None or (start == 0 if is_first else stop is None)
        return _check_shard_index(array, chunk, data, is_first=is_first, whole=start is None) if has_index else ""
    codec = array.compressor if array.zarr_format == 2 else array.codecs[-1]
    is_blosc = "blosc" in type(codec).__name__.lower()  # it would read past the end of its frame
    if is_blosc and (len(data) < BLOSC_HEADER or int.from_bytes(data[12:16], "little") != len(data)):
        raise DamageError(f"it has {len(data):,} bytes, but its header gives another length")
    return ""


def _check_shard_index(array: Any, shard: tuple[int, ...], data: bytes, *, is_first: bool, whole: bool) -> str:
    """Find inner chunks that zarr-python would fill in, by the shard's index, whose CRC32C zarr-python checks."""
    shape, outer, inner = (np.array(sizes, int) for sizes in (array.shape, array.shards, array.chunks))
    codecs = array.codecs[0].index_codecs
    size, checksum = 16 * int(np.prod(outer // inner)), 4 * (len(codecs) - 1)
    offset = 0 if is_first else len(data) - size - checksum
    if not 0 <= offset <= len(data) - size:
        raise DamageError(f"its index should have {size:,} bytes, but it has {len(data):,}")
    order = ">" if "big" in str(codecs[0].endian) else "<"
    index = np.frombuffer(data, f"{order}u8", size // 8, offset).reshape(*outer // inner, 2)
    index = index[tuple(map(slice, -(-(shape - shard * outer) // inner)))]  # the part inside the array
    missing = np.argwhere((index == NOT_STORED).all(axis=-1))
    if len(missing):
        return f"is a shard without its inner chunk {tuple(missing[0].tolist())}"
    if not index[..., 1].all():  # zarr-python treats an empty inner chunk as a missing one
        raise DamageError("an inner chunk has no bytes")
    if whole and index.sum(axis=-1).max(initial=0) > len(data):
        raise DamageError(f"its inner chunks would end after its {len(data):,} bytes")
    return ""

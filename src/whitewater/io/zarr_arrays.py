"""Groups and arrays of a Zarr store, formats 2 and 3, read by zarr-python from a `StrictStore`.

::

    array = open_group("gs://bucket/cohort.vcz").array("call_genotype")
    array.read((slice(0, 10_000), slice(None)))  # NumPy array; dimensions that are left out are read whole

Numbers are in the machine's byte order. Text of any length is ``object`` (of `str`), fixed-width text ``U``, and
fixed-width bytes are text too.

A chunk that is not stored stops the read, although Zarr would fill it in: a lost file looks like one that was never
written. So does a chunk that cannot be decoded, or has another length. Blosc has no checksum: a byte that changed
in the middle of a frame can go unnoticed, and only the codecs crc32c, gzip and zstd with a checksum notice all.

Errors: InputError where a store, array or its metadata is missing or not understood, access is refused, or a transfer
does not succeed in ``retries`` further tries; IntegrityError where a chunk is missing or damaged, with array and chunk.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zarr.core.buffer import BufferPrototype, cpu

from whitewater.errors import InputError, IntegrityError, WhitewaterError
from whitewater.io.remote import RefusedError
from whitewater.io.zarr_store import StrictStore

RESTORE = "Restore the store from its origin."
# Threads that decode chunks: more than cores, zarr-python's own choice, take a seventh more of their time.
zarr.config.set({"threading.max_workers": len(os.sched_getaffinity(0))})


class _Values(cpu.NDBuffer):
    """What is read: of a chunk that is read whole, the decoded chunk itself, and no copy of it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, cpu.NDBuffer) and value.shape == self.shape and value.dtype == self.dtype:
            self._data = value.as_ndarray_like()
        else:
            super().__setitem__(key, value)


_PROTOTYPE = BufferPrototype(cpu.Buffer, _Values)


@dataclass(frozen=True, eq=False)
class Array:
    """An array of a store; see the module. Made by `Group.array`.

    ``chunks`` is the shape of what one decoding gives, ``dtype`` the type of what is read.
    """

    name: str
    store: StrictStore = field(repr=False)
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    _array: zarr.Array[Any] = field(repr=False)

    @property
    def place(self) -> str:
        """What messages call the array."""
        return f"{self.store.name}: {self.name}"

    def read(self, selection: tuple[slice, ...] = ()) -> NDArray[Any]:
        """Return a part of the array: one slice a dimension, of step 1; those that are left out are whole."""
        if any(part.step not in (None, 1) for part in selection):
            raise ValueError(f"{self.name} is read by slices of step 1, not {selection}")
        prototype = None if self._array.shards else _PROTOTYPE  # zarr-python reads shards with its own only
        try:
            values = np.asarray(self._array.get_basic_selection(selection, prototype=prototype))
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
            part = tuple(map(slice, first.tolist(), last.tolist()))
            out[tuple(map(slice, first - starts, last - starts))] = self._read_chunk(number, part)
        return out

    def _read_chunk(self, number: tuple[int, ...], part: tuple[slice, ...]) -> Any:
        for tries_left in reversed(range(max(1, self.store.retries))):
            try:
                return self._array[part]
            except Exception as error:  # as in read
                cause = _cause(error)
                if not tries_left:
                    key = f"{self.name}/{self._array.metadata.encode_chunk_key(number)}"
                    raise self.store.last_error(key, cause) from error
        raise AssertionError


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

    Parameters
    ----------
    anonymous, endpoint
        Read gs:// and s3:// without credentials, and from another server than the usual one.
    retries, timeout
        Further tries of a read that broke, and seconds after which one without an answer is given up.
    filled
        Arrays whose chunks (but not shards) hold the fill value where they are not stored: the caller knows the writer.
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

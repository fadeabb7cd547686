"""Groups and arrays of a Zarr store, formats 2 and 3, read by zarr-python from a `StrictStore`.

::

    group = open_group("gs://bucket/cohort.vcz", anonymous=True, endpoint="", retries=5, timeout=60.0)
    group.name                            # "gs://bucket/cohort.vcz", without secrets
    group.names()                         # ["call_genotype", "sample_id", ...]: all arrays, with their path, sorted
    array = group.array("call_genotype")  # or open_array(url, "call_genotype", anonymous=..., ...)
    array.read((slice(0, 10_000), slice(None)))  # NumPy array; dimensions that are left out are read whole

Numbers are in the machine's byte order. Text of any length is ``object`` (of `str`), fixed-width text ``U``, and
fixed-width bytes are text too.

A chunk that is not stored stops the read, though Zarr would fill it in: a lost file is not told from one that was
never written. So does a chunk that cannot be decoded, or has another length. Arrays named as ``filled`` are the one
exception: of them the caller knows that their writer leaves out chunks of fill values; shards are never taken for such.
Blosc has no checksum: a byte that changed in the middle of a frame can go unnoticed, and only the codecs crc32c, gzip
and zstd with a checksum notice all.

Errors: InputError where a store, array or its metadata is missing or not understood, access is refused, or a transfer
does not succeed in ``retries`` further tries; IntegrityError where a chunk is missing or damaged, with array and chunk.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec

from whitewater.errors import InputError, IntegrityError, WhitewaterError
from whitewater.zarr_store import Chunks, MissingChunkError, RefusedError, Shards, StrictStore, lost


@dataclass(frozen=True, eq=False)
class Array:
    """An array of a store; see the module. Made by `Group.array`."""

    name: str
    store: StrictStore = field(repr=False)
    _array: zarr.Array[Any] = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""
        return self._array.shape

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of what one decoding gives: reads along multiples of it decode nothing twice."""
        return self._array.chunks

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of what is read."""
        return _readable(np.empty(0, self._array.dtype)).dtype

    def read(self, selection: tuple[slice, ...] = ()) -> NDArray[Any]:
        """Return a part of the array: one slice a dimension, of step 1; those that are left out are whole.

        Raises
        ------
        IntegrityError
            If a chunk is missing or damaged.
        InputError
            If a chunk cannot be had.
        """
        if any(part.step not in (None, 1) for part in selection):
            raise ValueError(f"{self.name} is read by slices of step 1, not {selection}")
        try:
            values = np.asarray(self._array[selection])
        except Exception as error:  # each codec has errors of its own
            fault = _first(error)
            if isinstance(fault, WhitewaterError):
                raise fault from None
            values = self._read_by_chunk(selection)
        try:
            return _readable(values)
        except UnicodeDecodeError as error:
            place = f"array {self.name} of {self.store.name}"
            raise IntegrityError(f"{place}: it holds text that is not UTF-8 ({error.reason}).") from error

    def missing(self) -> tuple[int, int]:
        """Count the chunks, or shards, that are not stored though they should be, and all, of a store that is here."""
        numbers = list(np.ndindex(*(-(-size // chunk) for size, chunk in zip(self.shape, self._stored, strict=True))))
        folder = self.store.folder
        if self.store.arrays[self.name].filled or folder is None:
            return 0, len(numbers)
        return sum(not (folder / self._key(number)).is_file() for number in numbers), len(numbers)

    @property
    def _stored(self) -> tuple[int, ...]:
        """Shape of what an object holds."""
        return self._array.shards or self._array.chunks

    def _key(self, number: tuple[int, ...]) -> str:
        return f"{self.name}/{self._array.metadata.encode_chunk_key(number)}"

    def _read_by_chunk(self, selection: tuple[slice, ...]) -> NDArray[Any]:
        """Read chunks one by one after one was damaged, so that it can be tried again, and named."""
        slices = (*selection, *[slice(None)] * (len(self.shape) - len(selection)))
        bounds = [part.indices(size)[:2] for part, size in zip(slices, self.shape, strict=True)]
        out = np.empty([stop - start for start, stop in bounds], self._array.dtype)
        for number, part in _parts(bounds, self._stored):
            starts = [start for start, _ in bounds]
            place = tuple(slice(each.start - at, each.stop - at) for each, at in zip(part, starts, strict=True))
            out[place] = self._read_chunk(number, part)
        return out

    def _read_chunk(self, number: tuple[int, ...], part: tuple[slice, ...]) -> Any:
        for tries_left in reversed(range(max(1, self.store.retries))):
            try:
                return self._array[part]
            except Exception as error:  # as in read
                fault = _first(error)
                if isinstance(fault, WhitewaterError):
                    raise fault from None
                if not tries_left:
                    reason = f"it cannot be decoded ({type(fault).__name__}: {fault})"
                    raise self.store.damaged(self._key(number), reason) from error
        raise AssertionError


def refuse_missing(arrays: Iterable[Array]) -> None:
    """Refuse arrays of which chunks are not stored, all at once: raise MissingChunkError that names each."""
    found = {array: array.missing() for array in arrays}
    absent = {array: counts for array, counts in found.items() if counts[0]}
    if absent:
        told = ", ".join(f"{array.name} ({missing} of {total})" for array, (missing, total) in absent.items())
        names = ", ".join(array.name for array in absent)
        store = next(iter(absent)).store.name
        raise MissingChunkError(f"{store}: not all chunks are stored of {told}; they are {lost(names)}")


@dataclass(frozen=True, eq=False)
class Group:
    """A group of arrays; see the module. Made by `open_group`."""

    store: StrictStore
    filled: frozenset[str]
    _group: zarr.Group = field(repr=False)

    @property
    def name(self) -> str:
        """The URL of the group, without secrets."""
        return self.store.name

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The group's attributes."""
        return self._group.attrs.asdict()

    def names(self) -> list[str]:
        """Return the paths of all arrays, at any depth, sorted.

        Raises
        ------
        InputError
            If the store has no consolidated metadata and cannot be listed, as over http.
        """
        return sorted(name for name, each in self._group.members(max_depth=None) if isinstance(each, zarr.Array))

    def __contains__(self, name: object) -> bool:
        return isinstance(self._member(str(name)), zarr.Array)

    def array(self, name: str) -> Array:
        """Open an array.

        Raises
        ------
        InputError
            If there is none, or its metadata is not understood.
        """
        array = self._member(name)
        if not isinstance(array, zarr.Array):
            raise InputError(f"{self.name} has no array {name}. Check the name, and that the store is complete.")
        place = f"array {name} of {self.name} cannot be read: "
        codecs = str((array.filters, array.serializer, array.compressors)).lower()
        if "pickle" in codecs:
            raise InputError(f"{place}its chunks are pickled, and unpickling runs whatever code they hold. Write it "
                             "again as text (vlen-utf8) or numbers.")  # fmt: skip
        if min(array.shards or array.chunks, default=1) < 1 or min(array.shape, default=0) < 0:
            raise InputError(f"{place}its chunks are {array.chunks}. Restore the store from its origin.")
        sharded = any(isinstance(each, ShardingCodec) for each in getattr(array.metadata, "codecs", ()))
        shards = _shards(array, place) if sharded else None
        blosc = not shards and bool(array.compressors) and "blosc" in type(array.compressors[-1]).__name__.lower()
        self.store.arrays[name] = Chunks(filled=name in self.filled and not shards, blosc=blosc, shards=shards)
        return Array(name, self.store, array)

    def _member(self, name: str) -> Any:
        if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
            raise InputError(f"{name!r} is not the name of an array in {self.name}.")
        try:
            return self._group.get(name)
        except WhitewaterError:
            raise
        except Exception as error:  # zarr-python refuses metadata with errors of many types
            reason = f"its metadata is not understood ({type(error).__name__}: {error})"
            raise InputError(f"array {name} of {self.name} cannot be read: {reason}. Restore the store from its "
                             "origin.") from error  # fmt: skip


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
    url
        Path or URL (file, gs, s3, http, https).
    anonymous
        Read gs:// and s3:// without credentials.
    endpoint
        URL of another server that speaks the protocol of gs:// or s3://; empty for the usual one.
    retries
        Further tries of a read that broke.
    timeout
        Seconds after which a read without an answer is given up.
    filled
        Names of arrays of which a chunk that is not stored holds the fill value.

    Raises
    ------
    InputError
        If there is no group of Zarr format 2 or 3, or access is refused.
    """
    store = StrictStore(str(url), anonymous=anonymous, endpoint=endpoint, retries=retries, timeout=timeout)
    refused, reason = None, "it has none of zarr.json, .zmetadata and .zgroup"
    for version, consolidated in ((3, None), (2, None), (2, False)):
        try:
            group = zarr.open_group(store, mode="r", zarr_format=version, use_consolidated=consolidated)  # type: ignore[arg-type]
            return Group(store, frozenset(filled), group)
        except RefusedError as error:  # some buckets refuse what does not exist
            refused = refused or error
        except FileNotFoundError:
            pass
        except WhitewaterError:
            raise
        except Exception as error:  # as in Group._member
            reason = f"its metadata is not understood ({type(error).__name__}: {error})"
            break
    raise refused or InputError(f"{store.name} is no Zarr store, or no group of one: {reason}. Check the address.")


def open_array(url: str | PathLike[str], name: str, **access: Any) -> Array:
    """Open one array of a group; see `open_group` and `Group.array`."""
    return open_group(url, **access).array(name)


def _shards(array: Any, place: str) -> Shards:
    """Return how shards are indexed; only the plain way is read, in which zarr-python can fill in no inner chunk."""
    codec, *others = array.metadata.codecs
    names = [type(each) for each in codec.index_codecs] if isinstance(codec, ShardingCodec) else []
    nested = isinstance(codec, ShardingCodec) and any(isinstance(each, ShardingCodec) for each in codec.codecs)
    if others or nested or names not in ([BytesCodec], [BytesCodec, Crc32cCodec]):
        raise InputError(f"{place}its shards are transposed, compressed as a whole, or hold shards, or their index has "
                         "other codecs than bytes and crc32c. Write it again with plain shards.")  # fmt: skip
    location = getattr(codec.index_location, "value", codec.index_location)
    order = ">" if "big" in str(codec.index_codecs[0].endian) else "<"
    checked = Crc32cCodec in names
    return Shards(array.shape, array.shards, array.chunks, order=order, checked=checked, first=location == "start")


def _first(error: BaseException) -> BaseException:
    """Return the first of the errors that zarr-python raises as a group where it reads several ranges."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _parts(
    bounds: list[tuple[int, int]], chunk: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield the number of each chunk that a region touches, and the part of it in the region."""
    along = [range(start // size, -(-stop // size)) for (start, stop), size in zip(bounds, chunk, strict=True)]
    for number in itertools.product(*along):
        axes = zip(number, bounds, chunk, strict=True)
        yield (
            number,
            tuple(slice(max(start, at * size), min(stop, (at + 1) * size)) for at, (start, stop), size in axes),
        )


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

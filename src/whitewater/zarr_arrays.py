"""Strict reading of Zarr arrays, formats 2 and 3, from directories, buckets and web servers.

::

    group = open_group("gs://bucket/cohort.vcz", anonymous=True, endpoint="", retries=5, timeout=60.0)
    group.name                            # "gs://bucket/cohort.vcz", without secrets
    group.names()                         # ["call_genotype", "sample_id", ...]: all arrays, with their path, sorted
    "call_genotype" in group              # whether there is such an array
    group.attributes                      # dict of the group's attributes
    array = group.array("call_genotype")  # or open_array(url, "call_genotype", anonymous=..., ...)
    array.shape, array.dtype, array.chunks, array.shards, array.attributes, array.name
    array.read((slice(0, 10_000), slice(None)))  # NumPy array; dimensions that are left out are read whole
    array.read()                          # all of it

Groups and arrays are immutable; they can be read from many threads at once, and sent to other processes.

``dtype`` is in the machine's byte order. Text of any length is ``object`` (of `str`), fixed-width text ``U``;
fixed-width bytes are text too. ``chunks`` is what one decoding gives (a shard's inner chunks), ``shards`` what one file
holds, or `None`: reads along multiples of ``chunks`` decode nothing twice, and along ``shards`` read no file twice.

A chunk that is not stored stops the read, though Zarr would fill it in: a lost file is not told from one that was
never written. So does a chunk that cannot be decoded, or has another length. Arrays named as ``filled`` are the one
exception: of them the caller knows that their writer leaves out chunks of fill values; shards are never taken for such.
Blosc has no checksum: a byte that changed in the middle of a frame can go unnoticed, and only the codecs crc32c, gzip
and zstd with a checksum notice all.

Errors: InputError where a store, array or its metadata is missing or not understood, access is refused, or a transfer
does not succeed in ``retries`` further tries; IntegrityError where a chunk is missing or damaged, with array and chunk.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whitewater.errors import InputError, IntegrityError
from whitewater.zarr_codecs import (
    ChunkCodec,
    NotStoredError,
    Region,
    Shard,
    Workspace,
    codec_of_format_2,
    codec_of_format_3,
    one_chunk,
    overlaps,
    refuse_pickle,
    text,
    view_of,
)
from whitewater.zarr_store import DamageError, RefusedError, Store, open_store

GAP = 1 << 16  # bytes of a shard that are read and not needed, rather than ask once more
ARRAY_OF_FORMAT = {2: ".zarray", 3: "zarr.json"}


class MissingChunkError(IntegrityError):
    """A chunk is not stored."""


@dataclass(frozen=True, eq=False)
class Array:
    """An array of a store; see the module. Made by `Group.array`."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    attributes: Mapping[str, Any] = field(repr=False)
    store: Store = field(repr=False)
    _codec: ChunkCodec = field(repr=False)
    _stored_dtype: np.dtype[Any] = field(repr=False)
    _key_prefix: str = field(repr=False)
    _key_separator: str = field(repr=False)
    _fill: Any = field(repr=False)

    def read(self, selection: tuple[slice, ...] = ()) -> NDArray[Any]:
        """Return a part of the array: one slice a dimension, of step 1; those that are left out are whole.

        Raises
        ------
        IntegrityError
            If a chunk is missing or damaged.
        InputError
            If a chunk cannot be had.
        """
        region = self._region(selection)
        out = np.empty([part.stop - part.start for part in region], self._stored_dtype)
        if not out.size:
            return text(out)
        workspace = Workspace()
        parts = list(overlaps(region, self._codec.shape))
        fetched = self.store.ahead(lambda part: self._fetch(part[0], part[1]), parts)
        for (number, inside, place), data in zip(parts, fetched, strict=True):
            self._decode(number, inside, data, view_of(out, place), workspace)
        try:
            return text(out)
        except DamageError as error:
            raise IntegrityError(f"{self._described}: {error}.") from error

    def missing(self) -> tuple[int, int]:
        """Count the chunks, or shards, that are not stored though they should be, and all."""
        grid = [-(-size // chunk) for size, chunk in zip(self.shape, self._codec.shape, strict=True)]
        numbers = list(np.ndindex(*grid))
        if self._fill is not None:
            return 0, len(numbers)
        keys = [f"{self.name}/{self._key(number)}" for number in numbers]
        found = self.store.ahead(lambda key: self.store.read(key, length=1), keys)
        return sum(data is None for data in found), len(numbers)

    @property
    def _described(self) -> str:
        return f"array {self.name} of {self.store.name}"

    def _region(self, selection: tuple[slice, ...]) -> Region:
        if len(selection) > len(self.shape) or any(part.step not in (None, 1) for part in selection):
            raise ValueError(f"{self._described} has {len(self.shape)} dimensions and is read by slices of step 1, not "
                             f"{selection}")  # fmt: skip
        whole = (slice(None),) * (len(self.shape) - len(selection))
        bounds = [part.indices(size) for part, size in zip((*selection, *whole), self.shape, strict=True)]
        return tuple(slice(start, max(start, stop)) for start, stop, _ in bounds)

    def _key(self, number: tuple[int, ...]) -> str:
        return self._key_prefix + self._key_separator.join(map(str, number)) if number else self._key_prefix or "0"

    def _chunk(self, number: tuple[int, ...]) -> str:
        return f"{self._described}: chunk {number} ({self.name}/{self._key(number)})"

    def _fetch(self, number: tuple[int, ...], inside: Region) -> Any:
        """Return the bytes of a chunk, or of a shard those that a region of it needs, each in its place; or `None`."""
        key = f"{self.name}/{self._key(number)}"
        shard = self._codec
        whole = all(part == slice(0, size) for part, size in zip(inside, shard.shape, strict=True))
        if whole or not isinstance(shard, Shard) or shard.steps:
            return self.store.read(key)
        return self.store.tried(self._chunk(number), lambda: _part_of_shard(self.store, key, shard, inside))

    def _decode(
        self, number: tuple[int, ...], inside: Region, data: Any, out: NDArray[Any], workspace: Workspace
    ) -> None:
        pending = [data]  # the first try was read ahead

        def attempt() -> None:
            data = pending.pop() if pending else self._fetch(number, inside)
            if data is None and self._fill is not None:
                out[...] = self._fill
                return
            if data is None:
                raise MissingChunkError(f"{self._chunk(number)} is not stored; such chunks are {_missing(self.name)}")
            self._codec.decode(data, inside, out, workspace)

        try:
            self.store.tried(self._chunk(number), attempt)
        except NotStoredError as error:
            raise IntegrityError(f"{self._chunk(number)} is a shard without its inner chunk {error.args[0]}; "
                                 f"such chunks are {_missing(self.name)}") from error  # fmt: skip


def refuse_missing(arrays: Iterable[Array]) -> None:
    """Refuse arrays of which chunks are not stored, all at once.

    Raises
    ------
    MissingChunkError
        Naming each.
    """
    found = {array: array.missing() for array in arrays}
    absent = {array: counts for array, counts in found.items() if counts[0]}
    if absent:
        told = ", ".join(f"{array.name} ({missing} of {total})" for array, (missing, total) in absent.items())
        names = ", ".join(array.name for array in absent)
        store = next(iter(absent)).store.name
        raise MissingChunkError(f"{store}: not all chunks are stored of {told}; they are {_missing(names)}")


def _missing(names: str) -> str:
    return (
        "lost, or were never written. Restore the store from its origin. If its writer omits chunks that hold only "
        "fill values, as zarr 3 does unless ZARR_ARRAY__WRITE_EMPTY_CHUNKS=True is set where it runs: rewrite the "
        f"store so, or list {names} in filled_arrays of the source."
    )


@dataclass(frozen=True, eq=False)
class Group:
    """A group of arrays; see the module. Made by `open_group`."""

    attributes: Mapping[str, Any] = field(repr=False)
    store: Store
    format: int
    _consolidated: Mapping[str, Any] | None = field(repr=False)
    filled: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The URL of the group, without secrets."""
        return self.store.name

    def names(self) -> list[str]:
        """Return the paths of all arrays, at any depth, sorted.

        Raises
        ------
        InputError
            If the store has no consolidated metadata and cannot be listed, as over http.
        """
        if self._consolidated is None:
            return sorted(self._walk(""))
        suffix = f"/{ARRAY_OF_FORMAT[self.format]}"
        paths = [key.removesuffix(suffix) for key in self._consolidated if key.endswith(suffix)]
        return sorted(path for path in paths if self._document(path) is not None)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._document(name) is not None

    def array(self, name: str) -> Array:
        """Open an array.

        Raises
        ------
        InputError
            If there is none, or its metadata is not understood.
        """
        document = self._document(name)
        if document is None:
            raise InputError(f"{self.name} has no array {name}. Check the name, and that the store is complete.")
        try:
            attributes = self._attributes(name, document)
            return _array(name, document, attributes, self.store, filled=name in self.filled)
        except InputError as error:
            raise InputError(f"array {name} of {self.name} cannot be read: {error}.") from error
        except Exception as error:  # zarr-python refuses a document with errors of many types
            reason = f"its metadata is not understood ({type(error).__name__}: {error})"
            raise InputError(f"array {name} of {self.name} cannot be read: {reason}. Restore the store from its "
                             "origin.") from error  # fmt: skip

    def _document(self, name: str) -> dict[str, Any] | None:
        if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
            raise InputError(f"{name!r} is not the name of an array in {self.name}.")
        document = self._read(f"{name}/{ARRAY_OF_FORMAT[self.format]}")
        return document if document is not None and (self.format == 2 or document.get("node_type") == "array") else None

    def _attributes(self, name: str, document: dict[str, Any]) -> Mapping[str, Any]:
        return (self._read(f"{name}/.zattrs") if self.format == 2 else document.get("attributes")) or {}

    def _read(self, key: str) -> dict[str, Any] | None:
        return _read_json(self.store, key) if self._consolidated is None else _object(self._consolidated.get(key))

    def _walk(self, path: str) -> Iterator[str]:
        names = [f"{path}/{each}".strip("/") for each in self.store.folders(path)]
        for name, is_array in zip(names, self.store.ahead(self.__contains__, names), strict=True):
            if is_array:
                yield name
            elif _read_json(self.store, f"{name}/{'.zgroup' if self.format == 2 else 'zarr.json'}") is not None:
                yield from self._walk(name)


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
    store = open_store(str(url), anonymous=anonymous, endpoint=endpoint, retries=retries, timeout=timeout)
    return replace(_group(store), filled=frozenset(filled))


def _group(store: Store) -> Group:
    documents = _first_document(store, "zarr.json", ".zmetadata", ".zgroup")
    if documents is None:
        raise InputError(f"{store.name} is no Zarr store: it has none of zarr.json, .zmetadata and .zgroup. Check the "
                         "address.")  # fmt: skip
    key, document = documents
    if key == "zarr.json":
        return _group_of_format_3(store, document)
    if key == ".zgroup":
        return Group(_read_json(store, ".zattrs") or {}, store, 2, None)
    consolidated = document.get("metadata")
    if not isinstance(consolidated, dict) or ".zgroup" not in consolidated:
        raise InputError(f"{store.name}/.zmetadata is not the metadata of a group. Restore the store from its origin.")
    return Group(_object(consolidated.get(".zattrs")) or {}, store, 2, consolidated)


def open_array(
    url: str | PathLike[str],
    name: str,
    *,
    anonymous: bool = True,
    endpoint: str = "",
    retries: int = 5,
    timeout: float = 60.0,
) -> Array:
    """Open one array of a group; see `open_group` and `Group.array`."""
    return open_group(url, anonymous=anonymous, endpoint=endpoint, retries=retries, timeout=timeout).array(name)


def _group_of_format_3(store: Store, document: dict[str, Any]) -> Group:
    if document.get("zarr_format") != 3 or document.get("node_type") != "group":
        found = f"format {document.get('zarr_format')}, {document.get('node_type')}"
        raise InputError(f"{store.name} is no group of Zarr format 3: its zarr.json says {found}. Give the address of "
                         "a group.")  # fmt: skip
    consolidated = (document.get("consolidated_metadata") or {}).get("metadata")
    keyed = None if consolidated is None else {f"{path}/zarr.json": each for path, each in consolidated.items()}
    return Group(document.get("attributes") or {}, store, 3, keyed)


def _first_document(store: Store, *keys: str) -> tuple[str, dict[str, Any]] | None:
    """Return the first of some documents that exists; where none does and one is refused, that is raised."""
    refused: RefusedError | None = None
    for key in keys:
        try:
            document = _read_json(store, key)
        except RefusedError as error:  # some buckets refuse what does not exist
            refused = refused or error
        else:
            if document is not None:
                return key, document
    if refused:
        raise refused
    return None


def _read_json(store: Store, key: str) -> dict[str, Any] | None:
    data = store.read(key)
    try:
        document = None if data is None else json.loads(data)
    except ValueError as error:
        raise InputError(f"{store.name}/{key} is not JSON ({error}). Restore the store from its origin.") from error
    if data is not None and not isinstance(document, dict):
        raise InputError(f"{store.name}/{key} holds no object of JSON. Restore the store from its origin.")
    return document


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _array(name: str, document: dict[str, Any], attributes: Mapping[str, Any], store: Store, *, filled: bool) -> Array:
    # zarr-python checks the document and knows the data types of both formats; it is given nothing else of the store.
    refuse_pickle(document)
    known = one_chunk(document)
    stored = np.dtype(object) if known.dtype.kind in "OT" else known.dtype
    codec = (codec_of_format_2 if document["zarr_format"] == 2 else codec_of_format_3)(document, stored)
    if min(codec.shape, default=1) < 1:
        raise InputError(f"its chunks are {codec.shape}. Restore the store from its origin")
    native = stored.newbyteorder("=")
    prefix, separator = _key_encoding(document)
    return Array(
        name=name,
        shape=tuple(known.shape),
        dtype=np.dtype(f"U{max(stored.itemsize, 1)}") if stored.kind == "S" else native,
        chunks=codec.chunks if isinstance(codec, Shard) else codec.shape,
        shards=codec.shape if isinstance(codec, Shard) else None,
        attributes=attributes,
        store=store,
        _codec=codec,
        _stored_dtype=native,
        _key_prefix=prefix,
        _key_separator=separator,
        _fill=_fill(known) if filled and not isinstance(codec, Shard) else None,
    )


def _fill(known: Any) -> Any:
    """Return what Zarr reads where a chunk is not stored."""
    return 0 if known.fill_value is None else known.fill_value


def _key_encoding(document: dict[str, Any]) -> tuple[str, str]:
    """Return what a chunk's key begins with, and what separates its numbers."""
    if document["zarr_format"] == 2:
        return "", document.get("dimension_separator", ".")
    encoding = document["chunk_key_encoding"]
    default = encoding["name"] == "default"
    separator = encoding.get("configuration", {}).get("separator", "/" if default else ".")
    return (f"c{separator}" if default and document["shape"] else "c" if default else ""), separator


def _part_of_shard(store: Store, key: str, shard: Shard, region: Region) -> NDArray[np.uint8] | None:
    """Return a shard in which only the index and what a region needs are filled in; `None` if there is no shard."""
    start = 0 if shard.index_first else -shard.index_bytes
    encoded = store.read(key, start=start, length=shard.index_bytes)
    if encoded is None:
        return None
    spans = shard.spans(shard.index(encoded), region, gap=GAP)
    end = max([stop for _, stop in spans], default=0)
    size = max(end, shard.index_bytes) if shard.index_first else end + shard.index_bytes
    content = np.empty(size, np.uint8)  # the kernel gives memory only to what is written
    content[start : start + len(encoded) or None] = np.frombuffer(encoded, np.uint8)
    for first, stop in spans:
        data = store.read(key, start=first, length=stop - first)
        if data is None or len(data) != stop - first:
            raise DamageError(f"it ends before byte {stop:,}")
        content[first:stop] = np.frombuffer(data, np.uint8)
    return content

"""Decoding of the chunks of Zarr arrays, strictly: what is damaged or missing is an error, never a fill value.

The codecs of the two formats' core and of VCF Zarr (Blosc, Zstandard, gzip, CRC32C, transposition, shards, text, and
all that numcodecs reads in format 2) are applied here, straight into the array that is read. zarr-python decodes chunks
with any other codec, one at a time and out of memory, so that it never looks for a chunk and so never fills one in.

A chunk is *stored* with its axes permuted (format 2's order "F", format 3's codec "transpose"); ``axes`` is the
permutation: ``stored = array.transpose(axes)``.

Sources: Zarr storage specification, version 2; Zarr core specification, version 3; its codecs' specifications; the
header of Blosc 1 frames (README_CHUNK_FORMAT.rst of c-blosc); RFC 8878 (Zstandard), section 3.1.1.1.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from whitewater.errors import InputError
from whitewater.zarr_store import DamageError

Document = Mapping[str, Any]
Region = tuple[slice, ...]
NOT_STORED = 2**64 - 1  # offset and length of an inner chunk that a shard does not hold
BLOSC_HEADER = 16
ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
SIMPLE_KINDS = "biufcSUMm"


class NotStoredError(Exception):
    """A shard does not hold an inner chunk; the argument is its number in the shard, by dimension."""


class Workspace:
    """Memory for one chunk, used again for the next: touching fresh memory costs a third of the time of decoding."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array with any content, in the place of the one before."""
        size = math.prod(shape) * dtype.itemsize
        if size > self._memory.nbytes:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].view(dtype).reshape(shape)


class ChunkCodec(Protocol):
    """How the bytes of a chunk become an array of ``shape``. It is immutable and safe to share between threads."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def decode(self, data: Any, region: Region, out: NDArray[Any], workspace: Workspace) -> None:
        """Write a region of the chunk, of the shape of ``out``, to ``out``; ``data`` are the chunk's bytes.

        The workspace belongs to one thread at a time.

        Raises
        ------
        DamageError
            If they are not the bytes of such a chunk.
        NotStoredError
            If it is a shard, and does not hold an inner chunk of the region.
        """


def codec_of_format_2(document: Document, dtype: np.dtype[Any]) -> ChunkCodec:
    """Return the codec of an array's chunks from its ``.zarray``. Raises InputError if it is not known here."""
    filters = [dict(each) for each in document["filters"] or ()]
    compressors = [dict(document["compressor"])] if document["compressor"] else []
    if dtype.kind == "O" and (not filters or filters.pop(0)["id"] != "vlen-utf8"):
        raise InputError("it holds Python objects that are not text. Write it again as text (vlen-utf8) or numbers")
    shape = tuple(document["chunks"])
    axes = tuple(range(len(shape)))
    steps = tuple(_numcodecs(each) for each in [*compressors, *reversed(filters)])
    return PlainChunk(shape, dtype, axes[::-1] if document["order"] == "F" else axes, steps)


def codec_of_format_3(document: Document, dtype: np.dtype[Any]) -> ChunkCodec:
    """Return the codec of an array's chunks from its ``zarr.json``. Raises InputError if it is not known here."""
    shape = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
    return _chain(document["codecs"], shape, dtype, document)


def refuse_pickle(document: Document) -> None:
    """Raise InputError if a codec, at any depth, is Python's pickle, which runs whatever code the chunks hold."""
    if "pickle" in json.dumps([document.get(each) for each in ("filters", "compressor", "codecs")]):
        raise InputError("its chunks are pickled, and unpickling runs whatever code they hold. Write it again as text "
                         "(vlen-utf8) or numbers")  # fmt: skip


def text(array: NDArray[Any]) -> NDArray[Any]:
    """Return fixed-width bytes as text, other arrays as they are. Raises DamageError if it is not UTF-8."""
    if array.dtype.kind != "S":
        return array
    width = array.dtype.itemsize
    if not array.size or not width:
        return np.zeros(array.shape, f"U{max(width, 1)}")
    codes = np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape, width)
    if codes.max() < 128:
        # NumPy pads both with zeros, and ASCII is numbered alike: several times as fast as decoding each.
        return codes.astype(np.uint32).view(f"U{width}")[..., 0]
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise DamageError(f"it holds text that is not UTF-8 ({error.reason})") from error


@dataclass(frozen=True)
class PlainChunk:
    """A chunk in one piece: bytes that ``steps``, codecs of numcodecs, undo one after the other."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axes: tuple[int, ...]
    steps: tuple[Any, ...]

    def decode(self, data: Any, region: Region, out: NDArray[Any], workspace: Workspace) -> None:
        stored = out.transpose(self.axes)
        whole = out.shape == self.shape and out.dtype == self.dtype and stored.flags.c_contiguous
        try:
            if whole and self.dtype.kind != "O":
                self._decode_numbers(data, stored)
            else:
                out[...] = self._decoded(data, workspace).transpose(np.argsort(self.axes))[region]
        except DamageError:
            raise
        except Exception as error:  # each codec has errors of its own, and all of them say that the bytes are wrong
            raise DamageError(f"it cannot be decoded ({type(error).__name__}: {error})") from error

    def _decoded(self, data: Any, workspace: Workspace) -> NDArray[Any]:
        """Return the whole chunk, its axes permuted."""
        shape = tuple(self.shape[axis] for axis in self.axes)
        if self.dtype.kind == "O":
            for step in self.steps:
                data = _undo(step, data)
            return _text_of(data, math.prod(shape)).reshape(shape)
        chunk = workspace.array(shape, self.dtype)
        self._decode_numbers(data, chunk)
        return chunk

    def _decode_numbers(self, data: Any, stored: NDArray[Any]) -> None:
        """Decode into an array that is contiguous."""
        memory = stored.reshape(-1).view(np.uint8)
        for step in self.steps[:-1]:
            data = _undo(step, data)
        size = _announced_size(self.steps[-1], data) if self.steps else None
        if size is not None:
            _check_size(size, memory.nbytes)
            self.steps[-1].decode(data, out=memory)
            return
        decoded = _undo(self.steps[-1], data) if self.steps else data
        flat = (
            decoded.reshape(-1).view(np.uint8) if isinstance(decoded, np.ndarray) else np.frombuffer(decoded, np.uint8)
        )
        _check_size(flat.nbytes, memory.nbytes)
        memory[:] = flat


@dataclass(frozen=True)
class Shard:
    """A chunk of chunks, with an index of where each is (codec ``sharding_indexed``).

    Parameters
    ----------
    shape
        Of the whole.
    axes
        How the axes are permuted before the whole is cut.
    inner
        Codec of the inner chunks, whose axes are the permuted ones.
    steps
        Codecs that undo what was done to the shard as a whole; with any, it cannot be read in part.
    index_dtype
        Of the index: unsigned, 64 bits.
    index_checked
        Whether a CRC32C follows the index.
    index_first
        Whether the index is at the start.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    inner: ChunkCodec
    steps: tuple[Any, ...]
    index_dtype: np.dtype[Any]
    index_checked: bool
    index_first: bool

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of inner chunks along each permuted axis."""
        return tuple(self.shape[axis] // inner for axis, inner in zip(self.axes, self.inner.shape, strict=True))

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of the inner chunks, in the array's own order of axes."""
        return tuple(self.inner.shape[place] for place in np.argsort(self.axes))

    @property
    def index_bytes(self) -> int:
        return 16 * math.prod(self.grid) + 4 * self.index_checked

    def decode(self, data: Any, region: Region, out: NDArray[Any], workspace: Workspace) -> None:
        for step in self.steps:
            data = _undo(step, data)
        content = memoryview(data)
        index = self.index(content[: self.index_bytes] if self.index_first else content[-self.index_bytes :])
        permuted = out.transpose(self.axes)
        for number, inside, place in self._needed(region):
            offset, length = (int(each) for each in index[number])
            if offset == length == NOT_STORED:
                raise NotStoredError(number)
            if offset + length > len(content):
                raise DamageError(f"inner chunk {number} would end at byte {offset + length:,} of {len(content):,}")
            self.inner.decode(content[offset : offset + length], inside, view_of(permuted, place), workspace)

    def index(self, data: Any) -> NDArray[np.uint64]:
        """Return the index, (*grid, 2): offset and length of each inner chunk, from its bytes. Raises DamageError."""
        if len(data) != self.index_bytes:
            raise DamageError(f"its index has {len(data):,} bytes instead of {self.index_bytes:,}")
        if self.index_checked:
            data = _undo(_numcodecs({"id": "crc32c", "location": "end"}), data)
        return np.frombuffer(data, self.index_dtype).astype(np.uint64).reshape(*self.grid, 2)

    def spans(self, index: NDArray[np.uint64], region: Region, *, gap: int) -> list[tuple[int, int]]:
        """Return start and stop of the bytes that hold a region, those nearer than ``gap`` joined."""
        entries = [tuple(int(each) for each in index[number]) for number, _, _ in self._needed(region)]
        spans: list[tuple[int, int]] = []
        for offset, length in sorted(entry for entry in entries if entry != (NOT_STORED, NOT_STORED)):
            if spans and offset - spans[-1][1] <= gap:
                spans[-1] = (spans[-1][0], max(spans[-1][1], offset + length))
            else:
                spans.append((offset, offset + length))
        return spans

    def _needed(self, region: Region) -> Iterator[tuple[tuple[int, ...], Region, Region]]:
        return overlaps(tuple(region[axis] for axis in self.axes), self.inner.shape)


@dataclass(frozen=True)
class ForeignChunk:
    """A chunk that zarr-python decodes: ``document`` is the ``zarr.json`` of an array that is this chunk only."""

    shape: tuple[int, ...]
    document: dict[str, Any] = field(repr=False)

    def decode(self, data: Any, region: Region, out: NDArray[Any], workspace: Workspace) -> None:
        try:
            values = one_chunk(self.document, bytes(data))[...]
        except Exception as error:  # as in PlainChunk
            raise DamageError(f"it cannot be decoded ({type(error).__name__}: {error})") from error
        out[...] = values[region]


def one_chunk(document: Document, data: bytes | None = None) -> Any:
    """Return zarr-python's array of a metadata document, in memory, with nothing in it but its first chunk."""
    import zarr
    from zarr.buffer.cpu import Buffer
    from zarr.storage import MemoryStore

    version, name = document["zarr_format"], ".zarray" if document["zarr_format"] == 2 else "zarr.json"
    content = {name: Buffer.from_bytes(json.dumps(document).encode())}
    if data is not None:
        content["/".join(["c", *"0" * len(document["shape"])])] = Buffer.from_bytes(data)
    return zarr.open_array(MemoryStore(content), mode="r", zarr_format=version)  # type: ignore[arg-type]


def overlaps(region: Region, chunks: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Region, Region]]:
    """Yield each chunk that a region touches: its number, the part of it in the region, its place in the region."""
    along = [list(_overlaps_along(part, size)) for part, size in zip(region, chunks, strict=True)]
    for combination in itertools.product(*along):
        numbers, inside, places = zip(*combination, strict=True) if combination else ((), (), ())
        yield numbers, inside, places


def view_of(array: NDArray[Any], region: Region) -> NDArray[Any]:
    """Return a region as an array that shares its memory, without dimensions too, where an index gives a number."""
    index: Any = (*region, Ellipsis)
    view: NDArray[Any] = array[index]
    return view


def _overlaps_along(part: slice, size: int) -> Iterator[tuple[int, slice, slice]]:
    for number in range(part.start // size, -(-part.stop // size)):
        first, last = max(part.start, number * size), min(part.stop, (number + 1) * size)
        yield number, slice(first - number * size, last - number * size), slice(first - part.start, last - part.start)


def _chain(codecs: Sequence[Document], shape: tuple[int, ...], dtype: np.dtype[Any], document: Document) -> ChunkCodec:
    """Return the codec of a chunk of ``shape`` from the list of format 3: arrays, then array to bytes, then bytes."""
    foreign = ForeignChunk(shape, _document_of_one_chunk(document, codecs, shape))
    axes, position = tuple(range(len(shape))), 0
    while codecs[position]["name"] == "transpose":
        order = codecs[position]["configuration"]["order"]
        axes, position = tuple(axes[each] for each in order), position + 1
    serializer, compressors = codecs[position], codecs[position + 1 :]
    if not all(each["name"] in _STEPS for each in compressors):
        return foreign
    steps = tuple(_STEPS[each["name"]](each.get("configuration", {})) for each in reversed(compressors))
    if serializer["name"] == "sharding_indexed":
        return _shard(serializer["configuration"], shape, axes, steps, dtype=dtype, document=document)
    if serializer["name"] == "vlen-utf8" and dtype.kind == "O":
        return PlainChunk(shape, dtype, axes, steps)
    if serializer["name"] == "bytes" and dtype.kind in SIMPLE_KINDS:
        return PlainChunk(shape, dtype.newbyteorder(_byte_order(serializer)), axes, steps)
    return foreign


def _shard(
    settings: Document,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    steps: tuple[Any, ...],
    *,
    dtype: np.dtype[Any],
    document: Document,
) -> Shard:
    names = [each["name"] for each in settings["index_codecs"]]
    if names not in (["bytes"], ["bytes", "crc32c"]):
        raise InputError(f"the index of its shards is encoded by {', '.join(names)}, which is not understood. Write it "
                         "again with the codecs bytes and crc32c")  # fmt: skip
    return Shard(
        shape,
        axes,
        _chain(settings["codecs"], tuple(settings["chunk_shape"]), dtype, document),
        steps,
        index_dtype=np.dtype(np.uint64).newbyteorder(_byte_order(settings["index_codecs"][0])),
        index_checked="crc32c" in names,
        index_first=settings.get("index_location", "end") == "start",
    )


def _document_of_one_chunk(document: Document, codecs: Sequence[Document], shape: tuple[int, ...]) -> dict[str, Any]:
    return {
        **{key: value for key, value in document.items() if key not in ("attributes", "dimension_names")},
        "shape": list(shape),
        "codecs": list(codecs),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    }


def _byte_order(serializer: Document) -> Literal["<", ">"]:
    return ">" if serializer.get("configuration", {}).get("endian") == "big" else "<"


def _numcodecs(configuration: Document) -> Any:
    import numcodecs

    try:
        return numcodecs.get_codec(dict(configuration))
    except Exception as error:
        raise InputError(f"its codec {configuration.get('id')} is not known ({error}). Install the package that "
                         "provides it, or write the array again with another") from error  # fmt: skip


_STEPS = {
    "blosc": lambda _: _numcodecs({"id": "blosc"}),
    "zstd": lambda _: _numcodecs({"id": "zstd"}),
    "gzip": lambda _: _numcodecs({"id": "gzip"}),
    "crc32c": lambda _: _numcodecs({"id": "crc32c", "location": "end"}),
}


def _undo(step: Any, data: Any) -> Any:
    """Return the data before a codec was applied. Raises DamageError."""
    _announced_size(step, data)
    try:
        return step.decode(data)
    except Exception as error:  # each codec has errors of its own
        raise DamageError(f"the codec {step.codec_id} cannot decode it ({type(error).__name__}: {error})") from error


def _announced_size(step: Any, data: Any) -> int | None:
    """Return the bytes that compressed data announce to hold, `None` if they do not. Raises DamageError."""
    if step.codec_id == "blosc":
        return _blosc_size(memoryview(data).cast("B"))
    if step.codec_id == "zstd":
        return _zstandard_size(bytes(memoryview(data).cast("B")[:18]))
    return None


def _blosc_size(frame: memoryview) -> int:
    """Check the length of a frame, beyond which Blosc might read, and return how many bytes it holds."""
    if len(frame) < BLOSC_HEADER:
        raise DamageError(f"it has {len(frame)} bytes, less than a header of Blosc")
    length = int.from_bytes(frame[12:16], "little")
    if length != len(frame):
        raise DamageError(f"it has {len(frame):,} bytes, and its header says {length:,}")
    return int.from_bytes(frame[4:8], "little")


def _zstandard_size(head: bytes) -> int | None:
    """Return the content size in the header of a frame, which need not be there."""
    if len(head) < 6 or not head.startswith(ZSTANDARD_MAGIC):
        raise DamageError("it is not a frame of Zstandard")
    descriptor = head[4]
    single_segment = bool(descriptor & 0x20)
    size_bytes = (int(single_segment), 2, 4, 8)[descriptor >> 6]
    start = 5 + (not single_segment) + (0, 1, 2, 4)[descriptor & 3]
    if not size_bytes:
        return None
    return int.from_bytes(head[start : start + size_bytes], "little") + 256 * (size_bytes == 2)


def _check_size(found: int, expected: int) -> None:
    if found != expected:
        raise DamageError(f"it holds {found:,} bytes instead of {expected:,}")


def _text_of(data: Any, count: int) -> NDArray[np.object_]:
    from numcodecs import VLenUTF8

    values: NDArray[np.object_] = VLenUTF8().decode(data)
    if len(values) != count:
        raise DamageError(f"it holds {len(values):,} texts instead of {count:,}")
    return values

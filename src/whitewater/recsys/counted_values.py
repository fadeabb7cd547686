"""Values and how often each occurs: in memory, or mapped from files.

The files are plain: where the bytes of each value begin, int64, and the last one's end; the bytes, see
`whitewater.recsys.byte_strings`; and counts, int64. The system reads pages of them when they are needed, and drops them
when memory is short.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.arrow_arrays import to_arrow
from whitewater.recsys.byte_strings import ByteStrings

Integers = npt.NDArray[np.int64]
# Types of values, and those of which one array may have more than 2**31 bytes.
WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary(), pa.int64(): pa.int64()}
_FILES = ("counts", "offsets", "data")


@dataclass(frozen=True)
class Counted:
    """``values``, an Arrow array of string, binary or int64 without nulls, and ``counts``, int64 (values,)."""

    values: pa.Array
    counts: Integers

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return int(self.values.nbytes + self.counts.nbytes)

    def slice(self, start: int, stop: int) -> Counted:
        """Return some in succession, without a copy."""
        return Counted(self.values.slice(start, stop - start), self.counts[start:stop])

    def take(self, places: Integers) -> Counted:
        """Return those at places, int64 (places,)."""
        return Counted(pc.take(self.values, to_arrow(places)), self.counts[places])

    def wide(self) -> pa.Array:
        """Return the values, of the type of `WIDE`."""
        return self.values.cast(WIDE[self.values.type])


@dataclass(frozen=True)
class MappedCounts:
    """Values of ``kind``, string, binary or int64, and their counts, in a folder of files; sliced like `Counted`.

    ``for_look_up`` tells whether they are mapped for a `whitewater.recsys.value_table.MappedTable`.
    """

    folder: Path
    kind: pa.DataType
    for_look_up: bool
    counts: Integers
    offsets: Integers
    data: npt.NDArray[np.uint8]

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process maps the files itself, if they are still there."""
        if self.folder.exists():
            return _opened, (self.folder, self.kind, self.for_look_up)
        return MappedCounts, tuple(getattr(self, each.name) for each in fields(self))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return self.counts.nbytes + self.offsets.nbytes + self.data.nbytes

    def slice(self, start: int, stop: int) -> Counted:
        """Return some in succession, of at most 2**31 bytes; only where they begin is copied."""
        offsets = self.offsets[start : stop + 1]
        strings = ByteStrings(self.data[offsets[0] : offsets[-1]], offsets - offsets[0])
        return Counted(strings.as_arrow(self.kind), self.counts[start:stop])

    def wide(self) -> pa.Array:
        """Return all values, of the type of `WIDE`, without a copy."""
        if self.kind == pa.int64():
            return to_arrow(self.data.view(np.int64))
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(WIDE[self.kind], len(self), buffers)

    def remove(self) -> None:
        """Remove the files; what is mapped stays as long as it is used."""
        for name in _FILES:
            (self.folder / name).unlink()
        self.folder.rmdir()


def pieces(counted: Counted | MappedCounts, rows: int) -> Iterator[Counted]:
    """Yield all values, so many at a time."""
    for start in range(0, len(counted), rows):
        yield counted.slice(start, min(start + rows, len(counted)))


def together(parts: Iterable[Counted]) -> Counted:
    """Return one or more parts as one."""
    listed = list(parts)
    return Counted(pa.concat_arrays([each.values for each in listed]), np.concatenate([each.counts for each in listed]))


class CountsWriter:
    """Writes values to a new folder of files, part by part; `mapped` opens them when all are written."""

    def __init__(self, scratch: Path, kind: pa.DataType) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=scratch))
        self._kind = kind
        self._end = 0
        self._files: dict[str, BinaryIO] = {name: (self._folder / name).open("xb") for name in _FILES}
        self._files["offsets"].write(bytes(np.dtype(np.int64).itemsize))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, part: Counted) -> None:
        """Append values."""
        strings = ByteStrings.of(part.values)
        first, last = int(strings.offsets[0]), int(strings.offsets[-1])
        self._files["counts"].write(np.ascontiguousarray(part.counts).data)
        self._files["offsets"].write((strings.offsets[1:] + (self._end - first)).data)
        self._files["data"].write(strings.data[first:last].data)
        self._end += last - first

    def mapped(self, *, for_look_up: bool = False) -> MappedCounts:
        """Return what was written; if it is for a `whitewater.recsys.value_table.MappedTable`, with files left open."""
        return _opened(self._folder, self._kind, for_look_up)


def _opened(folder: Path, kind: pa.DataType, for_look_up: bool) -> MappedCounts:
    mapped = _mapped_for_look_up if for_look_up else _mapped
    counts, offsets = (mapped(folder / name, np.int64) for name in ("counts", "offsets"))
    return MappedCounts(folder, kind, for_look_up, counts, offsets, mapped(folder / "data", np.uint8))


def _mapped(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    # Nothing cannot be mapped. Arrow, unlike NumPy, leaves no file open, and there may be thousands.
    if not path.stat().st_size:
        return np.empty(0, dtype)
    with pa.memory_map(str(path)) as file:
        return np.frombuffer(file.read_buffer(), dtype)


def _mapped_for_look_up(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    # The kernels that look up also learn, so they are compiled for arrays that can be written to, as Arrow's cannot.
    return np.asarray(np.memmap(path, dtype, "r+")) if path.stat().st_size else np.zeros(1, dtype)[:0]

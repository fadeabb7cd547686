"""The values of a dictionary as strings of bytes: UTF-8 of a text, 8 little-endian bytes of an integer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from whitewater.engines.device import Array
from whitewater.tables.arrow_arrays import to_arrow

_INTEGER_BYTES = 8
_MOST_BYTES = 2**31 - 1
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True)
class ByteStrings:
    """String *i* is ``data[offsets[i]:offsets[i + 1]]``.

    ``data`` is uint8 and read-only, so that kernels meet one type; ``offsets`` are int64 (strings + 1,).
    """

    data: Array
    offsets: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def spans(self) -> tuple[Array, Array]:
        """The strings as kernels take them."""
        return self.data, self.offsets

    @classmethod
    def of(cls, dictionary: pa.Array) -> ByteStrings:
        """Return those of an Arrow array of string, binary (large or not) or int64, without nulls; without a copy."""
        if pa.types.is_int64(dictionary.type):
            data = np.from_dlpack(dictionary).view(np.uint8)
            return cls(_read_only(data), np.arange(0, len(data) + 1, _INTEGER_BYTES))
        _, offsets, data = dictionary.buffers()
        kind = np.int64 if dictionary.type in LARGE.values() else np.int32
        ends = np.frombuffer(offsets, kind)[dictionary.offset :][: len(dictionary) + 1] if len(dictionary) else [0]
        found = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        return cls(_read_only(found), np.array(ends, np.int64))

    def hashes(self, seed: int) -> Array:
        """Return XXH64 of each string, uint64 (strings,)."""
        from whitewater.engines.kernel import uint64
        from whitewater.features.categories.kernels import hash_strings

        hashes = np.empty(len(self), np.uint64)
        hash_strings(self.spans, uint64(seed), hashes)
        return hashes

    def as_arrow(self, type_: pa.DataType) -> pa.Array:
        """Return the values, of string, binary or int64; where 2 GiB of text do not fit, of the large type."""
        if pa.types.is_int64(type_):
            return to_arrow(self.data[: self.offsets[-1]].view(np.int64))
        small = type_ in LARGE and int(self.offsets[-1]) <= _MOST_BYTES
        offsets = self.offsets.astype(np.int32) if small else self.offsets
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(type_ if small else LARGE.get(type_, type_), len(self), buffers)


def _read_only(data: Array) -> Array:
    view = data.view()
    view.flags.writeable = False
    return view

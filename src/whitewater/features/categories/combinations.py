"""Combinations of columns as categories.

The category of a combination is bytes: for each part its kind, its length (uint32) and its bytes, all little-endian,
so that different parts never give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from whitewater.engines.device import Array
from whitewater.features.categories.byte_strings import HEAD_BYTES, ByteStrings, write_parts
from whitewater.features.columns.column import Categories
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

_NULL, _TEXT, _INTEGER, _BYTES = range(4)
_LENGTH_BYTES, _INTEGER_BYTES = 4, 8


def combine_one(values: Sequence[str | int | bytes | None]) -> bytes | None:
    r"""Return the combination of values, or None if all of them are None.

    Examples
    --------
    >>> combine_one(["a", None])
    b'\x01\x01\x00\x00\x00a\x00'
    """
    if all(value is None for value in values):
        return None
    return b"".join(map(_part, values))


def _part(value: str | int | bytes | None) -> bytes:
    if value is None:
        return bytes([_NULL])
    if isinstance(value, str):
        kind, data = _TEXT, value.encode()
    elif isinstance(value, int):
        kind, data = _INTEGER, value.to_bytes(_INTEGER_BYTES, "little", signed=True)
    else:
        kind, data = _BYTES, value
    return bytes([kind]) + len(data).to_bytes(_LENGTH_BYTES, "little") + data


def combine(columns: Sequence[Categories]) -> Categories:
    """Return the combinations of the rows' values in two or more columns: null where all parts are.

    The dictionary is binary, of the bytes of `combine_one`.
    """
    key = columns[0].codes.astype(np.int64) + 1
    some = columns[0].codes >= 0
    places = [np.arange(len(columns[0].dictionary) + 1)]
    for column in columns[1:]:
        width = len(column.dictionary) + 1
        pairs = to_arrow(key * width + (column.codes + 1)).dictionary_encode()
        some = some | (column.codes >= 0)
        distinct = to_numpy(pairs.dictionary)
        places = [np.take(place, distinct // width) for place in places] + [distinct % width]
        key = to_numpy(pairs.indices).astype(np.int64)
    codes = np.where(some, key, -1).astype(np.int32)
    return Categories(codes, _joined([column.dictionary for column in columns], places))


def split(combinations: pa.Array, count: int) -> list[pa.Array]:
    """Return the values of the so many columns of which binary combinations are, of string or int64."""
    data, offsets = ByteStrings.of(combinations).spans
    places, columns = offsets[:-1].copy(), []
    for _ in range(count):
        kinds = data[places]
        some = np.flatnonzero(kinds != _NULL)
        begins = places[some] + HEAD_BYTES
        sizes = np.zeros(len(some), np.int64)
        for byte in range(_LENGTH_BYTES):
            sizes += data[begins - _LENGTH_BYTES + byte].astype(np.int64) << (8 * byte)
        ends = np.append(0, np.cumsum(sizes))
        source = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], sizes)
        values = ByteStrings(data[source], ends).as_arrow(pa.int64() if (kinds == _INTEGER).any() else pa.string())
        columns.append(values.take(pa.array(np.cumsum(kinds != _NULL) - 1, mask=kinds == _NULL)))
        places += 1
        places[some] = begins + sizes
    return columns


def _joined(dictionaries: Sequence[pa.Array], places: Sequence[Array]) -> pa.Array:
    """Return combinations of entries of dictionaries as binary: each has a place in each dictionary, plus 1, or 0."""
    parts = [ByteStrings.of(dictionary) for dictionary in dictionaries]
    sizes = np.zeros(len(places[0]), np.int64)
    for part, place in zip(parts, places, strict=True):
        sizes += np.append(1, np.diff(part.offsets) + HEAD_BYTES)[place]
    offsets = np.append(0, np.cumsum(sizes))
    joined, ends = np.empty(offsets[-1], np.uint8), offsets[:-1].copy()
    for dictionary, part, place in zip(dictionaries, parts, places, strict=True):
        write_parts(part.spans, _kind(dictionary.type), np.ascontiguousarray(place), ends, joined)
    return ByteStrings(joined, offsets).as_arrow(pa.binary())


def _kind(type_: pa.DataType) -> int:
    if pa.types.is_int64(type_):
        return _INTEGER
    return _TEXT if pa.types.is_string(type_) or pa.types.is_large_string(type_) else _BYTES

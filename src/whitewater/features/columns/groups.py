"""Categories of a column or a combination of columns, and their numbers.

The category of a combination is bytes: for each part its kind, its length (uint32) and its bytes, little-endian, so
that different parts never give the same bytes. Group 0 is null, a category of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from threading import Lock
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines.device import Array, Device
from whitewater.features.columns.byte_strings import ByteStrings
from whitewater.features.columns.categories import CategoryCounter, hash_value, hash_values, scalar, value_hashes
from whitewater.features.columns.column import (
    Block,
    Categories,
    Column,
    Frame,
    Numbers,
    Text,
    as_categories,
    as_integers,
    column_of,
    column_of_series,
    frame_class,
    frame_of,
    is_integer,
    series_of,
    table_of,
)
from whitewater.features.operator import Mode, Row
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

Input = str | tuple[str, ...]
NULL_GROUP, SEED = 0, 0
_NULL, _TEXT, _INTEGER = range(3)
_LENGTH_BYTES, _HEAD_BYTES, _INTEGER_BYTES = 4, 5, 8
# The separator of parts; `pyarrow.scalar` would import pandas.
_NOTHING = ByteStrings(np.empty(0, np.uint8), np.zeros(2, np.int64)).as_arrow(pa.large_binary())[0]


def name_of(each: Input) -> str:
    """Return the name of a column or combination."""
    return each if isinstance(each, str) else "_".join(each)


def columns_of(each: Input) -> tuple[str, ...]:
    """Return the columns of a column or combination."""
    return (each,) if isinstance(each, str) else each


def categories_of(block: Block, each: Input) -> Categories:
    """Return the rows' categories by a column or combination."""
    columns = [as_categories(block[column]) for column in columns_of(each)]
    return columns[0] if isinstance(each, str) else combine(columns)


def combine_one(values: Sequence[str | int | None]) -> bytes | None:
    r"""Return the combination of values, or None if all of them are None.

    >>> combine_one(["a", None])
    b'\x01\x01\x00\x00\x00a\x00'
    """
    if all(value is None for value in values):
        return None
    return b"".join(map(_part, values))


def _part(value: str | int | None) -> bytes:
    if value is None:
        return bytes([_NULL])
    if isinstance(value, str):
        kind, data = _TEXT, value.encode()
    else:
        kind, data = _INTEGER, value.to_bytes(_INTEGER_BYTES, "little", signed=True)
    return bytes([kind]) + len(data).to_bytes(_LENGTH_BYTES, "little") + data


def combine(columns: Sequence[Categories]) -> Categories:
    """Return the rows' combinations of two or more columns, as bytes of `combine_one`; null if all parts are."""
    key = columns[0].codes.astype(np.int64) + 1
    has_value = columns[0].codes >= 0
    places = [np.arange(len(columns[0].dictionary) + 1)]
    for column in columns[1:]:
        width = len(column.dictionary) + 1
        pairs = to_arrow(key * width + (column.codes + 1)).dictionary_encode()
        has_value |= column.codes >= 0
        distinct = to_numpy(pairs.dictionary)
        places = [np.take(place, distinct // width) for place in places] + [distinct % width]
        key = to_numpy(pairs.indices).astype(np.int64)
    parts = [_parts(column.dictionary).take(to_arrow(place)) for column, place in zip(columns, places, strict=True)]
    combined = ByteStrings.of(pc.binary_join_element_wise(*parts, _NOTHING)).as_arrow(pa.binary())
    return Categories(np.where(has_value, key, -1).astype(np.int32), combined)


def _parts(dictionary: pa.Array) -> pa.Array:
    """Return the parts of combinations for null and the entries of a dictionary."""
    strings = ByteStrings.of(dictionary)
    heads = np.empty((len(strings), _HEAD_BYTES), np.uint8)
    heads[:, 0] = _INTEGER if pa.types.is_int64(dictionary.type) else _TEXT
    heads[:, 1:] = np.diff(strings.offsets).astype("<u4").view(np.uint8).reshape(-1, _LENGTH_BYTES)
    starts = np.arange(0, heads.size + 1, _HEAD_BYTES)
    arrays = [each.as_arrow(_NOTHING.type) for each in (ByteStrings(heads.ravel(), starts), strings)]
    null = ByteStrings(np.full(1, _NULL, np.uint8), np.arange(2)).as_arrow(_NOTHING.type)
    return pa.concat_arrays([null, pc.binary_join_element_wise(*arrays, _NOTHING)])


def split(combinations: pa.Array, count: int) -> list[pa.Array]:
    """Split binary combinations of ``count`` columns into their values, of string or int64."""
    data, offsets = ByteStrings.of(combinations).spans
    places, columns = offsets[:-1].copy(), []
    for _ in range(count):
        kinds = data[places]
        rows = np.flatnonzero(kinds != _NULL)
        begins = places[rows] + _HEAD_BYTES
        sizes = data[begins[:, None] + np.arange(-_LENGTH_BYTES, 0)].view("<u4")[:, 0].astype(np.int64)
        ends = np.append(0, np.cumsum(sizes))
        source = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], sizes)
        values = ByteStrings(data[source], ends).as_arrow(pa.int64() if (kinds == _INTEGER).any() else pa.string())
        columns.append(values.take(pa.array(np.cumsum(kinds != _NULL) - 1, mask=kinds == _NULL)))
        places += 1
        places[rows] = begins + sizes
    return columns


def keys_of(block: Block, columns: Sequence[str], device: Device) -> Frame:
    """Return a frame of columns as keys, named ``key_0`` and so on: text, or int64 as `as_integers`."""
    frames, sources = frame_class(device), cast("list[Column | Text]", [block[name] for name in columns])
    keys = [column if isinstance(column, Text) else as_integers(column) for column in sources]
    return frames({f"key_{index}": series_of(key, frames()) for index, key in enumerate(keys)})


def categories_of_keys(keys: pa.Table, count: int) -> Categories:
    """Return the categories of rows of ``count`` keys, as `keys_of` names them."""
    columns = [as_categories(column_of(keys[f"key_{place}"])) for place in range(count)]
    return columns[0] if count == 1 else combine(columns)


class CategoryNumbers:
    """Numbers of categories: ``values`` are numbered from ``first``; null and unseen values have numbers of their own.

    With ``buckets``, the number of an unseen value is ``unseen`` plus ``hash % buckets``. ``values`` are a distinct
    Arrow array of string, binary or int64 without null. Hash tables are built at the first look-up in each process.
    """

    def __init__(self, values: pa.Array, null: int, first: int, unseen: int, buckets: int = 1) -> None:
        self.values, self.null, self.first, self.unseen, self.buckets = values, null, first, unseen, buckets
        self._lock = Lock()
        self._counter: CategoryCounter | None = None
        self._frame: Frame = None

    @classmethod
    def of_groups(cls, values: pa.Array) -> CategoryNumbers:
        """Return numbers of groups: null is 0, values follow from 1, and unseen values are one group after these."""
        return cls(values, NULL_GROUP, 1, len(values) + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return CategoryNumbers, (self.values, self.null, self.first, self.unseen, self.buckets)

    def of_dictionary(self, dictionary: pa.Array) -> npt.NDArray[np.int64]:
        """Return the numbers of the entries of a dictionary, int64, then that of null, which code -1 selects."""
        with self._lock:
            if self._counter is None:
                self._counter = CategoryCounter(self.values.type, room=len(self.values))
                self._counter.add(self.values)
        numbers = self._counter.look_up(dictionary) + self.first
        unseen = np.flatnonzero(numbers < self.first)
        numbers[unseen] = self.unseen
        if self.buckets > 1 and len(unseen):
            numbers[unseen] += self._bucket(hash_values(dictionary.take(to_arrow(unseen)), SEED))
        return np.append(numbers, self.null)

    def of_rows(self, categories: Categories, dtype: npt.DTypeLike = np.int64) -> Array:
        """Return the number of each row, (rows,)."""
        numbers = self.of_dictionary(categories.dictionary).astype(dtype, copy=False)
        # Code -1 selects the last number. Only this mode does not check the codes first.
        return np.take(numbers, categories.codes, mode="wrap")

    def of_block(self, each: Input, block: Block, mode: Mode, dtype: npt.DTypeLike = np.int64) -> Array:
        """Return the number of each row's value of a column, or combination, (rows,) on the device."""
        if mode.engine == "local":
            return self.of_rows(categories_of(block, each), dtype)
        keys = keys_of(block, columns_of(each), mode.device)
        with self._lock:
            if self._frame is None:
                self._frame = frame_of(pa.table(self._columns(keys)), mode.device)
        unseen = cast("Any", self.unseen)
        if self.buckets > 1:
            count = len(keys.columns)
            # The bytes of combinations are only on the host.
            column = column_of_series(keys["key_0"]) if count == 1 else categories_of_keys(table_of(keys), count)
            hashes = value_hashes(column, SEED, mode.device)
            unseen = series_of(Numbers(self._bucket(hashes) + self.unseen), keys)
        names = list(keys.columns)
        merged = keys.assign(order=mode.device.xp.arange(len(keys))).merge(self._frame, how="left", on=names)
        # Neither library guarantees the order of merged rows.
        numbers = merged.sort_values("order").reset_index(drop=True)["number"]
        numbers = (numbers + self.first).fillna(unseen).astype("int64")
        has_key = reduce(or_, [keys[name].notna() for name in names])
        return numbers.where(has_key, self.null).values.astype(dtype)

    def of_value(self) -> Callable[[str | int | bytes | None], int]:
        """Return a function that numbers a value or None."""
        ids = {None: self.null} | {value: number for number, value in enumerate(self.values.to_pylist(), self.first)}

        def number(value: Any) -> int:
            known_id = ids.get(value)
            return self.unseen + hash_value(value, SEED) % self.buckets if known_id is None else known_id

        return number

    def of_row(self, each: Input) -> Callable[[Row], Any]:
        """Return a function that numbers a row's value of a column or combination, or the items of its list."""
        number = self.of_value()
        if not isinstance(each, str):
            return lambda row: number(combine_one([scalar(row[name], name) for name in each]))

        def numbers(row: Row) -> Any:
            value = row[each]
            if isinstance(value, list | tuple):
                return [number(scalar(item, each)) for item in value]
            return number(scalar(value, each))

        return numbers

    def _bucket(self, hashes: Array) -> Array:
        return (hashes % np.uint64(self.buckets)).astype(np.int64)

    def _columns(self, keys: Frame) -> dict[str, Any]:
        names = list(keys.columns)
        parts = [self.values] if len(names) == 1 else split(self.values, len(names))
        columns = dict(zip(names, parts, strict=True))
        for name, part in columns.items():
            if part.null_count == len(part):  # of any type
                columns[name] = pa.nulls(len(part), pa.int64() if is_integer(keys[name]) else pa.string())
        return {**columns, "number": np.arange(len(self.values))}

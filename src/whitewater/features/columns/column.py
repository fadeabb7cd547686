"""Columns of a block of rows: numbers, categories and lists.

Rows are the device's: NumPy's arrays on the CPU, CuPy's on the GPU. What a category *is*, a text or an integer, is kept
once in a dictionary on the host, so that ids and hashes come from the same bytes on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

if TYPE_CHECKING:
    from whitewater.engines import Array


@dataclass(frozen=True)
class Numbers:
    """``values`` (rows,) of an integer, floating or boolean dtype, on the device.

    ``valid``, bool (rows,) on the device, is False where the value is null, which it is nowhere if ``valid`` is None. A
    NaN is null as well, with or without ``valid``; what stands at a null has no meaning.
    """

    values: Array
    valid: Array | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Categories:
    """Row *i* is ``dictionary[codes[i]]``, or null where the code is -1.

    ``codes`` are int32 (rows,) on the device. ``dictionary``, on the host, is an Arrow array without nulls: string,
    int64, or binary (combinations of columns). Its entries may repeat, and need not all occur.
    """

    codes: Array
    dictionary: pa.Array

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Lists:
    """Row *i* is ``values[offsets[i]:offsets[i + 1]]``; ``offsets`` are int64 (rows + 1,) on the device, from 0.

    A null list is an empty one.
    """

    offsets: Array
    values: Numbers | Categories

    def __len__(self) -> int:
        return len(self.offsets) - 1


Column = Numbers | Categories | Lists
Block = Mapping[str, Column]


def moved(column: Column, move: Callable[[Any], Array]) -> Column:
    """Return a column whose arrays are what ``move`` makes of them, such as those of another device."""
    if isinstance(column, Lists):
        return Lists(move(column.offsets), cast("Numbers | Categories", moved(column.values, move)))
    if isinstance(column, Categories):
        return Categories(move(column.codes), column.dictionary)
    return Numbers(move(column.values), None if column.valid is None else move(column.valid))


def taken(values: Numbers | Categories, rows: Array | slice) -> Numbers | Categories:
    """Return some rows of a column without lists."""
    return cast("Numbers | Categories", moved(values, lambda each: each[rows]))

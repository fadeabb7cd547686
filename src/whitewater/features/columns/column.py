"""Columns of a block of rows: numbers, categories and lists.

Blocks are the host's. Operators that compute numbers from numbers take `Numbers` of CuPy's arrays too: the columns of a
frame of cuDF. What a category *is*, a text or an integer, is kept once in a dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from whitewater.engines import Array


@dataclass(frozen=True)
class Numbers:
    """``values`` (rows,) of an integer, floating or boolean dtype.

    ``valid``, bool (rows,), is False where the value is null, which it is nowhere if ``valid`` is None. A
    NaN is null as well, with or without ``valid``; what stands at a null has no meaning.
    """

    values: Array
    valid: Array | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Categories:
    """Row *i* is ``dictionary[codes[i]]``, or null where the code is -1.

    ``codes`` are int32 (rows,). ``dictionary`` is an Arrow array without nulls: string,
    int64, or binary (combinations of columns). Its entries may repeat, and need not all occur.
    """

    codes: Array
    dictionary: pa.Array

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Lists:
    """Row *i* is ``values[offsets[i]:offsets[i + 1]]``; ``offsets`` are int64 (rows + 1,), from 0.

    A null list is an empty one.
    """

    offsets: Array
    values: Numbers | Categories

    def __len__(self) -> int:
        return len(self.offsets) - 1


Column = Numbers | Categories | Lists
Block = Mapping[str, Column]


def take_rows(column: Numbers | Categories, rows: Array | slice) -> Numbers | Categories:
    """Return some rows of a column without lists."""
    if isinstance(column, Categories):
        return Categories(column.codes[rows], column.dictionary)
    return Numbers(column.values[rows], None if column.valid is None else column.valid[rows])

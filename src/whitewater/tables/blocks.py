"""Blocks of columns, and statistics of groups of their rows.

Data moves in *blocks*: a block is a mapping of column name to one-dimensional array, all of one length. The arrays are
NumPy's on the CPU and CuPy's on the GPU; static types are NumPy's. Neither library has nullable arrays, so a null is a
value, the same on both devices:

=============== ============ =================================================================
kind            array dtype  null
=============== ============ =================================================================
``timestamp``   int64        ``NULL_TIMESTAMP``; microseconds since 1970-01-01, local time
``float64``     float64      NaN
``int8`` ...    int8 ...     ``NULL_INTEGER`` (-1); a value that the dtype cannot hold, or a
                             negative or fractional one, becomes ``BAD_INTEGER`` (-2)
``id``          int64        none: a null, and what is no integer of 64 bits, is refused; from
                             Parquet's columns of integers only
``text``        ``Encoded``  code -1
=============== ============ =================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from whitewater.engines import Array, Device

Kind = Literal["timestamp", "float64", "int8", "int16", "int32", "int64", "id", "text"]

NULL_TIMESTAMP = -(2**63)
NULL_INTEGER = -1
BAD_INTEGER = -2


@dataclass(frozen=True)
class Encoded:
    """A column of text, dictionary encoded: ``vocabulary[codes[i]]`` is the text of row ``i``; code -1 is null."""

    codes: npt.NDArray[np.int32]
    vocabulary: tuple[str, ...]


Block = dict[str, Array]
RawBlock = dict[str, Array | Encoded]


@dataclass(frozen=True)
class Parsed:
    """Text as columns of ``rows`` rows, and besides them the lines that could not be parsed, as they stood."""

    block: RawBlock
    rows: int
    malformed: tuple[str, ...]


# The units of sums of values and of sums of their squares, and the bits and the number of digits that sums have.
UNIT = (2.0**-56, 2.0**-112)
DIGIT, DIGITS = 32, 6


@dataclass(frozen=True)
class GroupStatistics:
    """Counts, sums and a histogram of values for each group; host arrays, so that partial results merge anywhere.

    All are integers, so that partial results add up to the same bits in any order.

    ``count`` int64 (groups,); ``sums`` int64 (groups, 2, `DIGITS`): of values and of squares, in digits of base
    2**`DIGIT` and in units of `UNIT`, carries still to be done; ``bins`` int64 (bins,) and ``histogram`` int64 (bins,
    groups): the bins of `whitewater.tables.group_statistics` that hold a value, ascending, and their counts.

    Where no medians were asked for, the histogram has one bin, and the sums of squares are 0.
    """

    count: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]
    bins: npt.NDArray[np.int64]
    histogram: npt.NDArray[np.int64]

    @classmethod
    def nothing(cls, groups: int) -> GroupStatistics:
        """Return the statistics of no values at all."""
        empty = np.zeros((0, groups), np.int64)
        return cls(np.zeros(groups, np.int64), np.zeros((groups, 2, DIGITS), np.int64), np.zeros(0, np.int64), empty)

    @property
    def total(self) -> npt.NDArray[np.float64]:
        """The sum of the values of each group, float64 (groups,): each counts rounded to 37 significant bits."""
        return self._sum(0)

    @property
    def total_of_squares(self) -> npt.NDArray[np.float64]:
        """The sum of the squares of each group, float64 (groups,): each of a value so rounded."""
        return self._sum(1)

    def _sum(self, power: int) -> npt.NDArray[np.float64]:
        digits = [*self.sums[:, power].T]
        for place in range(DIGITS - 1):
            digits[place + 1] = digits[place + 1] + (digits[place] >> DIGIT)
            digits[place] = digits[place] & ((1 << DIGIT) - 1)
        total = np.zeros(len(self.count))
        for digit in reversed(digits):
            total = total * 2.0**DIGIT + digit
        return total * UNIT[power]

    def __add__(self, other: GroupStatistics) -> GroupStatistics:
        bins = np.union1d(self.bins, other.bins)
        histogram = np.zeros((len(bins), len(self.count)), np.int64)
        for each in (self, other):
            histogram[np.searchsorted(bins, each.bins)] += each.histogram
        return GroupStatistics(self.count + other.count, self.sums + other.sums, bins, histogram)

    def gathered(self, members: Array, groups: int) -> GroupStatistics:
        """Sum groups up into coarser ones, of which ``members`` tells the one of each group."""
        count, sums, histogram = (
            gathered(values, members, groups) for values in (self.count, self.sums, self.histogram.T)
        )
        return GroupStatistics(count, sums, self.bins, histogram.T)


def gathered(values: Array, members: Array, groups: int) -> Array:
    """Sum rows up into fewer: row *i* into row ``members[i]``."""
    result = np.zeros((groups, *values.shape[1:]), values.dtype)
    np.add.at(result, members, values)
    return result


def column_or_null(name: str, kind: Kind, block: Block, device: Device) -> Array:
    """Return a column of a block, or, where the block lacks it, one of its kind that is null throughout."""
    if name in block:
        return block[name]
    null = {"float64": float("nan"), "timestamp": NULL_TIMESTAMP}.get(kind, NULL_INTEGER)
    rows = len(next(iter(block.values())))
    missing: Array = device.xp.full(rows, null, "int64" if kind == "timestamp" else kind)
    return missing


def as_float(values: Array, device: Device) -> Array:
    """Return a column of numbers as float64, with NaN for null."""
    if values.dtype.kind == "f":
        return values
    known: Array = device.xp.where(values != NULL_INTEGER, values.astype("float64"), float("nan"))
    return known


def select(block: Block, chosen: Array, device: Device) -> Block:
    """Return the chosen rows; positions are found once, which is faster than a mask for each column."""
    rows = device.xp.flatnonzero(chosen)
    if len(rows) == len(chosen):
        return block
    return {name: values[rows] for name, values in block.items()}


def moved(values: Array | Encoded, device: Device) -> Array | Encoded:
    """Return a column of the host as one of a device."""
    if isinstance(values, Encoded):
        return Encoded(device.to_device(values.codes), values.vocabulary)
    return device.to_device(values)


def slices(block: Block, device: Device) -> Iterator[Block]:
    """Cut a block into views that fit the device's cache."""
    rows = len(next(iter(block.values())))
    for start in range(0, rows, device.slice_rows):
        yield {name: values[start : start + device.slice_rows] for name, values in block.items()}

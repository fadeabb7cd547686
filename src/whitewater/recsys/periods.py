"""Rows by category and period: cells, of which there are far fewer than rows where periods are long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from whitewater.devices.protocol import Array, Device

Integers = npt.NDArray[np.int64]
# Cells for a row, below which they are all numbered, empty ones as well, rather than sorted.
DENSE = 4


@dataclass(frozen=True)
class RowCells:
    """Row *i* is in cell ``of_row[i]``, which has a code and a period.

    ``of_row`` int32 (rows,) on the device; ``codes`` and ``periods`` int64 (cells,) on the host. Cells may be empty.
    """

    of_row: Array
    codes: Integers
    periods: Integers

    def __len__(self) -> int:
        return len(self.codes)


def cells_of(codes: Array, size: int, periods: Array, device: Device) -> RowCells:
    """Return the cells of rows, whose codes, int32 (rows,), are below ``size``; periods are int64 (rows,)."""
    xp = device.xp
    if not len(codes):
        nothing = np.empty(0, np.int64)
        return RowCells(device.from_host(nothing.astype(np.int32)), nothing, nothing)
    first, last = int(periods.min()), int(periods.max())
    width = last - first + 1
    if size * width <= DENSE * len(codes):
        cells = np.arange(size * width)
        of_row = codes * np.int64(width) + (periods - first)
        return RowCells(of_row.astype(np.int32), cells // width, first + cells % width)
    distinct, rank = xp.unique(periods, return_inverse=True)
    keys, of_row = xp.unique(codes * np.int64(len(distinct)) + rank, return_inverse=True)
    found = device.to_host(keys)
    return RowCells(of_row.astype(np.int32), found // len(distinct), device.to_host(distinct)[found % len(distinct)])


@dataclass(frozen=True)
class Cells:
    """Numbers of groups and periods, each pair once, in the order of groups and, within them, of periods.

    All are arrays (cells,) on the host; groups and periods int64.
    """

    groups: Integers
    periods: Integers
    numbers: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.groups.nbytes + self.periods.nbytes + sum(each.nbytes for each in self.numbers.values())

    @classmethod
    def added(cls, parts: Sequence[Cells]) -> Cells:
        """Return one or more sets of cells, in any order, as one: numbers of the same cell are added up."""
        groups = np.concatenate([each.groups for each in parts])
        periods = np.concatenate([each.periods for each in parts])
        order = np.lexsort((periods, groups))
        groups, periods = groups[order], periods[order]
        new = np.ones(len(order), bool)
        new[1:] = (groups[1:] != groups[:-1]) | (periods[1:] != periods[:-1])
        starts = np.flatnonzero(new)
        numbers = {
            name: np.add.reduceat(np.concatenate([each.numbers[name] for each in parts])[order], starts)
            for name in parts[0].numbers
        }
        return cls(groups[starts], periods[starts], numbers)

"""Counts and means of a category in the past: of the periods before that of the row.

What is learned are *cells*, pairs of a category and a period, of which there are far fewer than rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.engines.device import Device
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.categories.groups import Grouped, Grouping, read_numbers
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.codes import add_up_runs, count_codes, sum_by_code
from whitewater.features.columns.column import Numbers
from whitewater.features.frames import halves, whole
from whitewater.features.operators.by_category import ByCategory, GatheringOfRows, LearnedByCategory, spread
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.features.columns.column import Block
    from whitewater.features.operator import Applying, Inputs, Row, Value
    from whitewater.features.schema import Field

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
PERIODS, ROWS, SUMS, NULLS = "periods", "rows", "sums", "null_rows"
# Cells for a row, below which they are all numbered, empty ones as well, rather than sorted.
DENSE = 4


class _Past(ByCategory):
    """What is known of a category before the period that a row is in."""

    time: str = Setting("time", min_length=1, description="Column of the time, an integer.")
    period: int = Setting(86_400, ge=1, description="Length of a period in units of the time; 0 is where one begins.")

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        return (self.time, *self.of_numbers) if fitting else (self.time,)

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        if not pa.types.is_integer(fields[self.time].type):
            raise ConfigError(
                f"{type(self).__name__}: the time {self.time!r} is of type {fields[self.time].type}. Give an integer, "
                "such as seconds since 1970."
            )
        return super().output(inputs, fields)

    def of_rows(self, block: Block, applying: Applying) -> Array:
        return self.periods(block)

    def periods(self, block: Block) -> Array:
        """Return the period of each row, int64 (rows,); raises InputError if a time is null."""
        column = block[self.time]
        if not isinstance(column, Numbers) or column.values.dtype.kind not in "iu":
            raise InputError(f"{type(self).__name__}: the time {self.time!r} is not of integers. Convert it.")
        if column.valid is not None and (nulls := int((~column.valid).sum())):
            raise InputError(
                f"{type(self).__name__}: the time {self.time!r} is null in {nulls} of {len(column)} rows, and what is "
                "before them is not known. Leave them out, or give them a time."
            )
        # Of unsigned times beyond the signed ones, the periods are not.
        wide = np.uint64 if column.values.dtype == np.uint64 else np.int64
        periods: Array = (column.values.astype(wide) // self.period).astype(np.int64)
        return periods

    def period_of_row(self, row: Row) -> int:
        """Return the period of one row; raises InputError if the time is not an integer."""
        time = row[self.time]
        try:
            return index(cast("int", time)) // self.period
        except TypeError:
            raise InputError(f"{type(self).__name__}: the time {self.time!r} is {time!r}. Give an integer.") from None

    @property
    def stored_numbers(self) -> tuple[str, ...]:
        """The numbers of a cell that are kept: rows, and the sum of the target where there is one."""
        return (ROWS, SUMS) if self.of_numbers else (ROWS,)

    def cells(self, block: Block, exponents: Sequence[int], device: Device) -> dict[str, Any]:
        xp, periods = device.xp, self.periods(block)
        none = xp.zeros(len(periods), xp.int64)
        sums = {NULLS: none, ROWS: none + 1}
        for target, exponent in zip(self.of_numbers, exponents, strict=True):
            values = as_floats(block[target], xp)
            null = xp.isnan(values)
            sums = {NULLS: null.astype(xp.int64), ROWS: (~null).astype(xp.int64)}
            sums["first"], sums["second"] = halves(values, exponent, device)
        return {"key_period": periods, **sums}

    def gathering(self, grouping: Grouping) -> PastCells:
        return PastCells(self, grouping)


class PastCount(_Past):
    """The number of rows of the same category in the periods before that of the row.

    A period is ``time // period``. What is learned are the rows of each category and period; a row's number is of those
    with a category equal to its own and a period before its own, in training as in serving. So no row knows of itself,
    of others in its period, or of later ones; and a row that is later than all of fitting knows all of it.

    Null is a category of its own; an unseen category has 0. A null time is refused.

    Output: ``<column>_past_count``, int64, for each column or combination.
    """

    def columns_of(self, name: str) -> dict[str, pa.DataType]:
        return {f"{name}_past_count": pa.int64()}

    def learned(self, grouping: Grouping, table: pa.Table) -> LearnedPast:
        return LearnedPast(self, grouping, table)


class PastMean(_Past):
    """The smoothed mean of a target over rows of the same category in the periods before that of the row.

    ``(sum + p_smooth * mean) / (count + p_smooth)``: sum and count of the rows that `PastCount` counts whose target is
    not null; mean over the rows of all categories in the periods before that of the row, or ``first_mean`` where there
    is none. So no target of the row's period or later is in it, be it of other categories; changing one changes nothing
    that is earlier, not even the last digit.

    Null is a category of its own; an unseen category has the mean, and so has any where count and ``p_smooth`` are 0.
    Rows whose target is null count nowhere, and the statistics say how many there are. A null time is refused.

    Output: ``<column>_past_mean_<target>``, float32, for each column or combination.
    """

    target: str = Setting(min_length=1, description="Column whose mean is taken.")
    p_smooth: float = Setting(20.0, ge=0, description="Rows of the mean that each category has in addition to its own.")
    first_mean: float = Setting(0.5, description="The mean where no row is earlier.")

    @property
    def of_numbers(self) -> tuple[str, ...]:
        return (self.target,)

    def columns_of(self, name: str) -> dict[str, pa.DataType]:
        return {f"{name}_past_mean_{self.target}": pa.float32()}

    def learned(self, grouping: Grouping, table: pa.Table) -> PastMeans:
        return PastMeans(self, grouping, table)


@dataclass(frozen=True)
class Cells:
    """Numbers of groups and periods, each pair once, in the order of groups and, within them, of periods.

    All are arrays (cells,); groups and periods int64.
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


def cells_of(codes: Array, size: int, periods: Array, device: Device) -> tuple[Array, Integers, Integers]:
    """Return the cell of each row, int32 (rows,) on the device, and codes and periods of the cells, on the host.

    Codes, int32 (rows,), are below ``size``; periods are int64 (rows,). Cells may be empty.
    """
    xp = device.xp
    if not len(codes):
        nothing = np.empty(0, np.int64)
        return device.to_device(nothing.astype(np.int32)), nothing, nothing
    first, last = int(periods.min()), int(periods.max())
    width = last - first + 1
    if size * width <= DENSE * len(codes):
        cells = np.arange(size * width)
        of_row = codes * np.int64(width) + (periods - first)
        return of_row.astype(np.int32), cells // width, first + cells % width
    distinct, rank = xp.unique(periods, return_inverse=True)
    keys, of_row = xp.unique(codes * np.int64(len(distinct)) + rank, return_inverse=True)
    found = device.to_host(keys)
    return of_row.astype(np.int32), found // len(distinct), device.to_host(distinct)[found % len(distinct)]


class PastCells(GatheringOfRows):
    """Rows, and sums of a target, by category and period; and by category the rows that do not count."""

    def __init__(self, operator: _Past, grouping: Grouping) -> None:
        super().__init__(grouping, {NULLS: np.zeros(1, np.int64)})
        self._operator = operator
        nothing = np.empty(0, np.int64)
        self._cells = Cells(nothing, nothing, dict(zip(operator.stored_numbers, (nothing, np.empty(0)), strict=False)))
        self._added: list[Cells] = []

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(each.nbytes for each in [self._cells, *self._added])

    def add_rows(self, here: Grouped, block: Block) -> None:
        periods = self._operator.periods(block)
        known, codes, cell_periods = cells_of(here.codes, len(here.groups), periods, Device())
        numbers = {}
        for target in self._operator.of_numbers:
            values = as_floats(block[target])
            null = np.isnan(values)
            if bool(null.any()):
                values, known = np.where(null, 0.0, values), np.where(null, -1, known)
                missing = count_codes(np.where(null, here.codes, -1), len(here.groups))
                self.totals[NULLS][here.groups] += missing
            numbers[SUMS] = sum_by_code(known, values, len(codes))
        numbers[ROWS] = count_codes(known, len(codes))
        some = np.flatnonzero(numbers[ROWS])
        kept = {name: numbers[name][some] for name in self._operator.stored_numbers}
        self._add(Cells(here.groups[codes[some]], cell_periods[some], kept))

    def add_table(self, groups: Integers, table: pa.Table) -> None:
        super().add_table(groups, table)
        cells = _read(table, self._operator.stored_numbers)
        self._add(Cells(groups[cells.groups], cells.periods, cells.numbers))

    def add_sums(self, groups: Integers, cells: pa.Table, exponents: Sequence[int]) -> None:
        names = {"key_period", NULLS, ROWS, "first", "second"} & set(cells.column_names)
        columns = {name: to_numpy(cells[name]) for name in names}
        np.add.at(self.totals[NULLS], groups, columns[NULLS])
        for exponent in exponents:
            columns[SUMS] = whole(columns["first"], columns["second"], exponent)
        some = np.flatnonzero(columns[ROWS])
        kept = {name: columns[name][some] for name in self._operator.stored_numbers}
        self._add(Cells(groups[some], columns["key_period"][some], kept))

    def _add(self, cells: Cells) -> None:
        self._added.append(cells)
        if sum(map(len, self._added)) > len(self._cells):
            self._join()

    def _join(self) -> None:
        self._cells, self._added = Cells.added([self._cells, *self._added]), []

    def table(self) -> pa.Table:
        """Return what was gathered: of each category the list of its periods, and lists of their numbers."""
        self._join()
        offsets = to_arrow(np.searchsorted(self._cells.groups, np.arange(len(self.groups) + 1)))
        lists = {PERIODS: self._cells.periods} | {
            name: self._cells.numbers[name] for name in self._operator.stored_numbers
        }
        table = super().table()
        for name, each in lists.items():
            table = table.append_column(name, pa.LargeListArray.from_arrays(offsets, to_arrow(each)))
        return table


def _read(table: pa.Table, kept: Sequence[str]) -> Cells:
    """Return the cells of a table; raises IntegrityError if it has none, or their numbers are not of the same cells."""
    lengths, values = [], {}
    for name in (PERIODS, *kept):
        type_ = table.schema.field(name).type if name in table.column_names else pa.null()
        if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
            raise IntegrityError(f"a table of categories has no column {name!r} of lists. Fit again.")
        lists = table[name].combine_chunks()
        flat = lists.flatten()
        if lists.null_count or flat.null_count:
            raise IntegrityError(f"a table of categories has nulls in the column {name!r}. Fit again.")
        lengths.append(to_numpy(lists.value_lengths()).astype(np.int64))
        values[name] = to_numpy(flat)
    if any(not np.array_equal(each, lengths[0]) for each in lengths):
        raise IntegrityError("a table of categories has lists of different lengths in a row. Fit again.")
    groups = np.repeat(np.arange(len(table)), lengths[0])
    periods = values.pop(PERIODS)
    return Cells(groups, periods, values)


class LearnedPast(LearnedByCategory):
    """Cells of categories, by which the ones before a period are found.

    ``_up_to[name][i]`` is the sum over the cells before *i* of the same category: 0 at its first one.
    """

    def __init__(self, operator: _Past, grouping: Grouping, table: pa.Table) -> None:
        super().__init__(grouping, table)
        self.operator = operator
        self.cells = _read(table, operator.stored_numbers)
        self._null_rows = int(read_numbers(table, [NULLS])[NULLS].sum())
        self.periods = np.unique(self.cells.periods)
        # One group more, without cells: that of categories that were not seen.
        self.starts = np.searchsorted(self.cells.groups, np.arange(len(table) + 2))
        self._keys = self.cells.groups * (len(self.periods) + 1) + np.searchsorted(self.periods, self.cells.periods)
        self._up_to = {name: self._added_up(self.cells.numbers[name]) for name in operator.stored_numbers}

    def _added_up(self, numbers: npt.NDArray[Any]) -> Floats:
        """Return 0, and the sums of each category up to and with each cell."""
        totals = np.zeros(len(numbers) + 1)
        add_up_runs(numbers.astype(np.float64), self.starts, totals[1:])
        return totals

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"periods": len(self.periods), "null_rows": self._null_rows}

    def numbers(self, groups: Array, of_rows: Array | None, applying: Applying) -> list[Array]:
        device = applying.device
        there = device.xp.bincount(groups, minlength=self.lookup.unseen + 1) > 0
        codes = (device.xp.cumsum(there) - 1)[groups]
        groups = device.to_host(device.xp.flatnonzero(there))
        of_row, of_cell, periods = cells_of(codes, len(groups), cast("Array", of_rows), device)
        groups = groups[of_cell]
        ranks = np.searchsorted(self.periods, periods)
        places = np.searchsorted(self._keys, groups * (len(self.periods) + 1) + ranks)
        earlier = places > self.starts[groups]
        before = {name: np.where(earlier, each[places], 0.0) for name, each in self._up_to.items()}
        return [spread(self.number(before, ranks), of_row, device)]

    def number(self, before: Mapping[str, Floats], ranks: Integers) -> npt.NDArray[Any]:
        """Return what comes out of the numbers of earlier cells; ``ranks`` are how many periods are earlier."""
        return before[ROWS].astype(np.int64)

    def numbers_of_row(self) -> Callable[[Row], Sequence[Value]]:
        group_of, period_of = self.lookup.group_of_row(), self.operator.period_of_row
        periods = self.periods.tolist()

        def numbers(row: Row) -> list[Value]:
            group, period = group_of(row), period_of(row)
            start, end = self.starts[group], self.starts[group + 1]
            place = bisect_left(self.cells.periods, period, start, end)
            # The first total is 0, as that of a category is without an earlier cell.
            before = {name: each[[place if place > start else 0]] for name, each in self._up_to.items()}
            made: list[Value] = self.number(before, np.array([bisect_left(periods, period)])).tolist()
            return made

        return numbers


class PastMeans(LearnedPast):
    """What a `PastMean` learned; raises InputError if the target is null in all rows, or infinite in one."""

    operator: PastMean

    def __init__(self, operator: PastMean, grouping: Grouping, table: pa.Table) -> None:
        super().__init__(operator, grouping, table)
        if not len(self.cells):
            raise InputError(f"PastMean: the target {operator.target!r} is null in all rows of fitting. Give another.")
        if not np.isfinite(self.cells.numbers[SUMS]).all():
            raise InputError(f"PastMean: the target {operator.target!r} has infinite values. Clip it, or give another.")
        period = np.searchsorted(self.periods, self.cells.periods)
        rows, sums = (np.cumsum(np.bincount(period, self.cells.numbers[name])) for name in (ROWS, SUMS))
        self._means = np.append(operator.first_mean, sums / rows)

    def number(self, before: Mapping[str, Floats], ranks: Integers) -> npt.NDArray[np.float32]:
        smoothing, prior = self.operator.p_smooth, self._means[ranks]
        weight = before[ROWS] + smoothing
        means: Floats = np.divide(before[SUMS] + smoothing * prior, weight, out=prior.copy(), where=weight > 0)
        return means.astype(np.float32)

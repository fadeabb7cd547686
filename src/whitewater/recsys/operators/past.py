"""Counts and means of a category in the past: of the periods before that of the row."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.arrow_arrays import to_arrow, to_numpy
from whitewater.devices.columns import Numbers
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.recsys.categories import add_up, as_floats, count
from whitewater.recsys.category_groups import Grouping, Groups, grown, read_categories, read_numbers, table_of
from whitewater.recsys.operators.by_category import ByCategory, Gathering, LearntByCategory, spread
from whitewater.recsys.past_kernels import add_up_runs
from whitewater.recsys.periods import Cells, cells_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whitewater.devices.columns import Block, Categories
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.graph import Inputs
    from whitewater.recsys.operator import Applying, Row, Value
    from whitewater.recsys.schema import Field

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
PERIODS, ROWS, SUMS, NULLS = "periods", "rows", "sums", "null_rows"


class _Past(ByCategory):
    """What is known of a category before the period that a row is in."""

    time: str = Setting("time", min_length=1, description="Column of the time, an integer.")
    period: int = Setting(86_400, ge=1, description="Length of a period in units of the time; 0 is where one begins.")

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        """Return the time."""
        del fitting, training
        return (self.time,)

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return the columns of each input.

        Raises
        ------
        ConfigError
            If the time is no integer.
        """
        if not pa.types.is_integer(fields[self.time].type):
            raise ConfigError(
                f"{type(self).__name__}: the time {self.time!r} is of type {fields[self.time].type}. Give an integer, "
                "such as seconds since 1970."
            )
        return super().output(inputs, fields)

    def of_rows(self, block: Block, applying: Applying) -> Array:
        """Return the rows' periods."""
        return self.periods(block, applying.device)

    def periods(self, block: Block, device: Device) -> Array:
        """Return the period of each row, int64 (rows,), on the device.

        Raises
        ------
        InputError
            If a time is null.
        """
        column = block[self.time]
        if not isinstance(column, Numbers) or column.values.dtype.kind not in "iu":
            raise InputError(f"{type(self).__name__}: the time {self.time!r} is not of integers. Convert it.")
        if column.valid is not None and (nulls := int(device.xp.count_nonzero(~column.valid))):
            raise InputError(
                f"{type(self).__name__}: the time {self.time!r} is null in {nulls} of {len(column)} rows, and what is "
                "before them is not known. Leave them out, or give them a time."
            )
        # Of unsigned times beyond the signed ones, the periods are not.
        wide = np.uint64 if column.values.dtype == np.uint64 else np.int64
        periods: Array = (column.values.astype(wide) // self.period).astype(np.int64)
        return periods

    def period_of_row(self, row: Row) -> int:
        """Return the period of one row.

        Raises
        ------
        InputError
            If the time is no integer.
        """
        time = row[self.time]
        try:
            return index(cast("int", time)) // self.period
        except TypeError:
            raise InputError(f"{type(self).__name__}: the time {self.time!r} is {time!r}. Give an integer.") from None

    @abstractmethod
    def counted(self, block: Block, device: Device) -> Array:
        """Return the numbers of the rows that count, float64 (rows,) on the device, NaN of those that do not."""

    @property
    @abstractmethod
    def kept(self) -> tuple[str, ...]:
        """Which numbers of a cell are kept."""

    def gathering(self, grouping: Grouping) -> PastCells:
        """Return no cells."""
        return PastCells(self, grouping)


class PastCount(_Past):
    """The number of rows of the same category in the periods before that of the row.

    A period is ``time // period``. What is learnt are the rows of each category and period; a row's number is of those
    with a category equal to its own and a period before its own, in training as in serving. So no row knows of itself,
    of others in its period, or of later ones; and a row that is later than all of fitting knows all of it.

    Null is a category of its own; an unseen category has 0. A null time is refused.

    Output: ``<column>_past_count``, int64, for each column or combination.
    """

    @property
    def of_numbers(self) -> tuple[str, ...]:
        """No column: rows are counted."""
        return ()

    def columns_of(self, name: str) -> dict[str, pa.DataType]:
        """Return the count."""
        return {f"{name}_past_count": pa.int64()}

    def counted(self, block: Block, device: Device) -> Array:
        """Return 0 of each row: all count."""
        nothing: Array = device.xp.zeros(len(block[self.time]))
        return nothing

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the rows."""
        return (ROWS,)

    def learnt(self, grouping: Grouping, table: pa.Table) -> PastRows:
        """Return the counts of the cells."""
        return PastRows(self, grouping, table)


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

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        """Return the time, and the target to fit."""
        del training
        return (self.time, self.target) if fitting else (self.time,)

    @property
    def of_numbers(self) -> tuple[str, ...]:
        """The target."""
        return (self.target,)

    def columns_of(self, name: str) -> dict[str, pa.DataType]:
        """Return the mean."""
        return {f"{name}_past_mean_{self.target}": pa.float32()}

    def counted(self, block: Block, device: Device) -> Array:
        """Return the targets."""
        return as_floats(block[self.target], device)

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the rows and the sums of targets."""
        return (ROWS, SUMS)

    def learnt(self, grouping: Grouping, table: pa.Table) -> PastMeans:
        """Return the means of the cells."""
        return PastMeans(self, grouping, table)


class PastCells(Gathering):
    """Rows, and sums of a target, by category and period; and by category the rows that do not count."""

    def __init__(self, operator: _Past, grouping: Grouping) -> None:
        self._operator, self._grouping = operator, grouping
        self.groups = Groups(grouping.type)
        self._nulls = np.zeros(1, np.int64)
        nothing = np.empty(0, np.int64)
        self._cells = Cells(nothing, nothing, {ROWS: nothing, SUMS: np.empty(0)})
        self._added: list[Cells] = []

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.groups.nbytes + self._nulls.nbytes + sum(each.nbytes for each in [self._cells, *self._added])

    def add(self, block: Block, device: Device) -> None:
        """Add the rows of a block."""
        here = self.groups.add(self._grouping.categories(block, device), device)
        cells = cells_of(here.codes, len(here.groups), self._operator.periods(block, device), device)
        values, known, xp = self._operator.counted(block, device), cells.of_row, device.xp
        self._nulls = grown(self._nulls, len(self.groups))
        null = xp.isnan(values)
        if bool(null.any()):
            values, known = xp.where(null, 0.0, values), xp.where(null, -1, known)
            missing = count(xp.where(null, here.codes, -1), len(here.groups), device)
            self._nulls[here.groups] += device.to_host(missing)
        rows = device.to_host(count(known, len(cells), device))
        sums = device.to_host(add_up(known, values, len(cells), device))
        some = np.flatnonzero(rows)
        numbers = {ROWS: rows[some], SUMS: sums[some]}
        self._add(Cells(here.groups[cells.codes[some]], cells.periods[some], numbers))

    def merge(self, table: pa.Table) -> None:
        """Add what another table tells."""
        groups = np.append(0, self.groups.number(read_categories(table)))
        cells = _read(table, self._operator.kept)
        numbers = {ROWS: cells.numbers[ROWS], SUMS: cells.numbers.get(SUMS, np.zeros(len(cells)))}
        self._add(Cells(groups[cells.groups], cells.periods, numbers))
        self._nulls = grown(self._nulls, len(self.groups))
        self._nulls[groups] += read_numbers(table, [NULLS])[NULLS]

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
        lists = {PERIODS: self._cells.periods} | {name: self._cells.numbers[name] for name in self._operator.kept}
        of_groups = {name: pa.LargeListArray.from_arrays(offsets, to_arrow(each)) for name, each in lists.items()}
        return table_of(self.groups.values(), {NULLS: self._nulls[: len(self.groups)], **of_groups})


def _read(table: pa.Table, kept: Sequence[str]) -> Cells:
    """Return the cells of a table.

    Raises
    ------
    IntegrityError
        If it has none, or their numbers are not of the same cells.
    """
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


class _LearntPast(LearntByCategory):
    """Cells of categories, by which the ones before a period are found.

    ``_before[name][i]`` is the sum over the cells before *i* of the same category: 0 at its first one.
    """

    def __init__(self, operator: _Past, grouping: Grouping, table: pa.Table) -> None:
        super().__init__(grouping, table)
        self.operator, self._table = operator, table
        self.cells = _read(table, operator.kept)
        self._null_rows = int(read_numbers(table, [NULLS])[NULLS].sum())
        self.periods = np.unique(self.cells.periods)
        # One group more, without cells: that of categories that were not seen.
        self.starts = np.searchsorted(self.cells.groups, np.arange(len(table) + 2))
        self._keys = self.cells.groups * (len(self.periods) + 1) + np.searchsorted(self.periods, self.cells.periods)
        self._up_to = {name: self._added_up(self.cells.numbers[name]) for name in operator.kept}

    def _added_up(self, numbers: npt.NDArray[Any]) -> Floats:
        """Return 0, and the sums of each category up to and with each cell."""
        totals = np.zeros(len(numbers) + 1)
        add_up_runs(numbers.astype(np.float64), self.starts, totals[1:])
        return totals

    def table(self) -> pa.Table:
        """Return the table of cells."""
        return self._table

    def facts(self) -> dict[str, Any]:
        """Return what is small."""
        return super().facts() | {"periods": len(self.periods), "null_rows": self._null_rows}

    def numbers(self, categories: Categories, of_rows: Array | None, applying: Applying) -> list[Array]:
        """Return the number of each row."""
        assert of_rows is not None  # noqa: S101 (the operator's `of_rows`)
        device = applying.device
        groups = self.lookup.groups(categories.dictionary)
        # Code 0 is null's.
        cells = cells_of(categories.codes + 1, len(groups), of_rows, device)
        found = self._before(np.roll(groups, 1)[cells.codes], cells.periods)
        return [spread(found, cells.of_row, device)]

    def _before(self, groups: Integers, periods: Integers) -> npt.NDArray[Any]:
        """Return the number of each pair of a group and a period."""
        ranks = np.searchsorted(self.periods, periods)
        places = np.searchsorted(self._keys, groups * (len(self.periods) + 1) + ranks)
        earlier = places > self.starts[groups]
        return self.number({name: np.where(earlier, each[places], 0.0) for name, each in self._up_to.items()}, ranks)

    @abstractmethod
    def number(self, earlier: Mapping[str, Floats], ranks: Integers) -> npt.NDArray[Any]:
        """Return what comes out of the numbers of earlier cells; ``ranks`` are how many periods are earlier."""

    @abstractmethod
    def number_of_row(self, earlier: Mapping[str, float], rank: int) -> Value:
        """Return `number` of one row."""

    def numbers_of_row(self) -> Callable[[Row], Sequence[Value]]:
        """Return the number of one row."""
        group_of, period_of = self.lookup.group_of_row(), self.operator.period_of_row
        periods = self.periods.tolist()

        def numbers(row: Row) -> list[Value]:
            group, period = group_of(row), period_of(row)
            start, end = self.starts[group], self.starts[group + 1]
            place = bisect_left(self.cells.periods, period, start, end)
            earlier = {name: each[place].item() if place > start else 0.0 for name, each in self._up_to.items()}
            return [self.number_of_row(earlier, bisect_left(periods, period))]

        return numbers


class PastRows(_LearntPast):
    """What a `PastCount` learnt of one column or combination."""

    def number(self, earlier: Mapping[str, Floats], ranks: Integers) -> Integers:
        """Return the rows."""
        return earlier[ROWS].astype(np.int64)

    def number_of_row(self, earlier: Mapping[str, float], rank: int) -> int:
        """Return the rows."""
        return int(earlier[ROWS])


class PastMeans(_LearntPast):
    """What a `PastMean` learnt of one column or combination.

    Raises
    ------
    InputError
        If the target is null in all rows, or infinite in one.
    """

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

    def number(self, earlier: Mapping[str, Floats], ranks: Integers) -> npt.NDArray[np.float32]:
        """Return the smoothed means."""
        smoothing, prior = self.operator.p_smooth, self._means[ranks]
        weight = earlier[ROWS] + smoothing
        means: Floats = np.divide(earlier[SUMS] + smoothing * prior, weight, out=prior.copy(), where=weight > 0)
        return means.astype(np.float32)

    def number_of_row(self, earlier: Mapping[str, float], rank: int) -> float:
        """Return the smoothed mean."""
        smoothing, prior = self.operator.p_smooth, self._means[rank].item()
        weight = earlier[ROWS] + smoothing
        return float(np.float32((earlier[SUMS] + smoothing * prior) / weight if weight > 0 else prior))

"""Operators that learn numbers of categories, such as how many rows each has.

Each part of the data becomes a table of sums by category, which is merged into that of the parts before: learning takes
no more than twice the merged table, which applying needs anyway.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines.device import Device
from whitewater.errors import InputError, IntegrityError, ResourceError
from whitewater.features.categories.groups import (
    Grouping,
    Groups,
    GroupTable,
    categories_of_keys,
    enlarge,
    keys_of,
    name_of,
    read_categories,
    read_numbers,
    table_of,
)
from whitewater.features.categories.hashing import hash_values
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.codes import count_codes, sum_by_code
from whitewater.features.columns.column import Numbers
from whitewater.features.frames import halves, whole
from whitewater.features.operator import Fitted, Operator, Statistic
from whitewater.features.operators.by_column import number_fields
from whitewater.features.schema import Field
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.features.columns.column import Block
    from whitewater.features.frames import Frame
    from whitewater.features.operator import Applying, Fitting, Inputs, Row, RowFunction, Value

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
TABLE = "categories"
TAG = "continuous"
# What is summed: rows whose target, if there is one, is not null; their targets; and rows whose target is null.
ROWS, SUMS, NULLS = "rows", "sums", "null_rows"
DTYPES: dict[str, Any] = {ROWS: np.int64, SUMS: np.float64, NULLS: np.int64}
# Cells for a row, below which they are all numbered, empty ones as well, rather than sorted.
DENSE = 8


class ByCategory(Operator):
    """A number of the category of a row, for each column or combination that it is given."""

    takes_combinations: ClassVar[bool] = True
    output_type: ClassVar[pa.DataType]

    @abstractmethod
    def output_name(self, name: str) -> str:
        """Return the name of the column that is made of a column or combination."""

    @property
    @abstractmethod
    def stored(self) -> Mapping[str, Sequence[str]]:
        """The columns of its table of categories that have `ROWS`, `SUMS` and `NULLS`: one, or one for each slot."""

    @abstractmethod
    def learned(self, grouping: Grouping, table: pa.Table) -> LearnedByCategory:
        """Return what was learned, from the table of all of the data."""

    def sums(self, grouping: Grouping) -> SumsOfRows:
        """Return sums of no rows."""
        return SumsOfRows(self, grouping)

    def slots(self, block: Block, device: Device) -> Array | None:
        """Return what tells sums of a category apart, integers (rows,) on the device: the row's fold, or its period."""
        return None

    def slots_to_apply(self, block: Block, applying: Applying) -> Array | None:
        """Return the slots of rows that features are made of."""
        return self.slots(block, applying.device)

    @property
    def of_numbers(self) -> tuple[str, ...]:
        """The column of the data whose mean is taken, if there is one."""
        return ()

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        number_fields(self, self.of_numbers, fields)
        names = [grouping.name for grouping in self._groupings(inputs, fields)]
        return [Field(self.output_name(name), self.output_type, (TAG,)) for name in names]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[GroupStatistic]:
        others = self.dependencies(fitting=True, training=False)
        return [
            GroupStatistic(grouping.name, tuple(dict.fromkeys((*grouping.columns, *others))), grouping, self)
            for grouping in self._groupings(inputs, fields)
        ]

    def _groupings(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Grouping]:
        return [Grouping.bound(each, fields, operator=type(self).__name__) for each in inputs]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> LearnedByCategory:
        grouping = Grouping.restore(facts)
        if grouping.of not in inputs or TABLE not in tables:
            raise IntegrityError(f"{type(self).__name__}: there is no table of {grouping.name}. Fit again.")
        return self.learned(grouping, tables[TABLE])

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        slots, made = self.slots_to_apply(block, applying), {}
        for name in map(name_of, inputs):
            learned = cast("LearnedByCategory", fitted[name])
            groups = learned.lookup.groups_of(block, applying)
            made[self.output_name(name)] = Numbers(learned.numbers(groups, slots, applying))
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        functions = [
            (self.output_name(name), cast("LearnedByCategory", fitted[name]).number_of_row())
            for name in map(name_of, inputs)
        ]
        return lambda row: {name: function(row) for name, function in functions}


class Sums(ABC):
    """Sums by category, which grow with blocks, or with the sums of other parts of the data.

    ``totals`` are arrays (groups, slots), by name, with room for more groups.
    """

    def __init__(self, type_: pa.DataType, totals: dict[str, npt.NDArray[Any]]) -> None:
        self.groups, self.totals = Groups(type_), totals

    @abstractmethod
    def add(self, block: Block) -> None:
        """Add the rows of a block."""

    @abstractmethod
    def add_cells(self, cells: pa.Table, exponents: Sequence[int]) -> None:
        """Add the sums by key of `CategoryStatistic.cells`."""

    @abstractmethod
    def table(self) -> Any:
        """Return the sums of each category."""

    def merge(self, other: Any) -> Integers:
        """Add sums of the same class; return the groups that they are in."""
        groups = np.append(0, self.groups.number(other.groups.values()))
        self.grow()
        for name, total in self.totals.items():
            total[groups] += other.totals[name][: len(groups)]
        return groups

    def grow(self) -> None:
        """Make room for all groups."""
        self.totals = {name: enlarge(each, len(self.groups)) for name, each in self.totals.items()}

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return self.groups.nbytes + sum(each.nbytes for each in self.totals.values())


class SumsOfRows(Sums):
    """What a `ByCategory` sums up for a grouping."""

    def __init__(self, operator: ByCategory, grouping: Grouping) -> None:
        self._operator, self._grouping = operator, grouping
        stored = operator.stored.items()
        super().__init__(grouping.type, {name: np.zeros((1, len(each)), DTYPES[name]) for name, each in stored})

    def add(self, block: Block) -> None:
        here = self.groups.add(self._grouping.categories(block))
        of_row, codes, slots = cells_of(here.codes, len(here.groups), self._operator.slots(block, Device()), Device())
        numbers = {}
        for target in self._operator.of_numbers:
            values = as_floats(block[target])
            null = np.isnan(values)
            if bool(null.any()):
                numbers[NULLS] = count_codes(np.where(null, of_row, -1), len(codes))
                values, of_row = np.where(null, 0.0, values), np.where(null, -1, of_row)
            numbers[SUMS] = sum_by_code(of_row, values, len(codes))
        numbers[ROWS] = count_codes(of_row, len(codes))
        self.add_sums(here.groups[codes], slots, numbers)

    def add_cells(self, cells: pa.Table, exponents: Sequence[int]) -> None:
        here = self.groups.add(categories_of_keys(cells, len(self._grouping.columns)))
        slots = to_numpy(cells["key_slot"]) if "key_slot" in cells.column_names else np.zeros(len(cells), np.int64)
        numbers = {name: to_numpy(cells[name]) for name in (ROWS, NULLS)}
        for exponent in exponents:
            numbers[SUMS] = whole(to_numpy(cells["first"]), to_numpy(cells["second"]), exponent)
        self.add_sums(here.groups[here.codes], slots, numbers)

    def add_sums(self, groups: Integers, slots: Integers, numbers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add numbers of groups and slots, each pair once."""
        self.grow()
        for name in self.totals.keys() & numbers.keys():
            width = self.totals[name].shape[1]
            np.add.at(self.totals[name].reshape(-1), groups * width + slots % width, numbers[name])

    def table(self) -> pa.Table:
        """Return the sums, with a column for each slot."""
        columns = {
            column: np.ascontiguousarray(self.totals[name][: len(self.groups), slot])
            for name, stored in self._operator.stored.items()
            for slot, column in enumerate(stored)
        }
        return table_of(self.groups.values(), columns)


def cells_of(codes: Array, size: int, slots: Array | None, device: Device) -> tuple[Array, Integers, Integers]:
    """Return the cell of each row, int32 (rows,) on the device, and codes and slots of the cells, on the host.

    A cell is a pair of a code, int32 (rows,) below ``size``, and a slot, an integer (rows,), or 0 where there are none.
    Some cells may have no row.
    """
    xp = device.xp
    if slots is None or not len(codes):
        return codes, np.arange(size), np.zeros(size, np.int64)
    first, last = int(slots.min()), int(slots.max())
    width = last - first + 1
    if size * width <= DENSE * len(codes):
        cells = np.arange(size * width)
        of_row = codes * np.int64(width) + (slots - first)
        return of_row.astype(np.int32), cells // width, first + cells % width
    distinct, rank = xp.unique(slots, return_inverse=True)
    keys, of_row = xp.unique(codes * np.int64(len(distinct)) + rank, return_inverse=True)
    found = device.to_host(keys)
    return of_row.astype(np.int32), found // len(distinct), device.to_host(distinct)[found % len(distinct)]


class CategoryStatistic(Statistic):
    """What is learned of categories, from their sums in the parts of the data.

    The engine ``dask`` sums integers by keys, `cells`: no order or partition of the rows changes them.
    """

    @abstractmethod
    def sums(self) -> Any:
        """Return `Sums` of no rows."""

    @abstractmethod
    def learned(self, table: Any) -> Fitted:
        """Return what was learned, from the table of the sums of all of the data."""

    @abstractmethod
    def refuse(self, sums: Sums, fitting: Fitting) -> None:
        """Raise ResourceError if sums that outgrew ``fitting.memory`` have no room."""

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Any:
        sums = self.sums()
        for block in blocks:
            sums.add(block)
        return sums

    def combine(self, parts: Iterable[Any], fitting: Fitting) -> Fitted:
        sums: Any = None
        for part in parts:
            if sums is None:
                sums = part
            else:
                sums.merge(part)
            if sums.nbytes > fitting.memory:
                self.refuse(sums, fitting)
        table = sums.table()
        del sums, part  # as large again as what is made of the table
        return self.learned(table)

    @abstractmethod
    def cells(self, block: Block, device: Device) -> Frame:
        """Return keys of rows, columns named ``key_...``, and what of them is summed: integers."""

    def learn(self, cells: pa.Table) -> Fitted:
        """Return what was learned, from the sums of all rows by their keys, in any order."""
        sums = self.sums()
        sums.add_cells(cells, self.exponents)
        return self.learned(sums.table())

    @property
    def exponents(self) -> tuple[int, ...]:
        """Of the numbers that are summed, the power of 2 by which each is multiplied to be summed as `halves`."""
        return ()


@dataclass(frozen=True)
class GroupStatistic(CategoryStatistic):
    """What an operator learns of the categories of a grouping, from its columns and others."""

    grouping: Grouping
    operator: ByCategory
    exponents: tuple[int, ...] = ()

    def sums(self) -> SumsOfRows:
        return self.operator.sums(self.grouping)

    def learned(self, table: pa.Table) -> Fitted:
        return self.operator.learned(self.grouping, _in_order(table))

    def cells(self, block: Block, device: Device) -> Frame:
        keys, slots, xp = keys_of(block, self.grouping.columns, device), self.operator.slots(block, device), device.xp
        columns: dict[str, Any] = {} if slots is None else {"key_slot": slots}
        columns |= {ROWS: 1, NULLS: 0}
        for target, exponent in zip(self.operator.of_numbers, self.exponents, strict=True):
            values = as_floats(block[target], xp)
            null = xp.isnan(values)
            columns |= {ROWS: (~null).astype(xp.int64), NULLS: null.astype(xp.int64)}
            columns["first"], columns["second"] = halves(values, exponent, device)
        return keys.assign(**columns)

    def refuse(self, sums: Sums, fitting: Fitting) -> None:
        raise ResourceError(
            f"{self.name}: the table of its categories takes {sums.nbytes / 1e6:,.1f} MB for "
            f"{len(sums.groups):,} and more categories, but {fitting.memory / 1e6:,.1f} MB are there for it, in "
            "fitting as in applying. Give it more memory (recsys.fit.memory_share, or fewer "
            "threads), fewer folds or statistics, or the buckets of a HashBucket instead of the categories."
        )


class LearnedByCategory(Fitted):
    """What was learned of one column or combination.

    ``totals`` are sums by name, (groups + 1, slots): the last group is that of categories that were not seen.
    """

    def __init__(self, operator: Any, grouping: Grouping, table: pa.Table) -> None:
        self.operator, self._table = operator, table
        self.lookup = GroupTable(grouping, read_categories(table))
        stored = {name: read_numbers(table, columns).values() for name, columns in operator.stored.items()}
        self.totals: dict[str, npt.NDArray[Any]] = {
            name: np.column_stack([np.append(each.astype(DTYPES[name]), 0) for each in columns])
            for name, columns in stored.items()
        }

    def facts(self) -> dict[str, Any]:
        return self.lookup.grouping.facts() | {"categories": len(self.lookup)}

    def tables(self) -> dict[str, pa.Table]:
        return {TABLE: self._table}

    @abstractmethod
    def numbers(self, groups: Array, slots: Array | None, applying: Applying) -> Array:
        """Return the numbers of rows, (rows,) on the device, whose groups and slots, (rows,), are given."""

    @abstractmethod
    def number_of_row(self) -> Callable[[Row], Value]:
        """Return the function that gives the number of one row in serving."""


def refuse_target(operator: str, target: str, rows: Integers, sums: Floats) -> None:
    """Raise InputError if the target is null in all rows, or infinite in one."""
    if not rows.any():
        raise InputError(f"{operator}: the target {target!r} is null in all rows of fitting. Give another.")
    if not np.isfinite(sums).all():
        raise InputError(f"{operator}: the target {target!r} has infinite values. Clip it, or give another.")


def smoothed_means(rows: npt.NDArray[Any], sums: Floats, prior: Any, smoothing: float) -> npt.NDArray[np.float32]:
    """Return ``(sums + smoothing * prior) / (rows + smoothing)``, or the prior where no row counts."""
    weight, prior = rows + smoothing, np.broadcast_to(prior, rows.shape)
    means: Floats = np.divide(sums + smoothing * prior, weight, out=prior.copy(), where=weight > 0)
    return means.astype(np.float32)


def _in_order(table: pa.Table) -> pa.Table:
    """Return a table of groups, null first, in an order that depends on its categories only: that of their hashes."""
    values = read_categories(table)
    return table.take(to_arrow(np.append(0, 1 + np.argsort(hash_values(values, 0)))))


def spread(numbers: Any, codes: Array, device: Device) -> Array:
    """Return the numbers, an array on the host, of the rows with these codes."""
    rows: Array = device.xp.take(device.to_device(numbers), codes)
    return rows

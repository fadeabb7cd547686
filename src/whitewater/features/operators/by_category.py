"""What is learned of categories, as tables, and the operators that learn numbers of them.

Each part of the data is gathered as a table of its categories, which is merged into that of the parts before: learning
takes no more than twice the merged table, which applying needs anyway.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import IntegrityError, ResourceError
from whitewater.features.categories.groups import (
    Grouped,
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
from whitewater.features.columns.column import Numbers
from whitewater.features.operator import Fitted, FromCells, Operator, Statistic
from whitewater.features.operators.by_column import number_fields
from whitewater.features.schema import Field
from whitewater.tables.arrow_arrays import to_arrow

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block
    from whitewater.features.frames import Frame
    from whitewater.features.operator import Applying, Fitting, Inputs, Row, RowFunction, Value

Integers = npt.NDArray[np.int64]
TABLE = "categories"
TAG = "continuous"


class ByCategory(Operator):
    """Numbers of the category of a row, of each column or combination that it is given."""

    takes_combinations: ClassVar[bool] = True

    @abstractmethod
    def columns_of(self, name: str) -> Mapping[str, pa.DataType]:
        """Return the columns that come out for the column or combination of that name, and their types."""

    @abstractmethod
    def gathering(self, grouping: Grouping) -> GatheringOfRows:
        """Return an empty table of what is learned."""

    @abstractmethod
    def learned(self, grouping: Grouping, table: pa.Table) -> LearnedByCategory:
        """Return what was learned, from the table of all of the data."""

    @abstractmethod
    def cells(self, block: Block, exponents: Sequence[int], device: Device) -> dict[str, Any]:
        """Return what besides its category is a key of each row, and what is summed: `FromCells.cells`.

        ``block`` has the dependencies; numbers are summed as `whitewater.features.frames.halves`, times 2 to the power
        of their exponents.
        """

    def of_rows(self, block: Block, applying: Applying) -> Array | None:
        """Return what besides its categories must be known of each row, integers (rows,) on the device."""
        return None

    @property
    def of_numbers(self) -> tuple[str, ...]:
        """The columns of the data that numbers are learned of."""
        return ()

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        number_fields(self, self.of_numbers, fields)
        names = [grouping.name for grouping in self._groupings(inputs, fields)]
        return [Field(column, type_, (TAG,)) for name in names for column, type_ in self.columns_of(name).items()]

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
        made: dict[str, Numbers] = {}
        of_rows = self.of_rows(block, applying)
        for name in map(name_of, inputs):
            learned = cast("LearnedByCategory", fitted[name])
            numbers = learned.numbers(learned.lookup.groups_of(block, applying), of_rows, applying)
            made |= zip(self.columns_of(name), map(Numbers, numbers), strict=True)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        names = [name_of(each) for each in inputs]
        functions = [
            (tuple(self.columns_of(name)), cast("LearnedByCategory", fitted[name]).numbers_of_row()) for name in names
        ]

        def numbers(row: Row) -> dict[str, Value]:
            made: dict[str, Value] = {}
            for columns, function in functions:
                made.update(zip(columns, function(row), strict=True))
            return made

        return numbers


class Gathering(ABC):
    """A table of groups that grows with blocks, or with tables of other parts; its categories are of a type.

    ``totals`` are arrays (groups,), by name, with room for more groups; those of other parts are added to them.
    """

    def __init__(self, type_: pa.DataType, totals: dict[str, npt.NDArray[Any]]) -> None:
        self.groups, self.totals = Groups(type_), totals

    @abstractmethod
    def add(self, block: Block) -> None:
        """Add the rows of a block."""

    def merge(self, table: pa.Table) -> None:
        """Add what another table tells."""
        groups = np.append(0, self.groups.number(read_categories(table)))
        self.grow()
        self.add_table(groups, table)

    def grow(self) -> None:
        """Make room for all groups."""
        self.totals = {name: enlarge(each, len(self.groups)) for name, each in self.totals.items()}

    def add_table(self, groups: npt.NDArray[np.int64], table: pa.Table) -> None:
        """Add what another table tells of its categories, which are these groups."""
        for name, numbers in read_numbers(table, list(self.totals)).items():
            self.totals[name][groups] += numbers

    def table(self) -> pa.Table:
        """Return what was gathered."""
        return table_of(self.groups.values(), {name: each[: len(self.groups)] for name, each in self.totals.items()})

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.groups.nbytes + sum(each.nbytes for each in self.totals.values())


class GatheringOfRows(Gathering):
    """A table of the categories of a grouping, each row being in one of them."""

    def __init__(self, grouping: Grouping, totals: dict[str, npt.NDArray[Any]]) -> None:
        super().__init__(grouping.type, totals)
        self._grouping = grouping

    def add(self, block: Block) -> None:
        here = self.groups.add(self._grouping.categories(block))
        self.grow()
        self.add_rows(here, block)

    def add_cells(self, cells: pa.Table, exponents: Sequence[int]) -> None:
        """Add the sums by key of what `GroupStatistic.cells` gave."""
        here = self.groups.add(categories_of_keys(cells, len(self._grouping.columns)))
        self.grow()
        self.add_sums(here.groups[here.codes], cells, exponents)

    @abstractmethod
    def add_sums(self, groups: Integers, cells: pa.Table, exponents: Sequence[int]) -> None:
        """Add the sums of `ByCategory.cells`, each of a group."""

    @abstractmethod
    def add_rows(self, here: Grouped, block: Block) -> None:
        """Add the rows of a block, which are in these groups."""


class CategoryStatistic(Statistic, FromCells):
    """What is learned of categories, from the tables of the parts of the data."""

    @abstractmethod
    def gathering(self) -> Gathering:
        """Return an empty table."""

    @abstractmethod
    def learned(self, table: pa.Table) -> Fitted:
        """Return what was learned, from the table of all of the data."""

    @abstractmethod
    def refuse(self, gathering: Gathering, fitting: Fitting) -> None:
        """Raise ResourceError if a table that outgrew ``fitting.memory`` has no room."""

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Gathering:
        gathering = self.gathering()
        for block in blocks:
            gathering.add(block)
        return gathering

    def combine(self, parts: Iterable[Gathering], fitting: Fitting) -> Fitted:
        gathering = None
        for part in parts:
            if gathering is None:
                gathering = part
            else:
                gathering.merge(part.table())
            if gathering.nbytes > fitting.memory:
                self.refuse(gathering, fitting)
        table = cast("Gathering", gathering).table()
        del gathering  # which is as large again as what is made of it
        return self.learned(table)


@dataclass(frozen=True)
class GroupStatistic(CategoryStatistic):
    """What an operator learns of the categories of a grouping, from its columns and others."""

    grouping: Grouping
    operator: ByCategory
    # Of each of the operator's numbers, the power of 2 by which it is multiplied to be summed as `halves`.
    exponents: tuple[int, ...] = ()

    def gathering(self) -> GatheringOfRows:
        return self.operator.gathering(self.grouping)

    def learned(self, table: pa.Table) -> Fitted:
        return self.operator.learned(self.grouping, _in_order(table))

    def cells(self, block: Block, device: Device) -> Frame:
        sums = self.operator.cells(block, self.exponents, device)
        return keys_of(block, self.grouping.columns, device).assign(**sums)

    def learn(self, cells: pa.Table) -> Fitted:
        gathering = self.gathering()
        gathering.add_cells(cells, self.exponents)
        return self.learned(gathering.table())

    def refuse(self, gathering: Gathering, fitting: Fitting) -> None:
        raise ResourceError(
            f"{self.name}: the table of its categories takes {gathering.nbytes / 1e6:,.1f} MB for "
            f"{len(gathering.groups):,} and more categories, but {fitting.memory / 1e6:,.1f} MB are there for it, in "
            "fitting as in applying. Give it more memory (recsys.fit.memory_share, or fewer "
            "threads), fewer folds or statistics, or the buckets of a HashBucket instead of the categories."
        )


class LearnedByCategory(Fitted):
    """What was learned of one column or combination."""

    def __init__(self, grouping: Grouping, table: pa.Table) -> None:
        self.lookup, self._table = GroupTable(grouping, read_categories(table)), table

    def facts(self) -> dict[str, Any]:
        return self.lookup.grouping.facts() | {"categories": len(self.lookup)}

    def tables(self) -> dict[str, pa.Table]:
        return {TABLE: self._table}

    @abstractmethod
    def numbers(self, groups: Array, of_rows: Array | None, applying: Applying) -> Sequence[Array]:
        """Return the numbers of rows, arrays (rows,) on the device, whose groups, int64 (rows,), are given."""

    @abstractmethod
    def numbers_of_row(self) -> Callable[[Row], Sequence[Value]]:
        """Return `numbers` of one row, in serving; null is None."""


def _in_order(table: pa.Table) -> pa.Table:
    """Return a table of groups, null first, in an order that depends on its categories only: that of their hashes."""
    values = read_categories(table)
    return table.take(to_arrow(np.append(0, 1 + np.argsort(hash_values(values, 0)))))


def spread(numbers: Any, codes: Array, device: Device) -> Array:
    """Return the numbers, an array on the host, of the rows with these codes."""
    rows: Array = device.xp.take(device.to_device(numbers), codes)
    return rows

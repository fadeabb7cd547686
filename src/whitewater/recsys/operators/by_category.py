"""What the operators that learn numbers of categories have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from whitewater.devices.columns import Numbers
from whitewater.errors import IntegrityError
from whitewater.recsys.category_groups import Grouping, GroupTable, name_of, read_categories
from whitewater.recsys.group_statistic import Gathering, GroupStatistic
from whitewater.recsys.operators.numeric import number_fields
from whitewater.recsys.operators.operator import Fitted, Operator
from whitewater.recsys.schema import Field

if TYPE_CHECKING:
    from whitewater.devices.columns import Block, Categories
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.operators.operator import Applying, Inputs, Row, RowFunction, Value

TABLE = "categories"
TAG = "continuous"


class ByCategory(Operator):
    """Numbers of the category of a row, of each column or combination that it is given."""

    @property
    def takes_combinations(self) -> bool:
        """Whether it takes them: it does."""
        return True

    @abstractmethod
    def columns_of(self, name: str) -> Mapping[str, pa.DataType]:
        """Return the columns that come out for the column or combination of that name, and their types."""

    @abstractmethod
    def gathering(self, grouping: Grouping) -> Gathering:
        """Return an empty table of what is learnt."""

    @abstractmethod
    def learnt(self, grouping: Grouping, table: pa.Table) -> LearntByCategory:
        """Return what was learnt, from the table of all of the data."""

    def of_rows(self, block: Block, applying: Applying) -> Array | None:
        """Return what besides its categories must be known of each row, integers (rows,) on the device."""
        del block, applying
        return None

    @property
    @abstractmethod
    def of_numbers(self) -> tuple[str, ...]:
        """The columns of the data that numbers are learnt of."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return the columns of each input.

        Raises
        ------
        ConfigError
            If an input has no categories, or a column that numbers are learnt of has none.
        """
        number_fields(self, self.of_numbers, fields)
        names = [grouping.name for grouping in self._groupings(inputs, fields)]
        return [Field(column, type_, (TAG,)) for name in names for column, type_ in self.columns_of(name).items()]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[GroupStatistic]:
        """Return one for each input."""
        others = self.dependencies(fitting=True, training=False)
        return [
            GroupStatistic(grouping.name, tuple(dict.fromkeys((*grouping.columns, *others))), grouping, self)
            for grouping in self._groupings(inputs, fields)
        ]

    def _groupings(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Grouping]:
        return [Grouping.bound(each, fields, operator=type(self).__name__) for each in inputs]

    def restored(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> LearntByCategory:
        """Return what was learnt of one input."""
        grouping = Grouping.restored(facts)
        if grouping.of not in inputs or TABLE not in tables:
            raise IntegrityError(f"{type(self).__name__}: there is no table of {grouping.name}. Fit again.")
        return self.learnt(grouping, tables[TABLE])

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return the numbers of the rows' categories."""
        of_rows = self.of_rows(block, applying)
        made: dict[str, Numbers] = {}
        for name in map(name_of, inputs):
            learnt = cast("LearntByCategory", fitted[name])
            categories = learnt.lookup.grouping.categories(block, applying.device)
            numbers = learnt.numbers(categories, of_rows, applying)
            made |= zip(self.columns_of(name), map(Numbers, numbers), strict=True)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return `transform` for one row."""
        names = [name_of(each) for each in inputs]
        functions = [
            (tuple(self.columns_of(name)), cast("LearntByCategory", fitted[name]).numbers_of_row()) for name in names
        ]

        def numbers(row: Row) -> dict[str, Value]:
            made: dict[str, Value] = {}
            for columns, function in functions:
                made.update(zip(columns, function(row), strict=True))
            return made

        return numbers


class LearntByCategory(Fitted):
    """What was learnt of one column or combination."""

    def __init__(self, grouping: Grouping, table: pa.Table) -> None:
        self.lookup = GroupTable(grouping, read_categories(table))

    def facts(self) -> dict[str, Any]:
        """Return what is small."""
        return self.lookup.grouping.facts() | {"categories": len(self.lookup)}

    def tables(self) -> dict[str, pa.Table]:
        """Return the table of categories."""
        return {TABLE: self.table()}

    @abstractmethod
    def table(self) -> pa.Table:
        """Return the table that it was made of."""

    @abstractmethod
    def numbers(self, categories: Categories, of_rows: Array | None, applying: Applying) -> Sequence[Array]:
        """Return the numbers of rows, arrays (rows,) on the device."""

    @abstractmethod
    def numbers_of_row(self) -> Callable[[Row], Sequence[Value]]:
        """Return `numbers` of one row, in serving; null is None."""


def spread(numbers: Any, codes: Array, device: Device) -> Array:
    """Return the numbers, an array on the host, of the rows with these codes."""
    rows: Array = device.xp.take(device.from_host(numbers), codes)
    return rows

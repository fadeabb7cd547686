"""Statistics of numbers by category, joined to the rows of the category."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field as Setting
from pydantic import model_validator

from whitewater.errors import InputError
from whitewater.features.categories.groups import Grouped, Grouping, read_numbers
from whitewater.features.categories.values import as_floats
from whitewater.features.operators.by_category import ByCategory, GatheringOfRows, LearntByCategory, spread
from whitewater.features.operators.moments import Moments, grouped_moments
from whitewater.tables.categories import count_codes

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.operator import Applying, Row, Value
    from whitewater.tables.columns import Block, Categories

Stat = Literal["count", "sum", "mean", "std", "var", "min", "max"]
ROWS = "rows"
MOMENTS = tuple(each.name for each in fields(Moments))


class JoinGroupby(ByCategory):
    """Statistics of numbers over all rows of fitting that are of the same category.

    ``count`` is of rows. The others are of the numbers that are not null: ``sum``, ``mean``, ``min``, ``max``, and the
    sample variance ``var``, the sum of squared deviations from the mean by the number of values less 1, with its root
    ``std``. No digits are lost where numbers are large and close to each other.

    A row's own number is among them, and so are those of later rows. Of what is to be predicted, or is known afterwards
    only, take `TargetEncoding` or `PastMean`.

    Null is a category of its own. An unseen category has count 0, sum 0, and null for the others; so has a category
    whose numbers are all null. ``var`` and ``std`` of one value are null.

    Output: ``<column>_count``, int64, and ``<column>_<number>_<stat>``, float32, for each column or combination.
    """

    cont_cols: tuple[str, ...] = Setting((), description="Columns of numbers.")
    stats: tuple[Stat, ...] = Setting(("count",), min_length=1, description="Statistics of each category.")

    @model_validator(mode="after")
    def _numbers_and_statistics_of_them(self) -> Self:
        if bool(self.cont_cols) != bool(set(self.stats) - {"count"}):
            raise ValueError(
                f"cont_cols are {list(self.cont_cols)} and stats {list(self.stats)}: count is of rows, the others are "
                f"of numbers. Name columns of numbers and any of {', '.join(get_args(Stat)[1:])}, or neither"
            )
        return self

    @property
    def of_numbers(self) -> tuple[str, ...]:
        return self.cont_cols

    def dependencies(self, *, fitting: bool, training: bool) -> tuple[str, ...]:
        return self.cont_cols if fitting else ()

    def columns_of(self, name: str) -> dict[str, pa.DataType]:
        of_numbers = {f"{name}_{number}_{stat}": pa.float32() for number, stat in self.statistics_of_numbers()}
        return ({f"{name}_count": pa.int64()} if "count" in self.stats else {}) | of_numbers

    def statistics_of_numbers(self) -> list[tuple[str, Stat]]:
        """Return numbers and the statistics of them, in the order of the columns."""
        return [(number, stat) for number in self.cont_cols for stat in self.stats if stat != "count"]

    def gathering(self, grouping: Grouping) -> NumbersByCategory:
        return NumbersByCategory(self.cont_cols, grouping)

    def learnt(self, grouping: Grouping, table: pa.Table) -> CategoryStatistics:
        return CategoryStatistics(self, grouping, table)


class NumbersByCategory(GatheringOfRows):
    """Rows, and the moments of each number."""

    def __init__(self, numbers: Sequence[str], grouping: Grouping) -> None:
        none = Moments.none()
        moments = {f"{number}_{name}": getattr(none, name) for number in numbers for name in MOMENTS}
        super().__init__(grouping, {ROWS: np.zeros(1, np.int64), **moments})
        self._numbers = numbers

    def grow(self) -> None:
        known = len(self.totals[ROWS])
        super().grow()
        for number in self._numbers:
            self.totals[f"{number}_minimum"][known:] = np.inf
            self.totals[f"{number}_maximum"][known:] = -np.inf

    def add_rows(self, here: Grouped, block: Block, device: Device) -> None:
        self.totals[ROWS][here.groups] += device.to_host(count_codes(here.codes, len(here.groups), device))
        for number in self._numbers:
            found = grouped_moments(here.codes, as_floats(block[number], device), len(here.groups), device)
            self._merge(here.groups, number, found)

    def add_table(self, groups: npt.NDArray[np.int64], table: pa.Table) -> None:
        self.totals[ROWS][groups] += read_numbers(table, [ROWS])[ROWS]
        for number in self._numbers:
            self._merge(groups, number, _moments(table, number))

    def _merge(self, groups: npt.NDArray[np.int64], number: str, found: Moments) -> None:
        names = {name: f"{number}_{name}" for name in MOMENTS}
        known = Moments(**{name: self.totals[of_number][groups] for name, of_number in names.items()})
        merged = known.merged(found)
        for name, of_number in names.items():
            self.totals[of_number][groups] = getattr(merged, name)


def _moments(table: pa.Table, number: str) -> Moments:
    columns = read_numbers(table, [f"{number}_{name}" for name in MOMENTS])
    return Moments(**{name: columns[f"{number}_{name}"] for name in MOMENTS})


class CategoryStatistics(LearntByCategory):
    """What a `JoinGroupby` learnt of one column or combination; raises InputError if a number is infinite."""

    def __init__(self, operator: JoinGroupby, grouping: Grouping, table: pa.Table) -> None:
        super().__init__(grouping, table)
        rows = read_numbers(table, [ROWS])[ROWS].astype(np.int64)
        # The last entry is of categories that were not seen.
        self._columns: list[npt.NDArray[Any]] = [np.append(rows, 0)] if "count" in operator.stats else []
        moments = {number: _moments(table, number) for number in operator.cont_cols}
        for number, each in moments.items():
            if np.any((each.maximum == np.inf) | (each.minimum == -np.inf)):
                raise InputError(
                    f"JoinGroupby: the column {number!r} has infinite values. Clip it before, or leave it out."
                )
        found = {number: _statistics(each.appended(Moments.none())) for number, each in moments.items()}
        self._columns += [found[number][stat].astype(np.float32) for number, stat in operator.statistics_of_numbers()]

    def numbers(self, categories: Categories, of_rows: Array | None, applying: Applying) -> list[Array]:
        groups = self.lookup.groups(categories.dictionary)
        return [spread(column[groups], categories.codes, applying.device) for column in self._columns]

    def numbers_of_row(self) -> Callable[[Row], Sequence[Value]]:
        group_of = self.lookup.group_of_row()
        columns = self._columns

        def numbers(row: Row) -> list[Value]:
            group = group_of(row)
            found = [column[group].item() for column in columns]
            # NaN alone is not equal to itself.
            return [each if each == each else None for each in found]  # noqa: PLR0124

        return numbers


def _statistics(moments: Moments) -> dict[Stat, npt.NDArray[np.float64]]:
    some = moments.count > 0
    return {
        "sum": moments.count * moments.mean + moments.count * moments.rest,
        "mean": np.where(some, moments.mean, np.nan),
        "std": moments.standard_deviation(ddof=1),
        "var": moments.variance(ddof=1),
        "min": np.where(some, moments.minimum, np.nan),
        "max": np.where(some, moments.maximum, np.nan),
    }

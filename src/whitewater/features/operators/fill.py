"""Values for nulls: a constant, or the median of what is known."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from pydantic import Field as Parameter
from pydantic import FiniteFloat

from whitewater.errors import InputError, IntegrityError
from whitewater.features.categories.values import as_floats
from whitewater.features.operator import Applying, Fitted, Fitting, Operator, Row, RowFunction, Statistic
from whitewater.features.operators.by_column import (
    column_names,
    finite,
    holding,
    number_fields,
    numbers_of,
    plain_number,
)
from whitewater.features.operators.medians import Runs, merged, runs_of, runs_of_integers, sorted_runs_of
from whitewater.features.schema import Field
from whitewater.tables.columns import Numbers

if TYPE_CHECKING:
    from whitewater.engines.device import Device
    from whitewater.features.graph import Inputs
    from whitewater.tables.columns import Block


class _Fill(Operator):
    """Puts a value in the place of nulls, and says where, if asked."""

    add_binary_cols: bool = Parameter(
        False, description="Add a column of booleans, <name>_filled: true where the value was null."
    )

    @abstractmethod
    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        """Return the type that a column gets."""

    @abstractmethod
    def filling(self, fitted: Fitted | None) -> float:
        """Return what nulls become."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        made = []
        for field in number_fields(self, inputs, fields):
            made.append(replace(field, type=self.filled_type(field.type)))
            if self.add_binary_cols:
                made.append(Field(_marker(field.name), pa.bool_(), field.tags))
        return made

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        xp = applying.device.xp
        made = {}
        for name in column_names(inputs):
            column = numbers_of(self, name, block[name])
            values = column.values
            dtype = np.dtype(self.filled_type(pa.from_numpy_dtype(values.dtype)).to_pandas_dtype())
            missing = xp.zeros(len(column), bool) if column.valid is None else ~column.valid
            missing = missing | xp.isnan(values) if values.dtype.kind == "f" else missing
            value = dtype.type(self.filling(fitted.get(name)))
            made[name] = Numbers(xp.where(missing, value, values.astype(dtype, copy=False)))
            if self.add_binary_cols:
                made[_marker(name)] = Numbers(missing)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        values = [(name, plain_number(self.filling(fitted.get(name)))) for name in column_names(inputs)]
        # A column of floats does not hold each integer of 64 bits.
        makes_floats = pa.types.is_floating(self.filled_type(pa.int64()))

        def compute(row: Row) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, instead in values:
                value: Any = row[name]
                # NaN alone is not equal to itself.
                missing = value is None or value != value  # noqa: PLR0124
                made[name] = instead if missing else float(value) if makes_floats else value
                if self.add_binary_cols:
                    made[_marker(name)] = missing
            return made

        return compute


class FillMissing(_Fill):
    """Null becomes ``fill_val``.

    The type stays that of the column if it holds that value, and is float64 otherwise; booleans become int8.
    """

    fill_val: FiniteFloat = Parameter(0.0, description="What nulls become.")

    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        return holding(type_, self.fill_val)

    def filling(self, fitted: Fitted | None) -> float:
        return self.fill_val


class FillMedian(_Fill):
    """Null becomes the median of the column in the data that the workflow was fitted on.

    It is exact: the value in the middle, or the mean of the two there, as numpy.median computes it. A column without
    values has none and is refused. Type: float32 stays, with the median rounded to it; else float64, which holds both.
    """

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[MedianOf]:
        return [MedianOf(name, (name,)) for name in column_names(inputs)]

    def restored(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Median:
        return Median(finite(facts, "median"), int(finite(facts, "count")))

    def filled_type(self, type_: pa.DataType) -> pa.DataType:
        return type_ if pa.types.is_float32(type_) else pa.float64()

    def filling(self, fitted: Fitted | None) -> float:
        return cast("Median", fitted).median


@dataclass(frozen=True)
class Median(Fitted):
    """The median of ``count`` values."""

    median: float
    count: int


@dataclass(frozen=True)
class Window:
    """Values between bounds, both included: those of the ranks ``below`` to before ``below + count`` of ``total``."""

    low: float
    high: float
    below: int
    count: int
    total: int


@dataclass(frozen=True)
class MedianOf(Statistic):
    """Learns the median of the column ``name``; in a later pass among the values of a window."""

    window: Window | None = None

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Runs:
        found = Runs.none()
        for block in blocks:
            found = merged([found, self._runs(block, fitting.device)]).few()
        return found

    def _runs(self, block: Block, device: Device) -> Runs:
        column = block[self.name]
        if self.window is None and isinstance(column, Numbers) and column.values.dtype.kind in "iub":
            return runs_of_integers(column.values if column.valid is None else column.values[column.valid], device)
        values = as_floats(column, device)
        if self.window is None:
            return runs_of(values[~device.xp.isnan(values)], device)
        return sorted_runs_of(values[(values >= self.window.low) & (values <= self.window.high)], device)

    def combine(self, parts: Sequence[Runs], fitting: Fitting) -> Median | MedianOf:
        """Return the median, or what looks closer; raises InputError if there is no value, or it is infinite."""
        runs = merged(list(parts))
        window = self._looked_at(int(runs.count.sum()))
        ends = window.below + np.cumsum(runs.count)
        middle = (window.total - 1) // 2, window.total // 2
        first, second = (int(np.searchsorted(ends, rank, "right")) for rank in middle)
        low, high = runs.bounds(first)[0], runs.bounds(second)[1]
        if not runs.shift:
            return self._median(low, high, window.total)
        count = int(runs.count[first : second + 1].sum())
        return replace(self, window=Window(low, high, int(ends[second]) - count, count, window.total))

    def _looked_at(self, count: int) -> Window:
        if self.window is None:
            if not count:
                raise InputError(
                    f"FillMedian: the column {self.name!r} has no value in the data that the workflow is fitted on, so "
                    "it has no median. Leave it out, or use FillMissing."
                )
            return Window(-math.inf, math.inf, 0, count, count)
        if count != self.window.count:
            raise IntegrityError(
                f"FillMedian: the column {self.name!r} had {self.window.count} values from {self.window.low!r} to "
                f"{self.window.high!r} in one pass over the data and {count} in the next. Fit again, without changing "
                "the data meanwhile."
            )
        return self.window

    def _median(self, lower: float, upper: float, count: int) -> Median:
        median = (lower + upper) / 2
        if math.isinf(median):
            # The sum of two large values may be too large.
            median = lower / 2 + upper / 2
        if not math.isfinite(median):
            raise InputError(
                f"FillMedian: the median of the column {self.name!r} is not finite, it has too many infinite values. "
                "Put Clip with min_value and max_value before."
            )
        return Median(median, count)


def _marker(name: str) -> str:
    return f"{name}_filled"

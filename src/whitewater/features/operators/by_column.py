"""Base classes of operators that turn each column into one column.

Operators on numbers compute in float64. Those that keep the scale of a column, so that a time in seconds stays exact,
return a type that holds its values; those that change the scale return float32.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from whitewater.errors import ConfigError, IntegrityError
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.column import Numbers
from whitewater.features.operator import ApplyMode, Fitted, Operator, Row, RowFunction

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block, Column
    from whitewater.features.operator import Inputs
    from whitewater.features.schema import Field


class ByColumn(Operator):
    """Turns each column into one: `field` describes the output, `column` computes it, and `value` a single value."""

    def output_name(self, name: str) -> str:
        """Return the name of the output for a column."""
        return name

    def input_fields(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return the input columns; raises ConfigError if the operator cannot take one."""
        return [fields[name] for name in column_names(inputs)]

    @abstractmethod
    def field(self, field: Field) -> Field:
        """Return the output for a column; its name is `output_name`."""

    @abstractmethod
    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Column:
        """Return the output for the rows of a column."""

    @abstractmethod
    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        """Return a function that computes for one value, which may be null, what `column` computes for all rows."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        return [self.field(field) for field in self.input_fields(inputs, fields)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: ApplyMode) -> Block:
        return {
            self.output_name(name): self.column(name, block[name], fitted.get(name), mode.device)
            for name in column_names(inputs)
        }

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        functions = [
            (self.output_name(name), name, self.value(name, fitted.get(name))) for name in column_names(inputs)
        ]

        def compute(row: Row) -> dict[str, Any]:
            return {output: function(row[name]) for output, name, function in functions}

        return compute


class ByNumber(ByColumn):
    """Turns each number into a number; null stays null."""

    def input_fields(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        return number_fields(self, inputs, fields)

    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Numbers:
        return self.numbers(name, cast("Numbers", column), fitted, device)

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        compute = self.number(name, fitted)
        # Only NaN is not equal to itself.
        return lambda value: None if value is None or value != value else compute(value)  # noqa: PLR0124

    @abstractmethod
    def numbers(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        """Return the output for a column of numbers."""

    @abstractmethod
    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        """Return a function that computes for one value, not null, what `numbers` computes for a column."""


class OnFloats(ByNumber):
    """Turns numbers into float32."""

    def field(self, field: Field) -> Field:
        return replace(field, type=pa.float32())

    def numbers(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        return Numbers(self.floats(name, as_floats(column, device.xp), fitted, device).astype(np.float32))

    @abstractmethod
    def floats(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        """Return the results for float64 (rows,) on the device, where null is NaN."""


def column_names(inputs: Inputs) -> tuple[str, ...]:
    """Return the inputs of an operator that takes no combinations, which plans refuse."""
    return tuple(entry for entry in inputs if isinstance(entry, str))


def is_number(type_: pa.DataType) -> bool:
    """Tell whether this is a type of numbers; booleans are: 0 and 1."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def number_fields(operator: Operator, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
    """Return the input columns of an operator; raises ConfigError if one is not of numbers."""
    input_fields = [fields[name] for name in column_names(inputs)]
    for field in input_fields:
        if not is_number(field.type):
            raise ConfigError(
                f"{type(operator).__name__} takes numbers, but the column {field.name!r} is of type {field.type}. "
                "Leave it out, or convert it in the data."
            )
    return input_fields


def type_holding(type_: pa.DataType, *constants: float) -> pa.DataType:
    """Return the type for a column that is to hold these constants, too: its own if that is exact, else float64."""
    if pa.types.is_boolean(type_):
        return type_holding(pa.int8(), *constants)
    dtype = np.dtype(type_.to_pandas_dtype())
    if dtype.kind == "f":
        fits = all(abs(value) <= np.finfo(dtype).max and float(dtype.type(value)) == value for value in constants)
    else:
        limits = np.iinfo(dtype)
        fits = all(float(value).is_integer() and limits.min <= value <= limits.max for value in constants)
    return type_ if fits else pa.float64()


def dtype_holding(column: Numbers, *constants: float) -> np.dtype[Any]:
    """Return the dtype of the type that `type_holding` returns."""
    type_ = type_holding(pa.from_numpy_dtype(column.values.dtype), *constants)
    dtype: np.dtype[Any] = np.dtype(type_.to_pandas_dtype())
    return dtype


def plain_number(value: float) -> int | float:
    """Return a parameter as a value of a row: whole numbers as int, like values of a column of integers."""
    return int(value) if value.is_integer() else value


def finite_facts(facts: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return these facts of an artifact; raises IntegrityError if one is not a finite number."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise IntegrityError(f"the artifact has {value!r} for {name!r}, but needs a number. Fit and save again.")
    return {name: facts[name] for name in names}

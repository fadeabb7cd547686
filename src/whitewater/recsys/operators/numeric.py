"""What the operators on columns of numbers have in common.

They compute in float64. Those that keep the scale of a column, so that a time in seconds stays exact, put out a type
that holds its values; those that change it put out float32.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater.devices.columns import Numbers
from whitewater.errors import ConfigError, InputError
from whitewater.recsys.categories import as_floats
from whitewater.recsys.graph import Inputs
from whitewater.recsys.operator import Applying, Fitted, Operator, Row, RowFunction

if TYPE_CHECKING:
    from whitewater.devices.columns import Block, Column
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.schema import Field


def column_names(operator: Operator, inputs: Inputs) -> tuple[str, ...]:
    """Return the names of the inputs, none of which may be a combination of columns.

    Raises
    ------
    ConfigError
        If one is.
    """
    for each in inputs:
        if not isinstance(each, str):
            raise ConfigError(
                f"{type(operator).__name__} takes single columns, not the combination of {' and '.join(each)}. "
                "Give it the columns, not in a list of their own."
            )
    return tuple(each for each in inputs if isinstance(each, str))


def is_number(type_: pa.DataType) -> bool:
    """Tell whether a column of this type is one of numbers; booleans are 0 and 1."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def number_fields(operator: Operator, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
    """Return the columns that an operator was given.

    Raises
    ------
    ConfigError
        If one is not of numbers.
    """
    given = [fields[name] for name in column_names(operator, inputs)]
    for field in given:
        if not is_number(field.type):
            raise ConfigError(
                f"{type(operator).__name__} takes numbers, but the column {field.name!r} is of type {field.type}. "
                "Leave it out, or convert it in the data."
            )
    return given


def numbers_of(operator: Operator, name: str, column: Column) -> Numbers:
    """Return a column that is one of numbers.

    Raises
    ------
    InputError
        If it is not.
    """
    if not isinstance(column, Numbers):
        raise InputError(
            f"{type(operator).__name__} takes numbers, but the column {name!r} is of {type(column).__name__.lower()}. "
            "Give it the column as it was when the workflow was fitted."
        )
    return column


def nulls(column: Numbers, device: Device) -> Array:
    """Return bool (rows,), True where a number is null: not valid, or NaN."""
    xp = device.xp
    missing = xp.zeros(len(column), bool) if column.valid is None else ~column.valid
    return missing | xp.isnan(column.values) if column.values.dtype.kind == "f" else missing


def holding(type_: pa.DataType, *constants: float) -> pa.DataType:
    """Return the type of a column that also has these values: its own if that holds them exactly, else float64."""
    if pa.types.is_boolean(type_):
        return holding(pa.int8(), *constants)
    dtype = np.dtype(type_.to_pandas_dtype())
    if dtype.kind == "f":
        fits = all(_is_of_float(dtype, each) for each in constants)
    else:
        limits = np.iinfo(dtype)
        fits = all(float(each).is_integer() and limits.min <= each <= limits.max for each in constants)
    return type_ if fits else pa.float64()


def holding_dtype(column: Numbers, *constants: float) -> np.dtype[Any]:
    """Return the dtype of the type that `holding` returns."""
    dtype: np.dtype[Any] = np.dtype(holding(pa.from_numpy_dtype(column.values.dtype), *constants).to_pandas_dtype())
    return dtype


def _is_of_float(dtype: np.dtype[Any], value: float) -> bool:
    return abs(value) <= float(np.finfo(dtype).max) and float(dtype.type(value)) == value


def is_null(value: object) -> bool:
    """Tell whether a value of a row is null: None, or NaN, the only value that is not equal to itself."""
    return value is None or value != value  # noqa: PLR0124


def plain_number(value: float) -> int | float:
    """Return a parameter as it is in a row: whole numbers as int, as a column of integers holds them."""
    return int(value) if value.is_integer() else value


class ColumnOfNumbers(Operator):
    """Puts out float32 for each column of numbers, under its name and with its tags. Null stays null."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return each input with the type float32."""
        return [replace(field, type=pa.float32()) for field in number_fields(self, inputs, fields)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return `of_column` of each column, as float32; NaN is null."""
        device = applying.device
        made = {}
        for name in column_names(self, inputs):
            values = as_floats(numbers_of(self, name, block[name]), device)
            made[name] = Numbers(self.of_column(name, values, fitted.get(name), device).astype(np.float32))
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return `of_value` of each value."""
        functions = [(name, self.of_value(name, fitted.get(name))) for name in column_names(self, inputs)]

        def compute(row: Row) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, function in functions:
                value = row[name]
                made[name] = None if is_null(value) else function(value)
            return made

        return compute

    @abstractmethod
    def of_column(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        """Return the values that come out of float64 (rows,), NaN where null, on the device."""

    @abstractmethod
    def of_value(self, name: str, fitted: Fitted | None) -> Callable[[Any], float]:
        """Return the function that does to one value what `of_column` does to a column."""


def finite(facts: Mapping[str, Any], key: str) -> float:
    """Return a finite number among the facts of an artefact.

    Raises
    ------
    IntegrityError
        If it is not there, or is not finite.
    """
    from whitewater.errors import IntegrityError

    value = facts.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise IntegrityError(f"the artefact has {value!r} for {key!r}, where a number is needed. Fit and save again.")
    return float(value)

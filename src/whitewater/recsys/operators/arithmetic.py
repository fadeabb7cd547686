"""Arithmetic that learns nothing: bounds and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field as Parameter
from pydantic import FiniteFloat, model_validator

from whitewater.devices.columns import Numbers
from whitewater.errors import InputError
from whitewater.recsys.graph import Inputs
from whitewater.recsys.operator import Applying, Fitted, Operator, Row, RowFunction
from whitewater.recsys.operators.numeric import (
    ColumnOfNumbers,
    column_names,
    holding,
    holding_dtype,
    is_null,
    number_fields,
    numbers_of,
    plain_number,
)

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.schema import Field


class Clip(Operator):
    """max(min_value, min(max_value, x)); infinite values are clipped as well.

    Null stays null. The type stays that of the column if it holds the bounds, and is float64 otherwise.
    """

    min_value: FiniteFloat | None = Parameter(None, description="Smaller values become this one.")
    max_value: FiniteFloat | None = Parameter(None, description="Larger values become this one.")

    @model_validator(mode="after")
    def _something_is_clipped(self) -> Self:
        if self.min_value is None and self.max_value is None:
            raise ValueError("neither min_value nor max_value is given: give one, or leave Clip out")
        if self.min_value is not None and self.max_value is not None and self.min_value > self.max_value:
            raise ValueError("min_value is above max_value")
        return self

    @property
    def _bounds(self) -> list[float]:
        return [bound for bound in (self.min_value, self.max_value) if bound is not None]

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return each input with the type that holds its values and the bounds."""
        return [
            replace(field, type=holding(field.type, *self._bounds)) for field in number_fields(self, inputs, fields)
        ]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return the clipped columns."""
        del fitted
        xp = applying.device.xp
        made = {}
        for name in column_names(self, inputs):
            column = numbers_of(self, name, block[name])
            dtype = holding_dtype(column, *self._bounds)
            low, high = (None if each is None else dtype.type(each) for each in (self.min_value, self.max_value))
            made[name] = Numbers(xp.clip(column.values.astype(dtype, copy=False), low, high), column.valid)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return the clipped values."""
        del fitted
        names = column_names(self, inputs)
        low = -math.inf if self.min_value is None else plain_number(self.min_value)
        high = math.inf if self.max_value is None else plain_number(self.max_value)

        def clipped(value: Any) -> Any:
            return None if is_null(value) else min(max(value, low), high)

        def compute(row: Row) -> dict[str, Any]:
            return {name: clipped(row[name]) for name in names}

        return compute


class LogOp(ColumnOfNumbers):
    """log(1 + x), natural, by log1p, which is exact near 0.

    Null stays null. A value of -1 or less has no logarithm and is refused: Clip(min_value=0) goes before, or what else
    it is to count for. Type: float32.
    """

    def of_column(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        """Return log1p of the values.

        Raises
        ------
        InputError
            If one has no logarithm.
        """
        del fitted
        refused = values <= -1
        if bool(refused.any()):
            raise _without_logarithm(name, int(refused.sum()), float(values[refused].min()))
        logarithms: Array = device.xp.log1p(values)
        return logarithms

    def of_value(self, name: str, fitted: Fitted | None) -> Callable[[float], float]:
        """Return log1p."""
        del fitted

        def compute(value: float) -> float:
            if value <= -1:
                raise _without_logarithm(name, 1, value)
            return math.log1p(value)

        return compute


def _without_logarithm(name: str, values: int, least: float) -> InputError:
    return InputError(
        f"LogOp: the column {name!r} has values of -1 or less, {values} in one part of the data, the least of them "
        f"{least:g}; log(1 + x) has no value there. Put Clip(min_value=0) before LogOp, or another bound above -1."
    )

"""Functions of one column of numbers: bounds, logarithms, buckets."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, FiniteFloat, model_validator
from pydantic import Field as Parameter

from whitewater.errors import InputError
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.column import Numbers
from whitewater.features.operator import Fitted
from whitewater.features.operators.by_column import ByNumber, OnFloats, holding, holding_dtype, plain_number

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.schema import Field


class Clip(ByNumber):
    """max(min_value, min(max_value, x)); infinite values are clipped as well.

    Null stays null. The type stays that of the column if it holds the bounds, and is float64 otherwise.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import Clip
    >>> workflow = Workflow(["x"] >> Clip(min_value=0, max_value=5)).fit({"x": [0.0, 2.0]})
    >>> Transformer(workflow)({"x": 7.0})
    {'x': 5}
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

    def field(self, field: Field) -> Field:
        return replace(field, type=holding(field.type, *self._bounds))

    def numbers(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        dtype = holding_dtype(column, *self._bounds)
        low, high = (None if each is None else dtype.type(each) for each in (self.min_value, self.max_value))
        return Numbers(device.xp.clip(column.values.astype(dtype, copy=False), low, high), column.valid)

    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        low = -math.inf if self.min_value is None else plain_number(self.min_value)
        high = math.inf if self.max_value is None else plain_number(self.max_value)
        return lambda value: min(max(value, low), high)


class LogOp(OnFloats):
    """log(1 + x), natural, by log1p, which is exact near 0.

    Null stays null. A value of -1 or less has no logarithm and is refused: Clip(min_value=0) goes before, or what else
    it is to count for. Type: float32.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import LogOp
    >>> workflow = Workflow(["x"] >> LogOp()).fit({"x": [0.0, 2.0]})
    >>> Transformer(workflow)({"x": 0.0})
    {'x': 0.0}
    """

    def floats(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        refused = values <= -1
        if bool(refused.any()):
            raise _without_logarithm(name, int(refused.sum()), float(values[refused].min()))
        logarithms: Array = device.xp.log1p(values)
        return logarithms

    def number(self, name: str, fitted: Fitted | None) -> Callable[[float], float]:
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


def _ascending(boundaries: tuple[float, ...]) -> tuple[float, ...]:
    if any(left >= right for left, right in pairwise(boundaries)):
        raise ValueError("boundaries must ascend, each above the one before")
    return boundaries


class Bucketize(ByNumber):
    """The number of boundaries that a value has reached: 0 below the first one, len(boundaries) from the last one on.

    Bucket *i* is boundaries[i - 1] <= x < boundaries[i], or with ``right`` boundaries[i - 1] < x <= boundaries[i], as
    numpy.digitize numbers them. Null stays null: put FillMissing before it where null is to have a bucket. Minus
    infinity is in the first bucket and infinity in the last one. Type: int32; the property ``cardinality`` is the
    number of buckets.

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import Bucketize
    >>> workflow = Workflow(["x"] >> Bucketize(boundaries=[1, 5])).fit({"x": [0.0, 2.0]})
    >>> Transformer(workflow)({"x": 7.0})
    {'x': 2}
    """

    boundaries: Annotated[tuple[FiniteFloat, ...], AfterValidator(_ascending)] = Parameter(
        min_length=1, description="Ascending boundaries."
    )
    right: bool = Parameter(False, description="Whether a boundary belongs to the bucket that ends with it.")

    def field(self, field: Field) -> Field:
        properties = {**field.properties, "cardinality": len(self.boundaries) + 1}
        return replace(field, type=pa.int32(), properties=properties)

    def numbers(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        xp, values = device.xp, as_floats(column, device.xp)
        boundaries = device.to_device(np.array(self.boundaries, np.float64))
        buckets = xp.searchsorted(boundaries, values, side="left" if self.right else "right")
        return Numbers(buckets.astype(np.int32), ~xp.isnan(values))

    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], int]:
        bisect, boundaries = bisect_left if self.right else bisect_right, self.boundaries
        return lambda value: bisect(boundaries, float(value))

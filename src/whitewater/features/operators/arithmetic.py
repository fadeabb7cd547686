"""Functions of one column of numbers: bounds, logarithms, buckets, and functions registered by name.

A workflow stores the name of a registered function, not its code. To register your own::

    @register("half", version=1, output=pa.float32())
    def half(values, xp):
        return values / 2

Import its module wherever the workflow is used. Raise the version when its results change: a workflow that was fitted
with the old version is then refused.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pydantic import Field as Parameter
from pydantic import field_validator, model_validator

from whitewater.engines.device import Array, Device
from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Numbers, as_floats
from whitewater.features.operator import Fitted
from whitewater.features.operators.by_column import ByNumber, OnFloats, plain_number, widen, widen_type
from whitewater.features.schema import Field

Compute = Callable[[Array, ModuleType], Array]

_HOUR, _DAY = 3600, 86_400
OUTPUTS = (pa.float32(), pa.float64(), pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FUNCTIONS: dict[str, Function] = {}


class Clip(ByNumber):
    """max(min_value, min(max_value, x)), also for infinite values.

    Null stays null. The column keeps its type if that holds the bounds, else it becomes float64.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import Clip
    >>> Workflow(["x"] >> Clip(min_value=0, max_value=5)).fit_transform({"x": [-1.0, 2.0, 7.0]})["x"].to_pylist()
    [0.0, 2.0, 5.0]
    """

    min_value: float | None = Parameter(None, description="Smaller values are raised to it.")
    max_value: float | None = Parameter(None, description="Larger values are lowered to it.")

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.min_value is None and self.max_value is None:
            raise ValueError("neither min_value nor max_value is given: give one, or leave Clip out")
        if self.min_value is not None and self.max_value is not None and self.min_value > self.max_value:
            raise ValueError("min_value is above max_value")
        return self

    @property
    def _bounds(self) -> list[float]:
        return [bound for bound in (self.min_value, self.max_value) if bound is not None]

    def field(self, field: Field) -> Field:
        return replace(field, type=widen_type(field.type, *self._bounds))

    def column(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        values = widen(column.values, *self._bounds)
        low, high = (None if bound is None else values.dtype.type(bound) for bound in (self.min_value, self.max_value))
        return Numbers(device.xp.clip(values, low, high), column.valid)

    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        low = -math.inf if self.min_value is None else plain_number(self.min_value)
        high = math.inf if self.max_value is None else plain_number(self.max_value)
        return lambda value: min(max(value, low), high)


class LogOp(OnFloats):
    """The natural logarithm log(1 + x), by log1p, which is exact near 0.

    Null stays null. A value of -1 or less has no logarithm and is refused: put Clip(min_value=0) before. Type: float32.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import LogOp
    >>> Workflow(["x"] >> LogOp()).fit_transform({"x": [0.0, 1.0]})["x"].to_pylist()
    [0.0, 0.6931471824645996]
    """

    def floats(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        refused = values[values <= -1]
        if len(refused):
            raise InputError(
                f"LogOp: the column {name!r} has values of -1 or less, {len(refused)} in one part of the data, the "
                f"lowest {float(refused.min()):g}; log(1 + x) has no value there. Put Clip(min_value=0) before LogOp, "
                "or another bound above -1."
            )
        return device.xp.log1p(values)

    def number(self, name: str, fitted: Fitted | None) -> Callable[[float], float]:
        def compute(value: float) -> float:
            if value <= -1:
                self.floats(name, np.array([value]), fitted, Device())  # refuses it
            return math.log1p(value)

        return compute


class Bucketize(ByNumber):
    """The bucket of a value, from 0 below the first boundary to len(boundaries) from the last one on.

    Bucket *i* is boundaries[i - 1] <= x < boundaries[i], or with ``right`` boundaries[i - 1] < x <= boundaries[i], as
    in numpy.digitize. Null stays null; to give it a bucket, put FillMissing before. Type: int32; the property
    ``cardinality`` is the number of buckets.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import Bucketize
    >>> Workflow(["x"] >> Bucketize(boundaries=[1, 5])).fit_transform({"x": [0.0, 1.0, 7.0]})["x"].to_pylist()
    [0, 1, 2]
    """

    boundaries: tuple[float, ...] = Parameter(min_length=1, description="Ascending boundaries.")
    right: bool = Parameter(False, description="Whether a boundary belongs to the bucket that ends with it.")

    @field_validator("boundaries")
    @classmethod
    def _check_order(cls, boundaries: tuple[float, ...]) -> tuple[float, ...]:
        if any(left >= right for left, right in pairwise(boundaries)):
            raise ValueError("boundaries must ascend, each above the one before")
        return boundaries

    def field(self, field: Field) -> Field:
        return replace(field, type=pa.int32(), properties={**field.properties, "cardinality": len(self.boundaries) + 1})

    def column(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        xp, values = device.xp, as_floats(column, device.xp)
        boundaries = device.to_device(np.array(self.boundaries, np.float64))
        buckets = xp.searchsorted(boundaries, values, side="left" if self.right else "right")
        return Numbers(buckets.astype(np.int32), ~xp.isnan(values))

    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], int]:
        bisect, boundaries = bisect_left if self.right else bisect_right, self.boundaries
        return lambda value: bisect(boundaries, float(value))


class LambdaOp(ByNumber):
    """A registered function of each value; see `register`.

    Null stays null and never reaches the function. A NaN that a function of floats returns is null. Type: the
    ``output`` of the registration. The artifact stores the name and the version, not the code.
    """

    function: str = Parameter(description="Name under which the function is registered.")
    version: int = Parameter(0, description="Its version; by default the registered one.")

    @model_validator(mode="before")
    @classmethod
    def _fill_in_version(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and isinstance(name := values.get("function"), str):
            version = find_function(name).version
            if (values.get("version") or version) != version:
                raise ConfigError(
                    f"LambdaOp needs version {values['version']} of the function {name!r}, but {version} is "
                    "registered. Import the version that the workflow was fitted with, or fit it again."
                )
            return {**values, "version": version}
        return values

    def field(self, field: Field) -> Field:
        return replace(field, type=find_function(self.function).output)

    def column(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        values = as_floats(column, device.xp)
        valid = ~device.xp.isnan(values)
        results = device.xp.zeros(len(values), find_function(self.function).output.to_pandas_dtype())
        results[valid] = self._compute(name, values[valid], device.xp)
        return Numbers(results, valid)

    def _compute(self, name: str, values: Array, xp: ModuleType) -> Array:
        function = find_function(self.function)
        results = function.compute(values, xp)
        if results.shape != values.shape:
            raise InputError(
                f"LambdaOp: the function {self.function!r} returned {results.shape} numbers for {values.shape} values "
                f"of the column {name!r}. It must return one number for each value."
            )
        dtype: np.dtype[Any] = np.dtype(function.output.to_pandas_dtype())
        if dtype.kind == "i" and results.dtype.kind == "f":
            # The largest int64 is not a float64: converted, it is already 2**63.
            low, stop = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max) + 1
            if not bool(((results >= low) & (results < stop) & (results == xp.floor(results))).all()):
                raise InputError(
                    f"LambdaOp: the function {self.function!r} returned numbers for the column {name!r} that are not "
                    f"of its type {function.output}: not whole, not finite or too large. Register it with another "
                    "type, or put Clip before it."
                )
        return results.astype(dtype)

    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        return lambda value: self._compute(name, np.array([value], np.float64), np)[0].item()


@dataclass(frozen=True)
class Function:
    """A registered function; ``compute`` takes float64 (rows,) without NaN, and the array module."""

    version: int
    output: pa.DataType
    compute: Compute


def register(name: str, *, version: int, output: pa.DataType) -> Callable[[Compute], Compute]:
    """Return a decorator that registers a function for `LambdaOp`; ``output`` is one of `OUTPUTS`.

    The function takes the values that are not null, float64 (rows,) on the device, and the array module, NumPy or
    CuPy. It returns one number for each value, which depends on that value only. Raises ConfigError if another function
    has the name, the version is below 1, or the type is not one of `OUTPUTS`.
    """
    if version < 1 or output not in OUTPUTS:
        raise ConfigError(
            f"the function {name!r} has version {version} and output {output}. Give it a version of 1 or more, and "
            f"one of the types {', '.join(map(str, OUTPUTS))}."
        )

    def add(compute: Compute) -> Compute:
        other = _FUNCTIONS[name].compute if name in _FUNCTIONS else compute
        # A reloaded module defines its functions again.
        if (other.__module__, other.__qualname__) != (compute.__module__, compute.__qualname__):
            raise ConfigError(f"a function {name!r} is registered already, in {other.__module__}. Choose another name.")
        _FUNCTIONS[name] = Function(version, output, compute)
        return compute

    return add


def find_function(name: str) -> Function:
    """Return a function; raises ConfigError if there is none of that name."""
    if name not in _FUNCTIONS:
        raise ConfigError(
            f"no function {name!r} is registered, only {', '.join(sorted(_FUNCTIONS))}. Import the module that "
            "registers it with whitewater.features.register."
        )
    return _FUNCTIONS[name]


@register("hour_of_day", version=1, output=pa.int32())
def hour_of_day(values: Array, xp: ModuleType) -> Array:
    """Hour of the day, 0 to 23, UTC, of seconds since 1970-01-01."""
    return xp.floor(values / _HOUR) % 24


@register("day_of_week", version=1, output=pa.int32())
def day_of_week(values: Array, xp: ModuleType) -> Array:
    """Day of the week, 0 (Monday) to 6 (Sunday), UTC, of seconds since 1970-01-01, which was a Thursday."""
    return (xp.floor(values / _DAY) + 3) % 7


@register("seconds_of_day", version=1, output=pa.int32())
def seconds_of_day(values: Array, xp: ModuleType) -> Array:
    """Whole seconds since midnight, UTC, of seconds since 1970-01-01."""
    return xp.floor(values) % _DAY


@register("squared_logarithm_bucket", version=1, output=pa.int32())
def squared_logarithm_bucket(values: Array, xp: ModuleType) -> Array:
    """floor(log(x)^2) above 2, and the whole part of x otherwise: counts as categories.

    Y. Juan, Y. Zhuang, W.-S. Chin, C.-J. Lin, "Field-aware factorization machines for CTR prediction", RecSys 2016,
    section 4, for the numbers of Criteo's logs.
    """
    logarithms = xp.log(xp.maximum(values, 2.0))
    return xp.where(values > 2, xp.floor(logarithms * logarithms), xp.trunc(values))

"""Functions of one column of numbers, which workflows name and artefacts do not hold.

A function of your own::

    @register("half", version=1, output=pa.float32())
    def half(values, xp):
        return values / 2

Its module must be imported wherever the workflow is used. Raise the version when its results change, so that a workflow
that was fitted with the old one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from whitewater.errors import ConfigError

if TYPE_CHECKING:
    from whitewater.engines.device import Array

    Compute = Callable[[Array, ModuleType], Array]

_HOUR, _DAY = 3600, 86_400
_THURSDAY = 3
OUTPUTS = (pa.float32(), pa.float64(), pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True)
class Function:
    """What `register` was told of a function; ``compute`` takes float64 (rows,) without NaN, and the array module."""

    name: str
    version: int
    output: pa.DataType
    compute: Compute


_FUNCTIONS: dict[str, Function] = {}


def register(name: str, *, version: int, output: pa.DataType) -> Callable[[Compute], Compute]:
    """Return what registers a function under the name that workflows call it by; ``output`` is one of `OUTPUTS`.

    The function takes float64 (rows,) on the device, never NaN, because nulls stay null without it, and the array
    module, NumPy or CuPy; it returns as many numbers, row by row: a result depends on the value of its row only.
    Raises ConfigError if another function has the name, the version is below 1, or the type is none of these.
    """
    if version < 1 or output not in OUTPUTS:
        raise ConfigError(
            f"the function {name!r} has version {version} and puts out {output}. Give it a version of 1 or more, and "
            f"one of the types {', '.join(map(str, OUTPUTS))}."
        )

    def add(compute: Compute) -> Compute:
        known = _FUNCTIONS.get(name)
        # A module that is imported again defines its functions again.
        if known and (known.compute.__module__, known.compute.__qualname__) != (
            compute.__module__,
            compute.__qualname__,
        ):
            raise ConfigError(
                f"a function {name!r} is registered already, in {known.compute.__module__}. Choose another name."
            )
        _FUNCTIONS[name] = Function(name, version, output, compute)
        return compute

    return add


def registered(name: str) -> Function:
    """Return a function; raises ConfigError if there is none of that name."""
    if name not in _FUNCTIONS:
        raise ConfigError(
            f"no function {name!r} is registered; there are {', '.join(sorted(_FUNCTIONS))}. Import the module that "
            "registers it with whitewater.features.functions.register."
        )
    return _FUNCTIONS[name]


@register("hour_of_day", version=1, output=pa.int32())
def hour_of_day(values: Array, xp: ModuleType) -> Array:
    """Hour of the day, 0 to 23, UTC, of seconds since 1970-01-01."""
    hours: Array = xp.floor(values / _HOUR) % 24
    return hours


@register("day_of_week", version=1, output=pa.int32())
def day_of_week(values: Array, xp: ModuleType) -> Array:
    """Day of the week, 0 (Monday) to 6 (Sunday), UTC, of seconds since 1970-01-01, which was a Thursday."""
    days: Array = (xp.floor(values / _DAY) + _THURSDAY) % 7
    return days


@register("seconds_of_day", version=1, output=pa.int32())
def seconds_of_day(values: Array, xp: ModuleType) -> Array:
    """Whole seconds since midnight, UTC, of seconds since 1970-01-01."""
    seconds: Array = xp.floor(values) % _DAY
    return seconds


@register("squared_logarithm_bucket", version=1, output=pa.int32())
def squared_logarithm_bucket(values: Array, xp: ModuleType) -> Array:
    """floor(log(x)^2) above 2, and the whole part of x otherwise: counts as categories.

    Y. Juan, Y. Zhuang, W.-S. Chin, C.-J. Lin, "Field-aware factorization machines for CTR prediction", RecSys 2016,
    section 4, for the numbers of Criteo's logs.
    """
    logarithms = xp.log(xp.maximum(values, 2.0))
    buckets: Array = xp.where(values > 2, xp.floor(logarithms * logarithms), xp.trunc(values))
    return buckets

"""Functions of one's own, by the names that they are registered under."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field as Parameter
from pydantic import model_validator

from whitewater.errors import ConfigError, InputError
from whitewater.features.categories.values import as_floats
from whitewater.features.functions import Function, registered
from whitewater.features.operator import Fitted
from whitewater.features.operators.by_column import ByNumber
from whitewater.tables.columns import Numbers

if TYPE_CHECKING:
    from types import ModuleType

    from whitewater.engines.device import Array, Device
    from whitewater.features.schema import Field


class LambdaOp(ByNumber):
    """A registered function of each value; see `whitewater.features.functions`.

    Null stays null and never reaches the function. Where a function of floats has no result, the NaN is null. Type:
    that which the function is registered with. The artefact holds the name and the version, no code.
    """

    function: str = Parameter(description="The name that the function is registered under.")
    version: int = Parameter(0, description="Its version; by default the one that is registered.")

    @model_validator(mode="before")
    @classmethod
    def _version_of_today(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and isinstance(name := values.get("function"), str):
            found = registered(name)
            if (values.get("version") or found.version) != found.version:
                raise ConfigError(
                    f"LambdaOp: version {values['version']} of the function {name!r} is wanted, but {found.version} is "
                    "registered. Import the version that the workflow was fitted with, or fit it again."
                )
            return {**values, "version": found.version}
        return values

    @property
    def _function(self) -> Function:
        return registered(self.function)

    def field(self, field: Field) -> Field:
        return replace(field, type=self._function.output)

    def numbers(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        xp, values = device.xp, as_floats(column, device)
        known = ~xp.isnan(values)
        dtype = np.dtype(self._function.output.to_pandas_dtype())
        made = xp.zeros(len(values), dtype)
        made[known] = self._results(name, values[known], xp).astype(dtype)
        return Numbers(made, known)

    def _results(self, name: str, values: Array, xp: ModuleType) -> Array:
        results = self._function.compute(values, xp)
        if results.shape != values.shape:
            raise InputError(
                f"LambdaOp: the function {self.function!r} made {results.shape} of {values.shape} values of the column "
                f"{name!r}. It must return one number for each value."
            )
        if self._is_of_integers and results.dtype.kind == "f" and not bool(self._fits(results, xp)):
            raise InputError(
                f"LambdaOp: the function {self.function!r} made numbers of the column {name!r} that are not of its "
                f"type {self._function.output}: not whole, not finite or too large. Register it with another type, or "
                "put Clip before it."
            )
        return results

    @property
    def _is_of_integers(self) -> bool:
        return bool(pa.types.is_integer(self._function.output))

    def _fits(self, results: Array, xp: ModuleType) -> Any:
        limits = np.iinfo(self._function.output.to_pandas_dtype())
        # The largest integer of 64 bits is no double; the next one is too large.
        below = float(limits.max) + (limits.bits < 64)
        return ((results >= float(limits.min)) & (results < below) & (results == xp.floor(results))).all()

    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        dtype = np.dtype(self._function.output.to_pandas_dtype())
        return lambda value: self._results(name, np.array([value], np.float64), np).astype(dtype)[0].item()

"""How much a number changed since the row before, of the same user or session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator
from pydantic import Field as Parameter

from whitewater.devices.columns import Numbers
from whitewater.errors import ConfigError, InputError
from whitewater.recsys.categories import as_floats
from whitewater.recsys.hashing import row_hash
from whitewater.recsys.operators.numeric import column_names, is_number, number_fields, numbers_of
from whitewater.recsys.operators.operator import Applying, Fitted, Inputs, Operator

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.schema import Field

Names = tuple[str, ...]
SEED = 0


def _not_zero(shift: int) -> int:
    if shift == 0:
        raise ValueError("a row is not compared with itself: shift is not 0")
    return shift


Shift = Annotated[int, AfterValidator(_not_zero)]


class DifferenceLag(Operator):
    """x less the x of ``shift`` rows before, among rows with equal partition columns, as <name>_difference_lag_<shift>.

    A negative shift looks at rows behind. Null where there is no such row, and where one of the two is null; a null key
    is a key. The rows of a key must follow one another, over the borders of files, in the order of the column
    ``order``, which must not descend: both are checked. Type: float32.
    """

    partition_cols: str | Names = Parameter(description="The key, or keys: columns of the data.")
    order: str = Parameter(description="Column of numbers that does not descend within a key, such as the time.")
    shift: Shift | Annotated[tuple[Shift, ...], Parameter(min_length=1)] = Parameter(
        1, description="How many rows before; several make several columns."
    )

    def sequence(self) -> Names:
        """Return the keys."""
        return (self.partition_cols,) if isinstance(self.partition_cols, str) else self.partition_cols

    def dependencies(self, *, fitting: bool, training: bool) -> Names:
        """Return the keys and the order."""
        del fitting, training
        return (*self.sequence(), self.order)

    @property
    def _shifts(self) -> tuple[int, ...]:
        return (self.shift,) if isinstance(self.shift, int) else self.shift

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return a column for each input and shift.

        Raises
        ------
        ConfigError
            If a column is not of numbers.
        """
        if not is_number(fields[self.order].type):
            raise ConfigError(
                f"DifferenceLag: the column {self.order!r}, by which rows are ordered, is of type "
                f"{fields[self.order].type}. Name a column of numbers."
            )
        return [
            replace(field, name=_named(field.name, shift), type=pa.float32())
            for field in number_fields(self, inputs, fields)
            for shift in self._shifts
        ]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return the differences.

        Raises
        ------
        InputError
            If the order descends within a key.
        """
        del fitted
        device = applying.device
        key = row_hash([block[name] for name in self.sequence()], SEED, device)
        self._check_order(key, as_floats(numbers_of(self, self.order, block[self.order]), device), device)
        made = {}
        for name in column_names(self, inputs):
            values = as_floats(numbers_of(self, name, block[name]), device)
            for shift in self._shifts:
                made[_named(name, shift)] = Numbers(_differences(values, key, shift, device))
        return made

    def _check_order(self, key: Array, order: Array, device: Device) -> None:
        xp = device.xp
        if bool(xp.isnan(order).any()):
            raise InputError(
                f"DifferenceLag: the column {self.order!r}, by which rows are ordered, has nulls. Leave those rows out."
            )
        wrong = xp.flatnonzero((key[1:] == key[:-1]) & (order[1:] < order[:-1]))
        if len(wrong):
            row = int(wrong[0])
            raise InputError(
                f"DifferenceLag: {self.order!r} descends from {float(order[row])!r} to {float(order[row + 1])!r} among "
                f"rows with equal {', '.join(self.sequence())}: rows {row} and {row + 1}, counted from 0, of a part of "
                f"the data with {len(order)} rows, and {len(wrong) - 1} times more there. Sort the data by "
                f"{', '.join((*self.sequence(), self.order))}."
            )


def _named(name: str, shift: int) -> str:
    return f"{name}_difference_lag_{shift}"


def _differences(values: Array, key: Array, shift: int, device: Device) -> Array:
    xp = device.xp
    result: Array = xp.full(len(values), xp.nan, np.float32)
    by = abs(shift)
    if by >= len(values):
        return result
    early, late = values[:-by], values[by:]
    difference = late - early if shift > 0 else early - late
    known = xp.where(key[by:] == key[:-by], difference, xp.nan).astype(np.float32)
    if shift > 0:
        result[by:] = known
    else:
        result[:-by] = known
    return result

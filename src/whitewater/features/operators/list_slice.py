"""Some items of each list, and lists of one length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from pydantic import Field as Parameter
from pydantic import FiniteFloat, model_validator

from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Lists, Numbers, take_rows
from whitewater.features.operator import Fitted
from whitewater.features.operators.by_column import ByColumn, dtype_holding, is_number, plain_number, type_holding

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Column
    from whitewater.features.schema import Field


class ListSlice(ByColumn):
    """The items of each list from ``start`` to before ``end``, as Python slices a list: list[start:end].

    ``start`` alone, as in NVTabular, is a number of items: the first ones, or the last ones where it is negative. With
    ``pad`` what is missing to the length of the slice is added at the end. A null list is an empty one; nulls among the
    items stay null. Type: that of the column; with ``pad``, items are float64 where theirs cannot hold ``pad_value``,
    and the property ``length`` is the length of all lists.
    """

    start: int = Parameter(description="The first item; or the number of items, where end is not given.")
    end: int | None = Parameter(None, description="The item behind the last one; negative: counted from the end.")
    pad: bool = Parameter(False, description="Make all lists as long as the slice.")
    pad_value: FiniteFloat = Parameter(0.0, description="What is added; categories have 0 for it.")

    @model_validator(mode="after")
    def _length_is_known(self) -> Self:
        start, stop = self._bounds
        if self.pad and self._length <= 0:
            raise ValueError(
                f"lists cannot be padded to the length of [{start}:{stop}], which is not above 0 or not one"
            )
        return self

    @property
    def _bounds(self) -> tuple[int, int | None]:
        if self.end is None:
            return (0, self.start) if self.start > 0 else (self.start, None)
        return self.start, self.end

    @property
    def _length(self) -> int:
        """The length of the slice of a list that is long enough; 0 if that depends on the list."""
        start, stop = self._bounds
        if stop is None:
            return -start
        return stop - start if (start < 0) == (stop < 0) else 0

    def field(self, field: Field) -> Field:
        if not pa.types.is_list(field.type):
            raise ConfigError(
                f"ListSlice takes lists, but the column {field.name!r} is of type {field.type}. Leave it out."
            )
        if not self.pad:
            return field
        if not is_number(field.type.value_type):
            raise ConfigError(
                f"ListSlice pads lists of numbers, but the column {field.name!r} is of type {field.type}. "
                "Put Categorify before it, whose ids have 0 for padding."
            )
        return replace(
            field,
            type=pa.list_(type_holding(field.type.value_type, self.pad_value)),
            properties={**field.properties, "length": self._length},
        )

    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Lists:
        if not isinstance(column, Lists):
            raise InputError(f"ListSlice takes lists, but the column {name!r} has none. Give it the fitted column.")
        lengths = column.offsets[1:] - column.offsets[:-1]
        start, stop = self._bounds
        first = _place(start, lengths)
        last = lengths if stop is None else _place(stop, lengths)
        kept = np.maximum(last - first, 0)
        new = np.full(len(column), self._length, np.int64) if self.pad else kept
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(new)])
        places = np.arange(int(offsets[-1]))
        row = np.searchsorted(offsets[1:], places, side="right")
        item = places - offsets[row]
        source = column.offsets[row] + first[row] + item
        if not (self.pad and isinstance(column.values, Numbers)):
            return Lists(offsets, take_rows(column.values, source))
        # A place behind the last item is padded, and there may be no item at all: one more stands for it.
        source = np.where(item < kept[row], source, len(column.values))
        return Lists(offsets, take_rows(self._with_padding(column.values), source))

    def _with_padding(self, column: Numbers) -> Numbers:
        dtype = dtype_holding(column, self.pad_value)
        values = np.concatenate([column.values.astype(dtype, copy=False), np.full(1, dtype.type(self.pad_value))])
        return Numbers(values, None if column.valid is None else np.concatenate([column.valid, np.ones(1, bool)]))

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], list[Any]]:
        chosen = slice(*self._bounds)
        length, missing = self._length if self.pad else 0, plain_number(self.pad_value)

        def cut(items: Any) -> list[Any]:
            kept = list(items or ())[chosen]
            return kept + [missing] * (length - len(kept))

        return cut


def _place(bound: int, lengths: Array) -> Array:
    """Return where a bound of a slice is in lists of these lengths."""
    place: Array = np.maximum(lengths + bound, 0) if bound < 0 else np.minimum(lengths, bound)
    return place

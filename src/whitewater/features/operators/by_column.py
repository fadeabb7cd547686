"""Operators that turn each column into one column: their base classes, and those for columns of any type.

Operators on numbers compute in float64. Those that keep the scale of a column, so that a time in seconds stays exact,
return a type that holds its values; those that change the scale return float32.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from pydantic import Field as Parameter
from pydantic import FiniteFloat, model_validator

from whitewater.engines.device import Array, Device
from whitewater.errors import ConfigError
from whitewater.features.columns.column import Block, Column, Lists, Numbers, as_floats, take_rows
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, RowFunction, columns_in
from whitewater.features.schema import Field, kind


class ByColumn(Operator):
    """Turns each column into one column."""

    def output_name(self, name: str) -> str:
        return name

    @abstractmethod
    def field(self, field: Field) -> Field:
        """Return the output for a column."""

    @abstractmethod
    def column(self, name: str, column: Any, fitted: Fitted | None, device: Device) -> Column:
        """Return the output for the rows of a column."""

    @abstractmethod
    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        """Return a function that computes for one value, null included, what `column` computes for all rows."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        return [self.field(fields[name]) for name in columns_in(inputs)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        return {
            self.output_name(name): self.column(name, block[name], fitted.get(name), mode.device)
            for name in columns_in(inputs)
        }

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        functions = [(self.output_name(name), name, self.value(name, fitted.get(name))) for name in columns_in(inputs)]
        return lambda row: {output: function(row[name]) for output, name, function in functions}


class ByNumber(ByColumn):
    """Turns each number into a number; null stays null."""

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        return [self.field(field) for field in number_fields(self, inputs, fields)]

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        compute = self.number(name, fitted)
        # Only NaN is not equal to itself.
        return lambda value: None if value is None or value != value else compute(value)  # noqa: PLR0124

    @abstractmethod
    def number(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        """Return a function that computes for one value, not null, what `column` computes for all rows."""


class OnFloats(ByNumber):
    """Turns numbers into float32."""

    def field(self, field: Field) -> Field:
        return replace(field, type=pa.float32())

    def column(self, name: str, column: Numbers, fitted: Fitted | None, device: Device) -> Numbers:
        return Numbers(self.floats(name, as_floats(column, device.xp), fitted, device).astype(np.float32))

    @abstractmethod
    def floats(self, name: str, values: Array, fitted: Fitted | None, device: Device) -> Array:
        """Return the results for float64 (rows,) on the device, where null is NaN."""


def number_fields(operator: Operator, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
    """Return the input columns of an operator; raises ConfigError if one is not of numbers."""
    input_fields = [fields[name] for name in columns_in(inputs)]
    for field in input_fields:
        if kind(field.type) != "numbers":
            raise ConfigError(
                f"{type(operator).__name__} takes numbers, but the column {field.name!r} is of type {field.type}. "
                "Leave it out, or convert it in the data."
            )
    return input_fields


def widen_type(type_: pa.DataType, *constants: float) -> pa.DataType:
    """Return a column's own type if it holds these constants exactly, else float64."""
    if pa.types.is_boolean(type_):
        return widen_type(pa.int8(), *constants)
    dtype = np.dtype(type_.to_pandas_dtype())
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    fits = all(limits.min <= value <= limits.max and float(dtype.type(value)) == value for value in constants)
    return type_ if fits else pa.float64()


def widen(values: Array, *constants: float) -> Array:
    """Return the values of a column in the type that `widen_type` returns."""
    type_ = widen_type(pa.from_numpy_dtype(values.dtype), *constants)
    return values.astype(type_.to_pandas_dtype(), copy=False)


def plain_number(value: float) -> int | float:
    """Return whole numbers as int, like the values of a column of integers."""
    return int(value) if value.is_integer() else value


class _Unchanged(ByColumn):
    """Returns its input values unchanged."""

    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Column:
        return column

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        return lambda value: value


class AddMetadata(_Unchanged):
    """Adds tags and properties."""

    tags: tuple[str, ...] = Parameter((), description="Tags to add.")
    properties: dict[str, Any] = Parameter({}, description="Properties to add or replace, as JSON values.")

    def field(self, field: Field) -> Field:
        return replace(field, properties={**field.properties, **self.properties}).with_tags(*self.tags)


class _TagRole(_Unchanged):
    """Adds the tags of a role."""

    role_tags: ClassVar[tuple[str, ...]]

    def field(self, field: Field) -> Field:
        return field.with_tags(*self.role_tags)


class TagAsUserID(_TagRole):
    """Tags the column that identifies users: user_id, user, id."""

    role_tags = ("user_id", "user", "id")


class TagAsItemID(_TagRole):
    """Tags the column that identifies items: item_id, item, id."""

    role_tags = ("item_id", "item", "id")


class TagAsUserFeatures(_TagRole):
    """Tags features of users: user."""

    role_tags = ("user",)


class TagAsItemFeatures(_TagRole):
    """Tags features of items: item."""

    role_tags = ("item",)


class Rename(_Unchanged):
    """Adds ``postfix`` to the name of each column, or calls the only column ``name``."""

    postfix: str | None = Parameter(None, min_length=1, description="Added to the name of each column.")
    name: str | None = Parameter(None, min_length=1, description="New name of the only column.")

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if (self.postfix is None) == (self.name is None):
            raise ValueError("Rename takes either postfix or name")
        return self

    def output_name(self, name: str) -> str:
        return self.name if self.name is not None else f"{name}{self.postfix}"

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        if self.name is not None and len(inputs) != 1:
            raise ConfigError(
                f"Rename(name={self.name!r}) takes one column, not {', '.join(columns_in(inputs))}. Rename each on "
                "its own, or give postfix."
            )
        return super().output(inputs, fields)

    def field(self, field: Field) -> Field:
        return replace(field, name=self.output_name(field.name))


class ListSlice(ByColumn):
    """The items of each list from ``start`` to before ``end``, as Python slices a list: list[start:end].

    ``start`` alone, as in NVTabular, is a number of items: the first ones, or the last ones if it is negative. ``pad``
    fills short lists up at the end. A null list counts as empty; null items stay null. The type stays, but with ``pad``
    the items become float64 if theirs cannot hold ``pad_value``, and the property ``length`` is that of all lists.
    """

    start: int = Parameter(description="First item; without end, the number of items.")
    end: int | None = Parameter(None, description="Item after the last one; negative: counted from the end.")
    pad: bool = Parameter(False, description="Fill all lists up to the length of the slice.")
    pad_value: FiniteFloat = Parameter(0.0, description="Value of the padding; the ids of categories reserve 0.")

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        start, stop = self._bounds
        if self.pad and self._length <= 0:
            raise ValueError(f"lists cannot be padded to [{start}:{stop}]: its length varies, or is not above 0")
        return self

    @property
    def _bounds(self) -> tuple[int, int | None]:
        if self.end is None:
            return (0, self.start) if self.start > 0 else (self.start, None)
        return self.start, self.end

    @property
    def _length(self) -> int:
        """The length of the slice of a long list; 0 if it depends on the list."""
        start, stop = self._bounds
        if stop is None:
            return -start
        return stop - start if (start < 0) == (stop < 0) else 0

    def field(self, field: Field) -> Field:
        fault, remedy = "takes lists", "Leave it out."
        if is_list := pa.types.is_list(field.type):
            fault, remedy = "pads lists of numbers", "Put Categorify before it, whose ids have 0 for padding."
        if not is_list or (self.pad and kind(field.type) != "lists of numbers"):
            raise ConfigError(f"ListSlice {fault}, but the column {field.name!r} is of type {field.type}. {remedy}")
        if not self.pad:
            return field
        type_ = pa.list_(widen_type(field.type.value_type, self.pad_value))
        return replace(field, type=type_, properties={**field.properties, "length": self._length})

    def column(self, name: str, column: Lists, fitted: Fitted | None, device: Device) -> Lists:
        lengths = np.diff(column.offsets)
        start, stop = self._bounds
        first = np.clip(start + lengths if start < 0 else start, 0, lengths)
        last = lengths if stop is None else np.clip(stop + lengths if stop < 0 else stop, 0, lengths)
        kept = np.maximum(last - first, 0)
        new = np.full(len(column), self._length, np.int64) if self.pad else kept
        offsets = np.append(0, np.cumsum(new))
        row = np.repeat(np.arange(len(column)), new)
        item = np.arange(offsets[-1]) - offsets[row]
        source = column.offsets[row] + first[row] + item
        if not (self.pad and isinstance(column.values, Numbers)):
            return Lists(offsets, take_rows(column.values, source))
        # Padding is taken from one more value, appended behind all items.
        source = np.where(item < kept[row], source, len(column.values))
        values, valid = widen(column.values.values, self.pad_value), column.values.valid
        padded = np.append(values, values.dtype.type(self.pad_value))
        return Lists(offsets, take_rows(Numbers(padded, None if valid is None else np.append(valid, True)), source))

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], list[Any]]:
        bounds = slice(*self._bounds)
        length, padding = self._length if self.pad else 0, plain_number(self.pad_value)

        def cut(items: Any) -> list[Any]:
            kept = list(items or ())[bounds]
            return kept + [padding] * (length - len(kept))

        return cut

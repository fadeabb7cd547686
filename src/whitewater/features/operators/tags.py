"""Tags, properties and names of columns of any type. Values stay unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field as Parameter
from pydantic import model_validator

from whitewater.errors import ConfigError
from whitewater.features.operators.by_column import ByColumn, column_names

if TYPE_CHECKING:
    from whitewater.engines.device import Device
    from whitewater.features.columns.column import Column
    from whitewater.features.operator import Fitted, Inputs, RowFunction
    from whitewater.features.schema import Field


class _Unchanged(ByColumn):
    """Returns its input values unchanged."""

    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Column:
        return column

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        return lambda value: value

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        # Each group of features ends with one of these: no function is called for each of its columns.
        names = [(self.output_name(name), name) for name in column_names(inputs)]
        return lambda row: {made: row[name] for made, name in names}


class AddMetadata(_Unchanged):
    """Adds tags and properties."""

    tags: tuple[str, ...] = Parameter((), description="Tags to add to those that are there.")
    properties: dict[str, Any] = Parameter({}, description="Properties to add or replace; values of JSON.")

    def field(self, field: Field) -> Field:
        return replace(field, properties={**field.properties, **self.properties}).with_tags(*self.tags)


class _Tagging(_Unchanged):
    """Adds the tags of a role."""

    added: ClassVar[tuple[str, ...]]

    def field(self, field: Field) -> Field:
        return field.with_tags(*self.added)


class TagAsUserID(_Tagging):
    """Tags the column that identifies users: user_id, user, id."""

    added = ("user_id", "user", "id")


class TagAsItemID(_Tagging):
    """Tags the column that identifies items: item_id, item, id."""

    added = ("item_id", "item", "id")


class TagAsUserFeatures(_Tagging):
    """Tags features of users: user."""

    added = ("user",)


class TagAsItemFeatures(_Tagging):
    """Tags features of items: item."""

    added = ("item",)


class Rename(_Unchanged):
    """Renames columns: adds ``postfix`` to each name, or gives one column the name ``name``."""

    postfix: str | None = Parameter(None, min_length=1, description="Added to the name of each column.")
    name: str | None = Parameter(None, min_length=1, description="The name of the column, of which there is one.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.postfix is None) == (self.name is None):
            raise ValueError("Rename takes either postfix or name")
        return self

    def output_name(self, name: str) -> str:
        return self.name if self.name is not None else f"{name}{self.postfix}"

    def input_fields(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        given = super().input_fields(inputs, fields)
        if self.name is not None and len(given) != 1:
            raise ConfigError(
                f"Rename(name={self.name!r}) takes one column, not {', '.join(each.name for each in given)}. Rename "
                "each on its own, or give postfix."
            )
        return given

    def field(self, field: Field) -> Field:
        return replace(field, name=self.output_name(field.name))

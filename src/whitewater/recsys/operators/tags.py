"""What is said of columns: tags, properties and names. Values stay as they are, of whichever type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field as Parameter
from pydantic import model_validator

from whitewater.errors import ConfigError
from whitewater.recsys.graph import Inputs
from whitewater.recsys.operator import Applying, Fitted, Operator, Row, RowFunction
from whitewater.recsys.operators.numeric import column_names

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.recsys.schema import Field


class _Unchanged(Operator):
    """Puts out the values that it was given."""

    def _named(self, name: str) -> str:
        return name

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return the columns as they are."""
        del fitted, applying
        return {self._named(name): block[name] for name in column_names(self, inputs)}

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return the values as they are."""
        del fitted
        names = [(self._named(name), name) for name in column_names(self, inputs)]

        def compute(row: Row) -> dict[str, Any]:
            return {new: row[old] for new, old in names}

        return compute


class AddMetadata(_Unchanged):
    """Adds tags and properties."""

    tags: tuple[str, ...] = Parameter((), description="Tags to add to those that are there.")
    properties: dict[str, Any] = Parameter({}, description="Properties to add or replace; values of JSON.")

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return each input with the tags and properties."""
        return [
            replace(field, properties={**field.properties, **self.properties}).tagged(*self.tags)
            for field in (fields[name] for name in column_names(self, inputs))
        ]


class _Tagging(_Unchanged):
    """Adds the tags of a role."""

    added: ClassVar[tuple[str, ...]]

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return each input with the tags."""
        return [fields[name].tagged(*self.added) for name in column_names(self, inputs)]


class TagAsUserID(_Tagging):
    """Tags the column that tells users apart: user_id, user, id."""

    added = ("user_id", "user", "id")


class TagAsItemID(_Tagging):
    """Tags the column that tells items apart: item_id, item, id."""

    added = ("item_id", "item", "id")


class TagAsUserFeatures(_Tagging):
    """Tags what is known of users: user."""

    added = ("user",)


class TagAsItemFeatures(_Tagging):
    """Tags what is known of items: item."""

    added = ("item",)


class Rename(_Unchanged):
    """Names columns anew: ``postfix`` is added to each name, or one column gets the name ``name``."""

    postfix: str | None = Parameter(None, min_length=1, description="Added to the name of each column.")
    name: str | None = Parameter(None, min_length=1, description="The name of the column, of which there is one.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.postfix is None) == (self.name is None):
            raise ValueError("Rename takes either postfix or name")
        return self

    def _named(self, name: str) -> str:
        return self.name if self.name is not None else f"{name}{self.postfix}"

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return each input under its new name.

        Raises
        ------
        ConfigError
            If several columns would get one name.
        """
        names = column_names(self, inputs)
        if self.name is not None and len(names) != 1:
            raise ConfigError(
                f"Rename(name={self.name!r}) takes one column, not {', '.join(names)}. Rename each on its own, or give "
                "postfix."
            )
        return [replace(fields[name], name=self._named(name)) for name in names]

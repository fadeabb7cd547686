"""The columns of a table: names, types and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from whitewater.errors import InputError


@dataclass(frozen=True)
class Field:
    """A column.

    Parameters
    ----------
    name
        Its name.
    type
        Its type in Parquet.
    tags
        What it is for, such as ``user_id`` or the name of a group of features.
    properties
        What readers may need to know, such as ``cardinality``: ids are below it. Values of JSON.
    """

    name: str
    type: pa.DataType
    tags: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)

    def tagged(self, *tags: str) -> Field:
        """Return the column with more tags, each once."""
        return replace(self, tags=tuple(dict.fromkeys((*self.tags, *tags))))


@dataclass(frozen=True)
class Schema:
    """Columns in order, each name once."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = self.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(f"the columns {', '.join(repeated)} are there more than once. Rename all but one of each.")

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.fields]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        for each in self.fields:
            if each.name == name:
                return each
        raise InputError(f"there is no column {name!r}; the columns are {', '.join(self.names)}.")

"""The columns of a table: names, types and tags."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from whitewater.errors import ConfigError, InputError


@dataclass(frozen=True)
class Field:
    """A column."""

    name: str
    type: pa.DataType  # its type in Parquet
    tags: tuple[str, ...] = ()  # what it is for, such as ``user_id`` or the name of a feature group
    # What readers may need to know, such as ``cardinality``, a bound above all ids. JSON values.
    properties: Mapping[str, Any] = field(default_factory=dict)

    def with_tags(self, *tags: str) -> Field:
        return replace(self, tags=tuple(dict.fromkeys((*self.tags, *tags))))


@dataclass(frozen=True)
class Schema:
    """Columns in order, with distinct names; ``unusable`` maps columns that no operator accepts to the reason."""

    fields: tuple[Field, ...]
    unusable: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if duplicates := sorted(name for name, count in Counter(self.names).items() if count > 1):
            raise InputError(
                f"the columns {', '.join(duplicates)} are there more than once. Rename all but one of each."
            )

    @cached_property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in self.fields}

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        if name in self.names:
            return self.fields[self.names.index(name)]
        raise InputError(f"{self.fault(name)}.")

    def fault(self, name: str) -> str:
        """Return the start of a message about a column that is missing or unusable; the caller adds the remedy."""
        if name in self.unusable:
            return f"column {name!r} {self.unusable[name]}"
        return f"there is no column {name!r}; the columns are {', '.join(self.names)}"


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of the values, however they are stored; that of text is always string.

    Raises ValueError for anything but numbers, text, and lists of these. Callers put the column before its message.
    """
    types = pa.types
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return pa.string()
    if types.is_list(type_) or types.is_large_list(type_):
        inner = plain_type(type_.value_type)
        if types.is_list(inner):
            raise ValueError("is of lists of lists, which no operator takes; flatten it")
        return pa.list_(inner)
    if types.is_float16(type_):
        return pa.float32()
    if types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_null(type_):
        return type_
    raise ValueError(f"is of type {type_}; columns hold numbers, text, or lists of them: convert it")


def kind(type_: pa.DataType) -> str:
    """Return a plain type in words: text, numbers, lists of text, lists of numbers, or nulls."""
    if pa.types.is_list(type_):
        return f"lists of {kind(type_.value_type)}"
    if pa.types.is_null(type_):
        return "nulls"
    return "text" if pa.types.is_string(type_) else "numbers"


def category_type(field: Field) -> pa.DataType:
    """Return the type of a column's categories, or of its lists' elements: string or int64. Else raise ConfigError."""
    types, type_ = pa.types, field.type
    type_ = type_.value_type if types.is_list(type_) else type_
    if types.is_integer(type_) or types.is_boolean(type_):
        return pa.int64()
    # An all-null column has no type, and there is nothing to learn from it.
    if types.is_string(type_) or types.is_null(type_):
        return pa.string()
    raise ConfigError(
        f"column {field.name} is of type {field.type}, but categories are text or integers. "
        "Bin the numbers with Bucketize, or leave the column out."
    )


def wider_type(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the plain type that holds the values of both types, which are of the same `kind`."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_list(first):
        return pa.list_(wider_type(first.value_type, second.value_type))
    return pa.from_numpy_dtype(np.result_type(first.to_pandas_dtype(), second.to_pandas_dtype()))


def type_from_name(name: str) -> pa.DataType:
    """Return the plain type whose ``str`` is this name; raises ValueError if there is none."""
    if item := re.fullmatch(r"list<\w+: (\w+)>", name):
        return pa.list_(type_from_name(item[1]))
    return pa.type_for_alias(name)


def column_json(field: Field) -> dict[str, Any]:
    """Return a column as JSON values."""
    return json.loads(json.dumps({**vars(field), "type": str(field.type)}))


def column_from_json(value: Mapping[str, Any]) -> Field:
    """Return the column that `column_json` wrote; raises ValueError, KeyError or TypeError if it is not one."""
    return Field(value["name"], type_from_name(value["type"]), tuple(value["tags"]), dict(value["properties"]))

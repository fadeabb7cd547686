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

from whitewater.errors import InputError


@dataclass(frozen=True)
class Field:
    """A column."""

    name: str
    type: pa.DataType  # its type in Parquet
    tags: tuple[str, ...] = ()  # what it is for, such as ``user_id`` or the name of a group of features
    # What readers may need to know, such as ``cardinality``: ids are below it. Values of JSON.
    properties: Mapping[str, Any] = field(default_factory=dict)

    def tagged(self, *tags: str) -> Field:
        """Return the column with more tags, each once."""
        return replace(self, tags=tuple(dict.fromkeys((*self.tags, *tags))))


@dataclass(frozen=True)
class Schema:
    """Columns in order, each name once; ``unusable`` are those that no operator can take, and why."""

    fields: tuple[Field, ...]
    unusable: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        repeated = sorted(name for name, count in Counter(self.names).items() if count > 1)
        if repeated:
            raise InputError(f"the columns {', '.join(repeated)} are there more than once. Rename all but one of each.")

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.fields]

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each column by its name."""
        return {each.name: each.type for each in self.fields}

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        if name in self._by_name:
            return self._by_name[name]
        raise InputError(f"{self.fault(name)}.")

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {each.name: each for each in self.fields}

    def fault(self, name: str) -> str:
        """Return what is wrong with a column that is not there, to go on with a remedy."""
        if name in self.unusable:
            return f"column {name!r} {self.unusable[name]}"
        return f"there is no column {name!r}; the columns are {', '.join(self.names)}"


def plain(type_: pa.DataType) -> pa.DataType:
    """Return the type of values, however they are stored: text as string, dictionaries as what is in them.

    Raises ValueError if they are neither numbers nor text, nor lists of them; the message completes a sentence about
    the column.
    """
    types = pa.types
    if types.is_dictionary(type_):
        return plain(type_.value_type)
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return pa.string()
    if types.is_list(type_) or types.is_large_list(type_):
        inner = plain(type_.value_type)
        if not types.is_list(inner):
            return pa.list_(inner)
    if types.is_float16(type_):
        return pa.float32()
    if types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_null(type_):
        return type_
    raise ValueError(f"is of type {type_}; columns are of numbers, text, or lists of them: convert it")


def kind(type_: pa.DataType) -> str:
    """Return what a plain type is in words: text, numbers, lists of text, lists of numbers, or nulls."""
    if pa.types.is_list(type_):
        return f"lists of {kind(type_.value_type)}"
    if pa.types.is_null(type_):
        return "nulls"
    return "text" if pa.types.is_string(type_) else "numbers"


def wider(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the plain type, of two of one kind, that holds the values of both."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_list(first):
        return pa.list_(wider(first.value_type, second.value_type))
    return pa.from_numpy_dtype(np.result_type(first.to_pandas_dtype(), second.to_pandas_dtype()))


def type_named(name: str) -> pa.DataType:
    """Return the plain type whose ``str`` this is; raises ValueError if there is none."""
    inner = re.fullmatch(r"list<\w+: (\w+)>", name)
    if inner:
        return pa.list_(type_named(inner[1]))
    return pa.type_for_alias(name)


def column_json(field: Field) -> dict[str, Any]:
    """Return a column as values of JSON."""
    value = {"name": field.name, "type": str(field.type), "tags": field.tags, "properties": dict(field.properties)}
    plain_value: dict[str, Any] = json.loads(json.dumps(value))
    return plain_value


def field_of(value: Mapping[str, Any]) -> Field:
    """Return the column that was `described`; raises ValueError, KeyError or TypeError if it is not one."""
    return Field(value["name"], type_named(value["type"]), tuple(value["tags"]), dict(value["properties"]))

"""Ids of categories: of a dictionary, of rows, and for one row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import ConfigError, InputError
from whitewater.features.categories.values import as_categories
from whitewater.features.columns.column import Column, Lists, Numbers
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.features.operator import Value

TAG = "categorical"
_LEAST, _MOST = -(2**63), 2**63 - 1
_KINDS = (
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_boolean, pa.int64()),
    (pa.types.is_string, pa.string()),
    (pa.types.is_large_string, pa.string()),
    # Nothing is known of a column of nulls, and nothing will be learned from it.
    (pa.types.is_null, pa.string()),
)


def is_list(type_: pa.DataType) -> bool:
    """Whether a column is one of lists."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def category_type(field: Field) -> pa.DataType:
    """Return the type of a column's categories, or of its lists' elements: string, or int64 for every integer.

    Raises ConfigError if the column has other values.
    """
    type_ = field.type.value_type if is_list(field.type) else field.type
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    for belongs, kind in _KINDS:
        if belongs(type_):
            return kind
    raise ConfigError(
        f"column {field.name} is of type {field.type}, but categories are text or integers. "
        "Cut numbers into categories by Bucketize, or leave the column out."
    )


def id_type(cardinality: int) -> npt.DTypeLike:
    """Return the NumPy type of ids below ``cardinality``: int32 where that suffices."""
    return np.int32 if cardinality <= 2**31 else np.int64


def id_field(field: Field, cardinality: int) -> Field:
    """Return a column of categories, or of lists of them, as that of its ids, which are below ``cardinality``.

    Raises ConfigError if the column has other values.
    """
    category_type(field)
    return with_cardinality(Field(field.name, field.type, field.tags), cardinality).with_tags(TAG)


def with_cardinality(field: Field, cardinality: int) -> Field:
    """Return a column, or one of lists, as one of ids below ``cardinality``."""
    type_ = pa.from_numpy_dtype(id_type(cardinality))
    properties = {**field.properties, "cardinality": cardinality}
    return replace(field, type=pa.list_(type_) if is_list(field.type) else type_, properties=properties)


def ids_of_rows(
    column: Column, ids_of: Callable[[pa.Array], npt.NDArray[Any]], *, null: int, cardinality: int
) -> Column:
    """Return the id of each row, int32 or int64 by `id_type`; of lists, lists of ids.

    ``column`` is of text or integers, or lists of them. ``ids_of`` gives the ids (values,) of the values
    of a dictionary, ``null`` is that of a null, and all are below ``cardinality``.
    """
    if isinstance(column, Lists):
        values = ids_of_rows(column.values, ids_of, null=null, cardinality=cardinality)
        return Lists(column.offsets, cast("Numbers", values))
    categories = as_categories(column)
    # The code of a null, -1, takes the last one.
    ids = np.append(ids_of(categories.dictionary), null).astype(id_type(cardinality), copy=False)
    return Numbers(np.take(ids, categories.codes))


def scalar(value: Value, name: str, kind: pa.DataType | None = None) -> str | int | None:
    """Return a value of one row as text or integer, and None for None and NaN.

    Raises InputError if it is of another type than ``kind``, string or int64, or, without that, is neither.
    """
    # NaN alone is not equal to itself.
    if value is None or value != value:  # noqa: PLR0124
        return None
    if isinstance(value, str):
        if kind is None or pa.types.is_string(kind):
            return value
    elif hasattr(value, "__index__") and (kind is None or pa.types.is_integer(kind)):
        integer = operator.index(value)
        if _LEAST <= integer <= _MOST:
            return integer
    wanted = "text" if kind is not None and pa.types.is_string(kind) else "an integer of 64 bits with sign"
    wanted = f"text or {wanted}" if kind is None else wanted
    raise InputError(f"column {name}: {value!r} is not {wanted}, as in the data that was fitted on. Give such values.")

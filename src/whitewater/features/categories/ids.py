"""Ids of categories: of a dictionary, of rows, and for one row."""

from __future__ import annotations

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
_MOST = 2**63 - 1


def category_type(field: Field) -> pa.DataType:
    """Return the type of a column's categories, or of its lists' elements: string, or int64 for every integer.

    Raises ConfigError if the column has other values.
    """
    types, type_ = pa.types, field.type
    if types.is_list(type_) or types.is_dictionary(type_):
        type_ = type_.value_type
    if types.is_integer(type_) or types.is_boolean(type_):
        return pa.int64()
    # Nothing is known of a column of nulls, and nothing will be learned from it.
    if types.is_string(type_) or types.is_large_string(type_) or types.is_null(type_):
        return pa.string()
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
    return replace(field, type=pa.list_(type_) if pa.types.is_list(field.type) else type_, properties=properties)


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


def scalar(value: Value, name: str) -> Any:
    """Return a text or an integer of one row, and None for None and NaN; raises InputError if it is above 2**63 - 1."""
    # NaN alone is not equal to itself.
    if value is None or value != value:  # noqa: PLR0124
        return None
    if isinstance(value, int) and value > _MOST:
        raise InputError(f"column {name}: {value} is above 2**63 - 1, and so no category. Store it as text.")
    return value

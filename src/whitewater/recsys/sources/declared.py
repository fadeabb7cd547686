"""The layout of files whose columns are declared: every file has them, all with the same types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from whitewater.config.recsys import FileColumn
from whitewater.errors import InputError
from whitewater.recsys.sources.layout import Layout, is_label, log_type
from whitewater.recsys.sources.times import is_time
from whitewater.recsys.sources.values import is_text

_WANTED = {
    "label": "numbers or booleans",
    "continuous": "numbers or booleans",
    "categorical": "text or integers",
    "key": "text or integers",
    "list": "lists of text or integers",
    "time": "timestamps or dates without a unit, numbers with one, or text or integers with a format as the unit",
}


def layout_of(
    columns: Sequence[FileColumn], schemas: Sequence[tuple[str, pa.Schema]], *, positive: float | None
) -> Layout:
    """Return the layout of files.

    Parameters
    ----------
    columns
        The columns to read.
    schemas
        What the user calls each file, and its columns.
    positive
        See `Layout`.

    Raises
    ------
    InputError
        If a file lacks a column or has it twice, a column has a type that does not suit its role, or differs in type
        between files. A column that is null everywhere in a file agrees with any type.
    """
    types: dict[str, str] = {}
    for column in columns:
        found = _type(column, [(origin, _field(schema, column.name, origin)) for origin, schema in schemas])
        if column.role not in ("label", "time"):
            types[column.name] = found
    return Layout(tuple(columns), types, positive)


def _field(schema: pa.Schema, name: str, origin: str) -> pa.DataType:
    count = schema.names.count(name)
    if count == 1:
        return schema.field(name).type
    fault = f"has {count} columns named" if count else "has no column"
    raise InputError(f"{origin} {fault} {name!r}; its columns are {', '.join(schema.names) or 'none'}. Correct the "
                     "file, or recsys.fetch.files.columns.")  # fmt: skip


def _type(column: FileColumn, found: Sequence[tuple[str, pa.DataType]]) -> str:
    """Return the type in the log of a column, of which ``found`` tells file and type."""
    known = [(origin, type_) for origin, type_ in found if not pt.is_null(type_)] or list(found[:1])
    first_origin, first = known[0]
    for origin, type_ in known:
        if _plain(type_) != _plain(first):
            raise InputError(f"{origin}: the column {column.name!r} is {type_}, but in {first_origin} it is {first}. "
                             "Write the files with one type.")  # fmt: skip
    type_name = _in_log(first, column)
    if type_name is None:
        role = f"{column.role} with the unit {column.unit}" if column.unit else column.role
        raise InputError(f"{first_origin}: the column {column.name!r} is {first}, but {role} is declared, which "
                         f"needs {_WANTED[column.role]}. Correct recsys.fetch.files.columns, or the file.")  # fmt: skip
    return type_name


def _in_log(type_: pa.DataType, column: FileColumn) -> str | None:
    if column.role == "label":
        return "int8" if is_label(type_) else None
    if column.role == "time":
        return "int64" if is_time(type_, column.unit) else None
    return log_type(type_, column.role)


def _plain(type_: pa.DataType) -> str:
    """Return a type without what is a matter of storage: texts of all kinds are one."""
    if pt.is_list(type_) or pt.is_large_list(type_):
        return f"list<{_plain(type_.value_type)}>"
    return "text" if is_text(type_) else str(type_)

"""Columns of a source's files as columns of a log: their types, and what becomes of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from whitewater.errors import InputError
from whitewater.features.log_folder import LABEL, TIME, TYPES, LogColumn
from whitewater_apps.recsys.config import FileColumn
from whitewater_apps.recsys.sources.values import RefusedError, Values, cast, is_text, is_time, labels, of_text, seconds

_WANTED = {
    "label": "numbers or booleans",
    "continuous": "numbers or booleans",
    "categorical": "text or integers",
    "key": "text or integers",
    "list": "lists of text or integers",
    "time": "timestamps or dates without a unit, numbers with one, or text or integers with a format as the unit",
}


@dataclass(frozen=True)
class Layout:
    """The columns to read, and what they become."""

    columns: tuple[FileColumn, ...]  # the source's columns, with roles; one is the label, at most one the time
    types: Mapping[str, str]  # type in the log, by its name in `TYPES`, of each column that is neither
    positive: float | None = None  # a label of at least this is 1, one below it 0; None: labels are 0 or 1
    never_null: frozenset[str] = frozenset()  # columns of ``types`` in which a null is a fault

    @property
    def names(self) -> list[str]:
        """The source's columns."""
        return [each.name for each in self.columns]

    @property
    def time(self) -> str | None:
        """The source's column of time."""
        return next((each.name for each in self.columns if each.role == "time"), None)

    @property
    def log_columns(self) -> tuple[LogColumn, ...]:
        """The log's columns besides the first ones."""
        return tuple(
            LogColumn(each.name, each.role, self.types[each.name]) for each in self.columns if each.name in self.types
        )

    def pieces(
        self, raw: pa.Table, types: Mapping[str, pa.DataType] | None = None
    ) -> Iterator[tuple[int, dict[str, Values] | ValueError]]:
        """Yield the log's columns of rows together, and of a row that cannot be converted why, each with its place.

        Such a row is found by halving. The error names column and value; it is a `RefusedError` if that is a label or
        a time that can be read, but not be one. ``types`` says as what columns of text are to be read.
        """
        waiting = [(0, raw)] if len(raw) else []
        while waiting:
            first, rows = waiting.pop()
            half = len(rows) // 2
            try:
                yield first, self._converted(rows, types or {})
            except ValueError as error:
                if half:
                    waiting += [(first + half, rows.slice(half)), (first, rows.slice(0, half))]
                else:
                    yield first, error

    def _converted(self, raw: pa.Table, types: Mapping[str, pa.DataType]) -> dict[str, Values]:
        found = {}
        # A label or a time that is none stops the run, so they are first.
        for column in sorted(self.columns, key=lambda each: each.name in self.types):
            values = raw.column(column.name)
            try:
                values = of_text(values, types[column.name]) if column.name in types else values
                name, found[name] = self._of_log(values, column)
            except RefusedError as error:
                raise RefusedError(f"column {column.name}: {error}") from error
            except (ValueError, pa.ArrowException) as error:
                raise ValueError(f"column {column.name}: {error}") from error
        return found

    def _of_log(self, values: Values, column: FileColumn) -> tuple[str, Values]:
        """Return the name of a column in the log, and its values."""
        if column.name in self.types:
            if column.name in self.never_null and values.null_count:
                raise ValueError("a value is null")
            return column.name, cast(values, TYPES[self.types[column.name]])
        if column.role == "label":
            return LABEL, labels(values, self.positive)
        return TIME, seconds(values, column.unit)


def layout_of(
    columns: Sequence[FileColumn], schemas: Sequence[tuple[str, pa.Schema]], *, positive: float | None
) -> Layout:
    """Return the layout of some columns of files, given what the user calls each file and all its columns.

    Raises InputError if a file lacks a column or has it twice, a column has a type that does not suit its role, or
    differs in type between files. A column that is null everywhere in a file agrees with any type.
    """
    types = {
        each.name: _type(each, [(origin, _field(schema, each.name, origin)) for origin, schema in schemas])
        for each in columns
    }
    of_log = {each.name: types[each.name] for each in columns if each.role not in ("label", "time")}
    return Layout(tuple(columns), of_log, positive)


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
    """Return the type in the log of a column, or None if there is none for its role.

    A column that knows no type, because it is null everywhere, gets the usual one of its role.
    """
    match column.role:
        case "label":
            return "int8" if pt.is_null(type_) or _number(type_) else None
        case "time":
            return "int64" if is_time(type_, column.unit) else None
        case "continuous":
            return "float64" if pt.is_null(type_) else _number(type_)
        case "list" if pt.is_null(type_):
            return "list<string>"
        case "list":
            inner = _category(type_.value_type) if pt.is_list(type_) or pt.is_large_list(type_) else None
            return inner and f"list<{inner}>"
        case _:
            return "string" if pt.is_null(type_) else _category(type_)


def _number(type_: pa.DataType) -> str | None:
    if pt.is_boolean(type_) or (pt.is_integer(type_) and type_.bit_width + pt.is_unsigned_integer(type_) <= 32):
        return "int32"
    if pt.is_integer(type_):
        return "int64"
    return "float64" if pt.is_floating(type_) or pt.is_decimal(type_) else None


def _category(type_: pa.DataType) -> str | None:
    if is_text(type_):
        return "string"
    return "int64" if pt.is_integer(type_) or pt.is_boolean(type_) else None


def _plain(type_: pa.DataType) -> str:
    """Return a type without what is a matter of storage: texts of all kinds are one."""
    if pt.is_list(type_) or pt.is_large_list(type_):
        return f"list<{_plain(type_.value_type)}>"
    return "text" if is_text(type_) else str(type_)

"""Convert columns of a source's files into columns of a log, by role.

A log has times as seconds since 1970; files have numbers of a unit, text or digits of a format, timestamps, or dates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from whitewater.errors import InputError
from whitewater.features.config import Role
from whitewater.features.log_folder import LABEL, SINCE, TIME, TYPES, UNTIL, LogColumn
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import UNITS_PER_SECOND, FileColumn

Values: TypeAlias = pa.ChunkedArray | pa.Array
Seconds = npt.NDArray[np.int64]
# By role, the type in the log of a column of nulls only, and the types that a column may have.
_ROLES = {
    "label": ("int8", "numbers or booleans"),
    "continuous": ("float64", "numbers or booleans"),
    "categorical": ("string", "text or integers"),
    "key": ("string", "text or integers"),
    "list": ("list<string>", "lists of text or integers"),
    "time": ("int64", "timestamps or dates without a unit, numbers with one, or text or integers with a format as the "
             "unit"),
}  # fmt: skip
_USUAL_FORMATS = [f"%{year}%m%d{rest}" for year in "Yy" for rest in ("", "%H", "%H%M", "%H%M%S")]


class RefusedError(ValueError):
    """A label or time that must not be in a log. It stops the run; a malformed line is only left out."""


@dataclass(frozen=True)
class Layout:
    """The columns to read, and what they become."""

    columns: tuple[FileColumn, ...]  # of the source, with roles: one label, at most one time
    log_columns: tuple[LogColumn, ...]  # of the log, without label and time
    positive: float | None = None  # a label of at least this is 1, one below it 0; None: labels are 0 or 1
    never_null: frozenset[str] = frozenset()  # columns in which a null is a fault

    def convert(
        self, raw: pa.Table, text_types: Mapping[str, pa.DataType], first: int = 0
    ) -> Iterator[tuple[int, dict[str, Values] | ValueError]]:
        """Yield the place of rows, and their columns of the log or, for one row that cannot be converted, its error.

        Such a row is found by halving. Columns of ``text_types`` are text, to be parsed as these types.
        """
        try:
            if len(raw):
                yield first, self._convert_all(raw, text_types)
        except ValueError as error:
            if len(raw) == 1:
                yield first, error
                return
            half = len(raw) // 2
            yield from self.convert(raw.slice(0, half), text_types, first)
            yield from self.convert(raw.slice(half), text_types, first + half)

    def _convert_all(self, raw: pa.Table, text_types: Mapping[str, pa.DataType]) -> dict[str, Values]:
        converted: dict[str, Values] = {}
        types = {column.name: TYPES[column.type] for column in self.log_columns}
        # Label and time come first, because they may stop the run.
        for column in sorted(self.columns, key=lambda column: column.name in types):
            values = raw.column(column.name)
            try:
                if column.name in text_types:
                    values = _parse(values, text_types[column.name])
                if column.role == "label":
                    converted[LABEL] = _convert_labels(values, self.positive)
                elif column.role == "time":
                    converted[TIME] = seconds(values, column.unit)
                elif column.name in self.never_null and values.null_count:
                    raise ValueError("a value is null")
                else:
                    converted[column.name] = _cast(values, types[column.name])
            except (ValueError, pa.ArrowException) as error:
                kind = RefusedError if isinstance(error, RefusedError) else ValueError
                raise kind(f"column {column.name}: {error}") from error
        return converted


def layout_of(
    columns: Sequence[FileColumn], schemas: Sequence[tuple[str, pa.Schema]], *, positive: float | None, setting: str
) -> Layout:
    """Return the layout of columns, given name and schema of each file; messages name the ``setting``.

    A column of nulls only agrees with any type. Raises InputError if a file lacks a column, or a type does not suit the
    role or differs between files.
    """
    log_columns = []
    for column in columns:
        types = []
        for origin, schema in schemas:
            if (count := schema.names.count(column.name)) != 1:
                fault = f"has {count} columns named" if count else "has no column"
                raise InputError(f"{origin} {fault} {column.name!r}; its columns are "
                                 f"{', '.join(schema.names) or 'none'}. Correct the file, or {setting}.")  # fmt: skip
            types.append((origin, _logical_type(schema.field(column.name).type)))
        not_null = [each for each in types if not pt.is_null(each[1])] or types[:1]
        first_origin, first = not_null[0]
        for origin, type_ in not_null:
            if type_ != first:
                raise InputError(f"{origin}: the column {column.name!r} is {type_}, but in {first_origin} it is "
                                 f"{first}. Write the files with one type.")  # fmt: skip
        default_type, needed = _ROLES[column.role]
        log_type = default_type if pt.is_null(first) else _log_type(column.role, column.unit, first)
        if log_type is None:
            role = f"{column.role} with the unit {column.unit}" if column.unit else column.role
            raise InputError(f"{first_origin}: the column {column.name!r} is {first}, but {role} is declared, which "
                             f"needs {needed}. Correct {setting}, or the file.")  # fmt: skip
        if column.role not in ("label", "time"):
            log_columns.append(LogColumn(column.name, column.role, log_type))
    return Layout(tuple(columns), tuple(log_columns), positive)


def _logical_type(type_: pa.DataType) -> pa.DataType:
    """Return one type for all layouts of text, and one for all those of lists."""
    if pt.is_list(type_) or pt.is_large_list(type_):
        return pa.list_(_logical_type(type_.value_type))
    inner = type_.value_type if pt.is_dictionary(type_) else type_
    is_text = pt.is_string(inner) or pt.is_large_string(inner) or pt.is_string_view(inner)
    return pa.string() if is_text else type_


def _log_type(role: Role, unit: str | None, type_: pa.DataType) -> str | None:
    """Return the type in the log, or None if the type of a column does not suit its role."""
    is_integer, is_boolean, is_text = pt.is_integer(type_), pt.is_boolean(type_), pt.is_string(type_)
    if role == "time":
        has_format = unit is not None and unit not in UNITS_PER_SECOND
        is_number = is_integer or (is_text if has_format else pt.is_floating(type_))
        return "int64" if is_number or (unit is None and (pt.is_timestamp(type_) or pt.is_date(type_))) else None
    if role == "list":
        inner = _log_type("key", None, type_.value_type) if pt.is_list(type_) else None
        return inner and f"list<{inner}>"
    if role in ("categorical", "key"):
        return "string" if is_text else "int64" if is_integer or is_boolean else None
    number = "int64" if is_integer else "float64" if pt.is_floating(type_) or pt.is_decimal(type_) else None
    if is_boolean or (is_integer and type_.bit_width + pt.is_unsigned_integer(type_) <= 32):
        number = "int32"
    return "int8" if role == "label" and number else number


def _parse(texts: Values, type_: pa.DataType) -> Values:
    """Return texts as a type, or as float64 if integers have fractions; raises ValueError if one cannot be read."""
    if pt.is_string(type_) or pt.is_null(type_):
        return texts
    trimmed = pc.utf8_trim_whitespace(texts)
    with suppress(pa.ArrowInvalid):
        return pc.cast(trimmed, type_)
    if pt.is_timestamp(type_):  # years that nanoseconds cannot tell are told in microseconds, and refused then
        return pc.cast(trimmed, pa.timestamp("us", type_.tz))
    return pc.cast(trimmed, pa.float64() if pt.is_integer(type_) else type_)


def _convert_labels(values: Values, positive: float | None) -> pa.Array:
    """Return labels, int8. Raises RefusedError if one is null or NaN, or not 0 or 1 where ``positive`` is None."""
    # Comparing with a number in Arrow would import pandas.
    labels = to_numpy(pc.fill_null(pc.cast(values, pa.float64()), np.nan))
    if np.isnan(labels).any():
        raise RefusedError("a label is null")
    if positive is not None:
        return to_arrow((labels >= positive).astype(np.int8))
    other = labels[(labels != 0) & (labels != 1)]
    if len(other):
        raise RefusedError(f"a label is {other[0]:g}, neither 0 nor 1")
    return to_arrow(labels.astype(np.int8))


def _cast(values: Values, type_: pa.DataType) -> Values:
    """Return values as a type of the log. Raises ValueError if one is too large, or not an integer but must be."""
    # Larger integers are not exact as float64.
    if pt.is_floating(values.type) and pt.is_integer(type_) and (pc.max(pc.abs(values)).as_py() or 0) > 1 << 53:
        raise ValueError("a number is too large to be exact")
    if pt.is_uint64(values.type) and (largest := pc.max(values).as_py() or 0) >= 1 << 63:
        raise ValueError(f"{largest} is above 2**63 - 1: store the column as text, or a continuous one as float64")
    return pc.cast(values, type_)


def seconds(values: Values, unit: str | None) -> pa.Array:
    """Return times, at least one, as int64 seconds since 1970 in UTC, rounded down.

    Raises RefusedError if a time is null, outside of 1980 to 2100, or a number without a unit; ValueError if it does
    not match the format.
    """
    is_real = pt.is_floating(values.type)
    is_number = is_real or pt.is_integer(values.type)
    if values.null_count or (is_real and pc.any(pc.is_nan(values)).as_py()):
        raise RefusedError("a time is null")
    if is_number and unit is None:
        first = _number(values[0])
        raise RefusedError(f"a time is {first}, but the column declares no unit{_suggest_units(first)}")
    if unit and unit not in UNITS_PER_SECOND:
        times = _parse_times(values, unit)
    elif is_real:
        floored = np.floor(to_numpy(pc.cast(values, pa.float64())) / UNITS_PER_SECOND[unit or "s"])
        # Far beyond all times, and well within int64.
        times = np.clip(floored, -(1 << 62), 1 << 62).astype(np.int64)
    else:
        numbers = pc.cast(values, pa.timestamp("s")) if pt.is_date(values.type) else values
        unit_of_numbers = numbers.type.unit if pt.is_timestamp(numbers.type) else unit or "s"
        times = to_numpy(pc.cast(numbers, pa.int64())) // UNITS_PER_SECOND[unit_of_numbers]
    outside = np.flatnonzero((times < SINCE) | (times >= UNTIL))
    if len(outside):
        text, hint = _format_time(int(times[outside[0]])), ""
        if is_number:
            number = _number(values[int(outside[0])])
            text, hint = f"{number}, which as {unit} is {text}", _suggest_units(number)
        raise RefusedError(f"a time is {text}, outside of 1980 to 2100{hint}")
    return to_arrow(times)


def _parse_times(values: Values, format_: str) -> Seconds:
    # Integers have lost their leading zeros.
    width = _width(format_) if pt.is_integer(values.type) else 0
    texts = pc.cast(values, pa.string())
    distinct = pc.unique(texts)
    parsed = []
    for text in distinct.to_pylist():
        try:
            parsed.append(_parse_time(text.zfill(width), format_))
        except ValueError:
            hint = _suggest_units(int(text)) if text.isdecimal() else ""
            raise ValueError(f"the time {text!r} does not match the format {format_}{hint}") from None
    return np.asarray(np.array(parsed, np.int64)[to_numpy(pc.index_in(texts, value_set=distinct))])


def _parse_time(text: str, format_: str) -> int:
    """Return a text as seconds since 1970; raises ValueError if it does not match the format."""
    # strptime would accept one digit instead of two.
    if _width(format_) not in (0, len(text)):
        raise ValueError("digits are missing")
    time = datetime.strptime(text, format_)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() // 1)


@cache
def _width(format_: str) -> int:
    """Return the number of digits of a format of digits only, else 0."""
    text = datetime.now(UTC).strftime(format_)
    return len(text) if text.isdecimal() else 0


def _number(value: pa.Scalar) -> float:
    number: float = value.as_py()
    return int(number) if float(number).is_integer() else number


def _format_time(second: int) -> str:
    return str(np.datetime64(second, "s")).replace("T", " ")


def _suggest_units(number: float) -> str:
    """Return the end of a message: the units and formats in which a number is a time."""
    whole, suggestions = math.floor(number) if math.isfinite(number) else 0, []
    for unit in (*UNITS_PER_SECOND, *_USUAL_FORMATS):
        with suppress(ValueError):
            # Leading zeros may be lost.
            text = str(whole).zfill(_width(unit))
            second = whole // UNITS_PER_SECOND[unit] if unit in UNITS_PER_SECOND else _parse_time(text, unit)
            if SINCE <= second < UNTIL:
                suggestions.append(f"{unit} ({_format_time(second)})")
    return f"; it would fit as {' or '.join(suggestions)}" if suggestions else "; no unit would fit"

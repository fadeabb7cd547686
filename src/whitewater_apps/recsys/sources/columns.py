"""Columns of a source's files as columns of a log: their types by role, and their values.

Times are seconds since 1970 in a log; files have them as numbers of a unit, text or digits of a format, timestamps, or
dates.
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
from whitewater_apps.recsys.config import A_SECOND, FileColumn

Values: TypeAlias = pa.ChunkedArray | pa.Array
Seconds = npt.NDArray[np.int64]
# Integers up to here are exact as float64.
_EXACT = 1 << 53
_LARGEST = (1 << 63) - 1
# By role, the type in the log of a column that is null everywhere, and what other columns need.
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
# Far outside of all times, and well inside of 64 bits.
_FAR = 1 << 62


class RefusedError(ValueError):
    """A label or a time that can be read, but must not be in a log: it stops the run, as no malformed line does."""


@dataclass(frozen=True)
class Layout:
    """The columns to read, and what they become."""

    columns: tuple[FileColumn, ...]  # the source's columns, with roles; one is the label, at most one the time
    log_columns: tuple[LogColumn, ...]  # what the others are in the log
    positive: float | None = None  # a label of at least this is 1, one below it 0; None: labels are 0 or 1
    never_null: frozenset[str] = frozenset()  # columns in which a null is a fault

    def convert(
        self, raw: pa.Table, text_types: Mapping[str, pa.DataType], first: int = 0
    ) -> Iterator[tuple[int, dict[str, Values] | ValueError]]:
        """Yield the log's columns of some rows, and for a row that cannot be converted why, each with its place.

        Such a row is found by halving. Columns of ``text_types`` are text that is to be read as those types.
        """
        try:
            if len(raw):
                yield first, self._converted(raw, text_types)
        except ValueError as error:
            if len(raw) == 1:
                yield first, error
                return
            half = len(raw) // 2
            yield from self.convert(raw.slice(0, half), text_types, first)
            yield from self.convert(raw.slice(half), text_types, first + half)

    def _converted(self, raw: pa.Table, text_types: Mapping[str, pa.DataType]) -> dict[str, Values]:
        converted: dict[str, Values] = {}
        types = {column.name: TYPES[column.type] for column in self.log_columns}
        # Label and time come first, because they may stop the run.
        for column in sorted(self.columns, key=lambda column: column.name in types):
            values = raw.column(column.name)
            try:
                if column.name in text_types:
                    values = _parsed(values, text_types[column.name])
                if column.role == "label":
                    converted[LABEL] = _labels(values, self.positive)
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
    """Return the layout of some columns of files, given what the user calls each file and all its columns.

    A column that is null everywhere in a file agrees with any type. ``setting`` declares the columns, for messages.
    Raises InputError if a file lacks a column, or a type does not suit the role or differs between files.
    """
    log_columns = []
    for column in columns:
        types = []
        for origin, schema in schemas:
            if (count := schema.names.count(column.name)) != 1:
                fault = f"has {count} columns named" if count else "has no column"
                raise InputError(f"{origin} {fault} {column.name!r}; its columns are "
                                 f"{', '.join(schema.names) or 'none'}. Correct the file, or {setting}.")  # fmt: skip
            types.append((origin, _plain(schema.field(column.name).type)))
        known = [each for each in types if not pt.is_null(each[1])] or types[:1]
        first_origin, first = known[0]
        for origin, type_ in known:
            if type_ != first:
                raise InputError(f"{origin}: the column {column.name!r} is {type_}, but in {first_origin} it is "
                                 f"{first}. Write the files with one type.")  # fmt: skip
        of_nulls, needed = _ROLES[column.role]
        log_type = of_nulls if pt.is_null(first) else _log_type(column.role, column.unit, first)
        if log_type is None:
            role = f"{column.role} with the unit {column.unit}" if column.unit else column.role
            raise InputError(f"{first_origin}: the column {column.name!r} is {first}, but {role} is declared, which "
                             f"needs {needed}. Correct {setting}, or the file.")  # fmt: skip
        if column.role not in ("label", "time"):
            log_columns.append(LogColumn(column.name, column.role, log_type))
    return Layout(tuple(columns), tuple(log_columns), positive)


def _plain(type_: pa.DataType) -> pa.DataType:
    """Return a type without how it is stored: all kinds of text are one, and so are lists."""
    if pt.is_list(type_) or pt.is_large_list(type_):
        return pa.list_(_plain(type_.value_type))
    inner = type_.value_type if pt.is_dictionary(type_) else type_
    is_text = pt.is_string(inner) or pt.is_large_string(inner) or pt.is_string_view(inner)
    return pa.string() if is_text else type_


def _log_type(role: Role, unit: str | None, type_: pa.DataType) -> str | None:
    """Return the type in the log of a column, or None if its type does not suit its role."""
    is_integer, is_boolean, is_text = pt.is_integer(type_), pt.is_boolean(type_), pt.is_string(type_)
    if role == "time":
        has_format = unit is not None and unit not in A_SECOND
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


def _parsed(texts: Values, type_: pa.DataType) -> Values:
    """Return texts as a type, as float64 where integers have a fraction. Raises ValueError if one cannot be read."""
    if pt.is_string(type_) or pt.is_null(type_):
        return texts
    trimmed = pc.utf8_trim_whitespace(texts)
    with suppress(pa.ArrowInvalid):
        return pc.cast(trimmed, type_)
    return pc.cast(trimmed, pa.float64() if pt.is_integer(type_) else type_)


def _labels(values: Values, positive: float | None) -> pa.Array:
    """Return labels, int8. Raises RefusedError if one is null or NaN, or not 0 or 1 where ``positive`` is None."""
    # NumPy compares, because Arrow imports pandas to compare with a number.
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
    if pt.is_floating(values.type) and pt.is_integer(type_) and (pc.max(pc.abs(values)).as_py() or 0) > _EXACT:
        raise ValueError("a number is too large to be known exactly")
    if pt.is_uint64(values.type) and (largest := pc.max(values).as_py() or 0) > _LARGEST:
        raise ValueError(f"{largest} is above 2**63 - 1: store the column as float64, or as text")
    return pc.cast(values, type_)


def seconds(values: Values, unit: str | None) -> pa.Array:
    """Return times, at least one, as int64 seconds since 1970 in UTC, rounded down.

    Raises RefusedError if a time is null or outside of 1980 to 2100, or a number without a unit; ValueError if one is
    not of the format.
    """
    is_real = pt.is_floating(values.type)
    is_number = is_real or pt.is_integer(values.type)
    if values.null_count or (is_real and pc.any(pc.is_nan(values)).as_py()):
        raise RefusedError("a time is null")
    if is_number and unit is None:
        first = _number(values[0])
        raise RefusedError(f"a time is {first}, and its unit is not declared, by unit of the column{_fitting(first)}")
    if unit and unit not in A_SECOND:
        times = _of_format(values, unit)
    elif is_real:
        whole = np.floor(to_numpy(pc.cast(values, pa.float64())) / A_SECOND[unit or "s"])
        times = np.clip(whole, -_FAR, _FAR).astype(np.int64)
    else:
        numbers = pc.cast(values, pa.timestamp("s")) if pt.is_date(values.type) else values
        a_second = A_SECOND[numbers.type.unit if pt.is_timestamp(numbers.type) else unit or "s"]
        times = to_numpy(pc.cast(numbers, pa.int64())) // a_second
    outside = np.flatnonzero((times < SINCE) | (times >= UNTIL))
    if len(outside):
        value, shown, hint = values[int(outside[0])], _format_time(int(times[outside[0]])), ""
        if is_number:
            shown, hint = f"{_number(value)}, which as {unit} is {shown}", _fitting(_number(value))
        raise RefusedError(f"a time is {shown}, outside of 1980 to 2100{hint}")
    return to_arrow(times)


def _of_format(values: Values, format_: str) -> Seconds:
    # Integers have lost the zeros before their digits.
    width = _width(format_) if pt.is_integer(values.type) else 0
    texts = pc.cast(values, pa.string())
    distinct = pc.unique(texts)
    parsed = []
    for text in distinct.to_pylist():
        try:
            parsed.append(_instant(text.zfill(width), format_))
        except ValueError:
            fitting = _fitting(int(text)) if text.isdecimal() else ""
            raise ValueError(f"the time {text!r} is not of the form {format_}{fitting}") from None
    return np.asarray(np.array(parsed, np.int64)[to_numpy(pc.index_in(texts, value_set=distinct))])


def _instant(text: str, format_: str) -> int:
    """Return a text as seconds since 1970. Raises ValueError if it is of another format."""
    # Python would find one digit where there are two.
    if _width(format_) not in (0, len(text)):
        raise ValueError("digits are missing")
    time = datetime.strptime(text, format_)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() // 1)


@cache
def _width(format_: str) -> int:
    """Return how many digits a format has that consists of nothing else, or 0."""
    shown = datetime.now(UTC).strftime(format_)
    return len(shown) if shown.isdecimal() else 0


def _number(value: pa.Scalar) -> float:
    number: float = value.as_py()
    return int(number) if float(number).is_integer() else number


def _format_time(second: int) -> str:
    return str(np.datetime64(second, "s")).replace("T", " ")


def _fitting(number: float) -> str:
    """Return the end of a sentence on the units and formats in which a number is a time."""
    whole, fits = math.floor(number) if math.isfinite(number) else 0, []
    for unit in (*A_SECOND, *_USUAL_FORMATS):
        with suppress(ValueError):
            # Zeros before the digits may be lost.
            text = str(whole).zfill(_width(unit))
            second = whole // A_SECOND[unit] if unit in A_SECOND else _instant(text, unit)
            if SINCE <= second < UNTIL:
                fits.append(f"{unit} ({_format_time(second)})")
    return f"; it would fit as {' or '.join(fits)}" if fits else "; no unit would fit"

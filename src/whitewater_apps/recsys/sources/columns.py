"""Columns of a source's files as columns of a log: their types, and what becomes of their values.

Labels, other numbers and text; and times as seconds, which are numbers of a declared unit or format, text of a format,
timestamps, or dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from whitewater.errors import InputError
from whitewater.features.log_folder import LABEL, SINCE, TIME, TYPES, UNTIL, LogColumn
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater_apps.recsys.config import A_SECOND, FileColumn

Values: TypeAlias = pa.ChunkedArray | pa.Array
Seconds = npt.NDArray[np.int64]
_WIDTHS = {"Y": 4, **dict.fromkeys("ymdHMS", 2)}
_DIGITS_ONLY = re.compile(r"(?:%[YymdHMS])+")
_USUAL_FORMATS = [f"%{year}%m%d{rest}" for year in "Yy" for rest in ("", "%H", "%H%M", "%H%M%S")]
# Integers up to here are exact as float64.
_EXACT = 1 << 53
_LARGEST = (1 << 63) - 1
# Far outside of all times, and well inside of 64 bits.
_FAR = 1 << 62
_WANTED = {
    "label": "numbers or booleans",
    "continuous": "numbers or booleans",
    "categorical": "text or integers",
    "key": "text or integers",
    "list": "lists of text or integers",
    "time": "timestamps or dates without a unit, numbers with one, or text or integers with a format as the unit",
}


class RefusedError(ValueError):
    """A label or a time that can be read, but that no log may have: unlike a malformed line, it is never left out."""


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
        found: dict[str, Values] = {}
        # A label or a time that is none stops the run, so they are first.
        for column in sorted(self.columns, key=lambda each: each.name in self.types):
            values = raw.column(column.name)
            try:
                values = of_text(values, types[column.name]) if column.name in types else values
                if column.role == "label":
                    found[LABEL] = labels(values, self.positive)
                elif column.role == "time":
                    found[TIME] = seconds(values, column.unit)
                elif column.name in self.never_null and values.null_count:
                    raise ValueError("a value is null")
                else:
                    found[column.name] = cast(values, TYPES[self.types[column.name]])
            except RefusedError as error:
                raise RefusedError(f"column {column.name}: {error}") from error
            except (ValueError, pa.ArrowException) as error:
                raise ValueError(f"column {column.name}: {error}") from error
        return found


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
            return "int8" if pt.is_null(type_) or _number_type(type_) else None
        case "time":
            return "int64" if is_time(type_, column.unit) else None
        case "continuous":
            return "float64" if pt.is_null(type_) else _number_type(type_)
        case "list" if pt.is_null(type_):
            return "list<string>"
        case "list":
            inner = _category_type(type_.value_type) if pt.is_list(type_) or pt.is_large_list(type_) else None
            return inner and f"list<{inner}>"
        case _:
            return "string" if pt.is_null(type_) else _category_type(type_)


def _number_type(type_: pa.DataType) -> str | None:
    if pt.is_boolean(type_) or (pt.is_integer(type_) and type_.bit_width + pt.is_unsigned_integer(type_) <= 32):
        return "int32"
    if pt.is_integer(type_):
        return "int64"
    return "float64" if pt.is_floating(type_) or pt.is_decimal(type_) else None


def _category_type(type_: pa.DataType) -> str | None:
    if is_text(type_):
        return "string"
    return "int64" if pt.is_integer(type_) or pt.is_boolean(type_) else None


def _plain(type_: pa.DataType) -> str:
    """Return a type without what is a matter of storage: texts of all kinds are one."""
    if pt.is_list(type_) or pt.is_large_list(type_):
        return f"list<{_plain(type_.value_type)}>"
    return "text" if is_text(type_) else str(type_)


# ---- values


def is_text(type_: pa.DataType) -> bool:
    """Say whether a type is text, also text that is encoded by a dictionary."""
    inner = type_.value_type if pt.is_dictionary(type_) else type_
    return bool(pt.is_string(inner) or pt.is_large_string(inner) or pt.is_string_view(inner))


def of_text(texts: Values, type_: pa.DataType) -> Values:
    """Return texts as a type, as float64 where integers have a fraction. Raises ValueError if one cannot be read."""
    if is_text(type_) or pt.is_null(type_):
        return texts
    with suppress(pa.ArrowInvalid):
        return pc.cast(texts, type_)
    trimmed = pc.utf8_trim_whitespace(texts)
    with suppress(pa.ArrowInvalid):
        return pc.cast(trimmed, type_)
    return pc.cast(trimmed, pa.float64() if pt.is_integer(type_) else type_)


def labels(values: Values, positive: float | None) -> pa.Array:
    """Return labels, int8. Raises RefusedError if one is null or NaN, or none of 0 and 1 where ``positive`` is None."""
    found = pc.cast(values, pa.float64())
    # NumPy compares, because Arrow imports pandas to compare with a number.
    numbers = np.empty(0) if found.null_count else to_numpy(found)
    if found.null_count or np.isnan(numbers).any():
        raise RefusedError("a label is null")
    other = numbers[(numbers != 0) & (numbers != 1)]
    if positive is None and len(other):
        raise RefusedError(f"a label is {other[0]:g}, neither 0 nor 1")
    return to_arrow((numbers if positive is None else numbers >= positive).astype(np.int8))


def cast(values: Values, type_: pa.DataType) -> Values:
    """Return values as a type of the log.

    Raises ValueError if one is not an integer where an integer is wanted, or too large.
    """
    if pt.is_floating(values.type) and pt.is_integer(type_) and (pc.max(pc.abs(values)).as_py() or 0) > _EXACT:
        raise ValueError("a number is too large to be known exactly")
    if pt.is_uint64(values.type) and (largest := pc.max(values).as_py() or 0) > _LARGEST:
        raise ValueError(f"{largest} is above 2**63 - 1: store the column as float64, or as text")
    return pc.cast(values, type_)


def is_time(type_: pa.DataType, unit: str | None) -> bool:
    """Say whether times can be of a type, if their unit or format is the one that is declared, or None."""
    if pt.is_timestamp(type_) or pt.is_date(type_):
        return unit is None
    is_format = unit is not None and unit not in A_SECOND
    others = is_text(type_) if is_format else pt.is_floating(type_)
    return bool(pt.is_integer(type_) or pt.is_null(type_) or others)


def seconds(values: Values, unit: str | None) -> pa.Array:
    """Return times as int64 seconds since 1970 in UTC; fractions are cut off downwards.

    Raises RefusedError if one is null or outside of 1980 to 2100, or they are numbers without a unit, and ValueError if
    one is not of the format.
    """
    if values.null_count:
        raise RefusedError("a time is null")
    found = _seconds(values, unit)
    wrong = np.flatnonzero((found < SINCE) | (found >= UNTIL))
    if len(wrong):
        place = int(wrong[0])
        raise RefusedError(_outside(values[place], unit, int(found[place])))
    return to_arrow(found)


def _seconds(values: Values, unit: str | None) -> Seconds:
    if not len(values):
        return np.empty(0, np.int64)
    if pt.is_timestamp(values.type) or pt.is_date(values.type):
        stamps = pc.cast(values, pa.timestamp("s")) if pt.is_date(values.type) else values
        counts: Seconds = to_numpy(pc.cast(stamps, pa.int64()))
        return counts // A_SECOND[stamps.type.unit]
    if unit is None:
        first = _number(values[0].as_py())
        raise RefusedError(f"a time is {first}, and its unit is not declared, by unit of the column{_fitting(first)}")
    if unit not in A_SECOND:
        return _of_format(values, unit)
    numbers = to_numpy(values)
    if numbers.dtype.kind == "f":
        if np.isnan(numbers).any():
            raise RefusedError("a time is null")
        whole = np.maximum(np.floor(numbers.astype(np.float64) / A_SECOND[unit]), -_FAR)
    else:
        wide = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
        whole = wide // wide.dtype.type(A_SECOND[unit])
    found: Seconds = np.minimum(whole, _FAR).astype(np.int64)
    return found


def _of_format(values: Values, format_: str) -> Seconds:
    # Of an integer the zeros before its digits are lost.
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
    found: Seconds = np.array(parsed, np.int64)[to_numpy(pc.index_in(texts, value_set=distinct))]
    return found


def _instant(text: str, format_: str) -> int:
    """Return the seconds that a text tells. Raises ValueError if it is of another format."""
    # Python would find one digit where there are two.
    if _width(format_) not in (0, len(text)):
        raise ValueError("digits are missing")
    found = datetime.strptime(text, format_)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() // 1)


def _width(format_: str) -> int:
    """Return how many digits a format of nothing else has, or 0."""
    return sum(_WIDTHS[each] for each in format_[1::2]) if _DIGITS_ONLY.fullmatch(format_) else 0


def _outside(value: pa.Scalar, unit: str | None, found: int) -> str:
    is_number = pt.is_integer(value.type) or pt.is_floating(value.type)
    limits = f"outside of {_format_time(SINCE)[:4]} to {_format_time(UNTIL)[:4]}"
    if not is_number or unit is None:
        return f"a time is {_format_time(found)}, {limits}"
    number = _number(value.as_py())
    return f"a time is {number}, which as {unit} is {_format_time(found)}, {limits}{_fitting(number)}"


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else float(value)


def _format_time(second: int) -> str:
    if not 0 <= second + 62_135_596_800 < 315_537_897_600:
        return "before the year 1" if second < 0 else "after the year 9999"
    return str(np.datetime64(second, "s")).replace("T", " ")


def _fitting(value: float) -> str:
    """Return the end of a sentence on the units of which a number is a time."""
    found: list[tuple[str, int]] = []
    with suppress(OverflowError, ValueError):  # of an infinite number
        found += [(unit, int(value // a_second)) for unit, a_second in A_SECOND.items()]
    for format_ in _USUAL_FORMATS:
        # One zero before the digits may be lost.
        for text in (str(value), f"0{value}"):
            with suppress(ValueError):
                found.append((format_, _instant(text, format_)))
    fits = [f"{unit} ({_format_time(second)})" for unit, second in found if SINCE <= second < UNTIL]
    return f"; it would fit as {' or '.join(fits)}" if fits else "; no unit would fit"

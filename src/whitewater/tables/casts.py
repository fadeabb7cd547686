"""Columns of Arrow as one of three kinds, whatever type the file chose: numbers, points in time, text.

Text becomes a number only where every character of it belongs to one number, so a torn field is never half read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

Kind = Literal["number", "timestamp", "text"]
MICROSECONDS = pa.timestamp("us")
TEXT = pa.dictionary(pa.int32(), pa.string())
# The type of a column that a file of text has, or one without values.
TYPES: dict[Kind, pa.DataType] = {"number": pa.float64(), "timestamp": MICROSECONDS, "text": TEXT}
# Longest date with a fraction that fits microseconds: what follows in a nanosecond text is cut off, as flooring does.
_TIMESTAMP_CHARACTERS = 26
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY_OF_YEAR = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_TIME_OF_DAY = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)?"
_TIMESTAMP_TEXT = rf"^(?:\d{{4}}-(?:{_DAY_OF_YEAR})|{_LEAP_YEAR}-02-29)(?:[ T]{_TIME_OF_DAY})?$"
_NUMBER_TEXT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Clock:
    """How times are read.

    Those with a zone become what a clock in ``zone`` read at that instant. Text is of ``form``, in the notation of
    C's ``strptime``, or where that is empty as ISO 8601 has it, without a zone.
    """

    zone: str
    form: str = ""


def cast_column(column: pa.ChunkedArray | pa.Array, kind: Kind, *, clock: Clock) -> pa.ChunkedArray | pa.Array:
    """Return a column as one of a kind, nulls as nulls.

    Parameters
    ----------
    column
        Numbers, decimals, booleans, timestamps, dates, text (plain or in a dictionary), or Arrow's null type.
    kind
        ``number`` gives integers or floats, as they are stored, and float64 of all else; NaN stays. ``timestamp`` gives
        ``timestamp[us]``, nanoseconds floored. ``text`` gives text in a dictionary, numbers as pyarrow writes them.
    clock
        How times are read.

    Raises
    ------
    ValueError, pyarrow.ArrowException
        If a value, or the type, cannot become the kind.
    """
    if kind == "text":
        return column if column.type == TEXT else column.cast(pa.string()).dictionary_encode()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return column.cast(TYPES[kind])
    return _times(column, clock) if kind == "timestamp" else _numbers(column)


def is_plain(type_: pa.DataType, kind: Kind) -> bool:
    """Tell whether every library of data frames reads columns of a type as the kind, without a cast."""
    if kind == "timestamp":
        return bool(type_ == MICROSECONDS)
    if kind == "text":
        return _is_text(type_)
    return bool(pa.types.is_integer(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_))


def are_readable(column: pa.ChunkedArray, kind: Kind, clock: Clock) -> pa.ChunkedArray:
    """Tell which texts can be read as numbers or times, or as their null: bool (rows,), without nulls."""
    texts = _null_where_empty(column)
    readable = _are_times(texts, clock.form) if kind == "timestamp" else _are_numbers(texts)
    return pc.or_(readable.fill_null(True), texts.is_null())


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _times(values: pa.ChunkedArray, clock: Clock) -> pa.ChunkedArray:
    if _is_text(values.type):
        texts = _null_where_empty(values)
        meaning = f"of the form {clock.form}" if clock.form else "such as 2019-03-01 08:00:00, without zone"
        _refuse(texts, _are_times(texts, clock.form), f"a time {meaning}")
        values = _of_form(texts, clock.form) if clock.form else _of_iso(texts)
    if pa.types.is_date(values.type):
        return values.cast(MICROSECONDS)
    if not pa.types.is_timestamp(values.type):
        raise ValueError(f"{values.type} is not a point in time")
    if values.type.tz is not None:
        values = pc.local_timestamp(values.cast(pa.timestamp(values.type.unit, clock.zone)))
    if values.type.unit == "ns":
        values = pc.floor_temporal(values, unit="microsecond")
    try:
        return values.cast(MICROSECONDS)
    except pa.ArrowInvalid as error:
        raise ValueError("has a time beyond the year 290,000") from error


def _numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if is_plain(values.type, "number"):
        return values
    if _is_text(values.type):
        texts = _null_where_empty(values)
        _refuse(texts, _are_numbers(texts), "a number")
        return texts.cast(pa.float64())
    if pa.types.is_temporal(values.type):
        raise ValueError(f"{values.type} is not a number")
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return values.cast(pa.float64(), safe=False)


def _are_times(texts: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
    return _of_form(texts, form).is_valid() if form else pc.match_substring_regex(texts, _TIMESTAMP_TEXT)


def _of_iso(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_slice_codeunits(texts, 0, _TIMESTAMP_CHARACTERS).cast(MICROSECONDS)


def _of_form(texts: pa.ChunkedArray, form: str) -> pa.Array:
    """Return texts as times, null where they are of another form; Arrow's own parser takes February 31 for March 3."""
    import pandas as pd

    times = pd.to_datetime(texts.to_pandas(), format=form, errors="coerce", utc="%z" in form)
    return pa.Array.from_pandas(times)


def _are_numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tell numbers of any size but those beyond the doubles."""
    are_numbers = pc.match_substring_regex(texts, _NUMBER_TEXT)
    return pc.and_(are_numbers, pc.is_finite(pc.if_else(are_numbers, texts, "0").cast(pa.float64())))


def _null_where_empty(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    return pc.if_else(pc.equal(pc.utf8_length(trimmed), 0), None, trimmed)


def _refuse(texts: pa.ChunkedArray, accepted: pa.ChunkedArray, meaning: str) -> None:
    refused = texts.filter(pc.and_(pc.invert(accepted), texts.is_valid()))
    if len(refused):
        raise ValueError(f"{refused[0].as_py()!r} is not {meaning}")

"""Casts of Arrow columns, and of lines of CSV, to one of three kinds: numbers, timestamps or text.

Text becomes a number only if all of it is one number, so a cut-off field is never half read. Lines that cannot be
parsed are returned unchanged.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater import lazy_pandas as pd
from whitewater.engines import Array
from whitewater.io.text_files import is_utf8_text, nonempty_lines, parse_valid_lines

Kind = Literal["number", "timestamp", "text"]
Column: TypeAlias = pa.ChunkedArray | pa.Array
MICROSECONDS = pa.timestamp("us")
REPLACEMENT = "\ufffd"  # stands for bytes that are not UTF-8
TEXT = pa.dictionary(pa.int32(), pa.string())
# The type of a column that was read from text, or that has no values.
TYPES: dict[Kind, pa.DataType] = {"number": pa.float64(), "timestamp": MICROSECONDS, "text": TEXT}
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY_OF_YEAR = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_TIME_OF_DAY = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)?"
_TIMESTAMP_TEXT = rf"^(?:\d{{4}}-(?:{_DAY_OF_YEAR})|{_LEAP_YEAR}-02-29)(?:[ T]{_TIME_OF_DAY})?$"
_NUMBER_TEXT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Clock:
    """How times are read."""

    zone: str  # times with a zone are converted to local time in this one
    form: str = ""  # the format of text, as for C's `strptime`; empty: ISO 8601 without a zone


class Lines(NamedTuple):
    """The columns of the lines that could be parsed, and the malformed lines without line ends, both in file order."""

    table: pa.Table
    malformed: tuple[str, ...]


def parse_lines(data: bytes | memoryview, names: Sequence[str], kinds: Mapping[str, Kind], *, clock: Clock) -> Lines:
    r"""Parse whole lines of CSV without a header.

    Lines end with ``\n`` or ``\r\n``; a quoted field does not continue in the next line. Empty lines are skipped.
    ``names`` are all fields of a line, in order. ``kinds`` selects the fields to read, as float64, ``timestamp[us]`` or
    dictionary-encoded text. An empty field is null. Blanks around numbers are ignored.

    A line is malformed if it has another number of fields, an unbalanced quote, or a field that is not of its kind; of
    text, that is not UTF-8. In malformed lines, bytes that are not UTF-8 become escapes such as ``\xff``.
    """
    data = data if data[-1:] == b"\n" else bytes(data) + b"\n"
    table, faults = _parse(data, names, kinds, clock)
    readable = np.ones(len(table), bool)
    columns = {name: table[name] for name in kinds}
    for name, kind in kinds.items():
        if kind != "text" and columns[name].type == pa.string():
            columns[name], is_readable = _read_text(columns[name], kind, clock)
            readable &= is_readable.to_numpy()
    line_numbers = np.delete(np.arange(len(table) + len(faults)), list(faults))
    readable &= _are_utf8(data, table, line_numbers)
    malformed = sorted([*faults, *line_numbers[~readable]])
    lines = nonempty_lines(bytes(data)) if malformed else []
    rows = pa.table(columns) if readable.all() else pa.table(columns).filter(pa.array(readable))
    return Lines(rows, tuple(lines[number].decode("utf-8", "backslashreplace") for number in malformed))


def _parse(
    data: bytes | memoryview, names: Sequence[str], kinds: Mapping[str, Kind], clock: Clock
) -> tuple[pa.Table, dict[int, str]]:
    """Return the sound lines and the faults of the others; numbers and times stay text if one may be unreadable."""
    types = {name: TYPES[kind] for name, kind in kinds.items()}
    parse = partial(parse_valid_lines, data, names, delimiter=",", quoted=True, errors="replace")
    if not clock.form:
        with suppress(ValueError):
            table, faults = parse(types)
            sums = [pc.sum(table[name], min_count=0).as_py() for name, kind in kinds.items() if kind == "number"]
            # If not, there is a "nan" or "inf", or a number or a sum overflows.
            if all(map(math.isfinite, sums)):
                return table, faults
    return parse({name: type_ if type_ == TEXT else pa.string() for name, type_ in types.items()})


def _are_utf8(data: bytes | memoryview, table: pa.Table, line_numbers: Array) -> Array:
    """Return whether the texts of each row were UTF-8, and not replaced by `REPLACEMENT`, bool (rows,)."""
    is_utf8 = np.ones(len(table), bool)
    for texts in (column for column in table.columns if column.type == TEXT):
        if any(pc.any(pc.match_substring(chunk.dictionary, REPLACEMENT)).as_py() for chunk in texts.chunks):
            rows = pc.indices_nonzero(pc.match_substring(texts.cast(pa.string()), REPLACEMENT)).to_numpy()
            lines = nonempty_lines(bytes(data))
            is_utf8[rows] &= [is_utf8_text(lines[number]) for number in line_numbers[rows]]
    return is_utf8


def cast_column(column: Column, kind: Kind, *, clock: Clock) -> Column:
    """Cast a column to a kind; nulls stay null.

    ``column`` holds numbers, decimals, booleans, timestamps, dates, text (plain or in a dictionary), or only nulls.
    Integers and floats keep their type as a ``number``, everything else becomes float64; NaN stays. ``timestamp`` gives
    ``timestamp[us]``, with nanoseconds floored. ``text`` gives dictionary-encoded text, with numbers as pyarrow writes
    them.

    Raises ValueError or pyarrow.ArrowException if a value, or the type, cannot become the kind.
    """
    if kind == "text":
        return column if column.type == TEXT else column.cast(pa.string()).dictionary_encode()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return column.cast(TYPES[kind])
    if is_plain(column.type, "text"):
        values, is_readable = _read_text(column, kind, clock)
        unreadable = column.filter(pc.invert(is_readable))
        if len(unreadable):
            form = f"of the form {clock.form}" if clock.form else "such as 2019-03-01 08:00:00, without zone"
            expected = "a number" if kind == "number" else f"a time {form}"
            raise ValueError(f"{unreadable[0].as_py().strip()!r} is not {expected}")
        return values
    if kind == "timestamp":
        return _cast_times(column, clock)
    if pa.types.is_temporal(column.type):
        raise ValueError(f"{column.type} is not a number")
    return column if is_plain(column.type, "number") else column.cast(pa.float64(), safe=False)


def is_plain(type_: pa.DataType, kind: Kind) -> bool:
    """Return whether data frame libraries read a type as the kind without a cast."""
    if kind == "timestamp":
        return bool(type_ == MICROSECONDS)
    if kind == "text":
        return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
    return bool(pa.types.is_integer(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_))


def _read_text(texts: Column, kind: Kind, clock: Clock) -> tuple[Column, Column]:
    """Return the numbers or times in texts, and whether each could be read, bool (rows,). Blank text is null."""
    trimmed = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    texts = pc.if_else(pc.equal(pc.utf8_length(trimmed), 0), None, trimmed)
    if kind == "number":
        values = _keep_matches(texts, _NUMBER_TEXT).cast(pa.float64())
        # A number that overflows is not readable.
        values = pc.if_else(pc.is_finite(values), values, None)
    elif clock.form:
        # Arrow's own parser reads February 31 as March 3.
        times = pd.to_datetime(texts.to_pandas(), format=clock.form, errors="coerce", utc="%z" in clock.form)
        values = _cast_times(pa.Array.from_pandas(times), clock)
    else:
        iso = _keep_matches(texts, _TIMESTAMP_TEXT)
        # Cutting off the digits after microseconds floors nanoseconds.
        values = pc.utf8_slice_codeunits(iso, 0, len("2019-03-01 08:00:00.000000")).cast(MICROSECONDS)
    return values, pc.equal(values.is_valid(), texts.is_valid())


def _keep_matches(texts: Column, pattern: str) -> Column:
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)


def _cast_times(values: Column, clock: Clock) -> Column:
    if pa.types.is_date(values.type):
        return values.cast(MICROSECONDS)
    if not pa.types.is_timestamp(values.type):
        raise ValueError(f"{values.type} is not a point in time")
    if values.type.tz is not None:
        values = pc.local_timestamp(values.cast(pa.timestamp(values.type.unit, clock.zone)))
    if values.type.unit == "ns":
        # Not by `floor_temporal`, which overflows for the first time that nanoseconds can tell.
        rounded = values.cast(MICROSECONDS, safe=False)
        is_later = pc.greater(rounded.cast(values.type), values)
        return pc.if_else(is_later, pc.subtract(rounded, pa.scalar(1, pa.duration("us"))), rounded)
    try:
        return values.cast(MICROSECONDS)
    except pa.ArrowInvalid as error:
        raise ValueError("has a time beyond the year 290,000") from error

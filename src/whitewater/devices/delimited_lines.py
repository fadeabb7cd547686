"""The kernels that parse lines of comma-separated text: each field goes straight into its number.

They use nothing but numbers and array elements, so that a thread of a GPU parses a line as a loop on the CPU does, with
the same result.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from whitewater.devices.delimited_fields import (
    DIGITS,
    EXACT,
    HYPHEN,
    POINT,
    POWERS,
    SPACE,
    TAB,
    UNREADABLE,
    WHOLE_SECOND,
    ZERO,
    integer,
    number,
    timestamp,
)
from whitewater.devices.kernel import int64, kernel, part
from whitewater.devices.protocol import BAD_INTEGER, Array

# How a field is parsed.
SKIPPED, FLOAT, INTEGER, TIMESTAMP, TEXT = range(5)
# What a line is, where each has a thread.
BLANK, MALFORMED, PARSED = range(3)
# A span of text is ``begin << 32 | length``; this one stands for null.
NULL_SPAN = -1
LENGTH = 2**32 - 1

COMMA, NEWLINE, RETURN, QUOTE = b',\n\r"'
# What became of a field.
_REFUSED, _STORED, _LONG = range(3)
# Sign, point and 15 digits: below 2**53.
_PLAIN_CHARACTERS = 16


class Columns(NamedTuple):
    """Where the fields of a line go.

    ``kinds`` and ``slots``, int8 (fields,): how a field is parsed, and which column takes it. ``integers`` int64 and
    ``floats`` float64 (columns, lines) are the same memory: numbers, microseconds, spans of text. ``long`` int64
    (lines,): bit ``slot`` is set where a number has too many digits, and ``integers`` has its span instead.
    """

    kinds: Array
    slots: Array
    integers: Array
    floats: Array
    long: Array


@part
def parse_line(data: Array, start: int, row: int, columns: Columns) -> int:
    """Parse the line that begins at ``start`` into one row of the columns.

    Returns
    -------
    int
        Where the next line begins, or 0 if this one is malformed.
    """
    position = start
    columns.long[row] = 0
    for field in range(len(columns.kinds)):
        kind, place = columns.kinds[field], (columns.slots[field], row)
        following = _plain_field(data, position, kind, place, columns)
        if following == 0:
            begin, end, following = field_at(data, position)
            done = _store(data, (begin, end), kind, place, columns)
            if following == 0 or done == _REFUSED:
                return 0
            if done == _LONG:
                columns.long[row] |= int64(1) << columns.slots[field]
        position = following
        if (data[position - 1] == NEWLINE) != (field == len(columns.kinds) - 1):
            return 0
    return position


@part
def is_blank(data: Array, start: int) -> bool:
    """Return whether a line is empty; it is no row then."""
    return data[start] == NEWLINE or (data[start] == RETURN and data[start + 1] == NEWLINE)


@part
def _plain_field(data: Array, start: int, kind: int, place: tuple[int, int], columns: Columns) -> int:
    """Parse a field of the usual form, many times as fast as any form; return where the next begins, or 0."""
    if kind == TIMESTAMP:
        return _plain_timestamp(data, start, place, columns)
    if kind in (FLOAT, INTEGER):
        return _plain_number(data, start, kind, place, columns)
    return 0


@part
def _plain_number(data: Array, start: int, kind: int, place: tuple[int, int], columns: Columns) -> int:
    """Parse digits with a sign and a point; see `_plain_field`."""
    first = start + (data[start] == HYPHEN)
    mantissa, point = _more_digits(data, first, int64(0))
    stop = point
    if data[point] == POINT:
        mantissa, stop = _more_digits(data, point + 1, mantissa)
    following = _after_delimiter(data, stop)
    if stop - first > _PLAIN_CHARACTERS or stop - first == (data[first] == POINT) or following == 0:
        return 0
    decimals = max(stop - point - 1, 0)
    if kind == FLOAT:
        columns.floats[place] = (1 if first == start else -1) * (mantissa / POWERS[decimals])
        return following
    while decimals > 0 and mantissa % 10 == 0:
        mantissa //= 10
        decimals -= 1
    columns.integers[place] = mantissa if decimals == 0 and (first == start or mantissa == 0) else BAD_INTEGER
    return following


@part
def _more_digits(data: Array, position: int, mantissa: int) -> tuple[int, int]:
    digit = int64(data[position]) - ZERO
    while 0 <= digit <= 9:
        mantissa = mantissa * 10 + digit
        position += 1
        digit = int64(data[position]) - ZERO
    return mantissa, position


@part
def _after_delimiter(data: Array, position: int) -> int:
    """Return the position after a comma or the end of the line, or 0 if none is there."""
    if data[position] in (COMMA, NEWLINE):
        return position + 1
    return position + 2 if data[position] == RETURN and data[position + 1] == NEWLINE else 0


@part
def _plain_timestamp(data: Array, start: int, place: tuple[int, int], columns: Columns) -> int:
    """Parse a time with whole seconds; see `_plain_field`."""
    end = start + WHOLE_SECOND
    following = _after_delimiter(data, end) if end < len(data) - 1 else 0
    if following == 0:
        return 0
    value = timestamp(data, start, end)
    columns.integers[place] = value
    return following if value != UNREADABLE else 0


@part
def field_at(data: Array, start: int) -> tuple[int, int, int]:
    """Return begin and end of a field, quotes included, and where the next begins: 0 where the quotes are unsound."""
    end = _after_quotes(data, start) if data[start] == QUOTE else start
    while data[end] not in (COMMA, NEWLINE):
        end += 1
    following = end + 1
    if data[end] == NEWLINE and end > start and data[end - 1] == RETURN:
        end -= 1
    if data[start] == QUOTE and (end - start < 2 or end != _after_quotes(data, start)):
        following = 0
    return start, end, following


@kernel
def _after_quotes(data: Array, start: int) -> int:
    """Return where a quoted field ends, in which two quotes stand for one; ``start`` if the line ends before."""
    position = start + 1
    while data[position] != NEWLINE:
        if data[position] == QUOTE:
            if data[position + 1] != QUOTE:
                return position + 1
            position += 1
        position += 1
    return start


@part
def _store(data: Array, bounds: tuple[int, int], kind: int, place: tuple[int, int], columns: Columns) -> int:
    """Parse a field of any form."""
    begin, end = bounds
    if kind == SKIPPED:
        return _STORED
    if kind == TEXT:
        columns.integers[place] = span(begin, end) if end > begin else NULL_SPAN
        return _STORED
    begin, end = _trimmed(data, begin, end)
    if kind == FLOAT:
        return _store_float(data, begin, end, place, columns)
    value = timestamp(data, begin, end) if kind == TIMESTAMP else integer(data, begin, end)
    columns.integers[place] = value
    return _STORED if value != UNREADABLE else _REFUSED


@part
def span(begin: int, end: int) -> int:
    """Pack begin and end of a text into one number."""
    return int64(begin) << 32 | (end - begin)


@part
def _store_float(data: Array, begin: int, end: int, place: tuple[int, int], columns: Columns) -> int:
    if begin == end:
        columns.floats[place] = np.nan
        return _STORED
    mantissa, exponent, sign = number(data, begin, end)
    if sign == 0:
        return _REFUSED
    if mantissa < 0 or mantissa > EXACT or exponent >= len(POWERS) or exponent <= -len(POWERS):
        columns.integers[place] = span(begin, end)
        return _LONG
    columns.floats[place] = sign * (mantissa / POWERS[-exponent] if exponent < 0 else mantissa * POWERS[exponent])
    return _STORED


@part
def _trimmed(data: Array, begin: int, end: int) -> tuple[int, int]:
    """Return a field without its quotes and the blanks around it."""
    if begin < end and data[begin] == QUOTE:
        begin, end = begin + 1, end - 1
    while begin < end and data[begin] in (SPACE, TAB):
        begin += 1
    while begin < end and data[end - 1] in (SPACE, TAB):
        end -= 1
    return begin, end


@kernel
def parse_lines(data: Array, position: int, columns: Columns, malformed: Array) -> tuple[int, int, int]:
    """Parse lines from ``position`` until the columns are full or the data end.

    Parameters
    ----------
    data
        uint8, ends with a newline.
    position
        Where the first line begins.
    columns
        Filled.
    malformed
        int64 (lines at most, 2), takes begin and end of the lines that cannot be parsed.

    Returns
    -------
    tuple of int
        Where the next line begins, the number of lines parsed, and of malformed ones.
    """
    rows = faults = 0
    while position < len(data) and rows < len(columns.long) and faults < len(malformed):
        following = parse_line(data, position, rows, columns)
        if following > 0:
            rows += 1
        else:
            following = position
            while data[following] != NEWLINE:
                following += 1
            following += 1
            if not is_blank(data, position):
                malformed[faults, 0], malformed[faults, 1] = position, following - 1
                faults += 1
        position = following
    return position, rows, faults


@cache
def gpu_parse_lines() -> Any:
    """Return the kernel that parses lines on a GPU, a thread to each.

    Its arguments: the data; where lines begin, int64 (lines,); the columns; and what each line is, int8 (lines,), which
    it fills.
    """
    from numba import cuda

    @cuda.jit
    def parse(data: Array, starts: Array, columns: Columns, states: Array) -> None:
        line = cuda.grid(1)
        if line < len(starts):
            if is_blank(data, starts[line]):
                states[line] = BLANK
            else:
                states[line] = PARSED if parse_line(data, starts[line], line, columns) > 0 else MALFORMED

    return parse

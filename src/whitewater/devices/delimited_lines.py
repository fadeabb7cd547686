"""The kernels that parse lines of comma-separated text: each field goes straight into its number.

They use nothing but numbers and array elements, so that a thread of a GPU parses a line as a loop on the CPU does, with
the same result.
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.blocks import Array
from whitewater.devices.delimited_fields import (
    UNREADABLE,
    WHOLE_SECOND,
    double,
    integer,
    number,
    plain_number,
    timestamp,
    trimmed,
    whole,
)
from whitewater.devices.kernel import int64, kernel, part, uint64

# How a field is parsed.
SKIPPED, FLOAT, INTEGER, TIMESTAMP, TEXT = range(5)
# What a line is.
BLANK, MALFORMED, PARSED = range(3)
# Rows of the integers after those of the columns: which columns of a line have a number with too many digits, a bit for
# each; and what the line is (on the GPU), or the spans of malformed lines (on the CPU).
LONG, STATE = -2, -1
EXTRA_ROWS = 2
# A span of text is ``begin << 32 | length``; this one stands for null.
NULL_SPAN = -1
LENGTH = 2**32 - 1
_COMMA, NEWLINE, _RETURN, _QUOTE = b',\n\r"'
_KIND_BITS = 3
# Eight bytes at once: one of each, and the bits of each but its highest one.
_WORD, _SHIFT = 8, uint64(8)
_ONES, _LOW_BITS = uint64(0x0101010101010101), uint64(0x7F7F7F7F7F7F7F7F)
_COMMAS, _NEWLINES, _QUOTES = uint64(_COMMA) * _ONES, uint64(NEWLINE) * _ONES, uint64(_QUOTE) * _ONES


def plan_of(kinds: Array, slots: Array) -> Array:
    """Pack how each field is parsed, and which row takes it, into one integer.

    The slot of a field that is skipped is how many are from it to the next one that is not.
    """
    packed, run = slots.copy(), 0
    for field in range(len(kinds) - 1, -1, -1):
        run = run + 1 if kinds[field] == SKIPPED else 0
        packed[field] = run or slots[field]
    plan: Array = kinds | packed << _KIND_BITS
    return plan


@part
def parse_line(data: Array, at: tuple[int, int], plan: Array, integers: Array, floats: Array) -> int:
    """Parse a line into one column of the arrays.

    Parameters
    ----------
    data
        uint8, ends with a newline.
    at
        Where the line begins, and the column of the arrays that takes it.
    plan
        int16 (fields,), see `plan_of`.
    integers
        int64 (wanted fields + `EXTRA_ROWS`, lines): integers, microseconds, spans of text.
    floats
        float64 (wanted fields, lines); may be the same memory.

    Returns
    -------
    int
        Where the next line begins, or 0 if this one is malformed.
    """
    position, line = at
    integers[LONG, line] = 0
    field = 0
    while field < len(plan):
        kind, slot = plan[field] & ((1 << _KIND_BITS) - 1), plan[field] >> _KIND_BITS
        if kind == SKIPPED:
            field += slot
            position = _after_fields(data, position, slot, field == len(plan))
            if position == 0:
                return 0
            continue
        value, real, following = _plain_field(data, position, kind)
        is_long = False
        if following == 0:
            value, real, following = _any_field(data, position, kind)
            is_long = kind == FLOAT and value != 0
        if following == 0 or (data[following - 1] == NEWLINE) != (field == len(plan) - 1):
            return 0
        if is_long:
            integers[LONG, line] |= int64(1) << slot
        if kind == FLOAT and not is_long:
            floats[slot, line] = real
        else:
            integers[slot, line] = value
        position = following
        field += 1
    return position


@part
def is_blank(data: Array, start: int) -> bool:
    """Return whether a line is empty; it is no row then."""
    if data[start] == _RETURN:
        start += 1
    blank: bool = data[start] == NEWLINE
    return blank


@part
def _after_fields(data: Array, start: int, fields: int, are_last: bool) -> int:
    """Return the position after fields and the delimiter of the last of them, or 0 where the line is malformed."""
    position, fields = _over_words(data, start, fields, are_last)
    while fields > 0:
        if data[position] == _QUOTE and (position == start or data[position - 1] == _COMMA):
            position = field_at(data, position)[2]
        else:
            position = _end_of_field(data, position, position)[1]
        fields -= 1
        if position == 0 or (data[position - 1] == NEWLINE) != (are_last and fields == 0):
            return 0
        position, fields = _over_words(data, position, fields, are_last)
    return position


@part
def _over_words(data: Array, position: int, fields: int, are_last: bool) -> tuple[int, int]:
    """Go over fields by eight bytes at once, until there is a quote in them or the data end.

    Returns the position, which may be within a field, and the number of fields left, that one included. If none is
    left, the position is 0 where the line is malformed.
    """
    while fields > 0 and position + _WORD <= len(data):
        word = _word_at(data, position)
        newlines = _bytes_equal(word, _NEWLINES)
        ends = newlines | _bytes_equal(word, _COMMAS)
        if _bytes_equal(word, _QUOTES) != 0:
            break
        count = _count(ends)
        if count >= fields:
            for _ in range(fields - 1):
                ends &= ends - uint64(1)
            before = (ends - uint64(1)) & ~ends
            is_end_of_line = newlines & ends & ~(ends - uint64(1)) != 0
            is_sound = newlines & before == 0 and is_end_of_line == are_last
            return (position + _count(before & _ONES) + 1 if is_sound else 0), 0
        if newlines != 0:
            return 0, 0
        fields -= count
        position += _WORD
    return position, fields


@part
def _word_at(data: Array, position: int) -> int:
    """Return eight bytes, the first one in the lowest bits."""
    # Unsigned, so that no index may count from the end: the compiler then reads the eight at once.
    at, word = uint64(position), uint64(0)
    for place in range(_WORD):
        word |= uint64(data[at + uint64(place)]) << (uint64(place) * _SHIFT)
    return word


@part
def _bytes_equal(word: int, repeated: int) -> int:
    """Return a word whose byte is 1 where the bytes of both words are equal, and else 0."""
    differing = word ^ repeated
    # The sum carries into the highest bit of a byte, and no further, unless its lower bits are zero.
    return (~((differing & _LOW_BITS) + _LOW_BITS | differing) >> uint64(7)) & _ONES


@part
def _count(ones: int) -> int:
    """Return the sum of the bytes of a word, each of which is 0 or 1."""
    ones += ones >> uint64(32)
    ones += ones >> uint64(16)
    ones += ones >> uint64(8)
    return int64(ones & uint64(15))


@part
def _plain_field(data: Array, start: int, kind: int) -> tuple[int, float, int]:
    """Return integer, float, and where the next field begins: 0 where this one is not of the usual form."""
    value, real, following = int64(0), 0.0, 0
    if kind == TIMESTAMP:
        end = start + WHOLE_SECOND
        following = _after_delimiter(data, end) if end < len(data) - 1 else 0
        if following > 0:
            value = timestamp(data, start, end)
            following = following if value != UNREADABLE else 0
    elif (kind == FLOAT) | (kind == INTEGER):
        sign, mantissa, decimals, end = plain_number(data, start)
        following = _after_delimiter(data, end) if end > 0 else 0
        if kind == FLOAT:
            real = double(sign, mantissa, -decimals)
        elif following > 0:
            value = whole(sign, mantissa, -decimals)
    elif data[start] != _QUOTE:
        end, following = _end_of_field(data, start, start)
        value = _span(start, end) if end > start else int64(NULL_SPAN)
    return value, real, following


@part
def _end_of_field(data: Array, start: int, position: int) -> tuple[int, int]:
    """Return where the field ends and the next begins, looking from ``position`` on."""
    while (data[position] != _COMMA) & (data[position] != NEWLINE):
        position += 1
    has_return = data[position] == NEWLINE and position > start and data[position - 1] == _RETURN
    return position - has_return, position + 1


@part
def _after_delimiter(data: Array, position: int) -> int:
    """Return the position after a comma or the end of the line, or 0 if none is there."""
    if (data[position] == _COMMA) | (data[position] == NEWLINE):
        return position + 1
    return position + 2 if data[position] == _RETURN and data[position + 1] == NEWLINE else 0


@kernel
def _any_field(data: Array, start: int, kind: int) -> tuple[int, float, int]:
    """Return integer, float, and where the next field begins: 0 where this one is malformed.

    The integer is the span of a text, and of a number that takes more than one operation to become a double.
    """
    begin, end, following = field_at(data, start)
    value, real = int64(0), 0.0
    if kind == TEXT:
        value = _span(begin, end) if end > begin else int64(NULL_SPAN)
    if (kind == SKIPPED) | (kind == TEXT) | (following == 0):
        return value, real, following
    if data[start] == _QUOTE:
        begin, end = begin + 1, end - 1
    begin, end = trimmed(data, begin, end)
    if kind == FLOAT:
        return _any_float(data, begin, end, following)
    value = timestamp(data, begin, end) if kind == TIMESTAMP else integer(data, begin, end)
    return value, real, following if value != UNREADABLE else 0


@part
def _any_float(data: Array, begin: int, end: int, following: int) -> tuple[int, float, int]:
    if begin == end:
        return int64(0), np.nan, following
    sign, mantissa, exponent = number(data, begin, end)
    real = double(sign, mantissa, exponent)
    return (_span(begin, end) if np.isnan(real) else int64(0)), real, following if sign != 0 else 0


@part
def _span(begin: int, end: int) -> int:
    return int64(begin) << 32 | (end - begin)


@part
def field_at(data: Array, start: int) -> tuple[int, int, int]:
    """Return begin and end of a field, quotes included, and where the next begins: 0 where the quotes are unsound."""
    after = _after_quotes(data, start) if data[start] == _QUOTE else start
    end, following = _end_of_field(data, start, after)
    if data[start] == _QUOTE and (after == start or end != after):
        following = 0
    return start, end, following


@kernel
def _after_quotes(data: Array, start: int) -> int:
    """Return where a quoted field ends, in which two quotes stand for one; ``start`` if the line ends before."""
    position = start + 1
    while data[position] != NEWLINE:
        if data[position] == _QUOTE:
            if data[position + 1] != _QUOTE:
                return position + 1
            position += 1
        position += 1
    return start


@kernel
def parse_lines(data: Array, position: int, plan: Array, integers: Array, floats: Array) -> tuple[int, int, int]:
    """Parse lines from ``position`` until the arrays are full or the data end; see `parse_line`.

    Returns
    -------
    tuple of int
        Where the next line begins, the number of lines parsed, and of malformed ones; their spans are in row `STATE`.
    """
    lines = faults = 0
    while position < len(data) and max(lines, faults) < integers.shape[1]:
        following = parse_line(data, (position, lines), plan, integers, floats)
        if following > 0:
            lines += 1
        else:
            end = position
            while data[end] != NEWLINE:
                end += 1
            following = end + 1
            if not is_blank(data, position):
                integers[STATE, faults] = _span(position, end)
                faults += 1
        position = following
    return position, lines, faults

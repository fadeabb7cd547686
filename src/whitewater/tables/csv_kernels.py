"""The kernel that reads plain lines of comma-separated text, each field straight into its number, in one pass.

It is twice as fast as Arrow, which first copies every field, those that are not wanted too. What it does not know it
leaves to Arrow: a quote, an exponent, blanks, a time that is no date and whole second, a word of more than 7 bytes, and
lines with a fault.
"""

from __future__ import annotations

import numpy as np

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, part
from whitewater.tables.blocks import NULL_TIMESTAMP

# How a field is read.
SKIPPED, NUMBER, TIME, WORD = range(4)
NEWLINE = ord("\n")
_COMMA, _POINT, _COLON, _HYPHEN, _BLANK, _ZERO, _T = b",.:- 0T"
_DELIMITERS = np.array([_COMMA, NEWLINE])
# A number of at most 15 digits is below 2**53: one division, exactly rounded, makes the nearest double of it.
_DIGITS = 15
_POWERS = 10.0 ** np.arange(_DIGITS + 1)
_WORD_BYTES = 7
_SECOND = 1_000_000
_TIME_BYTES = 19
_LONGEST_MONTHS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
# Days from the first of March of the year 0 to 1970.
_EPOCH = 719_468


@kernel
def read_plain(data: Array, kinds: Array, values: Array, numbers: Array, long: Array) -> tuple[int, int]:
    """Read all lines, none of those that are empty.

    Parameters
    ----------
    data
        uint8, ends with a newline; without quotes and carriage returns.
    kinds
        int8 (fields,).
    values, numbers
        int64 and float64 (wanted fields, lines), the same memory: microseconds since 1970, words (see `_word`), and
        numbers, NaN where the field is empty.
    long
        int64 (numbers, 4): column, row, begin and end of each number of more than 15 digits, which is left to do.

    Returns
    -------
    tuple of int
        The number of rows, or -1 if a line is not plain or there is no more room in ``long``; and of long numbers.
    """
    position, row, found = 0, 0, 0
    while position < len(data):
        if data[position] == NEWLINE:
            position += 1
            continue
        position, found = _line(data, (position, row), kinds, (values, numbers), (long, found))
        if position == 0 or found > len(long):
            return -1, 0
        row += 1
    return row, found


@part
def _line(
    data: Array, at: tuple[int, int], kinds: Array, columns: tuple[Array, Array], noted: tuple[Array, int]
) -> tuple[int, int]:
    """Read the line at a position into a row; return where the next begins, or 0, and how many numbers are noted."""
    (position, row), (values, numbers), (long, found), column = at, columns, noted, 0
    for field in range(len(kinds)):
        kind, end = kinds[field], position
        if kind == SKIPPED:
            end = _end(data, position)
        elif kind == TIME:
            values[column, row], end = _time(data, position)
        elif kind == WORD:
            values[column, row], end = _word(data, position)
        else:
            numbers[column, row], end = _number(data, position)
            if numbers[column, row] == np.inf:
                note = long[found % len(long)]
                note[0], note[1], note[2], note[3] = column, row, position, end
                found += 1
        if end < 0 or data[end] != _DELIMITERS[int64(field == len(kinds) - 1)]:
            return 0, 0
        column += kind != SKIPPED
        position = end + 1
    return position, found


@part
def _end(data: Array, position: int) -> int:
    while data[position] != _COMMA and data[position] != NEWLINE:
        position += 1
    return position


@part
def _number(data: Array, start: int) -> tuple[float, int]:
    """Return a number, infinity for one of too many digits, and where it ends, or -1."""
    position = start + (data[start] == _HYPHEN)
    first, point, mantissa = position, int64(-1), int64(0)
    digit = int64(data[position]) - _ZERO
    while 0 <= digit <= 9 or (data[position] == _POINT and point < 0):
        if data[position] == _POINT:
            point = position
        else:
            mantissa = mantissa * 10 + digit
        position += 1
        digit = int64(data[position]) - _ZERO
    digits = position - first - (point >= 0)
    if digits == 0:
        return np.nan, position if position == start else int64(-1)
    decimals = position - point - 1 if point >= 0 else int64(0)
    if digits > _DIGITS:
        return np.inf, position
    value = mantissa / _POWERS[decimals]
    return (-value if first > start else value), position


@part
def _time(data: Array, start: int) -> tuple[int, int]:
    """Return the microseconds of a text such as 2009-03-26 15:30:14, and where it ends, or -1."""
    if data[start] == _COMMA or data[start] == NEWLINE:
        return int64(NULL_TIMESTAMP), start
    end = start + _TIME_BYTES
    if end >= len(data) or data[start + 4] != _HYPHEN or data[start + 7] != _HYPHEN:
        return int64(0), int64(-1)
    if (
        data[start + 13] != _COLON
        or data[start + 16] != _COLON
        or (data[start + 10] != _BLANK and data[start + 10] != _T)
    ):
        return int64(0), int64(-1)
    century, year = _two_digits(data, start), _two_digits(data, start + 2)
    month, day = _two_digits(data, start + 5), _two_digits(data, start + 8)
    hour, minute = _two_digits(data, start + 11), _two_digits(data, start + 14)
    second = _two_digits(data, start + 17)
    if min(century, year, hour, minute, second) < 0 or hour > 23 or minute > 59 or second > 59:
        return int64(0), int64(-1)
    days = _days(100 * century + year, month, day)
    return ((days * 24 + hour) * 60 + minute) * 60 * _SECOND + second * _SECOND, end if days > -_EPOCH else int64(-1)


@part
def _two_digits(data: Array, start: int) -> int:
    tens, ones = int64(data[start]) - _ZERO, int64(data[start + 1]) - _ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else int64(-1)


@part
def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970, or ``-_EPOCH`` if there is no such day.

    Years begin in March, so that the leap day is their last (Hinnant, chrono-compatible low-level date algorithms).
    """
    if month < 1 or month > 12 or day < 1 or day > _LONGEST_MONTHS[month]:
        return int64(-_EPOCH)
    if month == 2 and day == 29 and (year % 4 != 0 or (year % 100 == 0 and year % 400 != 0)):
        return int64(-_EPOCH)
    years = year - (month < 3)
    months = month + 9 if month < 3 else month - 3
    days: int = 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day - 1 - _EPOCH
    return days


@part
def _word(data: Array, start: int) -> tuple[int, int]:
    """Return the bytes of a word as one integer, 0 for none, and where it ends, or -1."""
    value, end = int64(0), _end(data, start)
    for position in range(start, end):
        value = value << 8 | data[position]
    return value, end if end - start <= _WORD_BYTES else int64(-1)

"""The kernels that read a field of text as a number or a time, without the interpreter and without a string between."""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel, part
from whitewater.devices.protocol import BAD_INTEGER, NULL_INTEGER, NULL_TIMESTAMP, Array

SPACE, TAB, POINT, COLON, HYPHEN, PLUS, ZERO, LETTER_T, LETTER_E = b" \t.:-+0TE"
_LOWER = 32
# A number of at most 18 digits fits int64. Up to 2**53, and scaled by at most 10**22, one exactly rounded operation
# makes the nearest double of it (Clinger, How to read floating point numbers accurately, PLDI 1990).
DIGITS, EXACT = 18, 2**53
POWERS = 10.0 ** np.arange(23)
_MAX_EXPONENT = 308

_DAYS_BEFORE_MONTH = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
# Length of a date, and of each part of a time after it, up to nanoseconds.
_DATE, _HOUR, _MINUTE, WHOLE_SECOND, _LONGEST = 10, 13, 16, 19, 29
# What no integer and no microseconds of a year of four digits can be.
UNREADABLE = NULL_TIMESTAMP + 1


@kernel
def number(data: Array, begin: int, end: int) -> tuple[int, int, int]:
    """Read a decimal number as ``sign * mantissa * 10**exponent``.

    Returns
    -------
    tuple of int
        Mantissa (-1 where it has more than `DIGITS` digits), exponent, and sign: 1, -1, or 0 where the text is no number
        that a double can hold.
    """
    sign = -1 if data[begin] == HYPHEN else 1
    position = begin + (data[begin] == HYPHEN or data[begin] == PLUS)
    mantissa, exponent, digits, significant, point = int64(0), 0, 0, 0, False
    while position < end:
        digit = int64(data[position]) - ZERO
        if 0 <= digit <= 9:
            digits += 1
            significant += significant > 0 or digit > 0
            mantissa = mantissa * 10 + digit if significant <= DIGITS else int64(-1)
            exponent -= point
        elif data[position] == POINT and not point:
            point = True
        else:
            break
        position += 1
    if position < end:
        scale, position = _exponent(data, position, end)
        exponent += scale
    is_number = digits > 0 and position == end and significant + exponent <= _MAX_EXPONENT
    return (mantissa if significant <= DIGITS else int64(-1)), exponent, (sign if is_number else 0)


@kernel
def _exponent(data: Array, position: int, end: int) -> tuple[int, int]:
    """Read an exponent such as e-3; return it and the position after it, which is 0 where there is none."""
    if data[position] not in (LETTER_E, LETTER_E + _LOWER):
        return int64(0), 0
    position += 1
    sign = -1 if position < end and data[position] == HYPHEN else 1
    position += position < end and (data[position] == HYPHEN or data[position] == PLUS)
    value = digits(data, position, end) if 0 < end - position <= 4 else int64(-1)
    return sign * max(value, 0), (end if value >= 0 else 0)


@part
def digits(data: Array, begin: int, end: int) -> int:
    """Return an unsigned number that is nothing but digits, or -1."""
    value = int64(0)
    for position in range(begin, end):
        digit = int64(data[position]) - ZERO
        if digit < 0 or digit > 9:
            return int64(-1)
        value = value * 10 + digit
    return value


@kernel
def integer(data: Array, begin: int, end: int) -> int:
    """Return a number that is whole and not negative, `NULL_INTEGER`, `BAD_INTEGER`, or `UNREADABLE`."""
    if begin == end:
        return int64(NULL_INTEGER)
    mantissa, exponent, sign = number(data, begin, end)
    if sign == 0:
        return int64(UNREADABLE)
    if mantissa == 0:
        return int64(0)
    while exponent < 0 and mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    while exponent > 0 and mantissa < EXACT:
        mantissa *= 10
        exponent -= 1
    return mantissa if exponent == 0 and mantissa > 0 and sign > 0 else int64(BAD_INTEGER)


@kernel
def timestamp(data: Array, begin: int, end: int) -> int:
    """Return the microseconds since 1970 of a text such as 2009-03-26 15:30:14, `NULL_TIMESTAMP` or `UNREADABLE`.

    The day alone, hours, minutes, seconds, and up to nine digits of a fraction are accepted, with a blank or a T between
    day and hour (ISO 8601 without zone); nanoseconds are floored.
    """
    length = end - begin
    if length == 0:
        return int64(NULL_TIMESTAMP)
    if length > _LONGEST or length < _DATE or data[begin + 4] != HYPHEN or data[begin + 7] != HYPHEN:
        return int64(UNREADABLE)
    year, month = digits(data, begin, begin + 4), digits(data, begin + 5, begin + 7)
    day = digits(data, begin + 8, begin + 10)
    if year < 0 or month < 1 or month > 12 or day < 1 or day > _days_of_month(year, month):
        return int64(UNREADABLE)
    time = _time_of_day(data, begin, end) if length > _DATE else int64(0)
    return _days_since_epoch(year, month, day) * _DAY + time if time >= 0 else int64(UNREADABLE)


@part
def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@part
def _days_of_month(year: int, month: int) -> int:
    return _DAYS_BEFORE_MONTH[month + 1] - _DAYS_BEFORE_MONTH[month] + (month == 2 and _is_leap(year))


@part
def _days_since_epoch(year: int, month: int, day: int) -> int:
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400 - 477 + (month > 2 and _is_leap(year))
    return (year - 1970) * 365 + leap_days + _DAYS_BEFORE_MONTH[month] + day - 1


@kernel
def _time_of_day(data: Array, begin: int, end: int) -> int:
    """Return the microseconds since midnight of the part after the date, or -1."""
    hour = _part_of_time(data, begin + _DATE, end)
    minute = _part_of_time(data, begin + _HOUR, end)
    second = _part_of_time(data, begin + _MINUTE, end)
    fraction = _microseconds(data, begin + WHOLE_SECOND, end) if end > begin + WHOLE_SECOND else int64(0)
    separated = (data[begin + _DATE] == SPACE or data[begin + _DATE] == LETTER_T) and (
        (end <= begin + _HOUR or data[begin + _HOUR] == COLON)
        and (end <= begin + _MINUTE or data[begin + _MINUTE] == COLON)
    )
    if not separated or min(hour, minute, second, fraction) < 0 or hour > 23 or minute > 59 or second > 59:
        return int64(-1)
    return ((hour * 60 + minute) * 60 + second) * _SECOND + fraction


@part
def _part_of_time(data: Array, separator: int, end: int) -> int:
    """Return the two digits after a separator; 0 where the text ends before it, -1 where it is cut off."""
    if end <= separator:
        return int64(0)
    return digits(data, separator + 1, separator + 3) if end >= separator + 3 else int64(-1)


@part
def _microseconds(data: Array, begin: int, end: int) -> int:
    """Return the microseconds of a fraction such as .123, or -1."""
    value = digits(data, begin + 1, end) if data[begin] == POINT and end - begin > 1 else int64(-1)
    for _ in range(end - begin - 1, 9):
        value *= 10
    return value // 1000 if value >= 0 else int64(-1)

"""The kernels that read a field of text as a number or a time, without the interpreter and without a string between."""

from __future__ import annotations

import numpy as np

from whitewater.devices.blocks import BAD_INTEGER, NULL_INTEGER, NULL_TIMESTAMP, Array
from whitewater.devices.kernel import int64, kernel, part

_SPACE, _TAB, _POINT, _COLON, _HYPHEN, _PLUS, _ZERO, _T, _E = b" \t.:-+0TE"
_LOWER = 32
# A number of at most 18 digits fits int64. Up to 2**53, and scaled by at most 10**22, one exactly rounded operation
# makes the nearest double of it (Clinger, How to read floating point numbers accurately, PLDI 1990).
_DIGITS, _EXACT = 18, 2**53
_POWERS = 10.0 ** np.arange(23)
_MAX_EXPONENT = 308
# A point and 15 digits: below 2**53.
_PLAIN_CHARACTERS = 16

_DAYS_BEFORE_MONTH = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
# Length of a date, and of each part of a time after it, up to nanoseconds.
_DATE, _HOUR, _MINUTE, WHOLE_SECOND, _LONGEST = 10, 13, 16, 19, 29
# What no integer and no microseconds of a year of four digits can be.
UNREADABLE = NULL_TIMESTAMP + 1


@part
def plain_number(data: Array, start: int) -> tuple[int, int, int, int]:
    """Read digits with a sign and a point, the form of nearly all numbers, fast.

    Returns
    -------
    tuple of int
        Sign, mantissa and decimals, and the position after them: 0 where the number is of another form or has more than
        15 digits.
    """
    sign = -1 if data[start] == _HYPHEN else 1
    first = start + (data[start] == _HYPHEN)
    mantissa, point = _more_digits(data, first, int64(0))
    end = point
    if data[point] == _POINT:
        mantissa, end = _more_digits(data, point + 1, mantissa)
    is_plain = end - first <= _PLAIN_CHARACTERS and end - first > (data[first] == _POINT)
    return sign, mantissa, max(end - point - 1, 0), end if is_plain else 0


@part
def _more_digits(data: Array, position: int, mantissa: int) -> tuple[int, int]:
    digit = int64(data[position]) - _ZERO
    while 0 <= digit <= 9:
        mantissa = mantissa * 10 + digit
        position += 1
        digit = int64(data[position]) - _ZERO
    return mantissa, position


@kernel
def number(data: Array, begin: int, end: int) -> tuple[int, int, int]:
    """Read a decimal number, with an exponent or without.

    Returns
    -------
    tuple of int
        Sign: 1, -1, or 0 where the text is no number that a double can hold; mantissa, -1 where it has more than 18
        digits; and exponent: the number is ``sign * mantissa * 10**exponent``.
    """
    sign = -1 if data[begin] == _HYPHEN else 1
    position = begin + ((data[begin] == _HYPHEN) | (data[begin] == _PLUS))
    mantissa, exponent, count, significant, point = int64(0), 0, 0, 0, False
    while position < end:
        digit = int64(data[position]) - _ZERO
        if 0 <= digit <= 9:
            count += 1
            significant += significant > 0 or digit > 0
            mantissa = mantissa * 10 + digit if significant <= _DIGITS else int64(-1)
            exponent -= point
        elif data[position] == _POINT and not point:
            point = True
        else:
            break
        position += 1
    scale, position = _exponent(data, position, end)
    is_number = count > 0 and position == end and significant + exponent + scale <= _MAX_EXPONENT
    return (sign if is_number else 0), mantissa, exponent + scale


@part
def _exponent(data: Array, position: int, end: int) -> tuple[int, int]:
    """Read an exponent such as e-3, if there is one; return it and the position after it."""
    if position == end or (data[position] != _E and data[position] != _E + _LOWER):
        return int64(0), position
    negative, signed = False, False
    if position + 1 < end:
        negative = data[position + 1] == _HYPHEN
        signed = negative | (data[position + 1] == _PLUS)
    first = position + 1 + signed
    value = digits(data, first, end) if first < end <= first + 4 else int64(-1)
    if value < 0:
        return int64(0), position
    return (-value if negative else value), end


@part
def digits(data: Array, begin: int, end: int) -> int:
    """Return an unsigned number that is nothing but digits, or -1."""
    value = int64(0)
    for position in range(begin, end):
        digit = int64(data[position]) - _ZERO
        if digit < 0 or digit > 9:
            return int64(-1)
        value = value * 10 + digit
    return value


@part
def double(sign: int, mantissa: int, exponent: int) -> float:
    """Return the double nearest to a number, or NaN where that takes more than one operation."""
    if mantissa < 0 or mantissa > _EXACT or exponent >= len(_POWERS) or exponent <= -len(_POWERS):
        return np.nan
    nearest: float = mantissa / _POWERS[-exponent] if exponent <= 0 else mantissa * _POWERS[exponent]
    return sign * nearest


@part
def whole(sign: int, mantissa: int, exponent: int) -> int:
    """Return a number that is whole and not negative, or `BAD_INTEGER`."""
    if mantissa == 0:
        return int64(0)
    while exponent < 0 and mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    while exponent > 0 and mantissa < _EXACT:
        mantissa *= 10
        exponent -= 1
    return mantissa if exponent == 0 and mantissa > 0 and sign > 0 else int64(BAD_INTEGER)


@kernel
def integer(data: Array, begin: int, end: int) -> int:
    """Return a number that is whole and not negative, `NULL_INTEGER`, `BAD_INTEGER`, or `UNREADABLE`."""
    if begin == end:
        return int64(NULL_INTEGER)
    sign, mantissa, exponent = number(data, begin, end)
    return whole(sign, mantissa, exponent) if sign != 0 else int64(UNREADABLE)


@part
def trimmed(data: Array, begin: int, end: int) -> tuple[int, int]:
    """Return begin and end of a text without the blanks around it."""
    while begin < end and (data[begin] == _SPACE) | (data[begin] == _TAB):
        begin += 1
    while begin < end and (data[end - 1] == _SPACE) | (data[end - 1] == _TAB):
        end -= 1
    return begin, end


@kernel
def timestamp(data: Array, begin: int, end: int) -> int:
    """Return the microseconds since 1970 of a text such as 2009-03-26 15:30:14, `NULL_TIMESTAMP` or `UNREADABLE`.

    The day alone, hours, minutes, seconds, and up to nine digits of a fraction are accepted, with a blank or a T
    between day and hour (ISO 8601 without zone); nanoseconds are floored.
    """
    length = end - begin
    if length == 0:
        return int64(NULL_TIMESTAMP)
    if length > _LONGEST or length < _DATE or data[begin + 4] != _HYPHEN or data[begin + 7] != _HYPHEN:
        return int64(UNREADABLE)
    year, month = digits(data, begin, begin + 4), digits(data, begin + 5, begin + 7)
    day = digits(data, begin + 8, begin + 10)
    if year < 0 or month < 1 or month > 12 or day < 1 or day > _days_of_month(year, month):
        return int64(UNREADABLE)
    time = _time_of_day(data, begin, end) if length > _DATE else int64(0)
    return _days_since_epoch(year, month, day) * _DAY + time if time >= 0 else int64(UNREADABLE)


@part
def _is_leap(year: int) -> bool:
    return (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))


@part
def _days_of_month(year: int, month: int) -> int:
    days: int = _DAYS_BEFORE_MONTH[month + 1] - _DAYS_BEFORE_MONTH[month] + ((month == 2) & _is_leap(year))
    return days


@part
def _days_since_epoch(year: int, month: int, day: int) -> int:
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400 - 477 + ((month > 2) & _is_leap(year))
    days: int = (year - 1970) * 365 + leap_days + _DAYS_BEFORE_MONTH[month] + day - 1
    return days


@part
def _time_of_day(data: Array, begin: int, end: int) -> int:
    """Return the microseconds since midnight of the part after the date, or -1."""
    hour = _part_of_time(data, begin + _DATE, end)
    minute = _part_of_time(data, begin + _HOUR, end)
    second = _part_of_time(data, begin + _MINUTE, end)
    fraction = _microseconds(data, begin + WHOLE_SECOND, end) if end > begin + WHOLE_SECOND else int64(0)
    separated = (data[begin + _DATE] == _SPACE) | (data[begin + _DATE] == _T)
    if end > begin + _HOUR:
        separated &= data[begin + _HOUR] == _COLON
    if end > begin + _MINUTE:
        separated &= data[begin + _MINUTE] == _COLON
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
    value = digits(data, begin + 1, end) if data[begin] == _POINT and end - begin > 1 else int64(-1)
    for _ in range(end - begin - 1, 9):
        value *= 10
    return value // 1000 if value >= 0 else int64(-1)

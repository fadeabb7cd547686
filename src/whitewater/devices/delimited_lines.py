"""The kernels that parse comma-separated text, one line at a time, each field straight into its number.

They use nothing but numbers and array elements, so that a thread of a GPU parses a line as a loop on the CPU does, with
the same result.
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import kernel, part
from whitewater.devices.protocol import BAD_INTEGER, NULL_INTEGER, NULL_TIMESTAMP, Array

# How a field is parsed.
SKIPPED, FLOAT, INTEGER, TIMESTAMP, TEXT = range(5)
NULL_SPAN = -1

# What became of a field.
_REFUSED, _STORED, _LONG = range(3)
_COMMA, _NEWLINE, _RETURN, _QUOTE, _SPACE, _TAB, _POINT, _COLON, _HYPHEN, _PLUS, _ZERO, _T, _E = b',\n\r" \t.:-+0TE'
_LOWER = 32
# A number of at most 18 digits fits int64. Up to 2**53, and scaled by at most 10**22, one exactly rounded operation
# makes the nearest double of it (Clinger, How to read floating point numbers accurately, PLDI 1990).
_DIGITS, _EXACT = 18, 2**53
_POWERS = 10.0 ** np.arange(23)
_MAX_EXPONENT = 308
# Sign, point and 15 digits: below 2**53.
_PLAIN_DIGITS = 15
_DAYS_BEFORE_MONTH = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
# What no integer and no microseconds of a year of four digits can be.
_UNREADABLE = NULL_TIMESTAMP + 1
# Length of a date, and of each part of a time after it, up to nanoseconds.
_DATE, _HOUR, _MINUTE, _WHOLE_SECOND, _LONGEST = 10, 13, 16, 19, 29


@part
def parse_line(
    data: Array, start: int, row: int, kinds: Array, slots: Array, integers: Array, floats: Array, long: Array
) -> int:
    """Parse the line that begins at ``start`` into one row of the arrays.

    Parameters
    ----------
    data
        uint8, ends with a newline.
    start, row
        Where the line begins, and where its numbers go.
    kinds
        int8 (fields,), how each field of a line is parsed.
    slots
        int8 (fields,), the column of ``integers`` or ``floats`` that takes it.
    integers
        int64 (columns, rows): integers, microseconds, and spans of text as ``begin << 32 | length``.
    floats
        float64 (columns, rows), the same memory.
    long
        int64 (rows,): bit ``slot`` is set where a number has too many digits, and ``integers`` has its span.

    Returns
    -------
    int
        Where the next line begins, or 0 if this one is malformed.
    """
    position = start
    long[row] = 0
    for field in range(len(kinds)):
        following = _plain_field(data, position, kinds[field], slots[field], row, integers, floats)
        if following == 0:
            begin, end, following = field_at(data, position)
            done = _store(data, begin, end, kinds[field], slots[field], row, integers, floats)
            if following == 0 or done == _REFUSED:
                return 0
            if done == _LONG:
                long[row] |= np.int64(1) << slots[field]
        position = following
        if (data[position - 1] == _NEWLINE) != (field == len(kinds) - 1):
            return 0
    return position


@part
def _plain_field(data: Array, start: int, kind: int, slot: int, row: int, integers: Array, floats: Array) -> int:
    """Parse a field of the usual form, ten times as fast as any form; return where the next begins, or 0."""
    if kind == TIMESTAMP:
        return _plain_timestamp(data, start, slot, row, integers)
    if kind == FLOAT or kind == INTEGER:
        return _plain_number(data, start, kind, slot, row, integers, floats)
    return 0


@part
def _plain_number(data: Array, start: int, kind: int, slot: int, row: int, integers: Array, floats: Array) -> int:
    """Parse digits with a sign or a point; see `_plain_field`."""
    first = start + (data[start] == _HYPHEN)
    mantissa, point = _more_digits(data, first, np.int64(0))
    stop = point
    if data[point] == _POINT:
        mantissa, stop = _more_digits(data, point + 1, mantissa)
    if stop - first > _PLAIN_DIGITS or stop == first or stop == point + 1:
        return 0
    following = _after_delimiter(data, stop)
    if following == 0:
        return 0
    fraction = max(stop - point - 1, 0)
    if kind == FLOAT:
        floats[slot, row] = (1 if first == start else -1) * (mantissa / _POWERS[fraction])
        return following
    while fraction > 0 and mantissa % 10 == 0:
        mantissa //= 10
        fraction -= 1
    integers[slot, row] = mantissa if fraction == 0 and (first == start or mantissa == 0) else BAD_INTEGER
    return following


@part
def _more_digits(data: Array, position: int, mantissa: int) -> tuple[int, int]:
    digit = np.int64(data[position]) - _ZERO
    while digit >= 0 and digit <= 9:
        mantissa = mantissa * 10 + digit
        position += 1
        digit = np.int64(data[position]) - _ZERO
    return mantissa, position


@part
def _after_delimiter(data: Array, position: int) -> int:
    """Return the position after a comma or the end of the line, or 0 if none is there."""
    if data[position] == _COMMA or data[position] == _NEWLINE:
        return position + 1
    return position + 2 if data[position] == _RETURN and data[position + 1] == _NEWLINE else 0


@part
def _plain_timestamp(data: Array, start: int, slot: int, row: int, integers: Array) -> int:
    """Parse a time with whole seconds; see `_plain_field`."""
    if start + _WHOLE_SECOND >= len(data) - 1:
        return 0
    following = _after_delimiter(data, start + _WHOLE_SECOND)
    if following == 0:
        return 0
    value = timestamp(data, start, start + _WHOLE_SECOND)
    integers[slot, row] = value
    return following if value != _UNREADABLE else 0


@part
def is_blank(data: Array, start: int) -> bool:
    """Return whether a line, which is then no row, is empty."""
    return data[start] == _NEWLINE or (data[start] == _RETURN and data[start + 1] == _NEWLINE)


@kernel
def line_end(data: Array, start: int) -> int:
    """Return the position of the newline that ends the line."""
    while data[start] != _NEWLINE:
        start += 1
    return start


@part
def field_at(data: Array, start: int) -> tuple[int, int, int]:
    """Return begin and end of a field, quotes included, and where the next begins: 0 where the quotes are unsound."""
    end = start if data[start] != _QUOTE else _after_quotes(data, start)
    while data[end] != _COMMA and data[end] != _NEWLINE:
        end += 1
    following = end + 1
    if data[end] == _NEWLINE and end > start and data[end - 1] == _RETURN:
        end -= 1
    if data[start] == _QUOTE and (end - start < 2 or end != _after_quotes(data, start)):
        following = 0
    return start, end, following


@kernel
def _after_quotes(data: Array, start: int) -> int:
    """Return where a quoted field ends, in which two quotes stand for one; ``start`` if the line ends before."""
    position = start + 1
    while data[position] != _NEWLINE:
        if data[position] == _QUOTE:
            if data[position + 1] != _QUOTE:
                return position + 1
            position += 1
        position += 1
    return start


@part
def _store(data: Array, begin: int, end: int, kind: int, slot: int, row: int, integers: Array, floats: Array) -> int:
    """Parse a field into ``integers[slot, row]`` or ``floats[slot, row]``."""
    if kind == SKIPPED:
        return _STORED
    if kind == TEXT:
        integers[slot, row] = np.int64(begin) << 32 | (end - begin) if end > begin else NULL_SPAN
        return _STORED
    begin, end = _trimmed(data, begin, end)
    if kind == FLOAT:
        if begin == end:
            floats[slot, row] = np.nan
            return _STORED
        return _store_float(data, begin, end, slot, row, integers, floats)
    value = timestamp(data, begin, end) if kind == TIMESTAMP else integer(data, begin, end)
    integers[slot, row] = value
    return _STORED if value != _UNREADABLE else _REFUSED


@kernel
def _store_float(data: Array, begin: int, end: int, slot: int, row: int, integers: Array, floats: Array) -> int:
    mantissa, exponent, sign = number(data, begin, end)
    if sign == 0:
        return _REFUSED
    if mantissa < 0 or mantissa > _EXACT or exponent >= len(_POWERS) or exponent <= -len(_POWERS):
        integers[slot, row] = np.int64(begin) << 32 | (end - begin)
        return _LONG
    floats[slot, row] = sign * (mantissa / _POWERS[-exponent] if exponent < 0 else mantissa * _POWERS[exponent])
    return _STORED


@part
def _trimmed(data: Array, begin: int, end: int) -> tuple[int, int]:
    """Return a field without its quotes and the blanks around it."""
    if begin < end and data[begin] == _QUOTE:
        begin, end = begin + 1, end - 1
    while begin < end and (data[begin] == _SPACE or data[begin] == _TAB):
        begin += 1
    while begin < end and (data[end - 1] == _SPACE or data[end - 1] == _TAB):
        end -= 1
    return begin, end


@kernel
def number(data: Array, begin: int, end: int) -> tuple[int, int, int]:
    """Read a decimal number as ``sign * mantissa * 10**exponent``.

    Returns
    -------
    tuple of int
        Mantissa (-1 where it has too many digits), exponent, and sign: 1, -1, or 0 where the text is no number.
    """
    sign = -1 if data[begin] == _HYPHEN else 1
    position = begin + (data[begin] == _HYPHEN or data[begin] == _PLUS)
    mantissa, exponent, digits, significant = np.int64(0), 0, 0, 0
    point = False
    while position < end:
        digit = np.int64(data[position]) - _ZERO
        if digit >= 0 and digit <= 9:
            digits += 1
            significant += significant > 0 or digit > 0
            mantissa = mantissa * 10 + digit if significant <= _DIGITS else np.int64(-1)
            exponent -= point
        elif data[position] == _POINT and not point:
            point = True
        else:
            break
        position += 1
    if position < end:
        scale, position = _exponent(data, position, end)
        exponent += scale
    finite = digits > 0 and significant + exponent <= _MAX_EXPONENT
    return (mantissa if significant <= _DIGITS else -1), exponent, (sign if finite and position == end else 0)


@kernel
def _exponent(data: Array, position: int, end: int) -> tuple[int, int]:
    """Read an exponent such as e-3; return it and the position after it, or 0 where there is none."""
    if data[position] != _E and data[position] != _E + _LOWER:
        return 0, 0
    position += 1
    sign = -1 if position < end and data[position] == _HYPHEN else 1
    position += position < end and (data[position] == _HYPHEN or data[position] == _PLUS)
    if position == end or end - position > 4:
        return 0, 0
    value = _digits(data, position, end)
    return (0, 0) if value < 0 else (sign * value, end)


@part
def _digits(data: Array, begin: int, end: int) -> int:
    """Return an unsigned number that is nothing but digits, or -1."""
    value = np.int64(0)
    for position in range(begin, end):
        digit = np.int64(data[position]) - _ZERO
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    return value


@kernel
def integer(data: Array, begin: int, end: int) -> int:
    """Return a number that is whole and not negative, `NULL_INTEGER`, `BAD_INTEGER`, or `_UNREADABLE`."""
    if begin == end:
        return np.int64(NULL_INTEGER)
    mantissa, exponent, sign = number(data, begin, end)
    if sign == 0:
        return np.int64(_UNREADABLE)
    if mantissa == 0:
        return np.int64(0)
    while exponent < 0 and mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    while exponent > 0 and mantissa < _EXACT:
        mantissa *= 10
        exponent -= 1
    return mantissa if exponent == 0 and mantissa > 0 and sign > 0 else np.int64(BAD_INTEGER)


@kernel
def timestamp(data: Array, begin: int, end: int) -> int:
    """Return the microseconds since 1970 of a text such as 2009-03-26 15:30:14, `NULL_TIMESTAMP` or `_UNREADABLE`.

    The day alone, hours, minutes, seconds, and up to nine digits of a fraction are accepted, with a blank or a T between
    day and hour (ISO 8601 without zone); nanoseconds are floored.
    """
    length = end - begin
    if length == 0:
        return np.int64(NULL_TIMESTAMP)
    if length > _LONGEST or length < _DATE or data[begin + 4] != _HYPHEN or data[begin + 7] != _HYPHEN:
        return np.int64(_UNREADABLE)
    year, month = _digits(data, begin, begin + 4), _digits(data, begin + 5, begin + 7)
    day = _digits(data, begin + 8, begin + 10)
    if year < 0 or month < 1 or month > 12 or day < 1 or day > _days_of_month(year, month):
        return np.int64(_UNREADABLE)
    time = _time_of_day(data, begin, end) if length > _DATE else np.int64(0)
    return _days_since_epoch(year, month, day) * _DAY + time if time >= 0 else np.int64(_UNREADABLE)


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
    length = end - begin
    separators = data[begin + _DATE] == _SPACE or data[begin + _DATE] == _T
    hour = _digits(data, begin + 11, begin + 13) if length >= _HOUR else -1
    minute = second = fraction = 0
    if length > _HOUR:
        minute = _digits(data, begin + 14, begin + 16) if length >= _MINUTE and data[begin + 13] == _COLON else -1
    if length > _MINUTE:
        second = _digits(data, begin + 17, begin + 19) if length >= _WHOLE_SECOND and data[begin + 16] == _COLON else -1
    if length > _WHOLE_SECOND:
        fraction = _microseconds(data, begin + 19, end)
    sound = separators and hour >= 0 and minute >= 0 and second >= 0 and fraction >= 0
    if not sound or hour > 23 or minute > 59 or second > 59:
        return -1
    return ((hour * 60 + minute) * 60 + second) * _SECOND + fraction


@kernel
def _microseconds(data: Array, begin: int, end: int) -> int:
    """Return the microseconds of a fraction such as .123, or -1."""
    value = _digits(data, begin + 1, end) if data[begin] == _POINT and end - begin > 1 else -1
    for _ in range(end - begin - 1, 9):
        value *= 10
    return value // 1000 if value >= 0 else -1


@kernel
def parse_lines(
    data: Array,
    position: int,
    kinds: Array,
    slots: Array,
    integers: Array,
    floats: Array,
    long: Array,
    malformed: Array,
) -> tuple[int, int, int]:
    """Parse lines from ``position`` until the arrays are full or the data end.

    ``malformed`` is int64 (lines at most, 2) and takes begin and end of lines that cannot be parsed; for the others see
    `parse_line`.

    Returns
    -------
    tuple of int
        Where the next line begins, the number of lines parsed, and of malformed ones.
    """
    rows = faults = 0
    while position < len(data) and rows < integers.shape[1] and faults < len(malformed):
        following = parse_line(data, position, rows, kinds, slots, integers, floats, long)
        if following > 0:
            rows += 1
        else:
            following = line_end(data, position) + 1
            if not is_blank(data, position):
                malformed[faults, 0], malformed[faults, 1] = position, following - 1
                faults += 1
        position = following
    return position, rows, faults


@kernel
def encode(data: Array, spans: Array, buckets: Array, words: Array, known: int, codes: Array) -> int:
    """Number distinct texts in the order in which they come.

    Parameters
    ----------
    data
        uint8, the text.
    spans
        int64 (rows,), ``begin << 32 | length``, or `NULL_SPAN`.
    buckets
        int32, a power of two long: an open hash table of codes, -1 where empty.
    words
        int64, spans of the texts known, at most half as many as ``buckets``.
    known
        How many there are.
    codes
        int32 (rows,); filled, -1 for null.

    Returns
    -------
    int
        How many there are then, or -1 when ``words`` is full.
    """
    for row in range(len(spans)):
        if spans[row] == NULL_SPAN:
            codes[row] = -1
            continue
        bucket = _bucket(data, spans[row], buckets, words)
        if buckets[bucket] < 0:
            if known == len(words):
                return -1
            words[known] = spans[row]
            buckets[bucket] = known
            known += 1
        codes[row] = buckets[bucket]
    return known


@part
def _bucket(data: Array, span: int, buckets: Array, words: Array) -> int:
    """Return the bucket that holds a text, or the empty one that will."""
    bucket = text_hash(data, span) & (len(buckets) - 1)
    while buckets[bucket] >= 0 and not _same(data, span, words[buckets[bucket]]):
        bucket = (bucket + 1) & (len(buckets) - 1)
    return bucket


@part
def text_hash(data: Array, span: int) -> int:
    """Return the FNV-1a hash (Fowler, Noll, Vo), 31 bits, of a text."""
    value = np.int64(0x811C9DC5)
    begin = span >> 32
    for position in range(begin, begin + (span & 0xFFFFFFFF)):
        value = ((value ^ data[position]) * 0x01000193) & 0xFFFFFFFF
    return value ^ (value >> 15)


@part
def _same(data: Array, left: int, right: int) -> bool:
    if left & 0xFFFFFFFF != right & 0xFFFFFFFF:
        return False
    for index in range(left & 0xFFFFFFFF):
        if data[(left >> 32) + index] != data[(right >> 32) + index]:
            return False
    return True


@kernel
def copy_texts(data: Array, spans: Array, offsets: Array, texts: Array) -> None:
    """Copy the texts of spans, one after the other; ``offsets`` (int32, spans + 1) tells where each begins."""
    offsets[0] = 0
    for index in range(len(spans)):
        begin, length = spans[index] >> 32, spans[index] & 0xFFFFFFFF
        start = offsets[index]
        texts[start : start + length] = data[begin : begin + length]
        offsets[index + 1] = start + length

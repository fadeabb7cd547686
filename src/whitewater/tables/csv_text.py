"""Comma-separated text as columns, on the host.

Lines that are all plain are read by a kernel, each field straight into its number, in one pass. It is twice as fast as
Arrow, which first copies every field, also those that are not wanted. What it does not know it leaves to Arrow: quotes,
exponents, blanks, times that are not a date and whole seconds, words of more than 7 bytes, and lines with a fault.
Lines that Arrow cannot read either are handed back as they stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array
from whitewater.engines.kernel import int64, kernel, part
from whitewater.io.text_files import filled_lines, parse_sound
from whitewater.tables.arrow_kinds import MICROSECONDS, empty, encoded, from_arrow, narrow_floats, readable
from whitewater.tables.blocks import NULL_TIMESTAMP, Encoded, Kind, Parsed

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
# Of the lines that are plain, at most one in so many may have a number with more digits than the kernel reads.
_LONG_SHARE = 20
_PLAIN = {"timestamp": TIME, "text": WORD}
# Integers are read as doubles: so 1.0 is one, and what is no integer, or too large, is flagged and costs no line.
_TYPES = {"timestamp": MICROSECONDS, "text": pa.dictionary(pa.int32(), pa.string())}


def parse_lines(data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
    r"""Parse whole lines of comma-separated text without a header.

    Parameters
    ----------
    data
        Lines that end with ``\n`` or ``\r\n``, each a record: a quoted field does not go on in the next line. Empty
        lines are no rows.
    names
        All fields of a line, in order.
    columns
        The fields wanted, and what each becomes; no ids, and integers up to 2**53. An empty field is null. Blanks
        around numbers are ignored.

    Returns
    -------
    Parsed
        The columns of the lines that could be parsed, in order; and the other lines: those with another number of
        fields, with unsound quotes, or with a field that is not of its kind. Bytes that are not UTF-8 are replaced.
    """
    text = data if data.isascii() else data.decode("utf-8", "replace").encode()
    text = text if text.endswith(b"\n") else text + b"\n"
    return _read_plain(text, names, columns) or _read_any(text, names, columns)


def _read_plain(text: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed | None:
    """Return the rows of lines that are plain and sound, or None if one is not; see `read_plain`."""
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    if any(mark in text for mark in (b'"', b"\r", b"\0")):
        return None
    data = np.frombuffer(text, np.uint8)
    wanted = [name for name in names if name in columns]
    kinds = [_PLAIN.get(columns[name], NUMBER) if name in columns else SKIPPED for name in names]
    # `bytes.count` is three times slower, and holds the interpreter's lock.
    lines = int(np.count_nonzero(data == NEWLINE))
    values = empty(len(wanted) * lines, np.dtype(np.int64)).reshape(len(wanted), lines)
    numbers, long = values.view(np.float64), np.empty((1 + lines // _LONG_SHARE, 4), np.int64)
    rows, found = read_plain(data, np.array(kinds, np.int8), values, numbers, long)
    if rows < 0:
        return None
    for column, row, begin, end in long[:found].tolist():
        numbers[column, row] = float(text[begin:end])
        if np.isinf(numbers[column, row]):
            return None
    read = {name: values[place, :rows] for place, name in enumerate(wanted)}
    return Parsed({name: _of_kind(read[name], kind) for name, kind in columns.items()}, rows, ())


def _of_kind(values: Array, kind: Kind) -> Array | Encoded:
    if kind == "text":
        found = pa.array(values).dictionary_encode()
        words = [word.to_bytes(8, "big").lstrip(b"\0").decode() for word in found.dictionary.to_pylist()]
        return encoded(pa.DictionaryArray.from_arrays(found.indices, words))
    if kind == "timestamp":
        return values
    numbers = values.view(np.float64)
    return numbers if kind == "float64" else narrow_floats(np, numbers, np.dtype(kind))


def _read_any(text: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
    types = {name: _TYPES.get(kind, pa.float64()) for name, kind in columns.items()}
    try:
        table, faults = parse_sound(text, names, types, delimiter=",", quoted=True)
        malformed = list(faults)
        if not all(map(_is_finite, table.columns)):
            raise ValueError("a number is none that a file may have")
    except ValueError:
        table, malformed = _read_readable(text, names, columns)
    block = {name: from_arrow(table[name], kind) for name, kind in columns.items()}
    lines = filled_lines(text) if malformed else []
    return Parsed(block, len(table), tuple(lines[number].decode() for number in sorted(malformed)))


def _is_finite(column: pa.ChunkedArray) -> bool:
    """Return whether there is neither "nan" nor "inf", nor a number beyond the doubles, nor a sum that is."""
    return not pa.types.is_floating(column.type) or bool(np.isfinite(pc.sum(column, min_count=0).as_py()))


def _read_readable(text: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> tuple[pa.Table, list[int]]:
    """Return as text the rows whose fields are all of their kinds, and the numbers of the other lines."""
    table, faults = parse_sound(text, names, dict.fromkeys(columns, pa.string()), delimiter=",", quoted=True)
    sound = np.ones(len(table), bool)
    for name, kind in columns.items():
        if kind != "text":
            sound &= readable(table[name], kind)
    numbers = np.delete(np.arange(len(table) + len(faults)), list(faults))
    return table.filter(pa.array(sound)), [*faults, *numbers[~sound].tolist()]


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

"""The kernels that read lines of ids: each field goes from its characters straight into its number.

A line ends with a newline; a carriage return is a blank. Comments and empty lines are no rows; they are counted.
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.delimited_fields import double, number, plain_number
from whitewater.devices.kernel import int64, kernel, part, uint64
from whitewater.devices.protocol import Array
from whitewater.pagerank.edges_folder import LARGEST_WEIGHT

# What is wrong with a line.
NO_INTEGER, TOO_LARGE, MISSING, TOO_MANY, NO_WEIGHT, QUOTES, JUNK, OUTSIDE = range(1, 9)
# Where a plan says how a line is read.
SOURCE, TARGET, WEIGHT, MOST_FIELDS, DELIMITER, IS_TEXT, COMMENT, ROWS, COLUMNS, PLAN = range(10)
# The delimiter of fields that are separated by blanks.
BLANKS = 0
# What no line begins with: there are no comments.
NO_COMMENT = -1
# Where lines are counted that are no rows, and rows that have a field behind those that are read.
COMMENTS, EMPTY, UNREAD, LINES = range(4)
LENGTH = 2**32 - 1
_SPACE, _TAB, _NEWLINE, _RETURN, _QUOTE, _COMMA, _HYPHEN, _PLUS, _ZERO = b' \t\n\r",-+0'
# Digits that fit int64 whatever they are.
_SAFE_DIGITS = 18
_LARGEST = np.uint64(2**63 - 1)


@kernel
def parse_pairs(
    data: Array, plan: Array, ends: tuple[Array, Array], weights: tuple[Array, Array], lines: Array
) -> tuple[int, int]:
    """Read lines of source, target and perhaps weight.

    Parameters
    ----------
    data
        uint8, whole lines.
    plan
        int64 (`PLAN`,): the fields of source, target and weight (or -1); the most fields of a line; the delimiter, or
        `BLANKS`; whether ids are text; the byte that comments begin with, or `NO_COMMENT`; and the rows and the columns
        of a matrix, which sources and targets number from 1, or 0.
    ends
        Two int64 (a quarter of the bytes + 1,); filled with ids, or with spans ``begin << 32 | length`` of text.
    weights
        Two arrays as long, or empty where the plan has no weight: float64, NaN where a number has too many digits; and
        int64, the spans of those numbers.
    lines
        int64 (`LINES`,); lines of each kind are added to it.

    Returns
    -------
    tuple of int
        The number of rows and 0; or where the line begins that is at fault, and the fault.
    """
    position, rows = _row(data, 0, plan, lines), 0
    while position < len(data):
        start, field, more = position, 0, True
        while more:
            fault = 0
            if field == plan[SOURCE]:
                ends[0][rows], position, fault = _id(data, position, plan)
            elif field == plan[TARGET]:
                ends[1][rows], position, fault = _id(data, position, plan)
            elif field == plan[WEIGHT]:
                weights[0][rows], weights[1][rows], position, fault = _weight(data, position, plan[DELIMITER])
            else:
                _, position, fault = _text(data, position, plan[DELIMITER])
                fault = 0 if fault == MISSING else fault
            position, more, junk = _next_field(data, position, plan[DELIMITER])
            field += 1
            if fault > 0 or junk or (more and field == plan[MOST_FIELDS]):
                return start, _fault_of(fault, junk)
        last = max(plan[SOURCE], plan[TARGET], plan[WEIGHT])
        if field <= last or _is_outside(ends[0][rows], plan[ROWS]) or _is_outside(ends[1][rows], plan[COLUMNS]):
            return start, MISSING if field <= last else OUTSIDE
        lines[UNREAD] += field > last + 1
        rows += 1
        position = _row(data, position, plan, lines)
    return rows, 0


@part
def _is_outside(index: int, size: int) -> bool:
    return (size > 0) & ((index < 1) | (index > size))


@kernel
def parse_adjacency(
    data: Array, plan: Array, ends: tuple[Array, Array], firsts: Array, lines: Array
) -> tuple[int, int, int]:
    """Read lines of a vertex and its targets; ``firsts`` gets the vertices that lines begin with.

    ``ends`` and ``firsts`` are int64 (half of the bytes + 1,). See `parse_pairs`.

    Returns
    -------
    tuple of int
        The number of edges, of lines, and 0; or where the line begins that is at fault, 0, and the fault.
    """
    position, edges, rows = _row(data, 0, plan, lines), 0, 0
    while position < len(data):
        start = position
        firsts[rows], position, fault = _id(data, position, plan)
        position, more, junk = _next_field(data, position, plan[DELIMITER])
        while more and fault == 0 and not junk:
            ends[0][edges] = firsts[rows]
            ends[1][edges], position, fault = _id(data, position, plan)
            position, more, junk = _next_field(data, position, plan[DELIMITER])
            edges += 1
        if fault > 0 or junk:
            return start, 0, _fault_of(fault, junk)
        rows += 1
        position = _row(data, position, plan, lines)
    return edges, rows, 0


@kernel
def parse_vertices(data: Array, plan: Array, ids: Array, names: Array, lines: Array) -> tuple[int, int, int]:
    """Read lines of an id and perhaps a name; ``names`` gets its span, or 0.

    ``ids`` and ``names`` are int64 (half of the bytes + 1,). A third field is not looked at. See `parse_pairs`.

    Returns
    -------
    tuple of int
        The number of rows, how many of them have a name, and 0; or where the line at fault begins, 0, and the fault.
    """
    position, rows, named = _row(data, 0, plan, lines), 0, 0
    while position < len(data):
        start, field = position, 1
        ids[rows], position, fault = _id(data, position, plan)
        names[rows] = 0
        position, more, junk = _next_field(data, position, plan[DELIMITER])
        while more and fault == 0 and not junk:
            span, position, fault = _text(data, position, plan[DELIMITER])
            if field == 1 and fault == 0:
                names[rows] = span
                named += 1
            position, more, junk = _next_field(data, position, plan[DELIMITER])
            fault = 0 if fault == MISSING else fault
            field += 1
            if field > plan[MOST_FIELDS]:
                return start, 0, TOO_MANY
        if fault > 0 or junk:
            return start, 0, _fault_of(fault, junk)
        rows += 1
        position = _row(data, position, plan, lines)
    return rows, named, 0


@part
def _row(data: Array, position: int, plan: Array, lines: Array) -> int:
    """Return where the first field of the next row begins, or the end of the data; count the lines between."""
    while position < len(data):
        position = _skip(data, position, plan[DELIMITER])
        is_comment = data[position] == plan[COMMENT]
        while is_comment and data[position] != _NEWLINE:
            position += 1
        if data[position] != _NEWLINE:
            return position
        lines[COMMENTS if is_comment else EMPTY] += 1
        position += 1
    return position


@part
def _skip(data: Array, position: int, delimiter: int) -> int:
    """Return the position after blanks that do not separate fields."""
    while _is_blank(data[position]) and data[position] != delimiter:
        position += 1
    return position


@part
def _is_blank(byte: int) -> bool:
    return (byte == _SPACE) | (byte == _TAB) | (byte == _RETURN)


@part
def _next_field(data: Array, position: int, delimiter: int) -> tuple[int, bool, bool]:
    """Return where the next field or line begins, whether it is a field, and whether there is junk ahead of it.

    A delimiter that ends a line begins no field.
    """
    after = _skip(data, position, delimiter)
    if delimiter != BLANKS and data[after] == delimiter:
        after = _skip(data, after + 1, delimiter)
        moved = True
    else:
        moved = delimiter == BLANKS and after > position
    if data[after] == _NEWLINE:
        return after + 1, False, False
    return after, moved, not moved


@part
def _fault_of(fault: int, junk: bool) -> int:
    """Return the fault of a field, or that of what stands beside it or behind it."""
    if fault > 0:
        return fault
    return JUNK if junk else TOO_MANY


@part
def _is_end(byte: int, delimiter: int) -> bool:
    return _is_blank(byte) | (byte == _NEWLINE) | (byte == delimiter)


@part
def _id(data: Array, position: int, plan: Array) -> tuple[int, int, int]:
    """Return an id, the position after it, and the fault."""
    delimiter = plan[DELIMITER]
    if plan[IS_TEXT]:
        return _text(data, position, delimiter)
    first = position + (data[position] == _HYPHEN)
    end, value = first, int64(0)
    digit = int64(data[end]) - _ZERO
    while 0 <= digit <= 9:
        value = value * 10 + digit
        end += 1
        digit = int64(data[end]) - _ZERO
    if first < end <= first + _SAFE_DIGITS and _is_end(data[end], delimiter):
        return (-value if first > position else value), end, 0
    return _any_integer(data, position, delimiter)


@kernel
def _any_integer(data: Array, position: int, delimiter: int) -> tuple[int, int, int]:
    """Read an integer that is quoted, has a plus sign, or many digits."""
    span, following, fault = _text(data, position, delimiter)
    begin, end = span >> 32, (span >> 32) + (span & LENGTH)
    if fault > 0:
        return int64(0), following, fault
    negative = data[begin] == _HYPHEN
    begin += (data[begin] == _HYPHEN) | (data[begin] == _PLUS)
    if begin == end:
        return int64(0), following, NO_INTEGER
    while begin < end - 1 and data[begin] == _ZERO:
        begin += 1
    value = uint64(0)
    for place in range(begin, end):
        digit = int64(data[place]) - _ZERO
        if digit < 0 or digit > 9:
            return int64(0), following, NO_INTEGER
        # Of 20 digits and more it does not matter what becomes.
        value = value * uint64(10) + uint64(digit)
    if end - begin > _SAFE_DIGITS + 1 or value > _LARGEST + uint64(negative):
        return int64(0), following, TOO_LARGE
    return int64(uint64(0) - value if negative else value), following, 0


@part
def _weight(data: Array, position: int, delimiter: int) -> tuple[float, int, int, int]:
    """Return a weight, its span if it takes more than one operation, the position after it, and the fault."""
    sign, mantissa, decimals, end = plain_number(data, position)
    real = double(sign, mantissa, -decimals)
    if end > 0 and _is_end(data[end], delimiter) and real > 0:
        return real, int64(0), end, 0
    return _any_weight(data, position, delimiter)


@kernel
def _any_weight(data: Array, position: int, delimiter: int) -> tuple[float, int, int, int]:
    span, following, fault = _text(data, position, delimiter)
    if fault > 0:
        return np.nan, int64(0), following, fault
    begin = span >> 32
    sign, mantissa, exponent = number(data, begin, begin + (span & LENGTH))
    real = double(sign, mantissa, exponent)
    if sign == 0 or real <= 0 or real > LARGEST_WEIGHT:
        return real, int64(0), following, NO_WEIGHT
    return real, span if np.isnan(real) else int64(0), following, 0


@part
def _text(data: Array, position: int, delimiter: int) -> tuple[int, int, int]:
    """Return the span of a field without blanks and quotes around it, the position after it, and the fault."""
    end = position
    if delimiter == _COMMA and data[position] == _QUOTE:
        end += 1
        while (data[end] != _QUOTE) & (data[end] != _NEWLINE):
            end += 1
        is_whole = data[end] == _QUOTE and _is_end(data[end + 1], delimiter)
        span = int64(position + 1) << 32 | (end - position - 1)
        return span, end + is_whole, (0 if end > position + 1 else MISSING) if is_whole else QUOTES
    while data[end] != _NEWLINE and data[end] != delimiter and (delimiter != BLANKS or not _is_blank(data[end])):
        end += 1
    following = end
    while end > position and _is_blank(data[end - 1]):
        end -= 1
    return int64(position) << 32 | (end - position), following, 0 if end > position else MISSING

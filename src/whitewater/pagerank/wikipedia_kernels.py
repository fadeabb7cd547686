"""The kernels that read the rows of a dump of MediaWiki's tables, and make names of titles.

A dump is what `mysqldump` writes: statements ``INSERT INTO `table` VALUES (...),(...);``. Newlines within strings are
escaped, so that a row is within a line. Escapes: https://dev.mysql.com/doc/refman/8.4/en/string-literals.html
"""

from __future__ import annotations

import numpy as np

from whitewater.devices.kernel import int64, kernel, part
from whitewater.devices.protocol import Array
from whitewater.pagerank.edge_files.text_kernels import LENGTH

# What is read of a column, and what stands for SQL's null.
SKIPPED, INTEGER, TEXT = range(3)
NULL = -(2**63)
_NEWLINE, _RETURN, _SPACE, _QUOTE, _OPEN, _CLOSE, _COMMA, _SEMICOLON = b"\n\r '(),;"
_ESCAPE, _HYPHEN, _ZERO, _UNDERSCORE, _COLON, _N = b"\\-0_:N"
_INSERT = np.frombuffer(b"INSERT INTO ", np.uint8)
_VALUES = np.frombuffer(b" VALUES", np.uint8)
_NULL = np.frombuffer(b"NULL", np.uint8)
# Bytes that an escape stands for; any other one stands for itself.
_ESCAPED = np.arange(256, dtype=np.uint8)
_ESCAPED[list(b"0bnrtZ")] = list(b"\0\b\n\r\t\x1a")
_DIGITS = 18
_FAULT = -1


@kernel
def parse_inserts(data: Array, plan: Array, values: Array, text: Array, inside: bool) -> tuple[int, int, bool, int]:
    """Read the rows of the statements in some whole lines.

    Parameters
    ----------
    data
        uint8, ends with a newline.
    plan
        int64 (columns of the table, 2): what is read of each, and the row of ``values`` that takes it.
    values
        int64 (columns read, rows at most); filled with integers, `NULL`, and spans ``begin << 32 | length`` of text.
    text
        uint8, as long as the data; filled with the strings that are read, without escapes.
    inside
        Whether the lines begin within a statement.

    Returns
    -------
    tuple
        The number of rows, the bytes of text, whether the lines end within a statement, and where a fault is, or -1.
    """
    position = rows = written = 0
    while position < len(data):
        byte = data[position]
        if not inside:
            position, inside = _statement(data, position)
        elif byte == _OPEN:
            following, written = _row(data, position + 1, plan, (values[:, rows], text), written)
            if following == _FAULT:
                return rows, written, inside, position
            position = following
            rows += 1
        elif byte == _SEMICOLON:
            inside = False
            position = _after_line(data, position)
        elif (byte == _COMMA) | (byte == _SPACE) | (byte == _NEWLINE) | (byte == _RETURN):
            position += 1
        else:
            return rows, written, inside, position
    return rows, written, inside, _FAULT


@part
def _statement(data: Array, position: int) -> tuple[int, bool]:
    """Return the position after the head of a statement that inserts, or after a line that is none."""
    end = _after_line(data, position)
    if not _is_at(data, position, _INSERT):
        return end, False
    while position < end:
        if _is_at(data, position, _VALUES):
            return position + len(_VALUES), True
        position += 1
    return end, False


@part
def _after_line(data: Array, position: int) -> int:
    while data[position] != _NEWLINE:
        position += 1
    return position + 1


@part
def _is_at(data: Array, position: int, word: Array) -> bool:
    if len(word) > len(data) - position:
        return False
    place = 0
    while place < len(word) and data[position + place] == word[place]:
        place += 1
    return place == len(word)


@part
def _row(data: Array, position: int, plan: Array, into: tuple[Array, Array], written: int) -> tuple[int, int]:
    """Return the position after a row, or a fault, and the bytes of text."""
    values, text = into
    for column in range(len(plan)):
        kind, slot = plan[column, 0], plan[column, 1]
        value, position, after = _value(data, position, kind, text, written)
        if position == _FAULT or data[position] != (_COMMA if column < len(plan) - 1 else _CLOSE):
            return _FAULT, written
        position += 1
        if kind != SKIPPED:
            values[slot] = value
            written = after
    return position, written


@part
def _value(data: Array, position: int, kind: int, text: Array, written: int) -> tuple[int, int, int]:
    """Return an integer, null or the span of a string; the position after it, or a fault; and the bytes of text."""
    if data[position] == _N and _is_at(data, position, _NULL):
        return int64(NULL), position + len(_NULL), written
    if data[position] == _QUOTE or data[position] == _UNDERSCORE:
        following, after = _string(data, position, text, written)
        span = int64(written) << 32 | (after - written)
        return span, int64(_FAULT) if kind == INTEGER else following, after
    value, following = _number(data, position, kind)
    return value, int64(_FAULT) if kind == TEXT else following, written


@kernel
def _string(data: Array, position: int, text: Array, written: int) -> tuple[int, int]:
    """Copy a string, which ``_binary`` may stand ahead of; return the position after it, or a fault."""
    while (data[position] != _QUOTE) & (data[position] != _NEWLINE):
        position += 1
    # A quote in a string is escaped, or doubled.
    while data[position] == _QUOTE:
        position += 1
        while (data[position] != _QUOTE) & (data[position] != _NEWLINE):
            is_escaped = data[position] == _ESCAPE
            position += is_escaped
            text[written] = _ESCAPED[data[position]] if is_escaped else data[position]
            written += 1
            position += 1
        if data[position] == _QUOTE and data[position + 1] != _QUOTE:
            return position + 1, written
        if data[position] == _QUOTE:
            text[written] = _QUOTE
            written += 1
            position += 1
    return _FAULT, written


@part
def _number(data: Array, position: int, kind: int) -> tuple[int, int]:
    """Return an integer and the position after it, or a fault; other numbers are skipped where they are not wanted."""
    negative = data[position] == _HYPHEN
    begin = position + negative
    end, value = begin, int64(0)
    digit = int64(data[end]) - _ZERO
    while 0 <= digit <= 9:
        value = value * 10 + digit
        end += 1
        digit = int64(data[end]) - _ZERO
    if kind == SKIPPED:
        while (data[end] != _COMMA) & (data[end] != _CLOSE) & (data[end] != _NEWLINE):
            end += 1
    elif not begin < end <= begin + _DIGITS:
        return value, _FAULT
    return (-value if negative else value), end


@kernel
def make_names(text: Array, titles: Array, namespaces: Array, names: Array, spans: Array) -> None:
    """Make names of titles: blanks for underscores, and ahead of them the number of a namespace that is not 0.

    Parameters
    ----------
    text
        uint8, which ``titles``, int64 (titles,), are spans of.
    namespaces
        int64 (titles,).
    names
        uint8, as long as all titles and `LONGEST_PREFIX` for each; filled.
    spans
        int64 (titles,); filled with the spans of the names.
    """
    written = 0
    for row in range(len(titles)):
        start = written
        if namespaces[row] != 0:
            written = _prefix(names, written, namespaces[row])
        begin = titles[row] >> 32
        for place in range(begin, begin + (titles[row] & LENGTH)):
            names[written] = _SPACE if text[place] == _UNDERSCORE else text[place]
            written += 1
        spans[row] = int64(start) << 32 | (written - start)


# An integer of 18 digits with its sign, and the colon.
LONGEST_PREFIX = 20


@part
def _prefix(names: Array, written: int, namespace: int) -> int:
    """Write a number and a colon; return the position after them."""
    if namespace < 0:
        names[written] = _HYPHEN
        written += 1
    rest = abs(namespace)
    power = int64(1)
    while power * 10 <= rest:
        power *= 10
    while power > 0:
        names[written] = _ZERO + rest // power
        rest %= power
        power //= 10
        written += 1
    names[written] = _COLON
    return written + 1

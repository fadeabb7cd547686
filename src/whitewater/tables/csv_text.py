"""Comma-separated text as columns, on the host.

Lines that are all plain are read by a kernel; others by Arrow, and those that cannot be read are handed back as they
stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines import Array
from whitewater.io.text_files import filled_lines, parse_sound
from whitewater.tables.arrow_kinds import MICROSECONDS, empty, encoded, from_arrow, narrow_floats, readable
from whitewater.tables.blocks import Encoded, Kind, Parsed
from whitewater.tables.csv_kernels import NEWLINE, NUMBER, SKIPPED, TIME, WORD, read_plain

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

"""Comma-separated text as columns; lines that cannot be parsed are handed back as they stood.

Each field goes from its characters straight into its number, in one pass over the text and without a table of strings
between; fields that are not wanted are only counted. A line is one record: a quoted field does not go on in the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from whitewater.devices import delimited_lines
from whitewater.devices.arrow_kinds import dtype_of
from whitewater.devices.protocol import BAD_INTEGER, Array, Encoded, Kind, Parsed, RawBlock

# Lines parsed at once: their numbers stay in the cache of a core.
_LINES = 1 << 13
_MOST_COLUMNS = 63
_PARSERS = {"float64": delimited_lines.FLOAT, "timestamp": delimited_lines.TIMESTAMP, "text": delimited_lines.TEXT}


def cpu_parse_delimited(data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
    r"""Parse whole lines of comma-separated text without a header.

    Parameters
    ----------
    data
        Lines that end with ``\n`` or ``\r\n`` (the last one may lack it). Empty lines are skipped and are no rows.
    names
        All fields of a line, in order.
    columns
        The fields wanted, at most 63, and what each becomes. An empty field is null. Blanks around numbers are ignored.

    Returns
    -------
    Parsed
        The columns of the lines that could be parsed, in order; and the other lines: those with another number of
        fields, with quotes that are not closed, or with a field that is not of its kind.
    """
    text = _with_last_newline(data)
    kinds, slots = _plan(names, columns)
    lines = data.count(b"\n") + 1
    arrays = {name: np.empty(lines, dtype_of(kind)) for name, kind in columns.items()}
    texts = {name: _Words(text) for name, kind in columns.items() if kind == "text"}
    malformed: list[str] = []
    rows = 0
    for numbers, faults in _slices(text, kinds, slots, len(columns)):
        malformed += [data[begin:end].decode("utf-8", "replace").rstrip("\r") for begin, end in faults.tolist()]
        stop = rows + numbers.shape[1]
        for values, (name, kind) in zip(numbers, columns.items(), strict=True):
            if kind == "text":
                texts[name].encode(values, arrays[name][rows:stop])
            else:
                arrays[name][rows:stop] = _narrow(values, kind)
        rows = stop
    block: RawBlock = {name: values[:rows] for name, values in arrays.items()}
    for name, words in texts.items():
        block[name] = words.encoded(arrays[name][:rows])
    return Parsed(block, rows, tuple(malformed))


def _with_last_newline(data: bytes) -> Array:
    return np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)


def _plan(names: Sequence[str], columns: Mapping[str, Kind]) -> tuple[Array, Array]:
    """Return how each field is parsed, and which column takes it."""
    if len(columns) > _MOST_COLUMNS:
        raise ValueError(f"{len(columns)} columns are wanted, but at most {_MOST_COLUMNS} can be parsed at once")
    order = {name: slot for slot, name in enumerate(columns)}
    kinds = [
        _PARSERS.get(columns[name], delimited_lines.INTEGER) if name in columns else delimited_lines.SKIPPED
        for name in names
    ]
    return np.array(kinds, np.int8), np.array([order.get(name, 0) for name in names], np.int8)


def _slices(text: Array, kinds: Array, slots: Array, columns: int) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers (int64 (columns, lines)) of some lines, and begin and end of those that are malformed."""
    integers = np.empty((columns, _LINES), np.int64)
    floats = integers.view(np.float64)
    long, malformed = np.empty(_LINES, np.int64), np.empty((_LINES, 2), np.int64)
    position = 0
    while position < len(text):
        position, rows, faults = delimited_lines.parse_lines(
            text, position, kinds, slots, integers, floats, long, malformed
        )
        _read_long_numbers(text, long[:rows], integers, floats)
        yield integers[:, :rows], malformed[:faults]


def _read_long_numbers(text: Array, long: Array, integers: Array, floats: Array) -> None:
    """Replace the spans of numbers with too many digits by the nearest double."""
    slots = int(np.bitwise_or.reduce(long, initial=0))
    for slot in [slot for slot in range(len(integers)) if slots >> slot & 1]:
        lines = np.flatnonzero(long >> slot & 1)
        floats[slot, lines] = _texts(text, integers[slot, lines]).cast(pa.float64()).to_numpy()


def _texts(text: Array, spans: Array) -> pa.Array:
    """Return the texts of spans, which are ASCII."""
    characters = np.empty(int((spans & 0xFFFFFFFF).sum()), np.uint8)
    offsets = np.empty(len(spans) + 1, np.int32)
    delimited_lines.copy_texts(text, spans, offsets, characters)
    return pa.StringArray.from_buffers(len(spans), pa.py_buffer(offsets), pa.py_buffer(characters))


def _narrow(values: Array, kind: Kind) -> Array:
    if kind == "float64":
        return values.view(np.float64)
    if kind == "timestamp":
        return values
    return np.where(values > np.iinfo(kind).max, BAD_INTEGER, values)


class _Words:
    """The vocabulary of a column of text."""

    def __init__(self, text: Array) -> None:
        self._text = text
        self._spans = np.empty(256, np.int64)
        self._buckets = np.full(512, -1, np.int32)
        self._known = 0

    def encode(self, spans: Array, codes: Array) -> None:
        """Fill in the code of each span of text."""
        known = delimited_lines.encode(self._text, spans, self._buckets, self._spans, self._known, codes)
        while known < 0:
            self._grow()
            known = delimited_lines.encode(self._text, spans, self._buckets, self._spans, self._known, codes)
        self._known = known

    def _grow(self) -> None:
        spans = self._spans[: self._known].copy()
        self._spans = np.empty(4 * len(self._spans), np.int64)
        self._buckets = np.full(2 * len(self._spans), -1, np.int32)
        self._known = delimited_lines.encode(
            self._text, spans, self._buckets, self._spans, 0, np.empty(len(spans), np.int32)
        )

    def encoded(self, codes: Array) -> Encoded:
        """Return codes and words, without quotes; what stands for the same word gets one code."""
        words = [_word(self._text, span) for span in self._spans[: self._known].tolist()]
        vocabulary = {word: code for code, word in enumerate(dict.fromkeys(word for word in words if word))}
        renumbered = np.array([*(vocabulary.get(word, -1) for word in words), -1], np.int32)
        return Encoded(renumbered[codes], tuple(vocabulary))


def _word(text: Array, span: int) -> str:
    begin, length = span >> 32, span & 0xFFFFFFFF
    word = text[begin : begin + length].tobytes().decode("utf-8", "replace")
    return word[1:-1].replace('""', '"') if word.startswith('"') else word

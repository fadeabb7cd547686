"""Delimited text of a source, plain or gzip: spans of lines, whose fields are converted block by block.

A line that cannot be converted is malformed; it is found by halving its block until it is alone, so that which lines
are malformed does not depend on the blocks.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.download import Input
from whitewater.errors import InputError
from whitewater.recsys.log_folder import LABEL
from whitewater.recsys.sources.layout import Layout
from whitewater.recsys.sources.spans import Rows, Span, Tally, described
from whitewater.recsys.sources.values import RefusedError
from whitewater.text_files import BYTE_ORDER_MARK, line_blocks, open_text, parse, ranges

SPAN_BYTES = 256 << 20
_HEAD_BYTES = 1 << 20
# With more malformed lines in a block a file is of another format: to find each of them would take long.
MALFORMED_OF_BLOCK, SHARE_OF_BLOCK = 100, 0.1
_REASON_LENGTH = 160
_ROW = re.compile(r"Row #\d+: ")
_COLUMN = re.compile(r"^In CSV column #(\d+): ")
_SETTINGS = "the settings of its format in recsys.fetch"


@dataclass(frozen=True)
class Format:
    """How the fields of a line are called and separated, whether they may be quoted, and as what some are read.

    ``types`` are tried in turn on some lines together: the first as which all their fields can be read is taken.
    """

    names: tuple[str, ...]
    delimiter: str
    quoted: bool
    types: tuple[Mapping[str, pa.DataType], ...]


@dataclass(frozen=True)
class Head:
    """The first line of a file: its fields, those of the second by these, and where the first and second begin."""

    fields: list[str]
    second: Mapping[str, str]
    begin: int
    after: int


@dataclass(frozen=True)
class TextSpan(Span):
    """The lines of a file from ``begin`` to ``end``, or to its end; ``header`` lines are before its first row."""

    format: Format
    header: int
    begin: int
    end: int | None

    def count(self) -> int:
        return sum(block.count(b"\n") for block in self._blocks())

    def read(self, layout: Layout, tally: Tally) -> Iterator[Rows]:
        return read_rows(self._blocks(), self.format, layout, tally, origin=self.origin, header=self.header)

    def _blocks(self) -> Iterator[bytes]:
        return line_blocks(self.path, self.begin, self.end, origin=self.origin)


def head_of(file: Input, delimiter: str) -> Head:
    """Return the first line of a file. Raises InputError if there is none, or the file cannot be read."""
    with open_text(file.path, file.origin) as stream:
        start = stream.read(_HEAD_BYTES)
    begin = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    if not start[begin:].strip():
        raise InputError(f"{file.origin} is empty. Fetch it again, or leave it out.")
    lines = start[begin:].splitlines(keepends=True)
    try:
        shown = [lines[0], *[line for line in lines[1:] if line.strip()][:1]]
        fields, *second = csv.reader([line.decode(errors="replace") for line in shown], delimiter=delimiter)
    except csv.Error as error:
        raise InputError(f"{file.origin}: the first lines are no text: {error}. Check recsys.fetch.") from error
    values = second[0] if second else []
    return Head(fields, dict(zip(fields, values, strict=False)), begin, begin + len(lines[0]))


def text_spans(file: Input, number: int, *, format_: Format, header: bool, head: Head) -> list[Span]:
    """Return the spans of a file: about `SPAN_BYTES` each, or all of a gzip file, which cannot be cut."""
    found = ranges(file.path, head.after if header else head.begin, SPAN_BYTES)
    return [TextSpan(file.path, file.origin, number, format_, int(header), begin, end) for begin, end in found]


def read_rows(
    blocks: Iterable[bytes], format_: Format, layout: Layout, tally: Tally, *, origin: str, header: int
) -> Iterator[Rows]:
    """Yield the rows of blocks of lines, and count what is none.

    ``header`` is the number of lines before the first row of the file, which the user calls ``origin``.

    Raises InputError if more than `MALFORMED_OF_BLOCK` and than `SHARE_OF_BLOCK` of the lines of a block are malformed,
    or a line has a label or a time that no log may have.
    """
    for block in blocks:
        lines, malformed = block.count(b"\n"), tally.malformed
        for first, count, found in _pieces(block, format_, layout):
            line = header + tally.lines + first
            if isinstance(found, RefusedError):
                raise InputError(f"{origin}, line {tally.before + line + 1:,}: {found}. Correct the file, or "
                                 f"{_SETTINGS}.")  # fmt: skip
            if isinstance(found, ValueError):
                tally.add_malformed(line, _reason(found, format_))
                if tally.malformed - malformed > max(MALFORMED_OF_BLOCK, SHARE_OF_BLOCK * lines):
                    told = described(origin, tally.malformed, tally.lines + lines, tally.examples)
                    raise InputError(f"{told} Correct the file, or {_SETTINGS}.")
            else:
                tally.empty += count - len(found.places)
                if len(found.places):
                    yield Rows(found.places + tally.lines, found.columns)
        tally.lines += lines


def _pieces(block: bytes, format_: Format, layout: Layout) -> Iterator[tuple[int, int, Rows | ValueError]]:
    """Yield for pieces of a block their first line, number of lines, and rows; for a line without a row why."""
    waiting = [(0, block)]
    while waiting:
        first, data = waiting.pop()
        lines = data.count(b"\n")
        try:
            yield first, lines, _rows(data, first, format_, layout)
        except ValueError as error:
            if lines == 1:
                yield first, lines, error
            else:
                cut = int(_ends(data)[lines // 2 - 1])
                waiting += [(first + lines // 2, data[cut:]), (first, data[:cut])]


def _reason(error: ValueError, format_: Format) -> str:
    """Return what Arrow says of a line, with the name of the column that it numbers."""
    named = _COLUMN.sub(lambda match: f"column {format_.names[int(match[1])]}: ", str(error))
    return _ROW.sub("", named)[:_REASON_LENGTH]


def _rows(data: bytes, first: int, format_: Format, layout: Layout) -> Rows:
    """Return the rows of some lines, none of those that are empty. Raises ValueError if one is malformed."""
    if b"\r" in data and data.count(b"\r") > data.count(b"\r\n"):
        raise ValueError("a carriage return in the line")
    # A row after the last one: a quote that does not end takes it in, which nothing else would tell.
    last = b'""' + format_.delimiter.encode() * (len(format_.names) - 1) + b"\n" if format_.quoted else b""
    for types in format_.types:
        try:
            raw = parse(data + last, format_.names, types, delimiter=format_.delimiter, quoted=format_.quoted)
            columns = layout.convert(raw.slice(0, len(raw) - bool(last)))
            break
        except RefusedError:
            raise
        except ValueError:
            if types is format_.types[-1]:
                raise
    places = np.arange(first, first + data.count(b"\n"))
    rows = len(columns[LABEL])
    if rows < len(places):
        ends = _ends(data)
        lengths = np.diff(ends, prepend=0)
        returns = np.frombuffer(data, np.uint8)[ends - 2] == ord("\r")
        places = places[(lengths > 2) | ((lengths == 2) & ~returns)]
    if rows != len(places):
        raise ValueError("a quote that does not end")
    return Rows(places, columns)


def _ends(data: bytes) -> npt.NDArray[np.int64]:
    """Return where the lines end, after their line feeds, int64 (lines,)."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1

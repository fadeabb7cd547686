"""Delimited text of a source, plain or gzip: spans of lines, whose fields are converted block by block.

A line is one record: a quoted field does not go on in the next line. A line that cannot be converted is malformed; it
is found by halving its block until it is alone, so that which lines are malformed does not depend on the blocks.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from whitewater.errors import InputError
from whitewater.places import Input
from whitewater.recsys.sources.layout import Layout
from whitewater.recsys.sources.spans import Rows, Span, Tally, described
from whitewater.recsys.sources.values import RefusedError, Values

GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLOCK_BYTES = 8 << 20
SPAN_BYTES = 256 << 20
LONGEST_LINE = 64 << 20
_HEAD_BYTES = 1 << 20
# With more malformed lines in a block a file is of another format: to find each of them would take long.
MALFORMED_OF_BLOCK, SHARE_OF_BLOCK = 100, 0.1
_REASON_LENGTH = 160
_ROW = re.compile(r"Row #\d+: ")
_COLUMN = re.compile(r"^In CSV column #(\d+): ")
_SETTINGS = "the settings of its format in recsys.fetch"


@dataclass(frozen=True)
class Format:
    """How the fields of a line are separated, whether they may be quoted, and what the wanted ones are read as.

    ``types`` are tried in turn on some lines together: the first as which all their fields can be read is taken.
    """

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


class Stream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class TextSpan:
    """The lines of a file from ``begin`` to ``end``, or to its end; see `whitewater.recsys.sources.spans.Span`.

    ``names`` are all fields of a line. ``header`` is the number of lines before the first row of the file.
    """

    path: str
    origin: str
    file: int
    names: tuple[str, ...]
    format: Format
    header: int
    begin: int
    end: int | None = None

    def count(self) -> int:
        return sum(block.count(b"\n") for block in self._blocks())

    def read(self, layout: Layout, tally: Tally) -> Iterator[Rows]:
        parser = Parser(self.names, self.format, layout)
        yield from parser.read(self._blocks(), tally, origin=self.origin, header=self.header)

    def _blocks(self) -> Iterator[bytes]:
        with _text(self.path, self.origin) as stream:
            # A gzip stream knows no other way to go forward.
            stream.seek(self.begin) if stream.seekable() else stream.read(self.begin)
            yield from blocks(stream, self.origin, left=None if self.end is None else self.end - self.begin)


class Parser:
    """Reads blocks of lines, as fields of the names that are given."""

    def __init__(self, names: Sequence[str], format_: Format, layout: Layout) -> None:
        self._layout, self._types, self._names = layout, format_.types, list(names)
        self._parse = pa.csv.ParseOptions(
            delimiter=format_.delimiter, quote_char='"' if format_.quoted else False, ignore_empty_lines=True
        )
        # A row after the last one: a quote that does not end takes it in, which nothing else would tell.
        self._last = b'""' + format_.delimiter.encode() * (len(self._names) - 1) + b"\n" if format_.quoted else b""
        self._usual = 0

    def read(self, given: Iterable[bytes], tally: Tally, *, origin: str, header: int) -> Iterator[Rows]:
        """Yield the rows of blocks, and count what is none.

        ``header`` is the number of lines before the first row of the file, which the user calls ``origin``.

        Raises
        ------
        InputError
            If more than `MALFORMED_OF_BLOCK` and than `SHARE_OF_BLOCK` of the lines of a block are malformed, or a line
            has a label or a time that no log may have.
        """
        for block in given:
            lines, malformed = block.count(b"\n"), tally.malformed
            for first, count, found in self._pieces(block):
                if isinstance(found, RefusedError):
                    line = tally.before + header + tally.lines + first + 1
                    raise InputError(f"{origin}, line {line:,}: {found}. Correct the file, or {_SETTINGS}.")
                if isinstance(found, str):
                    tally.add_malformed(header + tally.lines + first, found)
                    if tally.malformed - malformed > max(MALFORMED_OF_BLOCK, SHARE_OF_BLOCK * lines):
                        told = described(origin, tally.malformed, tally.lines + lines, tally.examples)
                        raise InputError(f"{told} Correct the file, or {_SETTINGS}.")
                else:
                    tally.empty += count - len(found.places)
                    if len(found.places):
                        yield Rows(found.places + tally.lines, found.columns)
            tally.lines += lines

    def _pieces(self, block: bytes) -> Iterator[tuple[int, int, Rows | RefusedError | str]]:
        """Yield for pieces of a block their first line, number of lines, and rows; for a line without a row why."""
        waiting = [(0, block)]
        while waiting:
            first, data = waiting.pop()
            lines = data.count(b"\n")
            found: Rows | RefusedError | str
            try:
                found = self._rows(data, first)
            except ValueError as error:
                if lines > 1:
                    cut = int(_ends(data)[lines // 2 - 1])
                    waiting += [(first + lines // 2, data[cut:]), (first, data[:cut])]
                    continue
                found = error if isinstance(error, RefusedError) else self._reason(error)
            yield first, lines, found

    def _reason(self, error: ValueError) -> str:
        """Return what Arrow says of a line, with the name of the column that it numbers."""
        named = _COLUMN.sub(lambda match: f"column {self._names[int(match[1])]}: ", str(error))
        return _ROW.sub("", named)[:_REASON_LENGTH]

    def _rows(self, data: bytes, first: int) -> Rows:
        """Return the rows of some lines, none of those that are empty. Raises ValueError if one is malformed."""
        if b"\r" in data and data.count(b"\r") > data.count(b"\r\n"):
            raise ValueError("a carriage return in the line")
        raw, columns = self._converted(data)
        places = np.arange(first, first + data.count(b"\n"))
        if len(raw) < len(places):
            places = places[~_empty(data)]
        if len(raw) != len(places):
            raise ValueError("a quote that does not end")
        return Rows(places, columns)

    def _converted(self, data: bytes) -> tuple[pa.Table, dict[str, Values]]:
        """Read fields as the types that fitted last, else as the others in turn."""
        faults: dict[int, ValueError] = {}
        for number in sorted(range(len(self._types)), key=lambda each: each != self._usual):
            try:
                raw = self._read(data, self._types[number])
                columns = self._layout.convert(raw)
            except RefusedError:
                raise
            except ValueError as error:
                faults[number] = error
            else:
                self._usual = number
                return raw, columns
        # The same reason whichever types were tried first.
        raise faults[max(faults)]

    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        text = data + self._last
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self._names),
            parse_options=self._parse,
            convert_options=pa.csv.ConvertOptions(
                include_columns=self._layout.names, column_types=types, null_values=[""], strings_can_be_null=True
            ),
        )
        return table.slice(0, len(table) - 1) if self._last else table


def head_of(file: Input, delimiter: str) -> Head:
    """Return the first line of a file. Raises InputError if there is none, or the file cannot be read."""
    with _text(file.path, file.origin) as stream:
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


def text_spans(
    file: Input, number: int, *, names: Sequence[str], format_: Format, header: bool, head: Head
) -> list[Span]:
    """Return the spans of a file: about `SPAN_BYTES` each, or all of a gzip file, which cannot be cut."""
    begin = head.after if header else head.begin
    cuts = [begin, *_cuts(Path(file.path), begin)]
    return [
        TextSpan(file.path, file.origin, number, tuple(names), format_, int(header), first, stop)
        for first, stop in zip(cuts, [*cuts[1:], None], strict=True)
    ]


def blocks(stream: Stream, origin: str, *, left: int | None = None) -> Iterator[bytes]:
    """Yield whole lines with their line feeds, about `BLOCK_BYTES` of them at a time; ``left`` bytes, or all.

    Raises
    ------
    InputError
        If a line is longer than `LONGEST_LINE`.
    """
    rest = b""
    while data := stream.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
        left = None if left is None else left - len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = b""
        rest += data[cut:]
        if len(rest) > LONGEST_LINE:
            raise InputError(f"{origin}: a line is longer than {LONGEST_LINE:,} bytes. Is it text?")
    if rest:
        yield rest + b"\n"


def _cuts(path: Path, begin: int) -> Iterator[int]:
    """Yield where lines begin, `SPAN_BYTES` or a little more after each other."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(GZIP)) == GZIP:
            return
        while begin + SPAN_BYTES < size:
            file.seek(begin + SPAN_BYTES)
            file.readline()
            begin = file.tell()
            if begin < size:
                yield begin


@contextmanager
def _text(path: str, origin: str) -> Iterator[pa.NativeFile]:
    """Open the text of a file. Raises InputError, also while it is read, if it is cut or damaged."""
    try:
        with pa.OSFile(path) as file:
            if file.read(len(GZIP)) != GZIP:
                file.seek(0)
                yield file
                return
            file.seek(0)
            with pa.CompressedInputStream(file, "gzip") as stream:
                yield stream
    except OSError as error:
        raise InputError(f"{origin} is cut or damaged: {error}. Fetch it again.") from error


def _ends(data: bytes) -> npt.NDArray[np.int64]:
    """Return where the lines end, after their line feeds, int64 (lines,)."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1


def _empty(data: bytes) -> npt.NDArray[np.bool_]:
    """Return which lines are empty, bool (lines,)."""
    ends = _ends(data)
    lengths = np.diff(ends, prepend=0)
    returns = np.frombuffer(data, np.uint8)[ends - 2] == ord("\r")
    empty: npt.NDArray[np.bool_] = (lengths == 1) | ((lengths == 2) & returns)
    return empty

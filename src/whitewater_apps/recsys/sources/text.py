"""Delimited text of a source, plain or gzip: spans of lines, whose fields are converted block by block.

A line that cannot be converted is malformed. Which lines these are does not depend on the blocks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.log_folder import LABEL
from whitewater.io.download import Input
from whitewater.io.text_files import BYTE_ORDER_MARK, line_blocks, open_text, parse_sound, ranges
from whitewater_apps.recsys.sources.columns import Layout, RefusedError
from whitewater_apps.recsys.sources.spans import Rows, Span, Tally

SPAN_BYTES = 256 << 20
_HEAD_BYTES = 1 << 20
# With more malformed lines in a block a file is of another format: to find each of them would take long.
MALFORMED_OF_BLOCK, SHARE_OF_BLOCK = 100, 0.1
_REASON_LENGTH = 160
_SETTINGS = "the settings of its format in recsys.fetch"


@dataclass(frozen=True)
class Format:
    """How the fields of a line are called and separated, whether they may be quoted, and as what some are read.

    Only fields without tabs may be separated by more than one character.
    """

    names: tuple[str, ...]
    delimiter: str
    quoted: bool
    types: Mapping[str, pa.DataType]

    def parse(self, block: bytes) -> tuple[pa.Table, dict[int, str]]:
        """Return the wanted fields of the lines that are sound, as text, and what is wrong with others, by number."""
        texts, delimiter = dict.fromkeys(self.types, pa.string()), self.delimiter
        if len(delimiter) > 1:
            block, delimiter = block.replace(delimiter.encode(), b"\t"), "\t"
        return parse_sound(block, self.names, texts, delimiter=delimiter, quoted=self.quoted)


@dataclass(frozen=True)
class Head:
    """The first line of a file: its fields, those of the second by these, and where the first and second begin."""

    fields: list[str]
    second: Mapping[str, str]
    lines: tuple[int, int]


@dataclass(frozen=True)
class TextSpan(Span):
    """The lines of a file, or of a member of a zip file, from ``begin`` to ``end``, or to its end.

    ``header`` lines are before the first row of the file.
    """

    format: Format
    header: int
    begin: int
    end: int | None = None
    member: str = ""

    def count(self) -> int:
        return sum(block.count(b"\n") for block in self._blocks())

    def _blocks(self) -> Iterator[bytes]:
        return line_blocks(self.path, self.begin, self.end, origin=self.origin, member=self.member)

    def read(self, layout: Layout, tally: Tally) -> Iterator[Rows]:
        """Yield the rows in their order, and count what is none.

        Raises InputError if more than `MALFORMED_OF_BLOCK` and than `SHARE_OF_BLOCK` of the lines of a block are
        malformed, or a line has a label or a time that no log may have.
        """
        origin = f"{self.origin}/{self.member}" if self.member else self.origin
        for block in self._blocks():
            numbers, lines, before = _filled(block), block.count(b"\n"), self.header + tally.lines
            raw, unsound = self.format.parse(block)
            places = np.delete(numbers, list(unsound))
            faults = {int(numbers[number]): reason for number, reason in unsound.items()}
            most = max(MALFORMED_OF_BLOCK, SHARE_OF_BLOCK * lines)
            for first, found in layout.pieces(raw, self.format.types):
                if len(faults) > most:
                    break
                if isinstance(found, RefusedError):
                    line = tally.before + before + int(places[first]) + 1
                    raise InputError(f"{origin}, line {line:,}: {found}. Correct the file, or {_SETTINGS}.")
                if isinstance(found, ValueError):
                    faults[int(places[first])] = str(found)[:_REASON_LENGTH]
                else:
                    yield Rows(places[first : first + len(found[LABEL])] + tally.lines, found)
            for line in sorted(faults):
                tally.add_malformed(before + line, faults[line])
            tally.empty += lines - len(numbers)
            tally.lines += lines
            if len(faults) > most:
                raise InputError(f"{tally.describe(origin)} Correct the file, or {_SETTINGS}.")


def head_of(path: str, origin: str, delimiter: str, *, member: str = "") -> Head:
    """Return the first line of a file, or of a member of a zip file.

    Raises InputError if there is none, or the file cannot be read.
    """
    with open_text(path, origin, member=member) as stream:
        start = stream.read(_HEAD_BYTES)
    begin = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    if not start[begin:].strip():
        raise InputError(f"{origin} is empty. Fetch it again, or leave it out.")
    lines = start[begin:].splitlines(keepends=True)
    try:
        shown = [lines[0], *[line for line in lines[1:] if line.strip()][:1]]
        fields, *second = csv.reader([line.decode(errors="replace") for line in shown], delimiter=delimiter)
    except csv.Error as error:
        raise InputError(f"{origin}: the first lines are not text: {error}. Check recsys.fetch.") from error
    values = second[0] if second else []
    return Head(fields, dict(zip(fields, values, strict=False)), (begin, begin + len(lines[0])))


def text_spans(file: Input, number: int, format_: Format, head: Head, *, header: bool) -> list[Span]:
    """Return the spans of a file: about `SPAN_BYTES` each, or all of a gzip file, which cannot be cut."""
    found = ranges(file.path, head.lines[header], SPAN_BYTES)
    return [TextSpan(file.path, file.origin, number, format_, int(header), begin, end) for begin, end in found]


def _filled(data: bytes) -> npt.NDArray[np.int64]:
    """Return the numbers of the lines that are not empty, from 0."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    lengths = np.diff(ends, prepend=-1) - 1
    return np.flatnonzero((lengths > 1) | ((lengths == 1) & (text[ends - 1] != ord("\r"))))

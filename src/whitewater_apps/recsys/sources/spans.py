"""Spans of a source's files, Parquet and delimited text, plain or gzip: read block by block as columns of a log.

A line of text that cannot be converted is malformed, and left out. Which lines these are does not depend on the blocks.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import InputError
from whitewater.features.log_folder import LABEL
from whitewater.io.text_files import BYTE_ORDER_MARK, line_blocks, open_text, parse_sound
from whitewater_apps.recsys.sources.columns import Layout, RefusedError, Values

logger = logging.getLogger(__name__)

# Of the lines of a file, the share that may be malformed.
MALFORMED_SHARE = 0.01
# With more malformed lines in a block a file is of another format: to find each of them would take long.
MALFORMED_OF_BLOCK, SHARE_OF_BLOCK = 100, 0.1
# Malformed lines of a file that are described, and letters of a description.
_EXAMPLES, _REASON_LENGTH = 5, 160
# Rows of Parquet that are converted at once.
_BATCH_ROWS = 1 << 16
_HEAD_BYTES = 1 << 20
_CORRECT = "Correct the file, or the settings of its format in recsys.fetch."


@dataclass
class Tally:
    """How many lines or rows there are, empty and malformed ones among them, and what is wrong with some."""

    counts: Mapping[str, int] = field(default_factory=lambda: {"lines": 0, "empty": 0, "malformed": 0})
    examples: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count the lines that follow, too."""
        self.counts = {what: number + other.counts[what] for what, number in self.counts.items()}
        self.examples += other.examples[: _EXAMPLES - len(self.examples)]

    def describe(self, origin: str) -> str:
        """Return a sentence on the malformed lines of a file."""
        malformed = f"{self.counts['malformed']:,} of {self.counts['lines']:,} lines are malformed"
        return f"{origin}: {malformed}: {'; '.join(self.examples)}."

    def refuse_malformed(self, origin: str) -> None:
        """Log which lines of a file were left out; raise InputError if they are more than `MALFORMED_SHARE`."""
        if self.counts["malformed"] > MALFORMED_SHARE * self.counts["lines"]:
            raise InputError(f"{self.describe(origin)} More than {MALFORMED_SHARE:.0%} are too many: c{_CORRECT[1:]}")
        if self.counts["malformed"]:
            logger.warning("%s They were left out.", self.describe(origin))


class Text(NamedTuple):
    """How lines are read: all fields, as what some are, what separates them, and whether they may be in quotes."""

    names: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    delimiter: str  # of more than one character only where no field has a tab
    quoted: bool
    member: str = ""  # of a zip file


@dataclass(frozen=True)
class Span:
    """Lines of text from byte ``begin`` to ``end``, or to the end; or row groups of Parquet from one to another.

    ``origin`` is what the user calls the file, ``file`` its number, from 0. A row of Parquet counts as a line.
    """

    path: str
    origin: str
    file: int
    begin: int
    end: int | None
    text: Text | None = None
    line: int = 1  # number of the first line in the file
    row_id: int = 0  # and among the lines of all files, without headers

    def count(self) -> int:
        """Return how many lines there are."""
        if self.text is None:
            footer = pq.read_metadata(self.path)
            return sum(footer.row_group(group).num_rows for group in range(self.begin, self.end or 0))
        return sum(data.count(b"\n") for data in self._line_blocks(self.text))

    def blocks(self, names: list[str]) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64], dict[int, str], int]]:
        """Yield columns of the next rows, their places, why other lines are malformed, by place, and their number.

        Places are those among the lines of the block, of which some may be empty.
        """
        if self.text is None:
            yield from self._row_blocks(names)
            return
        texts = dict.fromkeys(names, pa.string())
        delimiter = self.text.delimiter if len(self.text.delimiter) == 1 else "\t"
        for data in self._line_blocks(self.text):
            raw, unsound = parse_sound(data, self.text.names, texts, delimiter=delimiter, quoted=self.text.quoted)
            lines = data.split(b"\n")
            filled = np.array([number for number, line in enumerate(lines) if line not in (b"", b"\r")], np.int64)
            faults = {int(filled[number]): reason for number, reason in unsound.items()}
            yield raw, np.delete(filled, list(unsound)), faults, len(lines) - 1

    def _row_blocks(self, names: list[str]) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64], dict[int, str], int]]:
        try:
            with pq.ParquetFile(self.path) as file:
                groups = range(self.begin, self.end or 0)
                for batch in file.iter_batches(_BATCH_ROWS, groups, columns=names, use_threads=False):
                    batch.validate(full=True)  # of text, that it is UTF-8
                    yield pa.Table.from_batches([batch]), np.arange(batch.num_rows), {}, batch.num_rows
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{self.origin} cannot be read: {error}. Write it again.") from error

    def _line_blocks(self, text: Text) -> Iterator[bytes]:
        for data in line_blocks(self.path, self.begin, self.end, origin=self.origin, member=text.member):
            yield data if len(text.delimiter) == 1 else data.replace(text.delimiter.encode(), b"\t")


def read(span: Span, layout: Layout, tally: Tally) -> Iterator[tuple[npt.NDArray[np.int64], dict[str, Values]]]:
    """Yield the places of the next rows among all lines, ascending, and the log's columns; count all lines.

    Raises InputError if a row of Parquet cannot be converted, a label or a time must not be in a log, or more than
    `MALFORMED_OF_BLOCK` and than `SHARE_OF_BLOCK` of the lines of a block are malformed.
    """
    types = span.text.types if span.text else {}
    for raw, places, faults, lines in span.blocks([column.name for column in layout.columns]):
        before, empty = tally.counts["lines"], lines - len(places) - len(faults)
        first_line, most = span.line + before, max(MALFORMED_OF_BLOCK, SHARE_OF_BLOCK * lines)
        for first, columns in layout.convert(raw, types):
            if len(faults) > most:
                break
            place = int(places[first])
            if not isinstance(columns, ValueError):
                yield places[first : first + len(columns[LABEL])] + before + span.row_id, columns
            elif isinstance(columns, RefusedError) or not types:
                kind = "line" if types else "row"
                raise InputError(f"{span.origin}, {kind} {first_line + place:,}: {columns}. {_CORRECT}")
            else:
                faults[place] = str(columns)[:_REASON_LENGTH]
        examples = [f"line {first_line + place:,}: {faults[place]}" for place in sorted(faults)[:_EXAMPLES]]
        tally.add(Tally({"lines": lines, "empty": empty, "malformed": len(faults)}, examples))
        if len(faults) > most:
            raise InputError(f"{tally.describe(span.origin)} {_CORRECT}")


class Head(NamedTuple):
    """The first line of a file: its fields, those of the second by these, and where the first and second begin."""

    fields: tuple[str, ...]
    second: Mapping[str, str]
    begins: tuple[int, int]


def head_of(path: str, origin: str, delimiter: str, *, member: str = "") -> Head:
    """Return the first line of a file, or of a member of a zip file.

    Raises InputError if there is none, or the file cannot be read.
    """
    with open_text(path, origin, member=member) as stream:
        start = stream.read(_HEAD_BYTES)
    begin = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    if not start[begin:].strip():
        raise InputError(f"{origin} is empty. Fetch it again, or leave it out.")
    first, *others = start[begin:].splitlines(keepends=True)
    shown = [first, *[line for line in others if line.strip()][:1]]
    try:
        fields, *second = csv.reader([line.decode(errors="replace") for line in shown], delimiter=delimiter)
    except csv.Error as error:
        raise InputError(f"{origin}: the first lines are not text: {error}. Check recsys.fetch.") from error
    return Head(tuple(fields), dict(zip(fields, *(second or [[]]), strict=False)), (begin, begin + len(first)))

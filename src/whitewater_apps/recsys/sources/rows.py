"""Sources of files with columns in rows, each written as a log: `generated`, `criteo` and `files`.

`files` are Parquet, or delimited text with a header, in the order of time; their columns are declared. Fields of text
are parsed by role: continuous and label as numbers, categorical and key as text, time by its unit or format, or without
one as ISO 8601, in UTC unless all have an offset. An empty field is null. A malformed line is left out.

`generated` are simulated days, Parquet. `criteo` are Criteo's click logs, text, one file a day: a label, 13 integers I1
to I13, also as 260.0, and 26 texts C1 to C26, without a header or with these names in any order.
"""

import codecs
import csv
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.errors import ConfigError, InputError
from whitewater.features.log_folder import DAY, FIRST, LABEL, ROW_ID, TIME, Log, LogFile, LogTime, file_name
from whitewater.io.download import Input
from whitewater.io.folder import open_parquet
from whitewater.io.text_files import BYTE_ORDER_MARK, line_blocks, open_text, parse_valid_lines, ranges
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater.tables.partitions import ranges_of
from whitewater.tables.raw_files import PARQUET
from whitewater_apps.recsys.config import UNITS_PER_SECOND, Fetch, FileColumn, Files
from whitewater_apps.recsys.sources.columns import Layout, RefusedError, Values, layout_of

logger = logging.getLogger(__name__)
DAY_SECONDS = 86_400
# Approximate size of a span.
SPAN_BYTES, SPAN_ROWS = 256 << 20, 4 << 20
_NUMBER, _ZONE = re.compile(r"\s*-?\d+(\.\d*)?\s*"), re.compile(r".*\d[T ].*(Z|[+-]\d\d(:?\d\d)?)")
CRITEO = ("label", *(f"I{number}" for number in range(1, 14)), *(f"C{number}" for number in range(1, 27)))
# Largest share of malformed lines in a file.
MALFORMED_SHARE = 0.01
# With more malformed lines in a block, the file has another format, and finding each of them would take long.
MALFORMED_OF_BLOCK, SHARE_OF_BLOCK = 100, 0.1
# Number of malformed lines that a message describes.
_EXAMPLES = 5
_CORRECT = "Correct the file, or the settings of its format in recsys.fetch."


@dataclass
class Tally:
    """Counts of all, empty and malformed lines, and examples of faults."""

    counts: Counter[str] = field(default_factory=lambda: Counter(lines=0, empty=0, malformed=0))
    examples: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add the counts of the lines that follow."""
        self.counts.update(other.counts)
        self.examples += other.examples[: _EXAMPLES - len(self.examples)]

    def describe(self, origin: str) -> str:
        malformed = f"{self.counts['malformed']:,} of {self.counts['lines']:,} lines are malformed"
        return f"{origin}: {malformed}: {'; '.join(self.examples)}."

    def refuse_malformed(self, origin: str) -> None:
        """Log the malformed lines of a file; raise InputError if they are more than `MALFORMED_SHARE`."""
        if self.counts["malformed"] > MALFORMED_SHARE * self.counts["lines"]:
            raise InputError(f"{self.describe(origin)} More than {MALFORMED_SHARE:.0%} are too many: c{_CORRECT[1:]}")
        if self.counts["malformed"]:
            logger.warning("%s They were left out.", self.describe(origin))


class TextFormat(NamedTuple):
    """The format of lines: names of all fields, types of the needed ones, delimiter, and whether fields are quoted."""

    names: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    delimiter: str  # one character; or two colons, where no field has a tab
    quoted: bool
    member: str = ""  # of a zip file


@dataclass(frozen=True)
class Span:
    """Lines of text from byte ``begin`` to ``end`` (None: the last), or a range of row groups of Parquet."""

    path: str
    origin: str  # what the user calls the file
    file: int  # its number, from 0
    begin: int
    end: int | None
    text: TextFormat | None = None
    line: int = 1  # number of the first line in the file
    row_id: int = 0  # and among the lines of all files, without headers

    def count(self) -> int:
        if self.text is None:
            footer = pq.read_metadata(self.path)
            return sum(footer.row_group(group).num_rows for group in range(self.begin, self.end or 0))
        return sum(data.count(b"\n") for data in self._line_blocks(self.text))

    def blocks(self, names: list[str]) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64], dict[int, str], int]]:
        """Yield for each block its columns, their places among its lines, faults by place, and the number of lines."""
        if self.text is None:
            yield from self._row_blocks(names)
            return
        texts, delimiter = dict.fromkeys(names, pa.string()), self.text.delimiter.replace("::", "\t")
        for data in self._line_blocks(self.text):
            raw, unsound = parse_valid_lines(data, self.text.names, texts, delimiter=delimiter, quoted=self.text.quoted)
            lines = data.split(b"\n")
            filled = np.array([number for number, line in enumerate(lines) if line not in (b"", b"\r")], np.int64)
            faults = {int(filled[number]): reason for number, reason in unsound.items()}
            yield raw, np.delete(filled, list(unsound)), faults, len(lines) - 1

    def _row_blocks(self, names: list[str]) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64], dict[int, str], int]]:
        try:
            with pq.ParquetFile(self.path) as file:
                groups = range(self.begin, self.end or 0)
                for batch in file.iter_batches(1 << 16, groups, columns=names, use_threads=False):
                    batch.validate(full=True)  # of text, that it is UTF-8
                    yield pa.Table.from_batches([batch]), np.arange(batch.num_rows), {}, batch.num_rows
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{self.origin} cannot be read: {error}. Write it again.") from error

    def _line_blocks(self, text: TextFormat) -> Iterator[bytes]:
        lines = line_blocks(self.path, self.begin, self.end, origin=self.origin, member=text.member)
        return lines if len(text.delimiter) == 1 else (data.replace(text.delimiter.encode(), b"\t") for data in lines)


def read(span: Span, layout: Layout, tally: Tally) -> Iterator[tuple[npt.NDArray[np.int64], dict[str, Values]]]:
    """Yield the places of the next rows among all lines, ascending, and their columns of the log; count all lines.

    Raises InputError if a row of Parquet cannot be converted, a label or time is refused, or too many lines of a block
    are malformed.
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
                faults[place] = str(columns)[:160]
        examples = [f"line {first_line + place:,}: {faults[place]}" for place in sorted(faults)[:_EXAMPLES]]
        tally.add(Tally(Counter(lines=lines, empty=empty, malformed=len(faults)), examples))
        if len(faults) > most:
            raise InputError(f"{tally.describe(span.origin)} {_CORRECT}")


class Head(NamedTuple):
    """The first lines of a file."""

    fields: tuple[str, ...]
    second: Mapping[str, str]  # the fields of the second line, by those of the first
    begins: tuple[int, int]  # the bytes where both begin


def read_head(path: str, origin: str, delimiter: str, *, member: str = "") -> Head:
    """Read the first lines of a file, or of a member of a zip file; raises InputError if there is none."""
    with open_text(path, origin, member=member) as stream:
        start = stream.read(1 << 20)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{origin} is text in UTF-16. Save it as UTF-8.")
    begin = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    if not start[begin:].strip():
        raise InputError(f"{origin} is empty. Fetch it again, or leave it out.")
    first, *others = start[begin:].splitlines(keepends=True)
    lines = [first, *[line for line in others if line.strip()][:1]]
    try:
        fields, *second = csv.reader([line.decode(errors="replace") for line in lines], delimiter=delimiter)
    except csv.Error as error:
        raise InputError(f"{origin}: the first lines are not text: {error}. Check recsys.fetch.") from error
    return Head(tuple(fields), dict(zip(fields, *(second or [[]]), strict=False)), (begin, begin + len(first)))


def read_rows(files: Sequence[Input], folder: Path, *, run: Run[Fetch]) -> Log:
    """Write the log of files, given in the order of their rows.

    Files with a declared time are split into UTC days, counted from that of the first row; days must ascend from row to
    row, in a day the order is free. Otherwise a file is a day.

    Raises InputError if a file, a column, a label or a time cannot be used, there are no rows, too many lines are
    malformed, or days do not ascend; ConfigError if a list is declared, and a file is text.
    """
    source = run.settings.source
    layout, spans = open_files(files, run.settings)
    has_time = any(column.role == "time" for column in layout.columns)
    time = LogTime("seconds" if has_time else "position", "file" if source == "files" and not has_time else "day")
    writer = Log(folder, source, (*FIRST, *layout.log_columns), time, run.settings.row_group_rows)
    first_day = None
    if source == "files" and has_time:
        times = (columns[TIME] for span in spans for _, columns in read(span, layout, Tally()))
        first_day = next((int(to_numpy(time)[0]) // DAY_SECONDS for time in times), 0)
    with run.workers() as workers:
        # The number of rows of the last span is not needed.
        counts = workers.map(methodcaller("count"), spans[:-1], label="files counted", ordered=True)
        first_of_file: dict[int, int] = {}
        tasks = [
            (number, replace(span, row_id=first, line=span.line + first - first_of_file.setdefault(span.file, first)))
            for number, (span, first) in enumerate(zip(spans, accumulate(counts, initial=0), strict=False))
        ]
        shared = {"layout": layout, "writer": writer, "first_day": first_day}
        written = list(workers.map(write_span, tasks, label="files read", ordered=True, shared=shared))
    tallies: dict[str, Tally] = defaultdict(Tally)
    total = Tally()
    for span, (_, tally) in zip(spans, written, strict=True):
        tallies[span.origin].add(tally)
        total.add(tally)
    for origin, tally in tallies.items():
        tally.refuse_malformed(origin)
    log_files = [(file, span.origin) for span, (parts, _) in zip(spans, written, strict=True) for file in parts]
    for (before, _), (after, origin) in pairwise(log_files):
        if after.day < before.day:
            raise _unsorted_error(origin)
    if not log_files:
        raise InputError(f"{', '.join(each.origin for each in files)}: no rows. Check recsys.fetch.")
    return writer.finish([file for file, _ in log_files], counts=total.counts)


def open_files(files: Sequence[Input], settings: Fetch) -> tuple[Layout, list[Span]]:
    """Return the layout of the files of a source, and the spans of their rows."""
    criteo, declared, setting = settings.source == "criteo", settings.files, "recsys.fetch.files.columns"
    if criteo:
        declared = Files(columns=columns_of(CRITEO), delimiter="\t" if settings.criteo.delimiter == "tab" else ",")
        setting = "recsys.fetch.criteo.delimiter"
    elif settings.source == "generated":
        with open_parquet(Path(files[0].path)) as parquet:
            declared = Files(columns=columns_of(parquet.schema_arrow.names))
    schemas: list[tuple[str, pa.Schema]] = []
    spans: list[Span] = []
    for number, file in enumerate(files):
        with Path(file.path).open("rb") as stream:
            is_parquet = stream.read(len(PARQUET)) == PARQUET
        if is_parquet:
            with open_parquet(Path(file.path)) as parquet:
                schema, footer = parquet.schema_arrow, parquet.metadata
            cuts = ranges_of([footer.row_group(each).num_rows for each in range(footer.num_row_groups)], SPAN_ROWS)
            spans += [Span(file.path, file.origin, number, *cut) for cut in cuts]
        else:
            head = read_head(file.path, file.origin, declared.delimiter)
            has_header = not criteo or LABEL in head.fields
            names = head.fields if has_header else CRITEO
            types = {each.name: _text_type(each, head, file, integers=criteo) for each in declared.columns}
            schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
            text = TextFormat(names, types, declared.delimiter, quoted=not criteo)
            # A gzip file cannot be cut.
            spans += [
                Span(file.path, file.origin, number, *cut, text, line=1 + has_header)
                for cut in ranges(file.path, head.begins[has_header], SPAN_BYTES)
            ]
        schemas.append((file.origin, schema))
    return layout_of(declared.columns, schemas, positive=declared.positive, setting=setting), spans


def columns_of(names: Sequence[str]) -> tuple[FileColumn, ...]:
    """Return the columns of a click log, Criteo's or simulated, with their roles."""
    first = (FileColumn(name=TIME, role="time", unit="s"), FileColumn(name=LABEL, role="label"))
    return (
        *(column for column in first if column.name in names),
        *(FileColumn(name=name, role="continuous" if name[0] == "I" else "categorical")
          for name in names if re.fullmatch(r"[IC]\d+", name)),
    )  # fmt: skip


def _text_type(column: FileColumn, head: Head, file: Input, *, integers: bool) -> pa.DataType:
    """Return the type to parse a field as; the first time decides for times without a unit."""
    if column.role == "list":
        raise ConfigError(f"recsys.fetch.files.columns: {column.name!r} is a list, but {file.origin} is text, which "
                          "has none. Write the file as Parquet.")  # fmt: skip
    if column.role == "time" and column.unit is None:
        value = head.second.get(column.name)
        if value is None:
            return pa.null()
        if not _NUMBER.fullmatch(value):
            return pa.timestamp("ns", "UTC" if _ZONE.fullmatch(value) else None)
    time = pa.int64() if column.unit in (None, *UNITS_PER_SECOND) else pa.string()
    types = {"label": pa.float64(), "continuous": pa.int64() if integers else pa.float64(), "time": time}
    return types.get(column.role, pa.string())


def write_span(
    task: tuple[int, Span], *, layout: Layout, writer: Log, first_day: int | None
) -> tuple[list[LogFile], Tally]:
    """Write a file for each day of a numbered span; return the files and the tally.

    ``first_day`` is the first of the log, in days since 1970, or None if a file is a day.
    """
    number, span = task
    tally, files = Tally(), list[LogFile]()
    tables = _tables(span, tally, layout=layout, schema=writer.schema, first_day=first_day)
    for day, of_day in groupby(tables, key=itemgetter(0)):
        if files and day < files[-1].day:
            raise _unsorted_error(span.origin)
        with writer.file(file_name(day, number)) as file:
            for _, table in of_day:
                file.write(table)
        files.append(LogFile(file.path.name, file.rows, day))
    return files, tally


def _tables(
    span: Span, tally: Tally, *, layout: Layout, schema: pa.Schema, first_day: int | None
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a span as tables of the log, each of one day."""
    for row_id, columns in read(span, layout, tally):
        time = to_numpy(columns[TIME]) if TIME in columns else row_id
        days = np.full(len(row_id), span.file) if first_day is None else time // DAY_SECONDS - first_day
        own = {ROW_ID: to_arrow(row_id), DAY: to_arrow(days.astype(np.int32)), TIME: to_arrow(time)}
        merged = {**columns, **own}
        table = pa.Table.from_arrays([merged[name] for name in schema.names], schema=schema)
        starts = np.flatnonzero(np.diff(days, prepend=days[0] - 1)).tolist()
        for start, stop in pairwise([*starts, len(days)]):
            yield int(days[start]), table.slice(start, stop - start)


def _unsorted_error(origin: str) -> InputError:
    return InputError(f"{origin}: a row is of an earlier day than the row before it. Sort the rows of the files, and "
                      "the files, by time; or declare no column of time, and a file is a day.")  # fmt: skip

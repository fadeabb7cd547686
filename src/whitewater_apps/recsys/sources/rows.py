"""Sources of files with columns in rows, each written as a log: `generated`, `criteo` and `files`.

Source `files`: Parquet and delimited text whose columns are declared, in the order of time. Text has a header. Its
fields are read by role: continuous and label as numbers, categorical and key as text; time as numbers of the declared
unit or text of the declared format, or without one as dates and times of ISO 8601, in UTC where they have no offset:
all have one, or none. An empty field is null.

Source `generated`: simulated days, Parquet, whose columns are known by their names.

Source `criteo`: days of clicks as Criteo publishes them, text, plain or gzip, one file a day. A line has a label, 13
integers I1 to I13 and 26 texts C1 to C26; an empty field is null, integers may be negative. The files have no header;
one that has one, with these names in any order, is understood too, as are integers that were written as 260.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate, groupby, pairwise
from operator import add, methodcaller
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.errors import ConfigError, InputError
from whitewater.features.log_folder import DAY, LABEL, ROW_ID, TIME, LogFile, LogWriter, Period, Unit, file_name
from whitewater.io.download import Input
from whitewater.io.folder import open_parquet
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater.tables.raw_files import PARQUET
from whitewater_apps.recsys.config import A_SECOND, Fetch, FileColumn
from whitewater_apps.recsys.sources.columns import Layout, layout_of
from whitewater_apps.recsys.sources.spans import Head, Span, Tally, TextSpan, head_of, parquet_spans, read, text_spans

DAY_SECONDS = 86_400
_NUMBER, _ZONE = re.compile(r"\s*-?\d+(\.\d*)?\s*"), re.compile(r".*\d[T ].*(Z|[+-]\d\d(:?\d\d)?)")
_DELIMITERS = {"tab": "\t", "comma": ","}
CRITEO = ("label", *(f"I{number}" for number in range(1, 14)), *(f"C{number}" for number in range(1, 27)))


def read_rows(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of files, given in the order of their rows, and return what was counted.

    Files with a declared time are cut into days of UTC, counted from that of the first row: then days must ascend from
    row to row, while the rows of a day may be in any order. Else a file is a day.

    Raises
    ------
    InputError
        If a file is empty, cut or damaged, lacks a column, or a column's type does not suit its role or differs between
        files; a label is null, or not 0 or 1 where ``positive`` is null; a time is null, outside of 1980 to 2100, or
        a number without a unit; there are no rows; more than `MALFORMED_SHARE` of the lines of a file are malformed; or
        a row is of an earlier day than the row before.
    ConfigError
        If a list is declared, and a file is text.
    """
    source = run.settings.source
    layout, spans = open_files(files, run.settings)
    has_time = any(column.role == "time" for column in layout.columns)
    unit: Unit = "seconds" if has_time else "position"
    period: Period = "file" if source == "files" and not has_time else "day"
    writer = LogWriter(log, source, layout.log_columns, unit, run.settings.row_group_rows, period)
    if not spans:
        raise InputError("The files have no rows. Check recsys.fetch.")
    with run.workers() as workers:
        # How many rows the last one has need not be known beforehand.
        counts = workers.map(methodcaller("count"), spans[:-1], label="files counted", ordered=True)
        firsts = [0, *accumulate(counts)]
        first_of_file = {span.file: first for span, first in reversed(list(zip(spans, firsts, strict=True)))}
        tasks = [
            (number, first, span, Tally(before=span.header + first - first_of_file[span.file]))
            for number, (first, span) in enumerate(zip(firsts, spans, strict=True))
        ]
        first_day = _first_day(spans, layout) if source == "files" and has_time else None
        shared = {"layout": layout, "writer": writer, "first_day": first_day}
        written = list(workers.map(write_span, tasks, label="files read", ordered=True, shared=shared))
    tallies = [tally for _, tally in written]
    for origin, of_file in groupby(zip(spans, tallies, strict=True), key=lambda pair: pair[0].origin):
        reduce(add, [tally for _, tally in of_file]).refuse_malformed(origin)
    placed = [(span.origin, file) for span, (of_span, _) in zip(spans, written, strict=True) for file in of_span]
    for (_, before), (origin, after) in pairwise(placed):
        if after.day < before.day:
            raise _unsorted(origin)
    if not placed:
        raise InputError(f"{', '.join(file.origin for file in files)}: no rows. Check recsys.fetch.")
    counted = reduce(add, tallies).counts
    writer.finish([file for _, file in placed], counts=counted)
    return counted


def open_files(files: Sequence[Input], settings: Fetch) -> tuple[Layout, list[Span]]:
    """Return the layout of the files of a source, and the spans of their rows; see `read_rows`."""
    criteo, declared = settings.source == "criteo", settings.files
    delimiter = _DELIMITERS[settings.criteo.delimiter] if criteo else declared.delimiter
    heads = [None if _is_parquet(file) else head_of(file.path, file.origin, delimiter) for file in files]
    columns, setting = declared.columns, "recsys.fetch.files.columns"
    if criteo:
        columns, setting = columns_of(CRITEO), "recsys.fetch.criteo.delimiter"
    elif settings.source == "generated":
        columns = columns_of(_parquet_schema(files[0]).names)
    schemas: list[tuple[str, pa.Schema]] = []
    spans: list[Span] = []
    for number, (file, head) in enumerate(zip(files, heads, strict=True)):
        if head is None:
            schemas.append((file.origin, _parquet_schema(file)))
            spans += parquet_spans(file, number)
            continue
        header = not criteo or LABEL in head.fields
        names = head.fields if header else CRITEO
        types = {column.name: _text_type(column, head, file, integers=criteo) for column in columns}
        schemas.append((file.origin, pa.schema([(name, types.get(name, pa.string())) for name in names])))
        spans += text_spans(TextSpan(file.path, file.origin, number, names, types, delimiter, quoted=not criteo,
                                     header=int(header), begin=head.begins[header]))  # fmt: skip
    positive = declared.positive if settings.source == "files" else None
    return layout_of(columns, schemas, positive=positive, setting=setting), spans


def columns_of(names: Sequence[str]) -> tuple[FileColumn, ...]:
    """Return the columns of clicks as Criteo names them, or as they are simulated, with their roles."""
    first = (FileColumn(name=TIME, role="time", unit="s"), FileColumn(name=LABEL, role="label"))
    return (
        *(column for column in first if column.name in names),
        *(FileColumn(name=name, role="continuous" if name[0] == "I" else "categorical")
          for name in names if re.fullmatch(r"[IC]\d+", name)),
    )  # fmt: skip


def _is_parquet(file: Input) -> bool:
    with Path(file.path).open("rb") as stream:
        return stream.read(len(PARQUET)) == PARQUET


def _parquet_schema(file: Input) -> pa.Schema:
    with open_parquet(Path(file.path)) as parquet:
        return parquet.schema_arrow


def _text_type(column: FileColumn, head: Head, file: Input, *, integers: bool) -> pa.DataType:
    """Return the type as which a field is read; times without a unit are as the first is written."""
    if column.role == "list":
        raise ConfigError(f"recsys.fetch.files.columns: {column.name!r} is a list, but {file.origin} is text, which "
                          "has none. Write the file as Parquet.")  # fmt: skip
    if column.role == "time" and column.unit is None:
        value = head.second.get(column.name)
        if value is None:
            return pa.null()
        if not _NUMBER.fullmatch(value):
            return pa.timestamp("ns", "UTC" if _ZONE.fullmatch(value) else None)
    is_number = column.unit is None or column.unit in A_SECOND
    numbers = {"label": pa.float64(), "continuous": pa.int64() if integers else pa.float64()}
    return ({**numbers, "time": pa.int64()} if is_number else numbers).get(column.role, pa.string())


def write_span(
    task: tuple[int, int, Span, Tally], *, layout: Layout, writer: LogWriter, first_day: int | None
) -> tuple[list[LogFile], Tally]:
    """Write the files of a span, one for each of its days, and return them and what was counted.

    The task is the number of the span, that of its first row, the span, and an empty tally; ``first_day`` is that of
    the log, in days since 1970, or None if a file is a day.
    """
    number, first, span, tally = task
    files: list[LogFile] = []
    tables = _tables(span, first, tally, layout=layout, writer=writer, first_day=first_day)
    for day, of_day in groupby(tables, key=lambda pair: pair[0]):
        with writer.file(file_name(day, number), day=day) as file:
            for _, table in of_day:
                file.write(table)
        files.append(file.file)
    return files, tally


def _tables(
    span: Span, first_row: int, tally: Tally, *, layout: Layout, writer: LogWriter, first_day: int | None
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of a span as tables of the log, each of one day."""
    last = -1
    for places, columns in read(span, layout, tally):
        row_id = places + first_row
        time = to_numpy(columns[TIME]) if TIME in columns else row_id
        days = np.full(len(row_id), span.file) if first_day is None else time // DAY_SECONDS - first_day
        if days[0] < last or (np.diff(days) < 0).any():
            raise _unsorted(span.origin)
        last = days[-1]
        own = {ROW_ID: to_arrow(row_id), DAY: to_arrow(days.astype(np.int32)), TIME: to_arrow(time)}
        merged = {**columns, **own}
        table = pa.Table.from_arrays([merged[name] for name in writer.schema.names], schema=writer.schema)
        starts = np.flatnonzero(np.diff(days, prepend=days[0] - 1)).tolist()
        for start, stop in pairwise([*starts, len(days)]):
            yield int(days[start]), table.slice(start, stop - start)


def _first_day(spans: Sequence[Span], layout: Layout) -> int:
    """Return the day of UTC, since 1970, of the first row."""
    for span in spans:
        for _, columns in read(span, layout, Tally(before=span.header)):
            return int(to_numpy(columns[TIME])[0]) // DAY_SECONDS
    return 0


def _unsorted(origin: str) -> InputError:
    return InputError(f"{origin}: a row is of an earlier day than the row before it. Sort the rows of the files, and "
                      "the files, by time; or declare no column of time, and a file is a day.")  # fmt: skip

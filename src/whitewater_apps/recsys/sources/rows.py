"""Sources of files with columns in rows, each written as a log: `generated`, `criteo` and `files`.

Source `files`: Parquet and delimited text whose columns are declared, in the order of time. Text has a header. Its
fields are read by role: continuous and label as numbers, categorical and key as text; time as numbers of the declared
unit or text of the declared format, or without one as dates and times of ISO 8601, in UTC where they have no offset:
all have one, or none. An empty field is null. Source `generated`: simulated days, Parquet, whose columns are known by
their names.

Source `criteo`: days of clicks as Criteo publishes them, text, one file a day. A line has a label, 13 integers I1 to
I13 and 26 texts C1 to C26; integers may be negative, or be written as 260.0. The files have no header; one that has
one, with these names in any order, is understood, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from operator import itemgetter, methodcaller
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.errors import ConfigError, InputError
from whitewater.features.log_folder import DAY, LABEL, ROW_ID, TIME, LogFile, LogWriter, Period, Unit, file_name
from whitewater.io.download import Input
from whitewater.io.folder import open_parquet
from whitewater.io.text_files import ranges
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater.tables.partitions import ranges_of
from whitewater.tables.raw_files import PARQUET
from whitewater_apps.recsys.config import A_SECOND, Fetch, FileColumn, Files
from whitewater_apps.recsys.sources.columns import Layout, layout_of
from whitewater_apps.recsys.sources.spans import Head, Span, Tally, Text, head_of, read

DAY_SECONDS = 86_400
# About so much is in a span.
SPAN_BYTES, SPAN_ROWS = 256 << 20, 4 << 20
_NUMBER, _ZONE = re.compile(r"\s*-?\d+(\.\d*)?\s*"), re.compile(r".*\d[T ].*(Z|[+-]\d\d(:?\d\d)?)")
CRITEO = ("label", *(f"I{number}" for number in range(1, 14)), *(f"C{number}" for number in range(1, 27)))


def read_rows(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of files, given in the order of their rows, and return what was counted.

    Files with a declared time are cut into days of UTC, counted from that of the first row: then days must ascend from
    row to row, while the rows of a day may be in any order. Else a file is a day.

    Raises InputError if a file is empty, cut or damaged, lacks a column, or a column's type does not suit its role or
    differs between files; a label or a time must not be in a log; there are no rows; more than `MALFORMED_SHARE` of the
    lines of a file are malformed; or a row is of an earlier day than the row before; ConfigError if a list is declared,
    and a file is text.
    """
    source = run.settings.source
    layout, spans = open_files(files, run.settings)
    has_time = any(column.role == "time" for column in layout.columns)
    unit: Unit = "seconds" if has_time else "position"
    period: Period = "file" if source == "files" and not has_time else "day"
    writer = LogWriter(log, source, layout.log_columns, unit, run.settings.row_group_rows, period)
    if not spans:
        raise InputError("The files have no rows. Check recsys.fetch.")
    first_day = None
    if source == "files" and has_time:
        times = (columns[TIME] for span in spans for _, columns in read(span, layout, Tally()))
        first_day = next((int(to_numpy(time)[0]) // DAY_SECONDS for time in times), 0)
    with run.workers() as workers:
        # How many rows the last one has need not be known beforehand.
        counts = workers.map(methodcaller("count"), spans[:-1], label="files counted", ordered=True)
        first_of_file: dict[int, int] = {}
        tasks = [
            (number, replace(span, row_id=first, line=span.line + first - first_of_file.setdefault(span.file, first)))
            for number, (span, first) in enumerate(zip(spans, accumulate(counts, initial=0), strict=True))
        ]
        shared = {"layout": layout, "writer": writer, "first_day": first_day}
        written = list(workers.map(write_span, tasks, label="files read", ordered=True, shared=shared))
    tallies: dict[str, Tally] = defaultdict(Tally)
    for span, (_, tally) in zip(spans, written, strict=True):
        tallies[span.origin].add(tally)
    total = Tally()
    for origin, tally in tallies.items():
        tally.refuse_malformed(origin)
        total.add(tally)
    made = [(file, span.origin) for span, (of_span, _) in zip(spans, written, strict=True) for file in of_span]
    for (before, _), (after, origin) in pairwise(made):
        if after.day < before.day:
            raise _unsorted(origin)
    if not made:
        raise InputError(f"{', '.join(tallies)}: no rows. Check recsys.fetch.")
    writer.finish([file for file, _ in made], counts=total.counts)
    return total.counts


def open_files(files: Sequence[Input], settings: Fetch) -> tuple[Layout, list[Span]]:
    """Return the layout of the files of a source, and the spans of their rows; see `read_rows`."""
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
            head = head_of(file.path, file.origin, declared.delimiter)
            has_header = not criteo or LABEL in head.fields
            names = head.fields if has_header else CRITEO
            types = {each.name: _text_type(each, head, file, integers=criteo) for each in declared.columns}
            schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
            text = Text(names, types, declared.delimiter, quoted=not criteo)
            # A gzip file cannot be cut.
            spans += [
                Span(file.path, file.origin, number, *cut, text, line=1 + has_header)
                for cut in ranges(file.path, head.begins[has_header], SPAN_BYTES)
            ]
        schemas.append((file.origin, schema))
    return layout_of(declared.columns, schemas, positive=declared.positive, setting=setting), spans


def columns_of(names: Sequence[str]) -> tuple[FileColumn, ...]:
    """Return the columns of clicks as Criteo names them, or as they are simulated, with their roles."""
    first = (FileColumn(name=TIME, role="time", unit="s"), FileColumn(name=LABEL, role="label"))
    return (
        *(column for column in first if column.name in names),
        *(FileColumn(name=name, role="continuous" if name[0] == "I" else "categorical")
          for name in names if re.fullmatch(r"[IC]\d+", name)),
    )  # fmt: skip


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
    time = pa.int64() if column.unit in (None, *A_SECOND) else pa.string()
    types = {"label": pa.float64(), "continuous": pa.int64() if integers else pa.float64(), "time": time}
    return types.get(column.role, pa.string())


def write_span(
    task: tuple[int, Span], *, layout: Layout, writer: LogWriter, first_day: int | None
) -> tuple[list[LogFile], Tally]:
    """Write the files of a span, given with its number, one for each of its days; return them and what was counted.

    ``first_day`` is that of the log, in days since 1970, or None if a file is a day.
    """
    number, span = task
    tally, files = Tally(), list[LogFile]()
    tables = _tables(span, tally, layout=layout, schema=writer.schema, first_day=first_day)
    for day, of_day in groupby(tables, key=itemgetter(0)):
        if files and day < files[-1].day:
            raise _unsorted(span.origin)
        with writer.file(file_name(day, number), day=day) as file:
            for _, table in of_day:
                file.write(table)
        files.append(file.file)
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


def _unsorted(origin: str) -> InputError:
    return InputError(f"{origin}: a row is of an earlier day than the row before it. Sort the rows of the files, and "
                      "the files, by time; or declare no column of time, and a file is a day.")  # fmt: skip

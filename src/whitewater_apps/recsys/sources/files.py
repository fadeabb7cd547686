"""Sources of files with columns in rows.

Source `files`: Parquet and delimited text whose columns are declared, in the order of time.

Text has a header, by whose names the columns are found. Its fields are read by role: continuous and label as numbers,
categorical and key as text; time as numbers of the declared unit or text of the declared format, or without one as
dates and times of ISO 8601, in UTC where they have no offset: all have one, or none. An empty field is null.

The simulated days of the source `generated` are Parquet too; their columns are known by their names.

Source `criteo`: days of clicks as Criteo publishes them, text, plain or gzip, one file a day. A line has a label, 13
integers I1 to I13 and 26 texts C1 to C26; an empty field is null, integers may be negative. The files have no header;
one that has one, with these names in any order, is understood too, as are integers that were written as 260.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from whitewater.errors import ConfigError, InputError
from whitewater.features.config import Role
from whitewater.features.log_folder import LABEL, TIME, TYPES, LogWriter, Period, Unit
from whitewater.io.download import Input
from whitewater.io.folder import open_parquet
from whitewater.step import Run
from whitewater.tables.raw_files import PARQUET
from whitewater_apps.recsys.config import A_SECOND, Fetch, FileColumn, Files
from whitewater_apps.recsys.sources.columns import Layout, layout_of
from whitewater_apps.recsys.sources.spans import Span, parquet_spans, write_spans
from whitewater_apps.recsys.sources.text import Format, Head, head_of, text_spans

_TEXT_TYPES = {
    "label": pa.float64(),
    "continuous": pa.float64(),
    "categorical": pa.string(),
    "key": pa.string(),
}
_NUMBER, _ZONE = re.compile(r"\s*-?\d+(\.\d*)?\s*"), re.compile(r".*\d[T ].*(Z|[+-]\d\d(:?\d\d)?)")
_INTEGERS, _TEXTS = [f"I{number}" for number in range(1, 14)], [f"C{number}" for number in range(1, 27)]
CRITEO = Layout(
    (
        FileColumn(name=LABEL, role="label"),
        *(FileColumn(name=name, role="continuous") for name in _INTEGERS),
        *(FileColumn(name=name, role="categorical") for name in _TEXTS),
    ),
    {**dict.fromkeys(_INTEGERS, "int64"), **dict.fromkeys(_TEXTS, "string")},
)
_DELIMITERS = {"tab": "\t", "comma": ","}
_SIMULATED: Mapping[str, Role] = {"I": "continuous", "C": "categorical"}


def read_files(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of files, given in the order of time; see `whitewater_apps.recsys.sources.spans.write_spans`.

    Raises
    ------
    InputError
        If a file is empty, cut or damaged, lacks a column, or a column's type does not suit its role or differs between
        files; if a label is null, or not 0 or 1 where ``positive`` is null; a time is null, outside of 1980 to 2100, or
        a number without a unit; or see `write_spans`.
    ConfigError
        If a list is declared, and a file is text.
    """
    settings = run.settings.files
    layout, heads, schemas = layout_of_files(files, settings)
    spans: list[Span] = []
    for number, (file, head, schema) in enumerate(zip(files, heads, schemas, strict=True)):
        if head is None:
            spans += parquet_spans(file, number)
        else:
            types = {name: schema.field(name).type for name in layout.names}
            format_ = Format(tuple(head.fields), settings.delimiter, quoted=True, types=types)
            spans += text_spans(file, number, format_, head, header=True)
    times: tuple[Unit, Period] = ("seconds", "day") if layout.time else ("position", "file")
    writer = LogWriter(log, "files", layout.log_columns, times[0], run.settings.row_group_rows, times[1])
    return write_spans(spans, layout, writer, run=run, days_of_time=layout.time is not None)


def layout_of_files(files: Sequence[Input], settings: Files) -> tuple[Layout, list[Head | None], list[pa.Schema]]:
    """Return the layout of files, the head of each that is text, and the columns of each; see `read_files`."""
    heads = [None if _is_parquet(file) else head_of(file.path, file.origin, settings.delimiter) for file in files]
    schemas = [
        _parquet_schema(file) if head is None else _text_schema(file, head, settings)
        for file, head in zip(files, heads, strict=True)
    ]
    named = [(file.origin, schema) for file, schema in zip(files, schemas, strict=True)]
    return layout_of(settings.columns, named, positive=settings.positive), heads, schemas


def read_generated(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of simulated days, given in their order; see `whitewater_apps.recsys.sources.spans.write_spans`."""
    schemas = [(file.origin, _parquet_schema(file)) for file in files]
    layout = layout_of(simulated_columns(schemas[0][1]), schemas, positive=None)
    writer = LogWriter(log, "generated", layout.log_columns, "seconds", run.settings.row_group_rows)
    spans = [span for number, file in enumerate(files) for span in parquet_spans(file, number)]
    return write_spans(spans, layout, writer, run=run)


def read_criteo(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of days, given in their order; see `whitewater_apps.recsys.sources.spans.write_spans`.

    Raises InputError if a file is empty, cut or damaged, its header lacks a name, or too many lines are malformed.
    """
    delimiter = _DELIMITERS[run.settings.criteo.delimiter]
    types = {LABEL: pa.float64(), **{name: TYPES[type_] for name, type_ in CRITEO.types.items()}}
    spans: list[Span] = []
    for number, file in enumerate(files):
        head = head_of(file.path, file.origin, delimiter)
        header = LABEL in head.fields
        names = head.fields if header else CRITEO.names
        lacking = [name for name in CRITEO.names if names.count(name) != 1]
        if lacking:
            raise InputError(f"{file.origin}: its header has not each of {', '.join(lacking)} once. Correct it, or "
                             "check recsys.fetch.criteo.delimiter.")  # fmt: skip
        spans += text_spans(file, number, Format(tuple(names), delimiter, False, types), head, header=header)
    writer = LogWriter(log, "criteo", CRITEO.log_columns, "position", run.settings.row_group_rows)
    return write_spans(spans, CRITEO, writer, run=run)


def simulated_columns(schema: pa.Schema) -> tuple[FileColumn, ...]:
    """Return the columns of a simulated day with their roles."""
    kinds = {name: _SIMULATED[name[0]] for name in schema.names if re.fullmatch(r"[IC]\d+", name)}
    return (
        FileColumn(name=TIME, role="time", unit="s"),
        FileColumn(name=LABEL, role="label"),
        *(FileColumn(name=name, role=role) for name, role in kinds.items()),
    )


def _is_parquet(file: Input) -> bool:
    with Path(file.path).open("rb") as stream:
        return stream.read(len(PARQUET)) == PARQUET


def _parquet_schema(file: Input) -> pa.Schema:
    with open_parquet(Path(file.path)) as parquet:
        return parquet.schema_arrow


def _text_schema(file: Input, head: Head, settings: Files) -> pa.Schema:
    """Return the fields of a text, with the types that the declared ones are read as."""
    lists = [column.name for column in settings.columns if column.role == "list"]
    if lists:
        raise ConfigError(f"recsys.fetch.files.columns: {lists[0]!r} is a list, but {file.origin} is text, which has "
                          "none. Write the file as Parquet.")  # fmt: skip
    types = {
        each.name: _time_type(each, head) if each.role == "time" else _TEXT_TYPES[each.role]
        for each in settings.columns
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in head.fields])


def _time_type(column: FileColumn, head: Head) -> pa.DataType:
    """Return the type as which times are read; without a unit, it is as the first is written."""
    if column.unit is not None:
        return pa.int64() if column.unit in A_SECOND else pa.string()
    value = head.second.get(column.name)
    if value is None:
        return pa.null()
    if _NUMBER.fullmatch(value):
        return pa.int64()
    return pa.timestamp("ns", "UTC" if _ZONE.fullmatch(value) else None)

"""Source `files`: Parquet and delimited text whose columns are declared, in the order of time.

Text has a header, by whose names the columns are found. Its fields are read by role: continuous and label as numbers,
categorical and key as text, time as integers (seconds), or as dates and times of ISO 8601, in UTC where they have a
zone, whichever the first row has. An empty field is null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from whitewater.config.recsys import Fetch, Files
from whitewater.errors import ConfigError
from whitewater.places import Input
from whitewater.recsys.log_folder import LogWriter, Unit
from whitewater.recsys.sources.declared import layout_of
from whitewater.recsys.sources.parquet import is_parquet, parquet_schema, parquet_spans
from whitewater.recsys.sources.spans import Span, write_spans
from whitewater.recsys.sources.text import Format, Head, head_of, text_spans
from whitewater.step import Run

_TEXT_TYPES = {
    "label": pa.float64(),
    "continuous": pa.float64(),
    "categorical": pa.string(),
    "key": pa.string(),
}
_INTEGER, _ZONE = re.compile(r"\s*-?\d+\s*"), re.compile(r".*\d[T ].*(Z|[+-]\d\d(:?\d\d)?)")


def read_files(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of files, given in the order of time; see `whitewater.recsys.sources.spans.write_spans`.

    Raises
    ------
    InputError
        If a file is empty, cut or damaged, lacks a column, or a column's type does not suit its role or differs between
        files; if a label is null, or not 0 or 1 where ``positive`` is null; a time is null; or see `write_spans`.
    ConfigError
        If a list is declared, and a file is text.
    """
    settings = run.settings.files
    heads = [None if is_parquet(file) else head_of(file, settings.delimiter) for file in files]
    schemas = [
        parquet_schema(file) if head is None else _schema(file, head, settings)
        for file, head in zip(files, heads, strict=True)
    ]
    named = [(file.origin, schema) for file, schema in zip(files, schemas, strict=True)]
    layout = layout_of(settings.columns, named, positive=settings.positive)
    spans: list[Span] = []
    for number, (file, head, schema) in enumerate(zip(files, heads, schemas, strict=True)):
        if head is None:
            spans += parquet_spans(file, number)
        else:
            types = {name: schema.field(name).type for name in layout.names}
            format_ = Format(settings.delimiter, quoted=True, types=(types,))
            spans += text_spans(file, number, names=head.fields, format_=format_, header=True, head=head)
    unit: Unit = "seconds" if layout.time else "position"
    writer = LogWriter(log, "files", layout.log_columns, unit, run.settings.row_group_rows)
    return write_spans(spans, layout, writer, run=run, days_of_time=layout.time is not None)


def _schema(file: Input, head: Head, settings: Files) -> pa.Schema:
    """Return the fields of a text, with the types that the declared ones are read as."""
    roles = {column.name: column.role for column in settings.columns}
    lists = [name for name, role in roles.items() if role == "list"]
    if lists:
        raise ConfigError(f"recsys.fetch.files.columns: {lists[0]!r} is a list, but {file.origin} is text, which has "
                          "none. Write the file as Parquet.")  # fmt: skip
    types = {
        name: _time_type(head.second.get(name)) if role == "time" else _TEXT_TYPES[role] for name, role in roles.items()
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in head.fields])


def _time_type(value: str | None) -> pa.DataType:
    """Return the type as which times are read, of which one is given, or None if there are none."""
    if value is None:
        return pa.null()
    if _INTEGER.fullmatch(value):
        return pa.int64()
    return pa.timestamp("ns", "UTC" if _ZONE.fullmatch(value) else None)

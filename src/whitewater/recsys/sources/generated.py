"""Source `generated`: the simulated log, a Parquet file a day."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from whitewater.config.recsys import FileColumn, Role
from whitewater.places import Input
from whitewater.recsys.log_folder import LABEL, TIME, LogWriter
from whitewater.recsys.sources.layout import layout_of
from whitewater.recsys.sources.parquet import parquet_schema, parquet_spans
from whitewater.recsys.sources.spans import write_spans
from whitewater.step import Run

ROLES: Mapping[str, Role] = {"I": "continuous", "C": "categorical"}


def read_generated(files: Sequence[Input], log: Path, *, run: Run[Any]) -> Mapping[str, int]:
    """Write the log of simulated days, given in their order; see `whitewater.recsys.sources.spans.write_spans`."""
    schemas = [(file.origin, parquet_schema(file)) for file in files]
    columns = simulated_columns(schemas[0][1])
    layout = layout_of(columns, schemas, positive=None)
    writer = LogWriter(log, "generated", layout.log_columns, "seconds", run.settings.row_group_rows)
    spans = [span for number, file in enumerate(files) for span in parquet_spans(file, number)]
    return write_spans(spans, layout, writer, run=run)


def simulated_columns(schema: pa.Schema) -> tuple[FileColumn, ...]:
    """Return the columns of a simulated day with their roles."""
    kinds = {name: ROLES[name[0]] for name in schema.names if re.fullmatch(r"[IC]\d+", name)}
    return (
        FileColumn(name=TIME, role="time", unit="s"),
        FileColumn(name=LABEL, role="label"),
        *(FileColumn(name=name, role=role) for name, role in kinds.items()),
    )

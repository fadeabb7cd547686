"""Comma-separated text as columns; lines that cannot be parsed are handed back as they stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from whitewater.devices.arrow_kinds import MICROSECONDS, dtype_of, from_arrow, narrow_floats
from whitewater.devices.protocol import Encoded, Kind, Parsed, RawBlock


def cpu_parse_delimited(data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
    """Parse whole lines of comma-separated text without a header.

    Parameters
    ----------
    data
        Whole lines, ended by LF or CRLF; blank lines are skipped and are no rows.
    names
        All fields of a line, in order.
    columns
        Fields wanted, and the kind that each becomes; an empty field is null.

    Returns
    -------
    Parsed
        The columns of the rows that could be parsed, in order, and the other lines.
    """
    lines = [line.rstrip(b"\r") for line in data.split(b"\n")]
    malformed = tuple(line.decode("utf-8", "replace") for line in lines if line and not _fits(line, names, columns))
    good = b"\n".join(line for line in lines if line and _fits(line, names, columns))
    if not good:
        empty: RawBlock = {
            name: Encoded(np.empty(0, np.int32), ()) if kind == "text" else np.empty(0, dtype_of(kind))
            for name, kind in columns.items()
        }
        return Parsed(empty, 0, malformed)
    types = {"timestamp": MICROSECONDS, "text": pa.dictionary(pa.int32(), pa.string())}
    table = csv.read_csv(
        pa.BufferReader(good),
        read_options=csv.ReadOptions(column_names=list(names), use_threads=False),
        convert_options=csv.ConvertOptions(
            column_types={name: types.get(kind, pa.float64()) for name, kind in columns.items()},
            include_columns=list(columns),
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    block: RawBlock = {}
    for name, kind in columns.items():
        values = from_arrow(table.column(name), "float64" if kind.startswith("int") else kind)
        block[name] = narrow_floats(values, dtype_of(kind)) if kind.startswith("int") else values
    return Parsed(block, table.num_rows, malformed)


def _fits(line: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> bool:
    fields = line.split(b",")
    if len(fields) != len(names):
        return False
    for name, field in zip(names, fields, strict=True):
        try:
            if field and name in columns and columns[name] != "text":
                from_arrow(pa.array([field.decode()]), columns[name])
        except ValueError:
            return False
    return True

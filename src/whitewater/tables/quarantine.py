"""The quarantine: rejected rows as they were, with all reasons, the file, and the line where it was text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from whitewater.engines import Array
from whitewater.tables.partitions import write_table

# Bit 0 of a mask: lines of text that could not be parsed, which no rule sees.
MALFORMED = "malformed_line"


def write_rejected(
    rows: pa.Table, mask: Array, file: Array, path: Path, *, reasons: Sequence[str], origins: Mapping[int, str]
) -> None:
    """Write rejected rows: their columns, ``reasons``, ``source_file``, and a null ``raw_line``.

    ``mask`` int64 (rows,): bit *i* is set where a row has ``reasons[i]``; ``file`` int (rows,): key into ``origins``,
    what the user named each file by.
    """
    # Distinct masks and files are few, so each is spelled out once.
    masks, kind = np.unique(mask, return_inverse=True)
    files, source = np.unique(file, return_inverse=True)
    names = [[reason for bit, reason in enumerate(reasons) if each >> bit & 1] for each in masks.tolist()]
    spelled = pa.array(names, pa.list_(pa.string()))
    named = pa.array([origins[each] for each in files.tolist()], pa.string())
    _write(rows, spelled.take(pa.array(kind)), named.take(pa.array(source)), pa.nulls(len(mask), pa.string()), path)


def write_malformed(lines: pa.Array | pa.ChunkedArray, path: Path, *, schema: pa.Schema, origin: str) -> None:
    """Write lines of text that could not be parsed: all columns of the schema null, the line in ``raw_line``."""
    count = len(lines)
    reasons = pa.array([[MALFORMED]] * count, pa.list_(pa.string()))
    rows = pa.table([pa.nulls(count, field.type) for field in schema], schema)
    _write(rows, reasons, pa.array([origin] * count, pa.string()), lines.cast(pa.string()), path)


def _write(rows: pa.Table, reasons: pa.Array, files: pa.Array, lines: pa.Array | pa.ChunkedArray, path: Path) -> None:
    table = rows
    for name, column in {"reasons": reasons, "source_file": files, "raw_line": lines}.items():
        table = table.append_column(name, column)
    write_table(table, path, compression="zstd")

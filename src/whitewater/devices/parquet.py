"""Parquet files: columns of a row group as blocks, and a block as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.devices.arrow_kinds import MICROSECONDS, from_arrow
from whitewater.devices.protocol import NULL_INTEGER, NULL_TIMESTAMP, Array, Block, Kind, RawBlock
from whitewater.errors import InputError


def cpu_row_group_blocks(
    path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
) -> Iterator[RawBlock]:
    """Read columns of one row group, at most ``block_rows`` rows at a time, in file order.

    Parameters
    ----------
    path
        A Parquet file.
    row_group
        Index of the row group.
    columns
        Names of the columns to read, and the kind that each becomes.
    block_rows
        Rows of a block at most; memory grows with it, not with the row group.

    Yields
    ------
    RawBlock
        The columns in the order asked for, all of one length.

    Raises
    ------
    InputError
        If the file is not Parquet, is cut off or corrupted, lacks a column, or holds a value that its kind cannot.
    """
    text = [name for name, kind in columns.items() if kind == "text"]
    rows = 0
    column = ""
    try:
        with pq.ParquetFile(path, memory_map=True, read_dictionary=text, page_checksum_verification=True) as file:
            expected = file.metadata.row_group(row_group).num_rows
            for name in columns:
                if name not in file.schema_arrow.names:
                    raise InputError(_message(path, row_group, name, f"not among {', '.join(file.schema_arrow.names)}"))
            for batch in file.iter_batches(block_rows, [row_group], list(columns), use_threads=False):
                block: RawBlock = {}
                for column, kind in columns.items():
                    block[column] = from_arrow(batch.column(column), kind)
                rows += batch.num_rows
                yield block
    except (OSError, ValueError) as error:
        raise InputError(_message(path, row_group, column, str(error))) from error
    if rows != expected:
        raise InputError(_message(path, row_group, "", f"{rows} rows where its footer says {expected}"))


def _message(path: Path, row_group: int, column: str, problem: str) -> str:
    where = f"{path}, row group {row_group}" + (f", column {column!r}" if column else "")
    return f"{where}: {problem}. Get the file again, or leave it out."


def cpu_write_parquet(block: Block, path: Path, kinds: Mapping[str, Kind]) -> None:
    """Write a block as one Parquet file of one row group, nulls as nulls, timestamps as ``timestamp[us]``.

    Parameters
    ----------
    block
        Arrays of one length.
    path
        The file, which is replaced if it exists.
    kinds
        Kind of each column, in the order of the file.
    """
    arrays = [_to_arrow(block[name], kind) for name, kind in kinds.items()]
    table = pa.Table.from_arrays(arrays, names=list(kinds))
    pq.write_table(
        table,
        path,
        row_group_size=max(1, table.num_rows),
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name, kind in kinds.items() if kind != "timestamp"],
    )


def _to_arrow(values: Array, kind: Kind) -> pa.Array:
    if kind == "float64":
        return pa.array(values, mask=np.isnan(values))
    if kind == "timestamp":
        return pa.array(values, mask=values == NULL_TIMESTAMP).view(MICROSECONDS)
    return pa.array(values, mask=values == NULL_INTEGER)

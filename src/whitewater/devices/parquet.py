"""Parquet files: columns of a row group as blocks, and a block as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.devices.arrow_kinds import MICROSECONDS, from_arrow
from whitewater.devices.parquet_chunk import chunk_reader
from whitewater.devices.protocol import NULL_INTEGER, NULL_TIMESTAMP, Array, Block, Encoded, Kind, RawBlock
from whitewater.errors import InputError

_ARROW_ROWS = 1 << 16


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
    name = ""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file, path.open("rb", buffering=0) as data:
            readers: dict[str, _Reader] = {}
            for name, kind in columns.items():
                column = _column(file, name)
                reader = chunk_reader(data, file, row_group, column, kind)
                readers[name] = reader or _ArrowReader(path, row_group, name, kind)
            rows = file.metadata.row_group(row_group).num_rows
            for start in range(0, rows, block_rows):
                block: RawBlock = {}
                for name, reader in readers.items():
                    block[name] = reader.read(min(block_rows, rows - start))
                yield block
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}, row group {row_group}, column {name!r}: {error}. Get the file again, or leave it out."
        ) from error


class _Reader(Protocol):
    def read(self, rows: int) -> Array | Encoded: ...


class _ArrowReader:
    """Reads the rows of one column chunk in order, of any form, with pyarrow."""

    def __init__(self, path: Path, row_group: int, column: str, kind: Kind) -> None:
        self._kind = kind
        self._batches = self._read(path, row_group, column)
        self._pending: list[pa.Array] = []

    def _read(self, path: Path, row_group: int, column: str) -> Iterator[pa.Array]:
        dictionary = [column] if self._kind == "text" else []
        with pq.ParquetFile(path, read_dictionary=dictionary, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_ARROW_ROWS, [row_group], [column], use_threads=False):
                yield batch.column(0)

    def read(self, rows: int) -> Array | Encoded:
        """Return the next ``rows`` rows."""
        pieces: list[pa.Array] = []
        while rows:
            values = self._pending.pop() if self._pending else next(self._batches, None)
            if values is None:
                raise ValueError("has fewer rows than its row group")
            pieces.append(values[:rows])
            if len(values) > rows:
                self._pending.append(values[rows:])
            rows -= len(pieces[-1])
        return from_arrow(pa.chunked_array(pieces), self._kind)


def _column(file: pq.ParquetFile, name: str) -> int:
    names = file.schema_arrow.names
    if names.count(name) != 1:
        raise ValueError(f"{'not' if name not in names else 'more than once'} among the columns {', '.join(names)}")
    return int(names.index(name))


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

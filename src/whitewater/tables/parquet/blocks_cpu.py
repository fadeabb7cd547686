"""Blocks of Parquet files on the CPU: flat columns by our own decoder, other columns by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.tables.arrow_kinds import MICROSECONDS, from_arrow, null_of
from whitewater.tables.blocks import Encoded, Kind, RawBlock
from whitewater.tables.parquet.chunk import chunk_reader
from whitewater.tables.parquet.opening import faults_of, opened, position_of

_ARROW_ROWS, _ARROW_BUFFER = 1 << 16, 1 << 20
# Measured on 1M trips of 28 columns: Snappy takes 0.24 s and makes 19 MB; Zstandard, level 1, 0.28 s and 15 MB, and
# 15 % more to read back; nothing 0.21 s and 25 MB.
COMPRESSION = "snappy"


def row_group_blocks(path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int) -> Iterator[RawBlock]:
    """Read columns of one row group; see `whitewater.tables.parquet.blocks.row_group_blocks`."""
    with opened(path) as file, path.open("rb", buffering=0) as data:
        rows = file.metadata.row_group(row_group).num_rows
        readers: dict[str, _Reader] = {}
        for name, kind in columns.items():
            with faults_of(path, row_group, name):
                own = chunk_reader(data, file, row_group, position_of(file.schema_arrow, name), kind)
                readers[name] = own or _ArrowReader(path, row_group, name, kind)
        for start in range(0, max(rows, 1), block_rows):
            block: RawBlock = {}
            for name, reader in readers.items():
                with faults_of(path, row_group, name):
                    block[name] = reader.read(min(block_rows, rows - start))
            yield block


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
        options = {"read_dictionary": dictionary, "page_checksum_verification": True}
        # A buffer, and nothing read ahead: memory is bounded by what is asked for, not by the row group.
        with pq.ParquetFile(path, buffer_size=_ARROW_BUFFER, pre_buffer=False, **options) as file:
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
        values = from_arrow(pa.chunked_array(pieces, None if pieces else pa.null()), self._kind)
        return values if isinstance(values, Encoded) else np.require(values, requirements="W")


def write_parquet(block: Mapping[str, Array | Encoded], path: Path, kinds: Mapping[str, Kind]) -> None:
    """Write a block; see `whitewater.tables.parquet.blocks.write_parquet`."""
    table = pa.Table.from_arrays([to_arrow(block[name], kind) for name, kind in kinds.items()], names=list(kinds))
    pq.write_table(
        table,
        path,
        row_group_size=max(1, table.num_rows),
        compression=COMPRESSION,
        # Times repeat too rarely for a dictionary to pay.
        use_dictionary=[name for name, kind in kinds.items() if kind != "timestamp"],
    )


def to_arrow(values: Array | Encoded, kind: Kind) -> pa.Array:
    """Return a column of the host as an Arrow array, nulls as nulls."""
    if isinstance(values, Encoded):
        words = pa.array(list(values.vocabulary), pa.string())
        return pa.DictionaryArray.from_arrays(to_arrow(values.codes, "int32"), words).cast(pa.string())
    nulls = is_null(np, values, kind)
    bits = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    type_ = MICROSECONDS if kind == "timestamp" else pa.from_numpy_dtype(values.dtype)
    # Of buffers: `pyarrow.array` imports pandas, a quarter of a second, to see whether it was given any of it.
    return pa.Array.from_buffers(type_, len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def is_null(xp: ModuleType, values: Array, kind: Kind) -> Array:
    """Return which values of a kind stand for null, bool (rows,)."""
    if kind == "float64":
        nulls: Array = xp.isnan(values)
    else:
        nulls = xp.zeros(len(values), bool) if kind == "id" else values == null_of(kind)
    return nulls

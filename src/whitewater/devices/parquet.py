"""Parquet files: columns of a row group as blocks, and a block as a file.

On the CPU the flat columns that writers usually make are decoded by `whitewater.devices.parquet_chunk`; of any other form
(nested, another encoding or codec, another type), they are read by pyarrow, with the same result. On the GPU cuDF reads
and writes; columns whose type it would read otherwise take the way over the host.
"""

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
        If the file is not Parquet, is cut off or corrupted, lacks a column, or holds a value that cannot become the kind.
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
            for start in range(0, max(rows, 1), block_rows):
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
        return from_arrow(pa.chunked_array(pieces, None if pieces else pa.null()), self._kind)


def _column(file: pq.ParquetFile, name: str) -> int:
    names = file.schema_arrow.names
    if names.count(name) != 1:
        raise ValueError(f"{'not' if name not in names else 'more than once'} among the columns {', '.join(names)}")
    return int(names.index(name))


def gpu_row_group_blocks(
    path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
) -> Iterator[RawBlock]:
    """Read columns of one row group with cuDF; see `cpu_row_group_blocks`. The GPU holds the whole row group."""
    import cudf

    direct = _read_by_cudf(path, row_group, columns)
    try:
        frame = cudf.read_parquet(path, columns=direct, row_groups=[row_group])
        arrays = {name: _from_series(frame[name], columns[name]) for name in direct}
    except RuntimeError:
        # libcudf has one error for everything. The host's reader names the column, if it is the file that is at fault.
        for _ in cpu_row_group_blocks(path, row_group, columns, block_rows=block_rows):
            pass
        raise
    others = {name: kind for name, kind in columns.items() if name not in direct}
    for start, block in zip(
        count(0, block_rows), cpu_row_group_blocks(path, row_group, others, block_rows=block_rows), strict=False
    ):
        stop = start + block_rows
        yield {
            name: _part(arrays[name], start, stop) if name in direct else _on_gpu(block[name]) for name in columns
        }


def _read_by_cudf(path: Path, row_group: int, columns: Mapping[str, Kind]) -> list[str]:
    """Return the columns that cuDF reads as their kind: numbers as numbers, timestamps as such, anything plain as text."""
    with _open(path, row_group) as file:
        types = {name: file.schema_arrow.field(_column(file, name)).type for name in columns}
    return [name for name, kind in columns.items() if _is_direct(types[name], kind)]


def _is_direct(type_: pa.DataType, kind: Kind) -> bool:
    if pa.types.is_timestamp(type_):
        return kind == "timestamp" and type_.tz is None
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return kind == "text"
    return kind != "timestamp" and bool(pa.types.is_signed_integer(type_) or pa.types.is_floating(type_))


def _from_series(series: Any, kind: Kind) -> Array | Encoded:
    """Return a column of cuDF, which has nulls, as an array of the kind."""
    import cupy

    if kind == "text":
        codes, words = series.factorize()
        encoded = encoded_words(words.to_arrow())
        table = cupy.asarray(np.append(encoded.codes, np.int32(NULL_INTEGER)))
        return Encoded(cupy.take(table, codes), encoded.vocabulary)
    nulls = series.isna().to_cupy()
    if kind == "timestamp":
        unit, _ = np.datetime_data(series.dtype)
        microseconds = microseconds_of(series.astype("int64").fillna(0).to_cupy(), unit)
        return cupy.where(nulls, NULL_TIMESTAMP, microseconds)
    values = series.fillna(0).to_cupy()
    if kind == "float64":
        return cupy.where(nulls, np.nan, values.astype(np.float64))
    narrow = narrow_floats if values.dtype.kind == "f" else narrow_integers
    dtype = np.dtype(kind)
    return cupy.where(nulls, dtype.type(NULL_INTEGER), narrow(cupy, values, dtype))


def _part(values: Array | Encoded, start: int, stop: int) -> Array | Encoded:
    if isinstance(values, Encoded):
        return Encoded(values.codes[start:stop], values.vocabulary)
    return values[start:stop]


def _on_gpu(values: Array | Encoded) -> Array | Encoded:
    import cupy

    if isinstance(values, Encoded):
        return Encoded(cupy.asarray(values.codes), values.vocabulary)
    return cupy.asarray(values)


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

"""Parquet files: columns of a row group as blocks, and a block as a file.

On the CPU the flat columns that writers usually make are decoded by `whitewater.tables.parquet.chunk`; columns of any
other form (another encoding, codec or type) are read by pyarrow, with the same result. On the GPU cuDF reads and
writes; columns of a type that it would read otherwise take the way over the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import InputError
from whitewater.tables.arrow_kinds import (
    MICROSECONDS,
    NULL_ID,
    encoded,
    from_arrow,
    microseconds_of,
    narrow_floats,
    narrow_integers,
    null_of,
)
from whitewater.tables.blocks import NULL_INTEGER, Encoded, Kind, RawBlock
from whitewater.tables.parquet.chunk import chunk_reader

_FAULTS = (OSError, ValueError, pa.ArrowException)
_ARROW_ROWS, _ARROW_BUFFER = 1 << 16, 1 << 20
# Rows or bytes after which cuDF begins another row group: never.
_ALL = 2**31 - 1


def cpu_row_group_blocks(
    path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
) -> Iterator[RawBlock]:
    """Read columns of one row group; see `whitewater.engines.device.Device.row_group_blocks`."""
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


def opened(path: Path) -> pq.ParquetFile:
    """Return a Parquet file; raises InputError if it is none, or cut off."""
    try:
        return pq.ParquetFile(path)
    except _FAULTS as error:
        raise InputError(f"{path} is not a whole Parquet file: {error}. Get it again, or leave it out.") from error


@contextmanager
def faults_of(path: Path, row_group: int, column: str) -> Iterator[None]:
    """Raise what goes wrong with a column as InputError that names it."""
    try:
        yield
    except _FAULTS as error:
        raise InputError(
            f"{path}, row group {row_group}: column {column!r} {error}. Get the file again, or leave it out."
        ) from error


def position_of(schema: pa.Schema, name: str) -> int:
    """Return the index of a column by its name; raises ValueError unless there is exactly one."""
    names = schema.names
    if names.count(name) != 1:
        problem = "is there more than once" if name in names else "is not there"
        raise ValueError(f"{problem}; the columns are {', '.join(names)}")
    return int(names.index(name))


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


def gpu_row_group_blocks(
    path: Path, row_group: int, columns: Mapping[str, Kind], *, block_rows: int
) -> Iterator[RawBlock]:
    """Read columns of one row group with cuDF; see `cpu_row_group_blocks`. The GPU holds the whole row group."""
    import cudf

    direct = _read_by_cudf(path, row_group, columns)
    arrays: RawBlock = {}
    try:
        if direct:
            # By default cuDF reads columns off the names of directories, and fails at Hive's name for null.
            unpartitioned = {"partitioning": None}
            frame = cudf.read_parquet(path, columns=direct, row_groups=[row_group], dataset_kwargs=unpartitioned)
            for name in direct:
                with faults_of(path, row_group, name):
                    arrays[name] = _from_series(frame[name], columns[name])
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
        yield {name: _part(arrays[name], start, stop) if name in direct else _on_gpu(block[name]) for name in columns}


def _read_by_cudf(path: Path, row_group: int, columns: Mapping[str, Kind]) -> list[str]:
    """Return the columns that cuDF reads as their kind; the others take the way over the host."""
    direct: list[str] = []
    with opened(path) as file:
        for name, kind in columns.items():
            with faults_of(path, row_group, name):
                if _is_direct(file.schema_arrow.field(position_of(file.schema_arrow, name)).type, kind):
                    direct.append(name)
    return direct


def _is_direct(type_: pa.DataType, kind: Kind) -> bool:
    if pa.types.is_timestamp(type_):
        return kind == "timestamp" and type_.tz is None
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return kind == "text"
    if kind == "id":
        return bool(pa.types.is_signed_integer(type_))
    return kind != "timestamp" and bool(pa.types.is_signed_integer(type_) or pa.types.is_floating(type_))


def _from_series(series: Any, kind: Kind) -> Array | Encoded:
    """Return a column of cuDF, which has nulls, as an array of the kind."""
    import cupy

    if kind == "text":
        codes, words = series.factorize()
        text = encoded(words.to_arrow())
        table = cupy.asarray(np.append(text.codes, np.int32(NULL_INTEGER)))
        return Encoded(cupy.take(table, codes), text.vocabulary)
    nulls = series.isna().to_cupy()
    if kind == "id":
        if bool(nulls.any()):
            raise ValueError(NULL_ID)
        found: Array = series.astype("int64").to_cupy()
        return found
    if kind == "timestamp":
        unit, _ = np.datetime_data(series.dtype)
        found = microseconds_of(series.astype("int64").fillna(0).to_cupy(), unit)
    else:
        values = series.fillna(0).to_cupy()
        narrow = narrow_floats if values.dtype.kind == "f" else narrow_integers
        found = values.astype(np.float64) if kind == "float64" else narrow(cupy, values, np.dtype(kind))
    found[nulls] = null_of(kind)
    return found


def _part(values: Array | Encoded, start: int, stop: int) -> Array | Encoded:
    if isinstance(values, Encoded):
        return Encoded(values.codes[start:stop], values.vocabulary)
    return values[start:stop]


def _on_gpu(values: Array | Encoded) -> Array | Encoded:
    import cupy

    if isinstance(values, Encoded):
        return Encoded(cupy.asarray(values.codes), values.vocabulary)
    array: Array = cupy.asarray(values)
    return array


# Measured on 1M trips of 28 columns: Snappy takes 0.24 s and makes 19 MB; Zstandard, level 1, 0.28 s and 15 MB, and
# 15 % more to read back; nothing 0.21 s and 25 MB.
_COMPRESSION = "snappy"


def cpu_write_parquet(block: Mapping[str, Array | Encoded], path: Path, kinds: Mapping[str, Kind]) -> None:
    """Write a block as a new Parquet file; see `whitewater.engines.device.Device.write_parquet`."""
    table = pa.Table.from_arrays([_to_arrow(block[name], kind) for name, kind in kinds.items()], names=list(kinds))
    pq.write_table(
        table,
        path,
        row_group_size=max(1, table.num_rows),
        compression=_COMPRESSION,
        # Times repeat too rarely for a dictionary to pay.
        use_dictionary=[name for name, kind in kinds.items() if kind != "timestamp"],
    )


def _to_arrow(values: Array | Encoded, kind: Kind) -> pa.Array:
    if isinstance(values, Encoded):
        words = pa.array(list(values.vocabulary), pa.string())
        return pa.DictionaryArray.from_arrays(_to_arrow(values.codes, "int32"), words).cast(pa.string())
    nulls = _is_null(np, values, kind)
    bits = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    type_ = MICROSECONDS if kind == "timestamp" else pa.from_numpy_dtype(values.dtype)
    # Of buffers: `pyarrow.array` imports pandas, a quarter of a second, to see whether it was given any of it.
    return pa.Array.from_buffers(type_, len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def _is_null(xp: ModuleType, values: Array, kind: Kind) -> Array:
    if kind == "float64":
        nulls: Array = xp.isnan(values)
    else:
        nulls = xp.zeros(len(values), bool) if kind == "id" else values == null_of(kind)
    return nulls


def gpu_write_parquet(block: Mapping[str, Array | Encoded], path: Path, kinds: Mapping[str, Kind]) -> None:
    """Write a block with cuDF; see `cpu_write_parquet`."""
    import cudf

    frame = cudf.DataFrame({name: _to_series(block[name], kind) for name, kind in kinds.items()})
    frame.to_parquet(
        path,
        index=False,
        compression=_COMPRESSION,
        row_group_size_rows=_ALL,
        row_group_size_bytes=_ALL,
    )


def _to_series(values: Array | Encoded, kind: Kind) -> Any:
    import cudf
    import cupy

    if isinstance(values, Encoded):
        return cudf.Series.from_arrow(_to_arrow(Encoded(cupy.asnumpy(values.codes), values.vocabulary), kind))
    series = cudf.Series(values)
    if kind == "timestamp":
        series = series.astype("datetime64[us]")
    return series.mask(cudf.Series(_is_null(cupy, values, kind)))

"""What applications do with partitions of Dask's tables, frames of pandas or cuDF, in what both have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask.delayed import Delayed, delayed

from whitewater.engines import Array, Device
from whitewater.io.store import write_whole
from whitewater.tables.fixed_point import LIMIT, integers
from whitewater.tables.group_statistics import ADDED, BINS, TOO_LARGE, as_sums, check, merge, nothing
from whitewater.tables.partitions import COMPRESSION, Partition, write_table
from whitewater.tables.rules import Rule

Frame = Any  # a DataFrame of pandas or cuDF
Series = Any
# Tables of sums that one task adds up.
AT_ONCE = 8


def library(backend: str) -> ModuleType:
    """Return the library of Dask's option ``dataframe.backend``.

    Dask does not bring the option to other processes: what runs there is given it as an argument.
    """
    if backend == "cudf":
        import cudf

        frames: ModuleType = cudf
        return frames
    return pd


def read(partitions: Sequence[Partition], schema: pa.Schema) -> dd.DataFrame:
    """Return the rows of partitions, and for each its ``file``, int64, and whether it is a ``duplicate``, bool.

    A column of the schema that the parts of a partition lack is null.
    """
    backend = dask.config.get("dataframe.backend")
    meta = read_partition(Partition(()), schema=schema, backend=backend)
    rows: dd.DataFrame = dd.from_map(read_partition, partitions, schema=schema, backend=backend, meta=meta)
    return rows


def read_partition(partition: Partition, *, schema: pa.Schema, backend: str) -> Frame:
    """Read a partition; see `read`."""
    frames = library(backend)
    # The table without rows gives those columns a type that the parts lack.
    empty = frames.DataFrame(schema.empty_table().to_pandas()).assign(file=0)
    parts = [
        read_parquet(part.path, _present(part.path, schema), backend=backend).assign(file=part.file)
        for part in partition.parts
    ]
    rows = frames.concat([empty, *parts], ignore_index=True)
    return rows.assign(duplicate=frames.Series(partition.duplicates()))


def hash_rows(partition: Partition, columns: Sequence[str], *, backend: str) -> Array:
    """Return a uint64 of the file and some columns of each row, the same for equal ones."""
    rows = read_partition(partition, schema=pa.schema([]), backend=backend)[["file", *columns]]
    hashes = rows.hash_values(method="xxhash64") if backend == "cudf" else pd.util.hash_pandas_object(rows, index=False)
    on_host: Array = hashes.to_numpy()
    return on_host


def take_rows(partition: Partition, rows: Array, *, schema: pa.Schema, backend: str) -> pa.Table:
    """Return the columns of a schema, and ``file``, of the rows at the given positions."""
    taken = read_partition(partition, schema=schema, backend=backend).iloc[rows]
    return to_arrow(taken, schema.append(pa.field("file", pa.int64())))


def broken(rules: Sequence[Rule], quantity: Callable[[str], Series]) -> Series:
    """Return an int64 mask of the rules that each row breaks, bit *i* being that of ``rules[i]``."""
    # A comparison with a null is False in pandas and null in cuDF: a null breaks no rule.
    return sum(_breaks(rule, quantity).fillna(False).astype("int64") * (1 << bit) for bit, rule in enumerate(rules))


def _breaks(rule: Rule, quantity: Callable[[str], Series]) -> Series:
    value = quantity(rule.quantity)
    if rule.test == "missing":
        return value.isna()
    if rule.test == "in":
        return value.isin(rule.operand)
    if rule.test == "not in":
        return value.notna() & ~value.isin(rule.operand)
    return rule.test(value, rule.operand)


def count_rows(frame: Frame, *keys: str) -> Counter[tuple[int | None, ...]]:
    """Count the rows of each combination of integers in the key columns, None for null."""
    counts = to_pandas(frame.groupby(list(keys), dropna=False, sort=False).size().reset_index())
    return Counter({
        tuple(None if isnan(key) else int(key) for key in row): int(rows) for *row, rows in counts.to_numpy().tolist()
    })  # fmt: skip


def to_pandas(frame: Frame) -> Frame:
    """Return a frame of the host."""
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def to_arrow(frame: Frame, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema as a table of the host, NaN as null."""
    if hasattr(frame, "to_arrow"):
        return frame[schema.names].to_arrow(preserve_index=False).cast(schema)
    return pa.Table.from_pandas(frame, schema, preserve_index=False)


def write_frame(frame: Frame, path: Path, schema: pa.Schema) -> None:
    """Write the columns of a schema as a Parquet file; a GPU encodes what it holds."""
    if not hasattr(frame, "to_arrow"):
        write_table(to_arrow(frame, schema), path)
        return
    rows = frame[schema.names].astype({field.name: field.type.to_pandas_dtype() for field in schema})
    # Columns that have no null are required ones otherwise.
    write_whole(path, partial(rows.to_parquet, index=False, compression=COMPRESSION, force_nullable_schema=True))


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, *, row_group: int | None = None, backend: str
) -> Frame:
    """Return columns of a Parquet file, or of one of its row groups; names of directories are no columns."""
    if backend == "cudf":
        import cudf

        return cudf.read_parquet(
            path,
            columns=columns,
            row_groups=None if row_group is None else [row_group],
            use_pandas_metadata=False,
            dataset_kwargs={"partitioning": None},
        )
    with pq.ParquetFile(path) as file:
        groups = range(file.num_row_groups) if row_group is None else [row_group]
        return file.read_row_groups(groups, columns, use_threads=False).to_pandas(ignore_metadata=True)


def to_arrays(rows: Frame, names: Sequence[str], device: Device) -> dict[str, Array]:
    """Return columns as arrays of float64, NaN for null; times are microseconds. One that the rows lack is all null."""
    null = device.xp.full(len(rows), float("nan"))
    return {name: _as_float(rows[name]) if name in rows.columns else null for name in names}


def _as_float(column: Series) -> Array:
    if column.dtype.kind == "M":
        # pandas has a number for a time that is missing.
        column = column.astype("datetime64[us]").astype("int64").where(column.notna())
    values: Array = column.astype("float64").fillna(float("nan")).values  # noqa: PD011 (of the device)
    return values


def _present(path: Path, schema: pa.Schema) -> list[str] | None:
    """Return the columns of a schema that a file has; all of the file, None, where the schema names none."""
    names = pq.read_schema(path).names
    return [name for name in schema.names if name in names] or None


def group_statistics(rows: dd.DataFrame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE) -> Delayed:
    """Return, to be computed, the sums of a float64 column by each of the keys: see `sums_by_bin`.

    Those of partitions are added up in a tree.
    """
    parts: list[Delayed] = [delayed(sums_by_bin)(part, keys, value, refusal=refusal) for part in rows.to_delayed()]
    parts.append(delayed(nothing)(keys))
    while len(parts) > 1:
        parts = [delayed(merge)(parts[first : first + AT_ONCE]) for first in range(0, len(parts), AT_ONCE)]
    return parts[0]


def sums_by_bin(rows: Frame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE) -> list[pa.Table]:
    """Return the sums of a float64 column by each of the keys; see `whitewater.tables.group_statistics`.

    ``keys`` are names of columns, and their types in the tables. A value that is null or NaN is none.

    Raises InputError with ``refusal`` if values are negative, infinite, or not below 2**20.
    """
    given = rows[value]
    check(int(((given < 0) | (given >= LIMIT)).fillna(False).sum()), refusal)
    present = (given >= 0).fillna(False)
    known = given.where(present, 0.0)
    whole = _integer(known * BINS)
    numbers = rows.assign(
        rows=1,
        values=_integer(present),
        bin=whole + _integer(known * BINS > whole),
        **integers(known, _integer),
    )
    tables = []
    for each in keys:
        sums = numbers.groupby([*each.names, "bin"], dropna=False, sort=False)[list(ADDED)].sum().reset_index()
        tables.append(as_sums(pa.Table.from_pandas(to_pandas(sums), preserve_index=False), each))
    return tables


def _integer(numbers: Series) -> Series:
    return numbers.astype("int64")

"""Operations on tables in Dask, with only those methods that pandas and cuDF share."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from whitewater.errors import InputError
from whitewater.io.store import write_atomically
from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.eras import Codes, Era, Rule
from whitewater.tables.group_statistics import BINS, LIMIT, SUMMED, TOO_LARGE, as_sums, integers, merge
from whitewater.tables.partitions import COMPRESSION, Partition, write_table
from whitewater.tables.raw_files import CheckedBlocks, Frames, Unit, arrow_blocks

Frame = Any  # a DataFrame of pandas or cuDF
Series = Any
# Number of tables of sums that one task merges.
MERGE_WIDTH = 8
# Rows or bytes of a row group in cuDF; never reached, so that a file has one row group.
_UNLIMITED = 2**31 - 1


def backend_module(backend: str) -> ModuleType:
    """Return the module of a value of Dask's option ``dataframe.backend``: pandas or cuDF.

    Dask does not pass the option to other processes, so functions that run there take it as an argument.
    """
    if backend == "cudf":
        import cudf

        return cudf
    return pd


def read_frames(unit: Unit, *, rows: int, codes: Mapping[str, Codes], backend: str) -> Frames:
    """Yield about ``rows`` rows of a unit at a time (a GPU: all), see `in_schema`, and the malformed lines."""
    era, kinds = unit.file.era, unit.file.era.raw_kinds
    if backend != "cudf" or not unit.file.plain:
        for table, malformed in arrow_blocks(unit, rows=rows):
            yield in_schema(from_arrow(table, backend), era, codes), malformed
        return
    try:
        raw = read_parquet(unit.file.path, list(kinds), row_groups=unit.row_groups, backend=backend)
    except RuntimeError as error:  # libcudf's error for everything
        raise InputError(f"{unit.file.name} cannot be read: {error}. Get it again, or leave it out.") from error
    texts = {name: "category" for name, kind in kinds.items() if kind == "text"}
    yield in_schema(raw.astype(texts), era, codes), ()


def check_blocks(unit: Unit, *, schema: pa.Schema, rules: Sequence[Rule], run: Run[RawFiles]) -> CheckedBlocks:
    """Yield the rows of a unit in a schema, their `rule_mask`, and the malformed lines."""
    for frame, malformed in read_frames(unit, rows=run.settings.block_rows, codes={}, backend=run.device.frames):
        mask = rule_mask(rules, frame.__getitem__, start=frame["issues"])  # none, without codes
        yield to_arrow(frame, schema), to_pandas(mask).to_numpy(), malformed


def in_schema(raw: Frame, era: Era, codes: Mapping[str, Codes]) -> Frame:
    """Convert the raw columns of an era to the columns of the table, and add ``issues``.

    An invalid code or count becomes null, and sets bit *i* of ``issues`` if its column is the *i*-th of ``codes``.
    Numbers may have any type that can hold them.
    """
    frame = raw[list(era.raw_kinds)]
    frame.columns = list(era.columns)
    issues = 0
    for bit, (name, vocabulary) in enumerate(codes.items()):
        if name in era.columns:
            values = _recode(frame[name], vocabulary) if era.columns[name].kind == "text" else frame[name]
            if vocabulary.null is not None:
                values = values.where((values != vocabulary.null).fillna(False))
            is_code = _is_code(values, vocabulary)
            frame[name] = values.where(is_code)
            issues += (~is_code).astype("int64") * (1 << bit)
    floats = [name for name, column in era.columns.items() if column.kind == "number" and name not in codes]
    return frame.astype(dict.fromkeys(floats, "float64")).assign(issues=issues, **era.constants)


def _is_code(values: Series, codes: Codes) -> Series:
    # Comparing with null gives False in pandas and null in cuDF.
    is_code = ((values >= codes.least) & (values <= codes.largest) & (values // 1 == values)).fillna(False)
    return is_code | values.isna() if codes.nullable else is_code


def _recode(texts: Series, codes: Codes) -> Series:
    """Return the codes of texts, null for null; each category is looked up once."""
    words = to_pandas(texts.cat.categories).to_numpy().tolist()
    code_of = {category: codes.code_of(word) for category, word in enumerate(words)}
    # The extra category, which no text has, is there because cuDF refuses an empty dictionary.
    not_null = {category: code for category, code in code_of.items() if code is not None} | {len(words): 0}
    return texts.cat.codes.map(not_null)


def read(partitions: Sequence[Partition], schema: pa.Schema) -> dd.DataFrame:
    """Return the rows of partitions in a schema, with columns ``file``, int64, and ``duplicate``, bool."""
    backend = dask.config.get("dataframe.backend")
    no_rows = Partition(())
    meta = _read_partition(no_rows, schema=schema, backend=backend)
    # A Dask data frame has at least one partition.
    return dd.from_map(_read_partition, partitions or [no_rows], schema=schema, backend=backend, meta=meta)


def _read_partition(partition: Partition, *, schema: pa.Schema, backend: str) -> Frame:
    frames = backend_module(backend)
    parts = [frames.DataFrame(schema.empty_table().to_pandas()).assign(file=0)] if not partition.parts else []
    for part in partition.parts:
        present = [name for name in pq.read_schema(part.path).names if name in schema.names]
        parts.append(read_parquet(part.path, present, backend=backend).assign(file=part.file))
    rows = frames.concat(parts, ignore_index=True)
    return _complete(rows, schema).assign(file=rows["file"], duplicate=frames.Series(partition.duplicates()))


def _complete(frame: Frame, schema: pa.Schema) -> Frame:
    """Select the columns of a schema, and add those that are missing as nulls."""
    empty = type(frame)(schema.empty_table().to_pandas())
    nulls = {name: empty[name].reindex(frame.index) for name in schema.names if name not in frame.columns}
    return frame.assign(**nulls)[schema.names]


def rule_mask(rules: Sequence[Rule], quantity: Callable[[str], Series], *, start: Series | int = 0) -> Series:
    """Return an int64 mask of the rules that each row breaks: bit *i* is set for ``rules[i]``; ``start``: none."""
    # Comparing with null gives False in pandas and null in cuDF. Filled, it is False in both: null breaks no rule.
    results = (rule.is_broken_by(quantity(rule.quantity), is_null="isna", is_in="isin") for rule in rules)
    bits = (is_broken.fillna(False).astype("int64") * (1 << bit) for bit, is_broken in enumerate(results))
    return sum(bits, start=start)


def count_rows(frame: Frame, *keys: str) -> Counter[tuple[int | None, ...]]:
    """Count the rows of each combination of integers in the key columns, None for null."""
    counts = to_pandas(frame.groupby(list(keys), dropna=False, sort=False).size().reset_index())
    found: Counter[tuple[int | None, ...]] = Counter()
    for *key, rows in zip(*(counts[name].to_numpy().tolist() for name in counts.columns), strict=True):
        found[tuple(None if isnan(value) else int(value) for value in key)] += rows
    return found


def to_pandas(frame: Frame) -> Frame:
    """Return a frame as one of pandas."""
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def from_arrow(table: pa.Table, backend: str) -> Frame:
    """Convert an Arrow table to a frame of the backend, with dictionaries as categories."""
    if backend == "cudf":
        return backend_module(backend).DataFrame.from_arrow(table)
    return table.to_pandas(ignore_metadata=True)


def to_arrow(frame: Frame, schema: pa.Schema) -> pa.Table:
    """Convert a frame to an Arrow table of a schema; NaN and missing columns become null."""
    rows = _complete(frame, schema)
    if hasattr(rows, "to_arrow"):
        return rows.to_arrow(preserve_index=False).cast(schema)
    return pa.Table.from_pandas(rows, schema, preserve_index=False).replace_schema_metadata()


def write_frame(frame: Frame, path: Path, schema: pa.Schema) -> None:
    """Write the columns of a schema as a Parquet file; missing columns become null."""
    if not hasattr(frame, "to_arrow"):
        write_table(to_arrow(frame, schema), path)
        return
    types = {field.name: field.type.to_pandas_dtype() for field in schema}
    rows = _complete(frame, schema).astype(types).nans_to_nulls()
    # As on the CPU: one row group, and all columns nullable.
    write = partial(
        rows.to_parquet, index=False, compression=COMPRESSION, force_nullable_schema=True,
        row_group_size_rows=_UNLIMITED, row_group_size_bytes=_UNLIMITED,
    )  # fmt: skip
    write_atomically(path, write)


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, *, row_groups: Sequence[int] | None = None, backend: str
) -> Frame:
    """Read columns of a Parquet file, or of some row groups; Hive directories do not become columns."""
    if backend == "cudf":
        groups = None if row_groups is None else list(row_groups)
        return backend_module(backend).read_parquet(
            path, columns=columns, row_groups=groups, use_pandas_metadata=False, dataset_kwargs={"partitioning": None}
        )
    with pq.ParquetFile(path) as file:
        present = range(file.num_row_groups) if row_groups is None else row_groups
        return file.read_row_groups(present, columns, use_threads=False).to_pandas(ignore_metadata=True)


def to_arrays(rows: Frame, names: Sequence[str], device: Device) -> dict[str, Array]:
    """Return columns as float64 arrays on the device, with times in microseconds; nulls and missing columns are NaN."""
    null = device.xp.full(len(rows), float("nan"))
    return {name: _as_float(rows[name]) if name in rows.columns else null for name in names}


def _as_float(column: Series) -> Array:
    if column.dtype.kind == "M":
        # Null would otherwise become an ordinary integer.
        column = column.astype("datetime64[us]").astype("int64").where(column.notna())
    return column.astype("float64").fillna(float("nan")).values  # noqa: PD011 (of the device)


def group_statistics(rows: dd.DataFrame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE) -> Delayed:
    """Return a task that computes `sums_by_bin` of all rows, and merges partitions in a tree."""
    parts: list[Delayed] = [delayed(sums_by_bin)(part, keys, value, refusal=refusal) for part in rows.to_delayed()]
    while len(parts) > MERGE_WIDTH:
        starts = range(0, len(parts), MERGE_WIDTH)
        parts = [delayed(merge)(parts[start : start + MERGE_WIDTH], keys) for start in starts]
    return delayed(merge)(parts, keys)


def sums_by_bin(rows: Frame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE) -> list[pa.Table]:
    """Return the sums of a float64 column by each schema of keys; see `whitewater.tables.with_polars`."""
    values = rows[value]
    if number := int(((values < 0) | (values >= LIMIT)).fillna(False).sum()):
        raise InputError(refusal.format(count=f"{number:,}"))
    has_value = (values >= 0).fillna(False)
    values = values.where(has_value, 0.0)
    floor = (values * BINS).astype("int64")
    numbers = rows.assign(
        rows=1,
        values=has_value.astype("int64"),
        bin=floor + (values * BINS > floor).astype("int64"),
        **integers(values),
    )
    tables = []
    for key in keys:
        sums = numbers.groupby([*key.names, "bin"], dropna=False, sort=False)[list(SUMMED)].sum().reset_index()
        tables.append(as_sums(pa.Table.from_pandas(to_pandas(sums), preserve_index=False), key))
    return tables

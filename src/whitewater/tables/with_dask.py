"""Operations on tables that applications share, in Dask, using only what frames of pandas and cuDF have in common."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from whitewater.io.store import write_whole
from whitewater.step import Run
from whitewater.tables.config import RawFiles
from whitewater.tables.eras import Codes, Era, Rule
from whitewater.tables.group_statistics import ADDED, BINS, LIMIT, TOO_LARGE, as_sums, integers, merge
from whitewater.tables.partitions import COMPRESSION, Partition, write_table
from whitewater.tables.raw_files import CheckedBlocks, Unit, arrow_blocks

Frame = Any  # a DataFrame of pandas or cuDF
Series = Any
# How many tables of sums one task merges.
MERGE_WIDTH = 8
# The rows or bytes after which cuDF starts another row group: so many that it never does.
_UNLIMITED = 2**31 - 1


def backend_module(backend: str) -> ModuleType:
    """Return the library that Dask's option ``dataframe.backend`` names, pandas or cuDF.

    Dask does not pass the option on to other processes, so functions that run there take it as an argument.
    """
    if backend == "cudf":
        import cudf

        return cudf
    return pd


def frames(
    unit: Unit, *, rows: int, codes: Mapping[str, Codes], backend: str
) -> Iterator[tuple[Frame, tuple[str, ...]]]:
    """Yield about ``rows`` rows of a unit at a time, see `in_schema`, and the lines that cannot be parsed.

    A GPU takes all row groups of a unit at once.
    """
    era, kinds = unit.file.era, unit.file.era.raw_kinds
    if backend != "cudf" or not unit.file.plain:
        for table, malformed in arrow_blocks(unit, rows=rows):
            yield in_schema(from_arrow(table, backend), era, codes), malformed
        return
    groups = range(unit.start, unit.stop or len(unit.file.group_rows))
    try:
        raw = read_parquet(unit.file.path, list(kinds), row_groups=groups, backend=backend)
    except RuntimeError as error:  # libcudf has one error for everything
        raise InputError(f"{unit.file.name} cannot be read: {error}. Get it again, or leave it out.") from error
    texts = {name: "category" for name, kind in kinds.items() if kind == "text"}
    yield in_schema(raw.astype(texts), era, codes), ()


def checked_blocks(unit: Unit, *, schema: pa.Schema, rules: Sequence[Rule], run: Run[RawFiles]) -> CheckedBlocks:
    """Yield the rows of a unit that have a schema, what `rule_mask` says of them, and lines that cannot be parsed."""
    for frame, malformed in frames(unit, rows=run.settings.block_rows, codes={}, backend=run.device.frames):
        yield to_arrow(frame, schema), to_pandas(rule_mask(rules, frame.__getitem__)).to_numpy(), malformed


def in_schema(raw: Frame, era: Era, codes: Mapping[str, Codes]) -> Frame:
    """Translate the raw columns of an era into those of a table, and ``issues``.

    A code or count that is not understood becomes null, and sets bit *i* of ``issues`` if its column is the *i*-th of
    ``codes``. Numbers have any type that holds them.
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
    # A comparison with null is False in pandas and null in cuDF.
    is_code = ((values >= codes.least) & (values <= codes.largest) & (values // 1 == values)).fillna(False)
    return is_code | values.isna() if codes.nullable else is_code


def _recode(texts: Series, codes: Codes) -> Series:
    """Return the code of each category, or null; each category is looked up once."""
    words = to_pandas(texts.cat.categories).to_numpy().tolist()
    code_of = {category: codes.code_of(word) for category, word in enumerate(words)}
    # With a category that no text has, because cuDF refuses an empty dictionary.
    not_null = {category: code for category, code in code_of.items() if code is not None} | {len(words): 0}
    return texts.cat.codes.map(not_null)


def read(partitions: Sequence[Partition], schema: pa.Schema) -> dd.DataFrame:
    """Return the rows of partitions with the columns of a schema, which are null where a part lacks them.

    Columns ``file``, int64, and ``duplicate``, bool, are added.
    """
    backend = dask.config.get("dataframe.backend")
    meta = read_partition(Partition(()), schema=schema, backend=backend)
    # Dask knows no frame without partitions.
    some = partitions or [Partition(())]
    return dd.from_map(read_partition, some, schema=schema, backend=backend, meta=meta)


def read_partition(partition: Partition, *, schema: pa.Schema, backend: str) -> Frame:
    """Return the rows of a partition; see `read`."""
    frames = backend_module(backend)
    parts = [frames.DataFrame(schema.empty_table().to_pandas()).assign(file=0)] if not partition.parts else []
    for part in partition.parts:
        present = [name for name in pq.read_schema(part.path).names if name in schema.names]
        parts.append(read_parquet(part.path, present, backend=backend).assign(file=part.file))
    rows = frames.concat(parts, ignore_index=True)
    return _complete(rows, schema).assign(file=rows["file"], duplicate=frames.Series(partition.duplicates()))


def _complete(frame: Frame, schema: pa.Schema) -> Frame:
    """Return the columns of a schema. One that the frame lacks is null, and has its type if that type has nulls."""
    empty = type(frame)(schema.empty_table().to_pandas())
    nulls = {name: empty[name].reindex(frame.index) for name in schema.names if name not in frame.columns}
    return frame.assign(**nulls)[schema.names]


def rule_mask(rules: Sequence[Rule], quantity: Callable[[str], Series]) -> Series:
    """Return an int64 mask of the rules that each row breaks: bit *i* is set for ``rules[i]``."""
    # A comparison with a null is False in pandas and null in cuDF. Filled, it is False in both: a null breaks no rule.
    broken = (rule.is_broken_by(quantity(rule.quantity), is_null="isna", is_in="isin") for rule in rules)
    return sum(each.fillna(False).astype("int64") * (1 << bit) for bit, each in enumerate(broken))


def count_rows(frame: Frame, *keys: str) -> Counter[tuple[int | None, ...]]:
    """Count the rows of each combination of integers in the key columns, None for null."""
    counts = to_pandas(frame.groupby(list(keys), dropna=False, sort=False).size().reset_index())
    return Counter({
        tuple(None if isnan(key) else int(key) for key in row): int(rows) for *row, rows in counts.to_numpy().tolist()
    })  # fmt: skip


def to_pandas(frame: Frame) -> Frame:
    """Return a frame of pandas, copied from the GPU if it is there."""
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def from_arrow(table: pa.Table, backend: str) -> Frame:
    """Return a table of Arrow as a frame of the backend, dictionaries as categories."""
    if backend == "cudf":
        return backend_module(backend).DataFrame.from_arrow(table)
    return table.to_pandas(ignore_metadata=True)


def to_arrow(frame: Frame, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema as a table of Arrow. NaN becomes null, and so do columns that the frame lacks."""
    rows = _complete(frame, schema)
    if hasattr(rows, "to_arrow"):
        return rows.to_arrow(preserve_index=False).cast(schema)
    return pa.Table.from_pandas(rows, schema, preserve_index=False).replace_schema_metadata()


def write_frame(frame: Frame, path: Path, schema: pa.Schema) -> None:
    """Write the columns of a schema as a Parquet file, those that the frame lacks as nulls."""
    if not hasattr(frame, "to_arrow"):
        write_table(to_arrow(frame, schema), path)
        return
    types = {field.name: field.type.to_pandas_dtype() for field in schema}
    rows = _complete(frame, schema).astype(types).nans_to_nulls()
    # As on the CPU: one row group, and nullable columns, whether or not the file has nulls.
    write = partial(
        rows.to_parquet, index=False, compression=COMPRESSION, force_nullable_schema=True,
        row_group_size_rows=_UNLIMITED, row_group_size_bytes=_UNLIMITED,
    )  # fmt: skip
    write_whole(path, write)


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, *, row_groups: Sequence[int] | None = None, backend: str
) -> Frame:
    """Return columns of a Parquet file, or of some of its row groups; Hive's directories do not become columns."""
    if backend == "cudf":
        some = None if row_groups is None else list(row_groups)
        return backend_module(backend).read_parquet(
            path, columns=columns, row_groups=some, use_pandas_metadata=False, dataset_kwargs={"partitioning": None}
        )
    with pq.ParquetFile(path) as file:
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        return file.read_row_groups(groups, columns, use_threads=False).to_pandas(ignore_metadata=True)


def to_arrays(rows: Frame, names: Sequence[str], device: Device) -> dict[str, Array]:
    """Return columns as float64 arrays, nulls as NaN, times in microseconds. A column that the rows lack is all NaN."""
    null = device.xp.full(len(rows), float("nan"))
    return {name: _as_float(rows[name]) if name in rows.columns else null for name in names}


def _as_float(column: Series) -> Array:
    if column.dtype.kind == "M":
        # As an integer, a missing time would be an ordinary number.
        column = column.astype("datetime64[us]").astype("int64").where(column.notna())
    return column.astype("float64").fillna(float("nan")).values  # noqa: PD011 (of the device)


def group_statistics(rows: dd.DataFrame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE) -> Delayed:
    """Return, as a task, the sums of a float64 column for each of the keys; see `sums_by_bin`.

    The sums of partitions are merged in a tree.
    """
    parts: list[Delayed] = [delayed(sums_by_bin)(part, keys, value, refusal=refusal) for part in rows.to_delayed()]
    while len(parts) > MERGE_WIDTH:
        starts = range(0, len(parts), MERGE_WIDTH)
        parts = [delayed(merge)(parts[start : start + MERGE_WIDTH], keys) for start in starts]
    return delayed(merge)(parts, keys)


def sums_by_bin(rows: Frame, keys: Sequence[pa.Schema], value: str, *, refusal: str = TOO_LARGE) -> list[pa.Table]:
    """Return the sums of a float64 column for each of the keys; see `whitewater.tables.with_polars.sums_by_bin`."""
    values = rows[value]
    if number := int(((values < 0) | (values >= LIMIT)).fillna(False).sum()):
        raise InputError(refusal.format(count=f"{number:,}"))
    present = (values >= 0).fillna(False)
    known = values.where(present, 0.0)
    whole = (known * BINS).astype("int64")
    numbers = rows.assign(
        rows=1,
        values=present.astype("int64"),
        bin=whole + (known * BINS > whole).astype("int64"),
        **integers(known),
    )
    tables = []
    for key in keys:
        sums = numbers.groupby([*key.names, "bin"], dropna=False, sort=False)[list(ADDED)].sum().reset_index()
        tables.append(as_sums(pa.Table.from_pandas(to_pandas(sums), preserve_index=False), key))
    return tables

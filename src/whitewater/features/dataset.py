"""The rows that a workflow is fitted on or applied to: files or tables, in parts that fit into memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.columns.column import Block, Column, Lists, Numbers, arrow_of, column_of
from whitewater.features.log_folder import FORMAT, SINCE, UNTIL, Log, open_log
from whitewater.features.schema import Field, Schema, kind, plain_type, wider_type
from whitewater.io.folder import RowGroup, open_parquet

# Rows processed at once: a whole row group, or this many rows of a larger one or of a table in memory.
PART_ROWS = 524_288
# Consecutive row groups are read together up to this many rows: the work on fewer rows is mostly overhead.
FEW_ROWS = 32_768
SMALLER_PARTS = "Make smaller row groups (recsys.fetch.row_group_rows), or take fewer threads."


@dataclass(frozen=True)
class Part:
    """Rows that are read together: a slice of a row group or table from row ``start`` on, or several row groups."""

    groups: tuple[RowGroup, ...]
    start: int
    rows: int


Span = tuple[Part, ...]


class Dataset:
    """Rows in order, in parts.

    Parameters
    ----------
    source
        A Parquet file, a folder of them, or several files; or an Arrow table, a pandas, cuDF or Polars DataFrame, or a
        mapping of arrays or lists.

    Attributes
    ----------
    schema
        The columns of the first file, which all files must have. Only numbers, text, and lists of these are included.
    seconds
        The columns known to hold seconds since 1970: the time column of a log, none for other data.
    parts
        The parts, which depend only on the data.

    Raises
    ------
    InputError
        If a file does not exist, or files differ in their columns.

    Examples
    --------
    >>> from whitewater.features import Dataset
    >>> Dataset({"x": [1, 2], "city": ["Rome", None]}).schema.names
    ['x', 'city']
    """

    def __init__(self, source: Any) -> None:
        paths, log = _files(source)
        self.seconds = (log.time.column,) if log is not None and log.time.unit == "seconds" else ()
        self._table: pa.Table | None = None
        if not paths:  # a log may have no rows
            self._table = _as_table(source) if log is None else log.schema.empty_table()
            self.schema, self.parts = _schema(self._table.schema), tuple(_cut((), self._table.num_rows))
            return
        groups: list[RowGroup] = []
        for path in paths:
            with open_parquet(path) as file:
                schema, footer = _schema(file.schema_arrow), file.metadata
            self.schema = schema if path == paths[0] else _common(self.schema, paths[0], schema, path)
            groups += [RowGroup(path, number, footer.row_group(number).num_rows)
                       for number in range(footer.num_row_groups)]  # fmt: skip
        if log is not None:
            FORMAT.check_rows(log.path, sum(group.rows for group in groups), log.rows)
        self.parts = _merge_small(groups)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def read(self, part: Part, names: Sequence[str]) -> Block:
        """Read columns of a part; raises InputError if a file is damaged, or a column is missing."""
        # Numba takes a third of a second to import.
        from whitewater.features.columns.parquet import read_columns

        types = {name: self.schema[name].type for name in names}
        if self._table is not None:
            return cast_columns(_block(self._table.slice(part.start, part.rows), names), types)
        blocks = [
            cast_columns(read_columns(group.path, group.number, names, start=part.start, rows=part.rows), types)
            for group in part.groups
        ]
        if len(blocks) == 1:
            return blocks[0]
        return _block(pa.concat_tables([as_table(block, types) for block in blocks]), names)


def _block(table: pa.Table, names: Sequence[str]) -> Block:
    return {name: column_of(table.column(name)) for name in names}


def _cut(groups: tuple[RowGroup, ...], rows: int) -> Iterator[Part]:
    """Yield the parts of this many rows: one part, unless that would be far larger than `PART_ROWS`."""
    size = rows if rows <= 2 * PART_ROWS else PART_ROWS
    for start in range(0, rows, max(size, 1)):
        yield Part(groups, start, min(size, rows - start))


def _merge_small(groups: Iterable[RowGroup]) -> tuple[Part, ...]:
    """Return row groups as parts, merging small neighbors."""
    parts: list[Part] = []
    for group in groups:
        if parts and parts[-1].start == 0 and parts[-1].rows + group.rows <= FEW_ROWS:
            parts[-1] = Part((*parts[-1].groups, group), 0, parts[-1].rows + group.rows)
        else:
            parts += _cut((group,), group.rows)
    return tuple(parts)


def _files(source: Any) -> tuple[list[Path], Log | None]:
    """Return the files of a source (none for data in memory), and the log if the source is one."""
    if not isinstance(source, (str, Path)):
        is_files = isinstance(source, Sequence) and source and isinstance(source[0], (str, Path))
        return list(dict.fromkeys(map(Path, source))) if is_files else [], None
    path = Path(source)
    if not path.is_dir():
        return [path], None
    if (path / FORMAT.name).exists():
        log = open_log(path)
        return [path / file.name for file in log.files], log
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise InputError(f"{path} has no Parquet files (*.parquet). Name a folder that has some, or a file.")
    return files, None


def _as_table(source: Any) -> pa.Table:
    try:
        if isinstance(source, pa.Table):
            return source
        if hasattr(source, "to_arrow"):  # a frame of cuDF, or of Polars, which has no index
            return source.to_arrow(preserve_index=False) if hasattr(source, "index") else source.to_arrow()
        if isinstance(source, Mapping):
            return pa.table({name: _as_array(name, values) for name, values in source.items()})
        if hasattr(source, "columns"):
            return pa.Table.from_pandas(source, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"{type(source).__name__} is not a table: {error}. Give columns of equal length, each of one type."
        ) from error
    raise InputError(
        f"{type(source).__name__} cannot be read as data. Give paths, an Arrow table, a frame, or a mapping of arrays."
    )


def _as_array(name: str, values: Any) -> Any:
    try:
        return values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"column {name!r} is not a column of numbers, text or lists: {error}.") from error


def _schema(schema: pa.Schema) -> Schema:
    fields, unusable = [], {}
    for field in schema:
        try:
            fields.append(Field(field.name, plain_type(field.type)))
        except ValueError as error:
            unusable[field.name] = str(error)
    return Schema(tuple(fields), unusable)


def _common(schema: Schema, first: Path, other: Schema, path: Path) -> Schema:
    """Return the columns of the first file, each with a type that holds the values of both files."""
    types = other.types
    fields = []
    for field in schema:
        if field.name not in types:
            raise InputError(
                f"{path} has no column {field.name!r}, which {first} has. Files must have the same columns."
            )
        kinds = kind(field.type), kind(types[field.name])
        if kinds[0] != kinds[1] and "nulls" not in kinds:
            raise InputError(
                f"column {field.name!r} is of {kinds[1]} in {path}, but of {kinds[0]} in {first}. Make them the same."
            )
        fields.append(replace(field, type=wider_type(field.type, types[field.name])))
    return Schema(tuple(fields), schema.unusable)


def spans(parts: Sequence[Part], *, rows: int) -> Iterator[Span]:
    """Yield the parts in spans: consecutive parts with at least ``rows`` rows together, fewer in the last span."""
    span: list[Part] = []
    for part in parts:
        span.append(part)
        if sum(part.rows for part in span) >= rows:
            yield tuple(span)
            span = []
    if span:
        yield tuple(span)


def cast_columns(block: Block, types: Mapping[str, pa.DataType], xp: ModuleType = np) -> Block:
    """Cast columns to their types in the fitted data; all-null columns and integers with nulls may arrive as floats.

    Raises InputError if a type cannot hold the values: fractions or numbers above 2**63 - 1 as integers, numbers other
    than 0 and 1 as booleans, numbers as text or lists, and all but text and integers in a column that was all null.
    """
    return {name: _cast_column(name, column, types[name], xp) for name, column in block.items()}


def _cast_column(name: str, column: Column, type_: pa.DataType, xp: ModuleType) -> Column:
    if pa.types.is_null(type_):
        floats = column.values if isinstance(column, Numbers) and column.values.dtype.kind == "f" else None
        if isinstance(column, Lists) or (floats is not None and not bool(xp.isnan(floats).all())):
            raise _cast_error(name, "values that are neither text nor integers", "without values", "text or integers")
        return column
    if not isinstance(column, Numbers):
        return column
    if pa.types.is_floating(type_):
        return Numbers(column.values.astype(type_.to_pandas_dtype(), copy=False), column.valid)
    if column.values.dtype.kind == "f" and (pa.types.is_string(type_) or pa.types.is_list(type_)):
        if not bool(xp.isnan(column.values).all()):
            raise _cast_error(name, "numbers", f"of {kind(type_)}", kind(type_))
        return column_of(pa.nulls(len(column), type_))
    return _integers(name, column, type_, xp)


def _integers(name: str, column: Numbers, type_: pa.DataType, xp: ModuleType) -> Numbers:
    """Cast numbers to int64, uint64 or booleans."""
    values, valid = column.values, column.valid
    if values.dtype.kind == "f":
        valid = ~xp.isnan(values) if valid is None else valid & ~xp.isnan(values)
        values = xp.where(valid, values, 0)
        # Above 2**53, floats skip integers: a category could become another one.
        if bool(((values != xp.floor(values)) | (xp.abs(values) > 2.0**53)).any()):
            raise _cast_error(name, "numbers that are not whole, or too large to be exact", "of integers", "integers")
        values = values.astype(xp.int64)
    if pa.types.is_boolean(type_) and values.dtype.kind != "b":
        present = values if valid is None else values[valid]
        if bool(((present != 0) & (present != 1)).any()):
            raise _cast_error(name, "numbers other than 0 and 1", "of booleans", "booleans")
        values = values.astype(bool)
    if values.dtype == np.uint64 and not pa.types.is_uint64(type_):
        if len(values) and int(values.max()) > np.iinfo(np.int64).max:
            raise _cast_error(name, "integers above 2**63 - 1", f"of {type_}", "integers of 64 bits with sign")
        values = values.astype(np.int64)
    return Numbers(values, valid)


def _cast_error(name: str, values: str, fitted_kind: str, remedy: str) -> InputError:
    return InputError(
        f"column {name!r} has {values}, but was {fitted_kind} when the workflow was fitted. Give {remedy} or fit again."
    )


def check_seconds(name: str, column: Column) -> None:
    """Raise InputError if a column of seconds has numbers that are not times from 1980 to 2099."""
    numbers = cast("Numbers", column)
    outside = (numbers.values < SINCE) | (numbers.values >= UNTIL)
    outside = outside if numbers.valid is None else outside & numbers.valid
    if bool(outside.any()):
        raise InputError(seconds_fault(name, int(numbers.values[outside][0])))


def seconds_fault(name: str, value: int) -> str:
    """Return the error message for a number that is not a time in seconds."""
    return (
        f"column {name!r} has the time {value}, but held seconds since 1970 when the workflow was fitted: numbers from "
        f"{SINCE} (1980) to {UNTIL} (2100). Convert it to seconds."
    )


def as_table(block: Block, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return columns as an Arrow table, with NaN for nulls of floats; raises InputError if values do not fit a type."""
    arrays = []
    for name, type_ in types.items():
        try:
            arrays.append(arrow_of(block[name], type_))
        except (pa.ArrowException, ValueError) as error:
            raise InputError(
                f"column {name!r} cannot be of type {type_}, as it was when the workflow was fitted: {error}. Give it "
                "such values, or fit the workflow again."
            ) from error
    return pa.Table.from_arrays(arrays, schema=arrow_schema(types))


def arrow_schema(types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the Arrow schema of columns; floats are not nullable, because their nulls are NaN."""
    return pa.schema([pa.field(name, type_, not pa.types.is_floating(type_)) for name, type_ in types.items()])

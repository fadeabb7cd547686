"""The rows that a workflow is fitted on or applied to: files or tables, in parts that fit into memory.

`Dataset` reads a part as a block of columns, `as_fitted` gives these the types that they had in fitting, and `as_table`
makes a table of Arrow of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.columns.arrow import arrow_of, column_of
from whitewater.features.columns.column import Block, Column, Lists, Numbers
from whitewater.features.columns.parquet import read_columns
from whitewater.features.log_folder import SINCE, UNTIL, is_log, open_log
from whitewater.features.schema import Field, Schema, kind, plain, wider
from whitewater.io.folder import RowGroup, open_parquet

if TYPE_CHECKING:
    from types import ModuleType

# Rows that are worked on at once: those of a row group, or of so much of it or of a table in memory.
PART_ROWS = 524_288
# Row groups that follow one another are read together up to so many rows: work on few rows is mostly its beginning.
FEW_ROWS = 32_768
_WHOLE = 2.0**53
_MOST = 2**63 - 1


@dataclass(frozen=True)
class Part:
    """Rows that are read together: of one row group from row ``start`` on, of several whole ones, or of a table."""

    groups: tuple[RowGroup, ...]
    start: int
    rows: int


Span = tuple[Part, ...]


@dataclass(frozen=True)
class Dataset:
    """Rows in order, in parts.

    Parameters
    ----------
    source
        A Parquet file, a folder of them, or several files; or a table of Arrow, a frame of pandas, cuDF or Polars, or a
        mapping of arrays or lists.

    Raises
    ------
    InputError
        If there is no such file, or files differ in their columns. Columns that are neither of numbers nor of text nor
        of lists of these are left aside.

    Examples
    --------
    >>> from whitewater.features import Dataset
    >>> Dataset({"x": [1, 2], "city": ["Rome", None]}).schema.names
    ['x', 'city']
    """

    source: Any

    @cached_property
    def schema(self) -> Schema:
        """The columns; of files, those that all of them have."""
        if self._table is not None:
            return _schema(self._table.schema)
        (first, schema), *others = [
            (path, _schema(footer.schema.to_arrow_schema())) for path, footer in self._footers.items()
        ]
        for path, other in others:
            schema = _common(schema, first, other, path)
        return schema

    @cached_property
    def seconds(self) -> tuple[str, ...]:
        """The columns that are seconds since 1970: that of a log's times. Of other data nothing is known."""
        if not isinstance(self.source, (str, Path)) or not is_log(Path(self.source)):
            return ()
        time = open_log(Path(self.source)).time
        return (time.column,) if time.unit == "seconds" else ()

    def parts(self) -> tuple[Part, ...]:
        """Return the parts, which depend on the data only."""
        return self._parts

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(part.rows for part in self.parts())

    def read(self, part: Part, names: Sequence[str]) -> Block:
        """Read columns of a part; raises InputError if a file is damaged, or a column is not there."""
        types = {name: self.schema[name].type for name in names}
        if self._table is not None:
            return as_fitted(_block(self._table.slice(part.start, part.rows), names), types)
        blocks = [
            as_fitted(read_columns(group.path, group.number, names, start=part.start, rows=part.rows), types)
            for group in part.groups
        ]
        if len(blocks) == 1:
            return blocks[0]
        return _block(pa.concat_tables([as_table(block, types) for block in blocks]), names)

    def stored_bytes(self, names: Sequence[str]) -> dict[str, int]:
        """Return the bytes of columns as stored, which tell how long it takes to read them."""
        if self._table is not None:
            return {name: self._table.column(name).nbytes for name in names}
        sizes = dict.fromkeys(names, 0)
        for footer in self._footers.values():
            for group in map(footer.row_group, range(footer.num_row_groups)):
                for chunk in map(group.column, range(group.num_columns)):
                    name = chunk.path_in_schema.partition(".")[0]
                    if name in sizes:
                        sizes[name] += chunk.total_uncompressed_size
        return sizes

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        if self._table is not None:
            return tuple(_cut((), self._table.num_rows))
        return _together(
            RowGroup(path, number, footer.row_group(number).num_rows)
            for path, footer in self._footers.items()
            for number in range(footer.num_row_groups)
        )

    @cached_property
    def _paths(self) -> tuple[Path, ...]:
        """The files, or none of data in memory."""
        if isinstance(self.source, (str, Path)):
            return _files(Path(self.source))
        is_files = isinstance(self.source, Sequence) and self.source and isinstance(self.source[0], (str, Path))
        return tuple(map(Path, self.source)) if is_files else ()

    @cached_property
    def _table(self) -> pa.Table | None:
        if isinstance(self.source, (str, Path)) and not self._paths:
            # A log may have no rows.
            return pa.schema(list(open_log(Path(self.source)).types.items())).empty_table()
        return None if self._paths else _as_table(self.source)

    @cached_property
    def _footers(self) -> dict[Path, Any]:
        footers = {}
        for path in self._paths:
            with open_parquet(path) as file:
                footers[path] = file.metadata
        return footers


def _block(table: pa.Table, names: Sequence[str]) -> Block:
    return {name: column_of(table.column(name)) for name in names}


def _cut(groups: tuple[RowGroup, ...], rows: int) -> Iterator[Part]:
    """Yield the parts of so many rows: one, unless they are far more than a part should have."""
    size = rows if rows <= 2 * PART_ROWS else PART_ROWS
    for start in range(0, rows, max(size, 1)):
        yield Part(groups, start, min(size, rows - start))


def _together(groups: Iterable[RowGroup]) -> tuple[Part, ...]:
    """Return row groups as parts; small ones that follow one another are one part."""
    parts: list[Part] = []
    for group in groups:
        if parts and parts[-1].start == 0 and parts[-1].rows + group.rows <= FEW_ROWS:
            parts[-1] = Part((*parts[-1].groups, group), 0, parts[-1].rows + group.rows)
        else:
            parts += _cut((group,), group.rows)
    return tuple(parts)


def _files(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        return (path,)
    if is_log(path):
        return tuple(path / file.name for file in open_log(path).files)
    found = tuple(sorted(path.glob("*.parquet")))
    if not found:
        raise InputError(f"{path} has no Parquet files (*.parquet). Name a folder that has, or a file.")
    return found


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
            f"{type(source).__name__} is not a table: {error}. Give columns of one length and type each."
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
    for each in schema:
        try:
            fields.append(Field(each.name, plain(each.type)))
        except ValueError as error:
            unusable[each.name] = str(error)
    return Schema(tuple(fields), unusable)


def _common(schema: Schema, first: Path, other: Schema, path: Path) -> Schema:
    """Return the columns of the first file, each with a type that holds the values of both files."""
    known = {each.name: each for each in other}
    fields = []
    for each in schema:
        if each.name not in known:
            raise InputError(
                f"{path} has no column {each.name!r}, which {first} has. Files must have the same columns."
            )
        kinds = kind(each.type), kind(known[each.name].type)
        if kinds[0] != kinds[1] and "nulls" not in kinds:
            raise InputError(
                f"column {each.name!r} is of {kinds[1]} in {path}, but of {kinds[0]} in {first}. Make them the same."
            )
        fields.append(replace(each, type=wider(each.type, known[each.name].type)))
    return Schema(tuple(fields), schema.unusable)


def spans(parts: Sequence[Part], *, rows: int) -> Iterator[Span]:
    """Yield parts that follow one another, in spans of about so many rows."""
    span: list[Part] = []
    for part in parts:
        span.append(part)
        if sum(each.rows for each in span) >= rows:
            yield tuple(span)
            span = []
    if span:
        yield tuple(span)


def as_fitted(block: Block, types: Mapping[str, pa.DataType], xp: ModuleType = np) -> Block:
    """Return columns as they were when a workflow was fitted, where they hold the same: nulls, and whole numbers.

    A column of nulls only, or of integers in which some are null, may come as one of floats; floats get the width that
    they had.

    Raises InputError if a column of integers has a number with a fraction, or one above 2**63 - 1, one of booleans has
    other numbers than 0 and 1, one of text or lists has numbers, or one that had no value, and so no type, floats or
    lists.
    """
    return {name: _as_fitted(name, column, types[name], xp) for name, column in block.items()}


def _as_fitted(name: str, column: Column, type_: pa.DataType, xp: ModuleType) -> Column:
    if pa.types.is_null(type_):
        return _of_no_type(name, column, xp)
    if not isinstance(column, Numbers):
        return column
    if pa.types.is_floating(type_):
        return Numbers(column.values.astype(type_.to_pandas_dtype(), copy=False), column.valid)
    if column.values.dtype.kind == "f":
        if pa.types.is_string(type_) or pa.types.is_list(type_):
            return _all_null(name, column, type_, xp)
        column = _as_integers(name, column, xp)
    return _as_wide(name, column, type_, xp)


def _of_no_type(name: str, column: Column, xp: ModuleType) -> Column:
    floats = column.values if isinstance(column, Numbers) and column.values.dtype.kind == "f" else None
    if isinstance(column, Lists) or (floats is not None and not bool(xp.isnan(floats).all())):
        raise _unlike(name, "values that are neither text nor integers", "without values", "text or integers")
    return column


def _as_wide(name: str, column: Numbers, type_: pa.DataType, xp: ModuleType) -> Numbers:
    """Return integers, once they were found to be some that the type can mean."""
    values = column.values
    if pa.types.is_boolean(type_) and values.dtype.kind != "b":
        values = values if column.valid is None else xp.where(column.valid, values, 0)
        if bool(((values != 0) & (values != 1)).any()):
            raise _unlike(name, "numbers other than 0 and 1", "of booleans", "booleans")
        return Numbers(values.astype(bool), column.valid)
    if values.dtype == np.uint64 and not pa.types.is_uint64(type_) and len(values):
        if int(values.max()) > _MOST:
            raise _unlike(name, "integers above 2**63 - 1", f"of {type_}", "integers of 64 bits with sign")
        return Numbers(values.astype(np.int64), column.valid)
    return column


def _all_null(name: str, column: Numbers, type_: pa.DataType, xp: ModuleType) -> Column:
    if not bool(xp.isnan(column.values).all()):
        raise _unlike(name, "numbers", f"of {kind(type_)}", kind(type_))
    return column_of(pa.nulls(len(column), type_))


def _as_integers(name: str, column: Numbers, xp: ModuleType) -> Numbers:
    valid = ~xp.isnan(column.values) if column.valid is None else column.valid & ~xp.isnan(column.values)
    values = xp.where(valid, column.values, 0)
    # Above 2**53 floats are not every integer, so that a category would be another one.
    if bool(((values != xp.floor(values)) | (xp.abs(values) > _WHOLE)).any()):
        raise _unlike(name, "numbers that are not whole, or too large to be exact", "of integers", "integers")
    return Numbers(values.astype(xp.int64), valid)


def _unlike(name: str, found: str, fitted: str, wanted: str) -> InputError:
    return InputError(
        f"column {name!r} has {found}, but was {fitted} when the workflow was fitted. Give {wanted}, or fit it again."
    )


def refuse_other_times(name: str, column: Column) -> None:
    """Raise InputError if a column of seconds has numbers that are not times from 1980 to 2100."""
    numbers = cast("Numbers", column)
    wrong = (numbers.values < SINCE) | (numbers.values >= UNTIL)
    wrong = wrong if numbers.valid is None else wrong & numbers.valid
    if bool(wrong.any()):
        raise InputError(other_time(name, int(numbers.values[wrong][0])))


def other_time(name: str, value: int) -> str:
    """Return what is said of a number that is not a time."""
    return (
        f"column {name!r} has the time {value}, but was of seconds since 1970 when the workflow was fitted, and these "
        f"are from {SINCE} (1980) to {UNTIL} (2100). Convert it to seconds."
    )


def type_of(column: Column) -> pa.DataType:
    """Return the plain type of a column."""
    if isinstance(column, Numbers):
        return pa.from_numpy_dtype(column.values.dtype)
    if isinstance(column, Lists):
        return pa.list_(type_of(column.values))
    return column.dictionary.type


def as_table(block: Block, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return columns as a table of Arrow; nulls are nulls, but NaN in floats.

    Raises InputError if the values of a column cannot be of its type.
    """
    arrays = [_arrow_of(name, block[name], type_) for name, type_ in types.items()]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(types))


def _arrow_of(name: str, column: Column, type_: pa.DataType) -> pa.Array:
    try:
        return arrow_of(column, type_)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(
            f"column {name!r} cannot be of type {type_}, as it was when the workflow was fitted: {error}. Give it such "
            "values, or fit the workflow again."
        ) from error


def arrow_schema(types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the columns of results: floats are never null, because a null is NaN there."""
    return pa.schema([pa.field(name, type_, not pa.types.is_floating(type_)) for name, type_ in types.items()])

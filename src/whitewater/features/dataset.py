"""The rows that a workflow is fitted on or applied to: files or tables, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.log_folder import is_log, open_log
from whitewater.features.rows import as_fitted, as_table
from whitewater.features.schema import Field, Schema, kind, plain, wider
from whitewater.io.folder import RowGroup

if TYPE_CHECKING:
    from whitewater.engines.device import Device
    from whitewater.tables.columns import Block

# Rows that are worked on at once: those of a row group, or of so much of it or of a table in memory.
PART_ROWS = 524_288
# Row groups that follow one another are read together up to so many rows: work on few rows is mostly its beginning.
FEW_ROWS = 32_768


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

    def read(self, part: Part, names: Sequence[str], device: Device) -> Block:
        """Read columns of a part; raises InputError if a file is damaged, or a column is not there."""
        types = {name: self.schema[name].type for name in names}
        if self._table is not None:
            return as_fitted(_block(self._table.slice(part.start, part.rows), names, device), types, device)
        blocks = [
            as_fitted(
                device.read_columns(group.path, group.number, names, start=part.start, rows=part.rows), types, device
            )
            for group in part.groups
        ]
        if len(blocks) == 1:
            return blocks[0]
        return _block(pa.concat_tables([as_table(block, types, device) for block in blocks]), names, device)

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
        from whitewater.tables.parquet.blocks import opened

        footers = {}
        for path in self._paths:
            with opened(path) as file:
                footers[path] = file.metadata
        return footers


def _block(table: pa.Table, names: Sequence[str], device: Device) -> Block:
    from whitewater.tables.columns import moved
    from whitewater.tables.parquet.columns import column_of

    return {name: moved(column_of(table.column(name)), device.to_device) for name in names}


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
            f"{type(source).__name__} is no table: {error}. Give columns of one length and type each."
        ) from error
    raise InputError(
        f"{type(source).__name__} is no data. Give paths, a table of Arrow, a frame, or a mapping of arrays."
    )


def _as_array(name: str, values: Any) -> Any:
    try:
        return values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"column {name!r} is no column of numbers, text or lists: {error}.") from error


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

"""Columns of another table, such as what is known of items, found by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field as Parameter
from pydantic import model_validator

from whitewater.arrow_arrays import to_numpy
from whitewater.devices import resolve
from whitewater.devices.columns import Categories, Column, Numbers
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.recsys.categories import CategoryTable, as_categories
from whitewater.recsys.combinations import combine
from whitewater.recsys.graph import Inputs
from whitewater.recsys.operator import Applying, Fitted, Fitting, Operator, Row, RowFunction, Statistic
from whitewater.recsys.operators.by_column import column_names, is_number
from whitewater.recsys.schema import Field, plain, type_named

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.devices.protocol import Array, Device

TABLE = "table"
Names = tuple[str, ...]


class JoinExternal(Operator):
    """Columns of a Parquet file whose row has the values of the inputs under the same names: a left join.

    The inputs, text or integers, are the keys; those of the file must be unique and not null. Where no row has them, or
    one of them is null, the columns are null. Types: as in the file. The keys and columns of the file are read by fit
    and kept in the artefact; the file is not needed any more then.
    """

    table: str = Parameter(min_length=1, description="Path of the Parquet file.")
    on: str | Names = Parameter(description="The key, or keys: names of the inputs and of columns of the file.")
    columns: Names = Parameter(min_length=1, description="The columns of the file that are joined.")
    how: Literal["left"] = Parameter("left", description="Every row stays.")
    types: dict[str, str] = Parameter(
        {}, description="Types of keys and columns; read from the file where none are given."
    )

    @model_validator(mode="before")
    @classmethod
    def _types_of_file(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("types") or not {"table", "on", "columns"} <= values.keys():
            return values
        on = values["on"]
        names = (*((on,) if isinstance(on, str) else on), *values["columns"])
        found = {name: str(type_) for name, type_ in _types(str(values["table"]), names).items()}
        return {**values, "types": found}

    @property
    def keys(self) -> Names:
        """The names of the keys."""
        return (self.on,) if isinstance(self.on, str) else self.on

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a key or column of the file."""
        return type_named(self.types[name])

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return the columns of the file.

        Raises
        ------
        ConfigError
            If the inputs are not the keys, or of another kind than in the file.
        """
        given = column_names(inputs)
        if sorted(given) != sorted(self.keys):
            raise ConfigError(
                f"JoinExternal on {', '.join(self.keys)} is given the columns {', '.join(given)}. Give it the keys."
            )
        for name in given:
            _check_key(self.table, name, fields[name].type, self.type_of(name))
        return [Field(name, self.type_of(name)) for name in self.columns]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[RowsOfTable]:
        return [RowsOfTable(TABLE, column_names(inputs), self)]

    def restored(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> JoinedTable:
        return JoinedTable(tables[TABLE], self.keys, self.columns)

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        return _joined(fitted).found([block[key] for key in self.keys], applying.device)

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        table = _joined(fitted).rows
        keys, columns = self.keys, {name: table.column(name).to_pylist() for name in self.columns}
        listed = zip(*(table.column(key).to_pylist() for key in keys), strict=True)
        places = {key: place for place, key in enumerate(listed)}

        def compute(row: Row) -> dict[str, Any]:
            place = places.get(tuple(row[key] for key in keys))
            return {name: None if place is None else values[place] for name, values in columns.items()}

        return compute

    def read(self) -> pa.Table:
        """Return keys and columns of the file, once its keys were checked.

        Raises
        ------
        InputError
            If a key of the file is null or is there twice, or columns are of other types than before.
        """
        names = (*self.keys, *self.columns)
        found = _types(self.table, names)
        if changed := [name for name in names if str(found[name]) != self.types[name]]:
            raise InputError(f"{self.table} has changed: other types of {', '.join(changed)}. Make the workflow anew.")
        with _opened(self.table) as file:
            read = file.read(columns=list(found), use_threads=False)
        kept = {name: _key_type(found[name]) if name in self.keys else found[name] for name in found}
        try:
            table = pa.table({name: read.column(name).cast(type_) for name, type_ in kept.items()})
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{self.table}: a key does not fit 64 bits with sign ({error}). Store it as text."
            ) from error
        _check_keys(self.table, table.select(list(self.keys)))
        return table


def _opened(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(Path(path))
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"JoinExternal cannot read {path}: {error}. Give the path of a Parquet file.") from error


def _types(path: str, names: Names) -> dict[str, pa.DataType]:
    """Return types of columns of a file, once they were found to be of numbers or text."""
    with _opened(path) as file:
        schema = file.schema_arrow
    if missing := [name for name in names if name not in schema.names]:
        raise InputError(
            f"{path}, which JoinExternal reads, has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(schema.names)}. Correct `on` or `columns`."
        )
    if twice := [name for name in names if schema.names.count(name) > 1]:
        raise InputError(
            f"JoinExternal: {path} has more than one column {', '.join(twice)}. Rename all but one of each."
        )
    return {name: _plain(path, name, schema.field(name).type) for name in names}


def _plain(path: str, name: str, type_: pa.DataType) -> pa.DataType:
    try:
        found = plain(type_)
    except ValueError as error:
        raise InputError(f"{path}: the column {name!r} {error}.") from error
    if not (is_number(found) or pa.types.is_string(found)):
        raise InputError(f"{path}: the column {name!r} is of type {type_}; JoinExternal joins numbers and text.")
    return found


def _check_key(path: str, name: str, in_data: pa.DataType, in_file: pa.DataType) -> None:
    kinds = [_kind_of_key(type_) for type_ in (in_data, in_file)]
    if kinds[0] != kinds[1] or None in kinds:
        raise ConfigError(
            f"JoinExternal takes keys of text or integers: the column {name!r} is of type {in_data} in the data and of "
            f"type {in_file} in {path}. Convert it."
        )


def _kind_of_key(type_: pa.DataType) -> str | None:
    if pa.types.is_string(type_):
        return "text"
    return "integer" if pa.types.is_integer(type_) or pa.types.is_boolean(type_) else None


def _check_keys(path: str, keys: pa.Table) -> None:
    names = keys.column_names
    for name in names:
        if nulls := keys.column(name).null_count:
            raise InputError(f"{path}: the key {name!r} is null in {nulls} rows, which match nothing. Leave them out.")
    counted = keys.group_by(names, use_threads=False).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted.column("count_all"), 1))
    if len(repeated):
        first = repeated.slice(0, 1).to_pylist()[0]
        told = ", ".join(f"{name}={first[name]!r}" for name in names)
        raise InputError(
            f"{path}: {len(repeated)} keys are in more than one row, such as {told} in {first['count_all']}. Keep one "
            "row of each."
        )


def _key_type(type_: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string(type_) else pa.int64()


def _joined(fitted: Mapping[str, Fitted]) -> JoinedTable:
    table = fitted[TABLE]
    if not isinstance(table, JoinedTable):
        raise IntegrityError(f"JoinExternal has learnt {type(table).__name__}, not a table. Fit the workflow again.")
    return table


@dataclass(frozen=True)
class RowsOfTable(Statistic):
    """Reads the file of an operator. The rows of the data do not matter."""

    name: str
    columns: tuple[str, ...]
    operator: JoinExternal

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> None:
        """Look at nothing: blocks that are not asked for are not read."""

    def combine(self, parts: Sequence[None], fitting: Fitting) -> JoinedTable:
        return JoinedTable(self.operator.read(), self.operator.keys, self.operator.columns)


class JoinedTable(Fitted):
    """The rows of a file.

    Parameters
    ----------
    rows
        Its keys, which are unique, and its columns.
    keys, columns
        Their names.
    """

    def __init__(self, rows: pa.Table, keys: Names, columns: Names) -> None:
        if missing := {*keys, *columns} - set(rows.column_names):
            raise IntegrityError(f"the stored table lacks the columns {', '.join(sorted(missing))}. Fit again.")
        self.rows = rows.combine_chunks()
        self._keys, self._columns = keys, columns

    def facts(self) -> dict[str, Any]:
        return {"rows": len(self.rows)}

    def tables(self) -> Mapping[str, pa.Table]:
        return {TABLE: self.rows}

    def found(self, keys: Sequence[Column], device: Device) -> dict[str, Column]:
        """Return the columns, by name, for rows with these keys, on the device."""
        one = _one(keys, device)
        row_of_code = np.append(self._rows_of(one.dictionary), -1)
        row = device.from_host(row_of_code)[one.codes]
        return {name: self._taken(name, row, device) for name in self._columns}

    def _rows_of(self, dictionary: pa.Array) -> Array:
        """Return the row of each key, -1 where there is none."""
        found = self._table.look_up(dictionary)
        return np.where(found < 0, -1, self._order[found])

    @cached_property
    def _distinct(self) -> Categories:
        """The keys, which are all different, so that each row has a code of its own."""
        rows = np.arange(len(self.rows), dtype=np.int32)
        return _one([Categories(rows, self.rows.column(key).combine_chunks()) for key in self._keys], resolve("cpu"))

    @cached_property
    def _table(self) -> CategoryTable:
        return CategoryTable(self._distinct.dictionary)

    @cached_property
    def _order(self) -> Array:
        """The row of each code, int64, and one more."""
        return np.append(np.argsort(self._distinct.codes, kind="stable"), -1)

    @cached_property
    def _columns_on_host(self) -> dict[str, Numbers | Categories]:
        """The columns, with one row more, which is null and stands for no row."""
        return {name: _with_null(self.rows.column(name).combine_chunks()) for name in self._columns}

    def _taken(self, name: str, place: Array, device: Device) -> Column:
        column = self._columns_on_host[name]
        if isinstance(column, Categories):
            return Categories(device.from_host(column.codes)[place], column.dictionary)
        valid = None if column.valid is None else device.from_host(column.valid)[place]
        return Numbers(device.from_host(column.values)[place], valid)


def _one(keys: Sequence[Column], device: Device) -> Categories:
    categories = [as_categories(key, device) for key in keys]
    return categories[0] if len(categories) == 1 else combine(categories, device)


def _with_null(array: pa.Array) -> Numbers | Categories:
    valid = np.append(_bools(pc.is_valid(array)), False)
    if pa.types.is_string(array.type):
        encoded = pc.dictionary_encode(array)
        codes = np.append(to_numpy(encoded.indices.fill_null(-1)), -1).astype(np.int32)
        return Categories(codes, encoded.dictionary)
    if pa.types.is_boolean(array.type):
        return Numbers(np.append(_bools(array.fill_null(False)), False), valid)
    values = to_numpy(array.fill_null(0))
    return Numbers(np.append(values, values.dtype.type(0)), valid)


def _bools(array: pa.Array) -> Array:
    return to_numpy(array.cast(pa.uint8())).astype(bool)

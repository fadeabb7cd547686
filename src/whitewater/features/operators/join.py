"""Columns of another table, joined by category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field as Parameter
from pydantic import model_validator

from whitewater.errors import ConfigError, InputError
from whitewater.features.columns.column import Block, Categories, column_of, column_of_series, frame_of, take_rows
from whitewater.features.columns.groups import CategoryNumbers, Input, categories_of, columns_of
from whitewater.features.dataset import Dataset
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, Row, RowFunction, Statistic, columns_in
from whitewater.features.schema import Field, category_type, kind, type_from_name
from whitewater.io.folder import open_parquet

TABLE = "table"
Names = tuple[str, ...]


class JoinExternal(Operator):
    """Columns of a Parquet file, by a left join on the inputs.

    The inputs are the keys, text or integers; the file has columns of the same names, unique and without nulls. A row
    whose key is null or not in the file gets nulls. Types: as in the file. Fitting stores the keys and columns in the
    artifact, so the file is not needed later.
    """

    needs_all_inputs: ClassVar[bool] = True
    table: str = Parameter(min_length=1, description="Path of the Parquet file.")
    on: str | Names = Parameter(description="Key or keys: names of the inputs, which the file has as well.")
    columns: Names = Parameter(min_length=1, description="Columns of the file to join.")
    types: dict[str, str] = Parameter({}, description="Types of keys and columns; by default those in the file.")

    @model_validator(mode="before")
    @classmethod
    def _read_types(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("types") or not {"table", "on", "columns"} <= values.keys():
            return values
        types = _column_types(str(values["table"]), (*columns_of(values["on"]), *values["columns"]))
        return {**values, "types": {name: str(type_) for name, type_ in types.items()}}

    @property
    def keys(self) -> Names:
        return columns_of(self.on)

    @property
    def of(self) -> Input:
        return self.keys[0] if len(self.keys) == 1 else self.keys

    @property
    def fields(self) -> dict[str, Field]:
        return {name: Field(name, type_from_name(type_)) for name, type_ in self.types.items()}

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        file_fields, names = self.fields, columns_in(inputs)
        if sorted(names) != sorted(self.keys):
            raise ConfigError(
                f"JoinExternal on {', '.join(self.keys)} is given the columns {', '.join(names)}. Give it the keys."
            )
        for name in self.keys:
            if category_type(fields[name]) != category_type(file_fields[name]):
                raise ConfigError(
                    f"JoinExternal: the key {name!r} is of type {fields[name].type} in the data and of type "
                    f"{file_fields[name].type} in {self.table}. Convert it."
                )
        return [file_fields[name] for name in self.columns]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[RowsOfTable]:
        return [RowsOfTable(TABLE, columns_in(inputs), self)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> JoinedTable:
        return JoinedTable(tables[TABLE], self)

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        table = cast("JoinedTable", fitted[TABLE])
        groups = table.groups.of_block(self.of, block, mode)
        if mode.engine == "local":
            return {name: take_rows(column, groups) for name, column in table.columns.items()}
        rows = frame_of(table.of_groups, mode.device).take(groups).reset_index(drop=True)
        return {name: column_of_series(rows[name]) for name in self.columns}

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        table = cast("JoinedTable", fitted[TABLE])
        group_of = table.groups.of_row(self.of)
        columns = table.of_groups.to_pydict()

        def compute(row: Row) -> dict[str, Any]:
            group = group_of(row)
            return {name: values[group] for name, values in columns.items()}

        return compute

    def read(self) -> pa.Table:
        """Return keys and columns of the file; raises InputError if its keys are null or repeated, or types differ."""
        types = _column_types(self.table, (*self.keys, *self.columns))
        if changed := [name for name, type_ in types.items() if str(type_) != self.types[name]]:
            raise InputError(
                f"{self.table} has changed: the types of {', '.join(changed)} are different. Create the workflow again."
            )
        types |= {key: category_type(self.fields[key]) for key in self.keys}
        with open_parquet(Path(self.table)) as file:
            columns = file.read(columns=list(types), use_threads=False)
        try:
            table = pa.table({name: columns[name].cast(type_) for name, type_ in types.items()})
        except pa.ArrowInvalid as error:
            raise InputError(f"{self.table}: a key does not fit int64 ({error}). Store it as text.") from error
        _check_keys(self.table, table.select(list(self.keys)))
        return table


def _column_types(path: str, names: Names) -> dict[str, pa.DataType]:
    """Return the types of columns of a file; raises InputError if one is neither numbers nor text."""
    try:
        schema = Dataset(path).schema
        types = {name: schema[name].type for name in names}
    except InputError as error:
        raise InputError(f"JoinExternal cannot join {path}: {error} Correct `table`, `on` or `columns`.") from error
    if others := [name for name, type_ in types.items() if kind(type_) not in ("numbers", "text")]:
        raise InputError(f"JoinExternal joins numbers and text, which {', '.join(others)} of {path} are not.")
    return types


def _check_keys(path: str, keys: pa.Table) -> None:
    for name, key in zip(keys.column_names, keys.columns, strict=True):
        if key.null_count:
            raise InputError(
                f"{path}: the key {name!r} is null in {key.null_count} rows, which match nothing. Leave them out."
            )
    counts = keys.group_by(keys.column_names, use_threads=False).aggregate([([], "count_all")])
    repeated = counts.filter(pc.field("count_all") > 1)
    for first in repeated.slice(0, 1).to_pylist():
        rows = first.pop("count_all")
        key = ", ".join(f"{name}={value!r}" for name, value in first.items())
        raise InputError(
            f"{path}: {len(repeated)} keys are in more than one row, such as {key} in {rows}. Keep one row of each."
        )


@dataclass(frozen=True)
class RowsOfTable(Statistic):
    """Reads the file of an operator, whatever the data."""

    operator: JoinExternal

    def observe(self, blocks: Iterator[Block], mode: Mode) -> None:
        """Do nothing: a block that is not taken is not read."""

    def combine(self, summaries: Iterable[None], mode: Mode) -> JoinedTable:
        return JoinedTable(self.operator.read(), self.operator)


class JoinedTable(Fitted):
    """The rows of a file: its keys, which are unique, and its columns."""

    def __init__(self, rows: pa.Table, operator: JoinExternal) -> None:
        self.rows = rows.select([*operator.keys, *operator.columns]).combine_chunks()
        self._operator = operator

    def facts(self) -> dict[str, Any]:
        return {"rows": len(self.rows)}

    def tables(self) -> Mapping[str, pa.Table]:
        return {TABLE: self.rows}

    @cached_property
    def groups(self) -> CategoryNumbers:
        """The groups of keys: null, then those of the rows, in order, then others."""
        rows = np.arange(len(self.rows), dtype=np.int32)
        keys = {key: Categories(rows, self.rows.column(key).combine_chunks()) for key in self._operator.keys}
        # All keys differ, so their categories are in the order of the rows.
        return CategoryNumbers.of_groups(categories_of(keys, self._operator.of).dictionary)

    @cached_property
    def of_groups(self) -> pa.Table:
        """The joined columns by group: null for the first group, null keys, and the last, keys not in the file."""
        columns = self.rows.select(self._operator.columns)
        null = pa.table([pa.nulls(1, field.type) for field in columns.schema], schema=columns.schema)
        return pa.concat_tables([null, columns, null]).combine_chunks()

    @cached_property
    def columns(self) -> dict[str, Any]:
        """`of_groups` as columns of a block."""
        return {name: column_of(self.of_groups[name]) for name in self._operator.columns}

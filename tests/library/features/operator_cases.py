"""Operators on their own: fitted on parts of columns, applied to a block and to its rows."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines import Device, resolve
from whitewater.features.columns.column import Block, Categories, Column, Lists, Numbers
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, Statistic
from whitewater.features.schema import Field

CPU = resolve("cpu")


def is_null(value: Any) -> bool:
    """Tell whether a value of a row is null: None, or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def numbers(values: Sequence[Any] | npt.NDArray[Any], dtype: str = "float64", device: Device = CPU) -> Numbers:
    """Return a column of numbers; None is null."""
    valid = np.array([value is not None for value in values], bool)
    known = np.array([0 if value is None else value for value in values], dtype)
    return Numbers(device.to_device(known), None if valid.all() else device.to_device(valid))


def categories(values: Sequence[str | int | None]) -> Categories:
    """Return a column of categories whose dictionary has an entry for each row, so that entries repeat."""
    known = [value for value in values if value is not None]
    kind = pa.int64() if any(isinstance(value, int) for value in known) else pa.string()
    places = np.cumsum([value is not None for value in values]) - 1
    codes = np.where([value is not None for value in values], places, -1).astype(np.int32)
    return Categories(codes, pa.array(known, kind))


def lists(values: Sequence[Sequence[Any]], dtype: str = "int64") -> Lists:
    """Return a column of lists of numbers, or of texts."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    flat = [item for row in values for item in row]
    inside = categories(flat) if dtype == "text" else numbers(flat, dtype)
    return Lists(offsets, inside)


def field_of(name: str, column: Column) -> Field:
    """Return what the schema says of a column."""
    return Field(name, type_of(column))


def type_of(column: Column) -> pa.DataType:
    """Return the type of a column in Parquet."""
    if isinstance(column, Lists):
        return pa.list_(type_of(column.values))
    if isinstance(column, Categories):
        return column.dictionary.type
    return pa.from_numpy_dtype(column.values.dtype)


def values_of(column: Column, device: Device = CPU) -> list[Any]:
    """Return a column as Python's values, None where it is null."""
    if isinstance(column, Lists):
        inside = values_of(column.values)
        return [inside[start:stop] for start, stop in pairwise(column.offsets)]
    if isinstance(column, Categories):
        texts = column.dictionary.to_pylist()
        return [None if code < 0 else texts[code] for code in column.codes.tolist()]
    known = [True] * len(column) if column.valid is None else device.to_host(column.valid).tolist()
    values = device.to_host(column.values).tolist()
    return [value if there and not is_null(value) else None for value, there in zip(values, known, strict=True)]


def fields_of(block: Block) -> dict[str, Field]:
    """Return what the schema says of the columns of a block."""
    return {name: field_of(name, column) for name, column in block.items()}


def rows_of(block: Block, rows: slice | npt.NDArray[Any]) -> Block:
    """Return some rows of a block of numbers or categories."""
    chosen: dict[str, Column] = {}
    for name, column in block.items():
        assert not isinstance(column, Lists)
        if isinstance(column, Categories):
            chosen[name] = Categories(column.codes[rows], column.dictionary)
        else:
            chosen[name] = Numbers(column.values[rows], None if column.valid is None else column.valid[rows])
    return chosen


def on_host(block: Block, device: Device) -> Block:
    """Return a block of numbers of a device on the host, to be taken row by row."""
    found: dict[str, Column] = {}
    for name, column in block.items():
        assert isinstance(column, Numbers)
        valid = None if column.valid is None else device.to_host(column.valid)
        found[name] = Numbers(device.to_host(column.values), valid)
    return found


def fitted_on(
    operator: Operator,
    parts: Sequence[Block | list[Block]],
    inputs: Inputs | None = None,
    device: Device = CPU,
    memory: int = 2**26,
) -> dict[str, Fitted]:
    """Return what an operator learns from parts of the data, each of some blocks, in as many passes as it asks for."""
    spans = [part if isinstance(part, list) else [part] for part in parts]
    given = inputs or tuple(spans[0][0])
    mode = Mode(device, memory=memory)
    learned: dict[str, Fitted] = {}
    for statistic in operator.statistics(given, fields_of(spans[0][0])):
        found: Fitted | Statistic = statistic
        while isinstance(found, Statistic):
            columns = found.columns
            needed = [[{name: block[name] for name in columns} for block in span] for span in spans]
            found = found.combine([found.observe(iter(span), mode) for span in needed], mode)
        # What is read from an artifact is what was learned.
        learned[statistic.name] = operator.restore(given, found.facts(), found.tables())
    return learned


def applied(
    operator: Operator,
    block: Block,
    fitted: Mapping[str, Fitted] | None = None,
    inputs: Inputs | None = None,
    device: Device = CPU,
) -> dict[str, list[Any]]:
    """Return what comes out of an operator, once it agrees with the schema that the operator promised."""
    given = inputs or tuple(block)
    made = operator.transform(given, block, fitted or {}, Mode(device))
    promised = operator.output(given, fields_of(block))
    assert {name: type_of(column) for name, column in made.items()} == {field.name: field.type for field in promised}
    return {name: values_of(column, device) for name, column in made.items()}


def applied_by_row(
    operator: Operator, block: Block, fitted: Mapping[str, Fitted] | None = None, inputs: Inputs | None = None
) -> dict[str, list[Any]]:
    """Return what comes out of an operator that is given one row after the other, rounded as the columns are."""
    given = inputs or tuple(block)
    compute = operator.row(given, fitted or {})
    columns = {name: values_of(column) for name, column in block.items()}
    made = [compute(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    types = {field.name: field.type for field in operator.output(given, fields_of(block))}
    assert all(list(row) == list(types) for row in made)
    return {name: [_rounded(row[name], type_) for row in made] for name, type_ in types.items()}


def _rounded(value: Any, type_: pa.DataType) -> Any:
    if is_null(value):
        return None
    return float(np.float32(value)) if type_ == pa.float32() else value

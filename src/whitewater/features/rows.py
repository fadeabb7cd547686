"""Columns of rows as those that a workflow was fitted on, and as tables of Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.features.log_folder import SINCE, UNTIL
from whitewater.features.schema import kind
from whitewater.tables.columns import Block, Column, Lists, Numbers, moved

if TYPE_CHECKING:
    from whitewater.engines.device import Device


_WHOLE = 2.0**53
_MOST = 2**63 - 1


def rows_of(block: Block) -> int:
    """Return the number of rows of a block, which has a column at least."""
    return len(next(iter(block.values())))


def as_fitted(block: Block, types: Mapping[str, pa.DataType], device: Device) -> Block:
    """Return columns as they were when a workflow was fitted, where they hold the same: nulls, and whole numbers.

    A column of nulls only, or of integers in which some are null, may come as one of floats; floats get the width that
    they had.

    Raises InputError if a column of integers has a number with a fraction, or one above 2**63 - 1, one of booleans has
    other numbers than 0 and 1, one of text or lists has numbers, or one that had no value, and so no type, floats or
    lists.
    """
    return {name: _as_fitted(name, column, types[name], device) for name, column in block.items()}


def _as_fitted(name: str, column: Column, type_: pa.DataType, device: Device) -> Column:
    if pa.types.is_null(type_):
        return _of_no_type(name, column, device)
    if not isinstance(column, Numbers):
        return column
    if pa.types.is_floating(type_):
        return Numbers(column.values.astype(type_.to_pandas_dtype(), copy=False), column.valid)
    if column.values.dtype.kind == "f":
        if pa.types.is_string(type_) or pa.types.is_list(type_):
            return _all_null(name, column, type_, device)
        column = _as_integers(name, column, device)
    return _as_wide(name, column, type_, device)


def _of_no_type(name: str, column: Column, device: Device) -> Column:
    floats = column.values if isinstance(column, Numbers) and column.values.dtype.kind == "f" else None
    if isinstance(column, Lists) or (floats is not None and not bool(device.xp.isnan(floats).all())):
        raise _unlike(name, "values that are neither text nor integers", "without values", "text or integers")
    return column


def _as_wide(name: str, column: Numbers, type_: pa.DataType, device: Device) -> Numbers:
    """Return integers, once they were found to be some that the type can mean."""
    values = column.values
    if pa.types.is_boolean(type_) and values.dtype.kind != "b":
        values = values if column.valid is None else device.xp.where(column.valid, values, 0)
        if bool(((values != 0) & (values != 1)).any()):
            raise _unlike(name, "numbers other than 0 and 1", "of booleans", "booleans")
        return Numbers(values.astype(bool), column.valid)
    if values.dtype == np.uint64 and not pa.types.is_uint64(type_) and len(values):
        if int(values.max()) > _MOST:
            raise _unlike(name, "integers above 2**63 - 1", f"of {type_}", "integers of 64 bits with sign")
        return Numbers(values.astype(np.int64), column.valid)
    return column


def _all_null(name: str, column: Numbers, type_: pa.DataType, device: Device) -> Column:
    from whitewater.tables.parquet.columns import column_of

    if not bool(device.xp.isnan(column.values).all()):
        raise _unlike(name, "numbers", f"of {kind(type_)}", kind(type_))
    return moved(column_of(pa.nulls(len(column), type_)), device.to_device)


def _as_integers(name: str, column: Numbers, device: Device) -> Numbers:
    xp = device.xp
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


def refuse_other_times(name: str, column: Column, device: Device) -> None:
    """Raise InputError if a column of seconds has numbers that are no times from 1980 to 2100."""
    numbers = cast("Numbers", column)
    wrong = (numbers.values < SINCE) | (numbers.values >= UNTIL)
    wrong = wrong if numbers.valid is None else wrong & numbers.valid
    if bool(wrong.any()):
        raise InputError(other_time(name, int(numbers.values[wrong][0])))


def other_time(name: str, value: int) -> str:
    """Return what is said of a number that is no time."""
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


def as_table(block: Block, types: Mapping[str, pa.DataType], device: Device) -> pa.Table:
    """Return columns as a table of Arrow; nulls are nulls, but NaN in floats.

    Raises InputError if the values of a column cannot be of its type.
    """
    arrays = [_arrow_of(name, moved(block[name], device.to_host), type_) for name, type_ in types.items()]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(types))


def _arrow_of(name: str, column: Column, type_: pa.DataType) -> pa.Array:
    from whitewater.tables.parquet.writing import arrow_of

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

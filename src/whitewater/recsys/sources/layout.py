"""Columns of a source's files as columns of a log: their types, and what becomes of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from whitewater.arrow_arrays import to_arrow, to_numpy
from whitewater.config.recsys import FileColumn, Role
from whitewater.recsys.log_folder import LABEL, TIME, TYPES, LogColumn
from whitewater.recsys.sources.times import seconds
from whitewater.recsys.sources.values import RefusedError, Values, is_text

# Integers up to here are exact as float64.
_EXACT = 1 << 53
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Layout:
    """The columns to read, and what they become.

    Attributes
    ----------
    columns
        The source's columns, with roles; one is the label, at most one the time.
    types
        Type in the log, by its name in `TYPES`, of each column that is neither.
    positive
        A label of at least this is 1, one below it 0; None: labels are 0 or 1.
    never_null
        Columns of ``types`` in which a null is a fault.
    """

    columns: tuple[FileColumn, ...]
    types: Mapping[str, str]
    positive: float | None = None
    never_null: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """The source's columns."""
        return [each.name for each in self.columns]

    @property
    def label(self) -> str:
        """The source's column of the label."""
        return next(each.name for each in self.columns if each.role == "label")

    @property
    def time(self) -> str | None:
        """The source's column of time."""
        return next((each.name for each in self.columns if each.role == "time"), None)

    @property
    def unit(self) -> str | None:
        """What the source's column of time counts, or how it is written; None if it tells it itself."""
        return next((each.unit for each in self.columns if each.role == "time"), None)

    @property
    def log_columns(self) -> tuple[LogColumn, ...]:
        """The log's columns besides the first ones."""
        return tuple(
            LogColumn(each.name, each.role, self.types[each.name]) for each in self.columns if each.name in self.types
        )

    def convert(self, raw: pa.Table) -> dict[str, Values]:
        """Return label, time if there is one, and the log's other columns.

        Raises
        ------
        ValueError
            If a value cannot be what it should be; the message names column and value. A `RefusedError` if it is a
            label or a time that can be read, but not be one.
        """
        found: dict[str, Values] = {LABEL: _converted(raw, self.label, lambda each: labels(each, self.positive))}
        if self.time is not None:
            found[TIME] = _converted(raw, self.time, partial(seconds, unit=self.unit))
        for name, type_ in self.types.items():
            found[name] = _converted(raw, name, partial(cast, type_=TYPES[type_]))
            if name in self.never_null and found[name].null_count:
                raise ValueError(f"column {name}: a value is null")
        return found


def log_type(type_: pa.DataType, role: Role) -> str | None:
    """Return the type in the log of a source's column, or None if there is none for that role.

    A column that knows no type, because it is null everywhere, gets the usual one of its role.
    """
    if pt.is_null(type_):
        return {"continuous": "float64", "list": "list<string>"}.get(role, "string")
    if role == "list":
        inner = _category(type_.value_type) if pt.is_list(type_) or pt.is_large_list(type_) else None
        return inner and f"list<{inner}>"
    return _number(type_) if role == "continuous" else _category(type_)


def is_label(type_: pa.DataType) -> bool:
    """Say whether labels can be of a type."""
    return pt.is_null(type_) or _number(type_) is not None


def labels(values: Values, positive: float | None) -> pa.Array:
    """Return labels, int8.

    Raises
    ------
    RefusedError
        If one is null or NaN, or none of 0 and 1 where ``positive`` is None.
    """
    found = pc.cast(values, pa.float64())
    # NumPy compares, because Arrow imports pandas to compare with a number.
    numbers = np.empty(0) if found.null_count else to_numpy(found)
    if found.null_count or np.isnan(numbers).any():
        raise RefusedError("a label is null")
    other = numbers[(numbers != 0) & (numbers != 1)]
    if positive is None and len(other):
        raise RefusedError(f"a label is {other[0]:g}, neither 0 nor 1")
    return to_arrow((numbers if positive is None else numbers >= positive).astype(np.int8))


def cast(values: Values, type_: pa.DataType) -> Values:
    """Return values as a type of the log.

    Raises
    ------
    ValueError
        If one is no integer where an integer is wanted, or too large.
    """
    if pt.is_floating(values.type) and pt.is_integer(type_) and (pc.max(pc.abs(values)).as_py() or 0) > _EXACT:
        raise ValueError("a number is too large to be known exactly")
    if pt.is_uint64(values.type) and (largest := pc.max(values).as_py() or 0) > _LARGEST:
        raise ValueError(f"{largest} is above 2**63 - 1: store the column as float64, or as text")
    return pc.cast(values, type_)


def _converted(raw: pa.Table, name: str, convert: Callable[[Values], Values]) -> Values:
    try:
        return convert(raw.column(name))
    except RefusedError as error:
        raise RefusedError(f"column {name}: {error}") from error
    except (ValueError, pa.ArrowException) as error:
        raise ValueError(f"column {name}: {error}") from error


def _number(type_: pa.DataType) -> str | None:
    if pt.is_boolean(type_) or (pt.is_integer(type_) and type_.bit_width + pt.is_unsigned_integer(type_) <= 32):
        return "int32"
    if pt.is_integer(type_):
        return "int64"
    return "float64" if pt.is_floating(type_) or pt.is_decimal(type_) else None


def _category(type_: pa.DataType) -> str | None:
    if is_text(type_):
        return "string"
    return "int64" if pt.is_integer(type_) or pt.is_boolean(type_) else None

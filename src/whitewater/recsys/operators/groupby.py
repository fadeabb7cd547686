"""One row of all rows of a user or a session: lists, first and last values, counts, sums, extremes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
import pyarrow as pa
from pydantic import Field as Parameter

from whitewater.devices.columns import Categories, Column, Lists, Numbers
from whitewater.errors import ConfigError, InputError
from whitewater.recsys.categories import add_up, as_floats, count
from whitewater.recsys.hashing import row_hash
from whitewater.recsys.operators.numeric import column_names, is_number, nulls, numbers_of
from whitewater.recsys.operators.operator import Applying, Fitted, Inputs, Operator

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.schema import Field

Names = tuple[str, ...]
Aggregation = Literal["list", "first", "last", "count", "sum", "mean", "min", "max"]
Aggregations = Aggregation | Annotated[tuple[Aggregation, ...], Parameter(min_length=1)]
OF_NUMBERS = ("sum", "mean", "min", "max")
SEED = 0
_SIGN = np.uint64(2**63)


class Groupby(Operator):
    """One row for each key, in the order of the data: the key, and <name>_<aggregation> of the inputs.

    ``list`` has all values, nulls too; ``first`` and ``last`` are those of the first and last row, null or not;
    ``count`` counts what is not null, int64; ``sum`` and ``mean``, float64, and ``min`` and ``max`` leave nulls out,
    and are null where nothing else is there. What is a value keeps its type.

    Rows of a key are ordered by ``sort_cols``, nulls last, and as they come where those are equal. The rows of a key
    must follow one another, over the borders of files, which is checked. A null key is a key.
    """

    groupby_cols: str | Names = Parameter(description="The key, or keys: columns of the data.")
    sort_cols: str | Names = Parameter((), description="Columns of numbers, of the data, that order the rows of a key.")
    aggs: Aggregations | dict[str, Aggregations] = Parameter(
        description="What is made of all inputs that are no keys, or of each by its name."
    )
    name_sep: str = Parameter("_", description="Between the name of a column and that of the aggregation.")

    @property
    def changes_rows(self) -> bool:
        """Whether the output has other rows: it has."""
        return True

    def sequence(self) -> Names:
        """Return the keys."""
        return _names(self.groupby_cols)

    def dependencies(self, *, fitting: bool, training: bool) -> Names:
        """Return the keys and what orders."""
        del fitting, training
        return tuple(dict.fromkeys((*self.sequence(), *_names(self.sort_cols))))

    def _wanted(self, inputs: Inputs) -> Iterator[tuple[str, Aggregation]]:
        """Yield the columns and what is made of them."""
        names = column_names(self, inputs)
        if isinstance(self.aggs, dict):
            if unknown := [name for name in self.aggs if name not in names]:
                raise ConfigError(f"Groupby aggregates {', '.join(unknown)}, which it is not given. Add the columns.")
            yield from ((name, each) for name, wanted in self.aggs.items() for each in _aggregations(wanted))
        else:
            values = [name for name in names if name not in self.sequence()]
            yield from ((name, each) for name in values for each in _aggregations(self.aggs))

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return the keys and the aggregations.

        Raises
        ------
        ConfigError
            If an aggregation is not of the type of its column.
        """
        for name in _names(self.sort_cols):
            if not is_number(fields[name].type):
                raise ConfigError(
                    f"Groupby: the column {name!r}, by which rows are ordered, is of type {fields[name].type}. Name a "
                    "column of numbers."
                )
        made = [fields[name] for name in self.sequence()]
        for name, aggregation in self._wanted(inputs):
            type_ = _type(name, fields[name].type, aggregation)
            made.append(replace(fields[name], name=self._named(name, aggregation), type=type_))
        return made

    def _named(self, name: str, aggregation: Aggregation) -> str:
        return f"{name}{self.name_sep}{aggregation}"

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return one row for each run of rows with equal keys."""
        del fitted
        device = applying.device
        groups = self._groups(block, device)
        made: dict[str, Column] = {name: _taken(block[name], groups.starts) for name in self.sequence()}
        for name, aggregation in self._wanted(inputs):
            column = numbers_of(self, name, block[name]) if aggregation in OF_NUMBERS else block[name]
            if isinstance(column, Lists):
                raise InputError(f"Groupby: the column {name!r} is of lists. Give the column as it was fitted.")
            made[self._named(name, aggregation)] = _aggregated(column, groups, aggregation, device)
        return made

    def _groups(self, block: Block, device: Device) -> Groups:
        xp = device.xp
        keys = row_hash([block[name] for name in self.sequence()], SEED, device)
        first = xp.ones(len(keys), bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = xp.flatnonzero(first)
        stops = xp.concatenate([starts[1:], xp.full(min(1, len(keys)), len(keys), starts.dtype)])
        group = (xp.cumsum(first) - 1).astype(np.int32)
        order = xp.arange(len(keys))
        if self.sort_cols:
            for name in reversed(_names(self.sort_cols)):
                order = _ordered(numbers_of(self, name, block[name]), order, device)
            order = order[xp.argsort(group[order], kind="stable")]
        return Groups(starts, stops, group, order)


@dataclass(frozen=True)
class Groups:
    """Rows by group: group *i* has the rows ``order[starts[i]:stops[i]]``; ``group`` int32 is that of each row."""

    starts: Array
    stops: Array
    group: Array
    order: Array


def _names(names: str | Names) -> Names:
    return (names,) if isinstance(names, str) else names


def _aggregations(wanted: Aggregations) -> tuple[Aggregation, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def _type(name: str, type_: pa.DataType, aggregation: Aggregation) -> pa.DataType:
    if pa.types.is_list(type_) or (aggregation in OF_NUMBERS and not is_number(type_)):
        kept = [each for each in get_args(Aggregation) if each not in OF_NUMBERS]
        raise ConfigError(
            f"Groupby makes no {aggregation} of the column {name!r} of type {type_}; of text it makes "
            f"{', '.join(kept)}, of lists nothing. Give aggs by column."
        )
    changed = {"list": pa.list_(type_), "count": pa.int64(), "sum": pa.float64(), "mean": pa.float64()}
    return changed.get(aggregation, type_)


def _ordered(column: Numbers, order: Array, device: Device) -> Array:
    """Return rows, which are in an order, in the stable order of a column, nulls last."""
    xp = device.xp
    missing = nulls(column, device)
    values = xp.where(missing, column.values.dtype.type(0), column.values)
    order = order[xp.argsort(values[order], kind="stable")]
    last: Array = order[xp.argsort(missing[order].astype(np.int8), kind="stable")]
    return last


def _aggregated(column: Numbers | Categories, groups: Groups, aggregation: Aggregation, device: Device) -> Column:
    if isinstance(column, Numbers) and aggregation in OF_NUMBERS:
        if aggregation in ("min", "max"):
            return _extreme(column, groups, device, largest=aggregation == "max")
        return _added(column, groups, device, mean=aggregation == "mean")
    if aggregation == "list":
        offsets = device.xp.concatenate([device.xp.zeros(1, np.int64), groups.stops.astype(np.int64)])
        return Lists(offsets, _values(column, groups.order))
    if aggregation == "count":
        return Numbers(_counted(column, groups, device))
    places = groups.starts if aggregation == "first" else groups.stops - 1
    return _taken(column, groups.order[places])


def _values(column: Numbers | Categories, rows: Array) -> Numbers | Categories:
    if isinstance(column, Categories):
        return Categories(column.codes[rows], column.dictionary)
    return Numbers(column.values[rows], None if column.valid is None else column.valid[rows])


def _taken(column: Column, rows: Array) -> Column:
    if isinstance(column, Lists):
        raise InputError("Groupby: a key is of lists. Give the columns as they were when the workflow was fitted.")
    return _values(column, rows)


def _counted(column: Numbers | Categories, groups: Groups, device: Device) -> Array:
    missing = column.codes < 0 if isinstance(column, Categories) else nulls(column, device)
    return count(device.xp.where(missing, np.int32(-1), groups.group), len(groups.starts), device)


def _added(column: Numbers, groups: Groups, device: Device, *, mean: bool) -> Numbers:
    xp = device.xp
    values = as_floats(column, device)
    known = ~xp.isnan(values)
    sums = add_up(groups.group[known], values[known], len(groups.starts), device)
    counts = _counted(column, groups, device)
    return Numbers(xp.where(counts > 0, sums / xp.maximum(counts, 1) if mean else sums, xp.nan))


def _extreme(column: Numbers, groups: Groups, device: Device, *, largest: bool) -> Numbers:
    xp = device.xp
    dtype = column.values.dtype
    known = ~nulls(column, device)
    keys = _keys(column.values[known])
    # With its type, which an integer of Python of 64 bits would be given by the library.
    limits = (-np.inf, np.inf) if keys.dtype.kind == "f" else (np.uint64(0), np.uint64(2**64 - 1))
    found = xp.full(len(groups.starts), limits[0] if largest else limits[1], keys.dtype)
    extreme = xp.maximum if largest else xp.minimum
    extreme.at(found, groups.group[known], keys)
    some = _counted(column, groups, device) > 0
    return Numbers(_of_keys(xp.where(some, found, keys.dtype.type(0)), dtype), some)


def _keys(values: Array) -> Array:
    """Return numbers as float64 or, in the same order, as uint64: a GPU finds no extremes by index of int64."""
    wide = {"f": np.float64, "u": np.uint64}.get(values.dtype.kind)
    return values.astype(wide) if wide else values.astype(np.int64).view(np.uint64) ^ _SIGN


def _of_keys(keys: Array, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of keys."""
    signed: Array = keys if dtype.kind in "fu" else (keys ^ _SIGN).view(np.int64)
    return signed.astype(dtype)

"""Operators that learn numbers per category, such as how many rows it has.

Each span of the data becomes a table of sums by category, which is merged into that of the spans before. Fitting takes
at most twice the memory of the merged table; `transform` needs the merged table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines.device import Array, Device
from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError
from whitewater.features.columns.categories import CategoryCounter, count_codes, hash_values
from whitewater.features.columns.column import Block, Categories, Frame, Lists, Numbers, as_categories, as_floats
from whitewater.features.columns.groups import (
    NULL_GROUP,
    CategoryNumbers,
    Input,
    categories_of,
    categories_of_keys,
    columns_of,
    keys_of,
    name_of,
)
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, Row, RowFunction, Statistic, Value, columns_in
from whitewater.features.operators.by_column import number_fields
from whitewater.features.schema import Field, category_type, type_from_name
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy

TABLE, CATEGORY, TAG = "categories", "category", "continuous"
# The sums: rows whose target is not null, or all rows without a target; targets; rows whose target is null.
ROWS, SUMS, NULLS = "rows", "sums", "null_rows"
DTYPES: dict[str, Any] = {ROWS: np.int64, SUMS: np.float64, NULLS: np.int64}
_GROUP_BITS = 32  # a pair of slot and group is one integer; its lower bits are the group
_HALF = 31  # bits of the lower half of an integer that is summed in halves
HOST = Device()


class LearnsCategories(Operator):
    """Columns that depend on sums of rows by category, learned by `CategoryStatistic`."""

    takes_combinations: ClassVar[bool] = True
    output_pattern: ClassVar[str]  # of an output's name, from the parameters and ``column``, the name of the input

    @property
    def target_columns(self) -> tuple[str, ...]:
        """The column of the data whose mean is computed, if the operator has a ``target``."""
        target = getattr(self, "target", None)
        return () if target is None else (target,)

    def slots(self, block: Block, device: Device) -> Array | None:
        """Return the folds or periods of rows, integers (rows,) on the device, or None if sums are not kept by slot."""
        return None

    def groups(self, inputs: Inputs) -> dict[str, Inputs]:
        """Return, by name of a statistic, the columns or combinations whose rows it sums together."""
        return {name_of(each): (each,) for each in inputs}

    def category_types(self, sources: Inputs, fields: Mapping[str, Field]) -> tuple[pa.DataType, ...]:
        """Return the types of the categories of a group's columns; raises ConfigError if one has no categories."""
        return category_types(self, columns_in(sources), fields)

    @abstractmethod
    def learn(self, statistic: CategoryStatistic, sums: Sums) -> Fitted:
        """Return the result for the sums of all data, with ``column(of, block, mode)`` and ``of_row(of)``."""

    @abstractmethod
    def refuse(self, statistic: CategoryStatistic, sums: Sums, mode: Mode) -> None:
        """Raise ResourceError for sums larger than ``mode.memory``, unless the machine has room for them."""

    def output_of(self, of: Input) -> str:
        return self.output_pattern.format(column=name_of(of), **dict(self))

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[CategoryStatistic]:
        others = self.dependencies(fitting=True, training=False)
        exponent = None if any(pa.types.is_floating(fields[target].type) for target in self.target_columns) else 0
        statistics = []
        for name, sources in self.groups(inputs).items():
            columns, types = dict.fromkeys((*columns_in(sources), *others)), self.category_types(sources, fields)
            statistics.append(CategoryStatistic(name, tuple(columns), self, sources, types, exponent=exponent))
        return statistics

    def learned_names(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[str]:
        # `statistics` would read the files of given vocabularies, which a fitted workflow does not need.
        return list(self.groups(inputs))

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Any], mode: Mode) -> Block:
        groups = self.groups(inputs).items()
        return {self.output_of(of): fitted[name].column(of, block, mode) for name, sources in groups for of in sources}

    def row(self, inputs: Inputs, fitted: Mapping[str, Any]) -> RowFunction:
        groups = self.groups(inputs).items()
        functions = [(self.output_of(of), fitted[name].of_row(of)) for name, sources in groups for of in sources]
        return lambda row: {name: function(row) for name, function in functions}


def category_types(operator: Operator, columns: Sequence[str], fields: Mapping[str, Field]) -> tuple[pa.DataType, ...]:
    """Return the types of the categories, string or int64; raises ConfigError for lists and other types."""
    for name in columns:
        if pa.types.is_list(fields[name].type):
            raise ConfigError(
                f"column {name} has lists, but {type(operator).__name__} takes one category of each row. Leave it out, "
                "or give another column."
            )
    return tuple(category_type(fields[name]) for name in columns)


class LearnedByCategory(Fitted):
    """Sums by name, ``totals`` (groups + 1, slots), for a column or combination; the last group: unseen categories."""

    def __init__(self, operator: Any, of: Input, types: Sequence[pa.DataType], table: pa.Table) -> None:
        self.operator, self._of, self._types, self.table = operator, of, types, table
        values = one_array(table[CATEGORY])
        if values.null_count != 1 or values[0].is_valid:
            raise IntegrityError("a table of categories must have null in its first row only. Fit again.")
        self.groups = CategoryNumbers.of_groups(values.slice(1))
        self.totals: dict[str, npt.NDArray[Any]] = {
            name: np.column_stack([np.append(to_numpy(table[slot]).astype(DTYPES[name]), 0) for slot in slots])
            for name, slots in operator.table_columns.items()
        }

    def facts(self) -> dict[str, Any]:
        kinds = [str(type_) for type_ in self._types]
        return {"of": list(columns_of(self._of)), "kinds": kinds, "categories": len(self.groups.values)}

    def tables(self) -> dict[str, pa.Table]:
        return {TABLE: self.table}

    @property
    def serving(self) -> npt.NDArray[Any]:
        """The output of each group in serving, (groups + 1,): here the number of its rows."""
        return self.totals[ROWS].ravel()

    def column(self, of: Input, block: Block, mode: Mode) -> Numbers:
        return Numbers(self.numbers(self.groups.of_block(of, block, mode), block, mode))

    def numbers(self, groups: Array, block: Block, mode: Mode) -> Array:
        """Return the outputs for the rows of a block, (rows,) on the device, given their groups, (rows,)."""
        return mode.device.xp.take(mode.device.to_device(self.serving), groups)

    def of_row(self, of: Input) -> Callable[[Row], Value]:
        """Return a function that computes the output of one row in serving."""
        group_of, numbers = self.groups.of_row(of), self.serving
        return lambda row: numbers[group_of(row)].item()


class ByCategory(LearnsCategories):
    """A number that depends on the category of a row, for each input column or combination."""

    learned: ClassVar[type[LearnedByCategory]] = LearnedByCategory

    @property
    def table_columns(self) -> Mapping[str, Sequence[str]]:
        """The columns of the table of categories by the sums that they hold: one, or one per slot."""
        return {ROWS: (ROWS,)}

    def table(self, sums: Sums) -> pa.Table:
        """Return the sums of all data as a table of groups, null first; integers are int32 where all fit."""
        groups, slots = sums.pairs()
        values = sums.categories.values()
        columns: dict[str, Any] = {CATEGORY: pa.concat_arrays([pa.nulls(1, values.type), values])}
        for name, names in self.table_columns.items():
            numbers = np.zeros((len(names), sums.size), DTYPES[name])
            if name in sums.totals:
                np.add.at(numbers, (slots % len(names), groups), sums.totals[name][: len(groups)])
            columns |= {each: to_arrow(_narrow(row)) for each, row in zip(names, numbers, strict=True)}
        return pa.table(columns)

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        number_fields(self, self.target_columns, fields)
        self.category_types(inputs, fields)
        type_ = pa.float32() if self.target_columns else pa.int64()  # means, or counts
        return [Field(self.output_of(entry), type_, (TAG,)) for entry in inputs]

    def learn(self, statistic: CategoryStatistic, sums: Sums) -> LearnedByCategory:
        for target in self.target_columns:
            about = f"{type(self).__name__}: the target {target!r}"
            if not sums.totals[ROWS].any():
                raise InputError(f"{about} is null in all rows fitted on. Give another.")
            if not np.isfinite(sums.totals[SUMS]).all():
                raise InputError(f"{about} has infinite values. Clip it, or give another.")
        # Sorted by hash, null first, so that the order of the rows does not matter.
        order = np.append(0, 1 + np.argsort(hash_values(sums.categories.values(), 0)))
        return self.learned(self, statistic.sources[0], statistic.types, self.table(sums).take(to_arrow(order)))

    def refuse(self, statistic: CategoryStatistic, sums: Sums, mode: Mode) -> None:
        raise ResourceError(
            f"{statistic.name}: the table of its categories takes {sums.nbytes / 1e6:,.1f} MB for {sums.size:,} or "
            f"more categories, but only {mode.memory / 1e6:,.1f} MB are available for it. Give it more memory "
            "(recsys.fit.memory_share, or fewer threads), fewer folds or statistics, or put HashBucket before it."
        )

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> LearnedByCategory:
        of = tuple(facts["of"]) if len(facts["of"]) > 1 else facts["of"][0]
        if of not in inputs:
            raise IntegrityError(f"{type(self).__name__}: {name_of(of)} is not one of its inputs. Fit again.")
        return self.learned(self, of, tuple(map(type_from_name, facts["kinds"])), tables[TABLE])


class Sums:
    """Sums of rows by category and slot.

    Null is group 0, and category *i* is group *i* + 1. If the categories are ``given``, all others are the last group.
    ``totals`` maps names to arrays, longer than needed, whose first entries are those of `pairs`.
    """

    def __init__(self, type_: pa.DataType, names: Iterable[str], given: pa.Array | None = None) -> None:
        self.categories = CategoryCounter(type_)
        self.is_given = given is not None
        if given is not None:
            self.categories.add(given)
        self.totals = {name: np.zeros(1, DTYPES[name]) for name in names}
        self._slots, self._pairs = CategoryCounter(pa.int64()), CategoryCounter(pa.int64())

    @property
    def size(self) -> int:
        return 1 + self.categories.size + self.is_given

    def add_rows(self, categories: Categories, slots: Array | None, numbers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add numbers of rows by category and slot; without numbers, count the rows."""
        dictionary, rows = categories.dictionary, count_codes(categories.codes, len(categories.dictionary))
        # A dictionary may have values that no row has. The code of null, -1, takes the last group.
        used = np.flatnonzero(rows)
        values = dictionary if len(used) == len(dictionary) else dictionary.take(to_arrow(used))
        groups = np.full(len(dictionary) + 1, NULL_GROUP)
        groups[used] = self._groups_of(values)
        if slots is None and not numbers:
            self._add(groups, None, {ROWS: np.append(rows, len(categories) - rows.sum())})
        else:
            self._add(groups[categories.codes], slots, numbers or {ROWS: np.ones(len(categories), np.int64)})

    def merge(self, other: Sums) -> Sums:
        """Add the sums of another span, and return these."""
        groups, slots = other.pairs()
        numbers = {name: total[: len(groups)] for name, total in other.totals.items()}
        if not self.is_given:
            # Group - 1 is a category of the other sums, and for null -1, the last entry.
            groups = np.append(self._groups_of(other.categories.values()), NULL_GROUP)[groups - 1]
        self._add(groups, slots if other._pairs.size else None, numbers)
        return self

    def _groups_of(self, values: pa.Array) -> Array:
        numbers = self.categories.look_up(values, learning=not self.is_given)
        return np.where(numbers < 0, self.categories.size, numbers) + 1

    def _add(self, groups: Array, slots: Array | None, numbers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add numbers of pairs of group and slot, which may repeat; without slots, each group is a pair."""
        if slots is None:
            places, size = groups, self.size
        else:
            # There are fewer than 2**31 slots and 2**32 groups.
            pairs = (self._slots.add(to_arrow(slots.astype(np.int64))) << _GROUP_BITS) | groups
            places, size = self._pairs.add(to_arrow(pairs)), self._pairs.size
        for name, total in self.totals.items():
            if size > len(total):  # at least double it
                zeros = np.zeros(max(size - len(total), len(total)), total.dtype)
                self.totals[name] = np.append(total, zeros)
            if name in numbers:
                np.add.at(self.totals[name], places, numbers[name].astype(DTYPES[name], copy=False))

    def pairs(self) -> tuple[Array, Array]:
        """Return the group and the slot of each entry of the totals; without slots, 0."""
        if not self._pairs.size:
            return np.arange(self.size), np.zeros(self.size, np.int64)
        pairs = to_numpy(self._pairs.values())
        return pairs & ((1 << _GROUP_BITS) - 1), to_numpy(self._slots.values())[pairs >> _GROUP_BITS]

    @property
    def nbytes(self) -> int:
        counters = self.categories.nbytes + self._slots.nbytes + self._pairs.nbytes
        return counters + sum(total.nbytes for total in self.totals.values())


@dataclass(frozen=True)
class CategoryStatistic(Statistic):
    """Sums rows by the categories of ``sources``, one column or combination, or several columns together.

    ``types`` are the types of their columns' categories, string or int64. The engine ``dask`` sums `cells` by their
    keys: integers, so that the order and the partitions of the rows change nothing.
    """

    operator: LearnsCategories
    sources: tuple[Input, ...]
    types: tuple[pa.DataType, ...]
    given: pa.Array | None = None  # the categories, if not learned; all others are one group
    exponent: int | None = 0  # `cells` multiply a target by 2**exponent, to sum integers; None until it is chosen

    @property
    def type(self) -> pa.DataType:
        """The type of the categories: string, int64, or binary for combinations."""
        return self.types[0] if isinstance(self.sources[0], str) else pa.binary()

    def observe(self, blocks: Iterator[Block], mode: Mode) -> Sums:
        sums = self._empty()
        for block in blocks:
            slots, numbers = self.operator.slots(block, HOST), self._numbers(block, HOST)
            for of in self.sources:
                column = block[columns_of(of)[0]]
                categories = as_categories(column.values) if isinstance(column, Lists) else categories_of(block, of)
                sums.add_rows(categories, slots, numbers)
        return sums

    def combine(self, summaries: Iterable[Sums], mode: Mode) -> Fitted:
        for total in accumulate(summaries, Sums.merge):
            if total.nbytes > mode.memory:
                self.operator.refuse(self, total, mode)
        return self.operator.learn(self, total)

    def cells(self, block: Block, device: Device) -> Frame:
        """Return the keys of rows, columns ``key_...``, and the integers to sum, other columns."""
        keys = keys_of(block, columns_in(self.sources), device)
        if len(self.sources) > 1:
            values = keys.melt(value_vars=list(keys.columns), value_name="value")[["value"]]
            keys = values.rename(columns={"value": "key_0"})
        slots, numbers = self.operator.slots(block, device), self._numbers(block, device) or {ROWS: 1}
        if SUMS in numbers:
            # Integers below 2**62, in halves ``first * 2**_HALF + second``, whose sums are exact.
            integers = device.xp.rint(device.xp.ldexp(numbers.pop(SUMS), self.exponent or 0)).astype("int64")
            numbers |= {"first": integers >> _HALF, "second": integers & ((1 << _HALF) - 1)}
        return keys.assign(**({} if slots is None else {"key_slot": slots}), **numbers)

    def learn(self, cells: pa.Table) -> Fitted:
        """Return the result for the sums of all rows by their keys, in any order."""
        keys = len(columns_of(self.sources[0]))
        numbers = {name: to_numpy(cells[name]) for name in cells.column_names[keys:]}
        if self.operator.target_columns:
            numbers[SUMS] = np.ldexp(numbers["first"] * 2.0**_HALF + numbers["second"], -(self.exponent or 0))
        sums = self._empty()
        sums.add_rows(categories_of_keys(cells, keys), numbers.get("key_slot"), numbers)
        return self.operator.learn(self, sums)

    def _empty(self) -> Sums:
        return Sums(self.type, DTYPES if self.operator.target_columns else (ROWS,), self.given)

    def _numbers(self, block: Block, device: Device) -> dict[str, Any]:
        """Return the numbers to sum; empty if rows are only counted."""
        if not self.operator.target_columns:
            return {}
        (target,), xp = self.operator.target_columns, device.xp
        values = as_floats(block[target], xp)
        is_null = xp.isnan(values)
        counts = {ROWS: (~is_null).astype(xp.int64), NULLS: is_null.astype(xp.int64)}
        return {**counts, SUMS: xp.where(is_null, 0.0, values)}


def _narrow(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    limits = np.iinfo(np.int32)
    fits = numbers.dtype == np.int64 and np.all((numbers >= limits.min) & (numbers <= limits.max))
    return numbers.astype(np.int32) if fits else numbers

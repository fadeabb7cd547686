"""Operators that learn numbers per category, such as how many rows it has.

Every span of the data becomes a table of sums by category, which is merged into the table of the spans before. Fitting
takes at most twice the memory of the merged table, which applying needs as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.engines.device import Device
from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError
from whitewater.features.columns.categories import (
    CategoryCounter,
    as_floats,
    category_type,
    count_codes,
    hash_values,
)
from whitewater.features.columns.column import Categories, Numbers
from whitewater.features.columns.groups import (
    NULL_GROUP,
    CategoryNumbers,
    categories_of,
    categories_of_keys,
    columns_of,
    keys_of,
    name_of,
)
from whitewater.features.frames import halves, sums_of_halves
from whitewater.features.operator import Fitted, Operator, Statistic
from whitewater.features.operators.by_column import number_fields
from whitewater.features.schema import Field, type_from_name
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.features.columns.column import Block
    from whitewater.features.columns.groups import Input
    from whitewater.features.frames import Frame
    from whitewater.features.operator import Inputs, Mode, Row, RowFunction, Value

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
TABLE, CATEGORY = "categories", "category"
TAG = "continuous"
# The sums: rows whose target, if there is one, is not null; their targets; and rows whose target is null.
ROWS, SUMS, NULLS = "rows", "sums", "null_rows"
DTYPES: dict[str, Any] = {ROWS: np.int64, SUMS: np.float64, NULLS: np.int64}
# Bits of the number of a group in that of a pair.
_GROUP_BITS = 32
HOST = Device()


class ByCategory(Operator):
    """A number that depends on the category of a row, for each input column or combination."""

    takes_combinations: ClassVar[bool] = True
    output_type: ClassVar[pa.DataType]
    # Made of the operator, a column or combination, the types of its columns, and the table of all of the data
    learned: ClassVar[type[LearnedByCategory]]

    @abstractmethod
    def output_name(self, name: str) -> str:
        """Return the name of the output column for a column or combination."""

    @property
    @abstractmethod
    def table_columns(self) -> Mapping[str, Sequence[str]]:
        """The columns of its table of categories with the `ROWS`, `SUMS` and `NULLS`: one of each, or one per slot."""

    def table(self, sums: Sums) -> pa.Table:
        """Return the sums of all of the data as a table of categories."""
        groups, slots = sums.pairs()
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, names in self.table_columns.items():
            numbers = np.zeros((len(names), sums.categories.size + 1), DTYPES[name])
            np.add.at(numbers, (slots % len(names), groups), sums.totals[name][: len(groups)])
            columns |= zip(names, numbers, strict=True)
        return table_of_groups(sums.categories.values(), columns)

    def slots(self, block: Block, device: Device) -> Array | None:
        """Return the rows' folds or periods, integers (rows,) on the device, if sums are kept separately for these."""
        return None

    @property
    def target_columns(self) -> tuple[str, ...]:
        """The column of the data whose mean is computed, if there is one."""
        return ()

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        number_fields(self, self.target_columns, fields)
        for entry in inputs:
            self._kinds(entry, fields)
        return [Field(self.output_name(name_of(entry)), self.output_type, (TAG,)) for entry in inputs]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[GroupStatistic]:
        others = self.dependencies(fitting=True, training=False)
        is_scaled = any(pa.types.is_floating(fields[target].type) for target in self.target_columns)
        return [
            GroupStatistic(
                name_of(entry), tuple(dict.fromkeys((*columns_of(entry), *others))),
                entry, self._kinds(entry, fields), self, None if is_scaled else 0,
            )
            for entry in inputs
        ]  # fmt: skip

    def _kinds(self, entry: Input, fields: Mapping[str, Field]) -> tuple[pa.DataType, ...]:
        """Return the types of the categories of columns, string or int64; raises ConfigError if one has none."""
        for name in columns_of(entry):
            if pa.types.is_list(fields[name].type):
                raise ConfigError(
                    f"{type(self).__name__} groups rows by the column {name!r}, which is one of lists: a row would be "
                    "in several groups. Give it another column."
                )
        return tuple(category_type(fields[name]) for name in columns_of(entry))

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> LearnedByCategory:
        of = tuple(facts["of"]) if len(facts["of"]) > 1 else facts["of"][0]
        if of not in inputs:
            raise IntegrityError(f"{type(self).__name__}: {name_of(of)} is not one of its inputs. Fit again.")
        return self.learned(self, of, tuple(map(type_from_name, facts["kinds"])), tables[TABLE])

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        outputs = {}
        for entry in inputs:
            learned = cast("LearnedByCategory", fitted[name_of(entry)])
            groups = learned.groups.of_block(entry, block, mode)
            outputs[self.output_name(name_of(entry))] = Numbers(learned.numbers(groups, block, mode))
        return outputs

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        functions = [
            (self.output_name(name), cast("LearnedByCategory", fitted[name]).number_of_row())
            for name in map(name_of, inputs)
        ]
        return lambda row: {name: function(row) for name, function in functions}


class Sums:
    """Sums of rows by category and slot, to which rows, or the sums of other spans of the data, can be added.

    Category *i* is group *i* + 1, and null is group 0. ``totals`` maps names to arrays, with room for more, whose
    entries are those of `pairs`.
    """

    def __init__(self, type_: pa.DataType, names: Sequence[str]) -> None:
        self.categories = CategoryCounter(type_)
        self.totals = {name: np.zeros(1, DTYPES[name]) for name in names}
        self._slots, self._pairs = CategoryCounter(pa.int64()), CategoryCounter(pa.int64())

    def groups_of(self, dictionary: pa.Array) -> Integers:
        """Return the groups of the entries of a dictionary, new or not, and last that of null, which code -1 takes."""
        return np.append(self.categories.add(dictionary) + 1, NULL_GROUP)

    def add_rows(self, categories: Categories, slots: Integers | None, numbers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add numbers, by name, of rows of some categories and slots."""
        # A dictionary may have values that no row has. The code of null, -1, takes the last group.
        there = np.flatnonzero(count_codes(categories.codes, len(categories.dictionary)))
        groups = np.full(len(categories.dictionary) + 1, NULL_GROUP)
        groups[there] = self.categories.add(categories.dictionary.take(to_arrow(there))) + 1
        self.add(groups[categories.codes], slots, numbers)

    def add(self, groups: Integers, slots: Integers | None, numbers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add numbers, by name, of pairs of groups and slots, which may repeat; without slots, each group is a pair."""
        if slots is None:
            places, size = groups, self.categories.size + 1
        else:
            # Neither groups nor slots are too many for their numbers to fit half of an integer.
            pairs = (self._slots.add(to_arrow(slots.astype(np.int64))) << _GROUP_BITS) | groups
            places, size = self._pairs.add(to_arrow(pairs)), self._pairs.size
        for name, total in self.totals.items():
            if size > len(total):  # which at least doubles
                more = np.zeros(max(size - len(total), len(total)), total.dtype)
                self.totals[name] = np.append(total, more)
            if name in numbers:
                np.add.at(self.totals[name], places, numbers[name].astype(DTYPES[name], copy=False))

    def pairs(self) -> tuple[Integers, Integers]:
        """Return the group and the slot, 0 if there are none, of each entry of the totals."""
        if not self._pairs.size:
            return np.arange(self.categories.size + 1), np.zeros(self.categories.size + 1, np.int64)
        pairs = to_numpy(self._pairs.values())
        return pairs & ((1 << _GROUP_BITS) - 1), to_numpy(self._slots.values())[pairs >> _GROUP_BITS]

    def merge(self, other: Sums) -> None:
        """Add the sums of another span."""
        groups, slots = other.pairs()
        numbers = {name: total[: len(groups)] for name, total in other.totals.items()}
        # The other's groups are its categories from 1 on, and null is the last here.
        own = self.groups_of(other.categories.values())[groups - 1]
        self.add(own, slots if other._pairs.size else None, numbers)

    @property
    def nbytes(self) -> int:
        """The memory that the sums take."""
        counters = self.categories.nbytes + self._slots.nbytes + self._pairs.nbytes
        return counters + sum(total.nbytes for total in self.totals.values())


class CategoryStatistic(Statistic):
    """A statistic of categories, computed from their sums in the spans of the data.

    The engine ``dask`` sums `cells` by keys instead: integers, so that no order or partition of the rows changes them.
    """

    @abstractmethod
    def sums(self) -> Sums:
        """Return empty sums."""

    @abstractmethod
    def add(self, sums: Sums, block: Block) -> None:
        """Add the rows of a block to sums."""

    @abstractmethod
    def cells(self, block: Block, device: Device) -> Frame:
        """Return the keys of rows, in columns named ``key_...``, and the integers to sum, in other columns."""

    @abstractmethod
    def add_cells(self, sums: Sums, cells: pa.Table) -> None:
        """Add the sums by key of `cells` to sums."""

    @abstractmethod
    def finish(self, sums: Sums) -> Fitted:
        """Return the result, given the sums of all of the data."""

    @abstractmethod
    def refuse(self, sums: Sums, mode: Mode) -> None:
        """Raise ResourceError for sums that have outgrown ``mode.memory``, unless there is room for them."""

    def observe(self, blocks: Iterator[Block], mode: Mode) -> Sums:
        sums = self.sums()
        for block in blocks:
            self.add(sums, block)
        return sums

    def combine(self, summaries: Iterable[Sums], mode: Mode) -> Fitted:
        total: Sums | None = None
        for sums in summaries:
            if total is None:
                total = sums
            else:
                total.merge(sums)
            if total.nbytes > mode.memory:
                self.refuse(total, mode)
        return self.finish(cast("Sums", total))

    def learn(self, cells: pa.Table) -> Fitted:
        """Return the result, given the sums of all rows by their keys, in any order."""
        sums = self.sums()
        self.add_cells(sums, cells)
        return self.finish(sums)


@dataclass(frozen=True)
class GroupStatistic(CategoryStatistic):
    """The statistic of an operator for a column or combination ``of`` columns of these kinds, string or int64."""

    of: Input
    kinds: tuple[pa.DataType, ...]
    operator: ByCategory
    # The power of 2 by which a target is multiplied to be summed as `halves`; None while it is not known
    exponent: int | None

    def sums(self) -> Sums:
        type_ = self.kinds[0] if isinstance(self.of, str) else pa.binary()
        return Sums(type_, (ROWS, NULLS, SUMS) if self.operator.target_columns else (ROWS, NULLS))

    def add(self, sums: Sums, block: Block) -> None:
        categories = categories_of(block, self.of)
        numbers = {ROWS: np.ones(len(categories), np.int64)}
        for target in self.operator.target_columns:
            values = as_floats(block[target])
            is_null = np.isnan(values)
            numbers = {ROWS: ~is_null, NULLS: is_null, SUMS: np.where(is_null, 0.0, values)}
        sums.add_rows(categories, self.operator.slots(block, HOST), numbers)

    def cells(self, block: Block, device: Device) -> Frame:
        keys, slots, xp = keys_of(block, columns_of(self.of), device), self.operator.slots(block, device), device.xp
        columns: dict[str, Any] = {} if slots is None else {"key_slot": slots}
        columns |= {ROWS: 1, NULLS: 0}
        for target in self.operator.target_columns:
            values = as_floats(block[target], xp)
            is_null = xp.isnan(values)
            columns |= {ROWS: (~is_null).astype(xp.int64), NULLS: is_null.astype(xp.int64)}
            columns["first"], columns["second"] = halves(values, self.exponent or 0, device)
        return keys.assign(**columns)

    def add_cells(self, sums: Sums, cells: pa.Table) -> None:
        # The keys of the categories come first.
        numbers = {name: to_numpy(cells[name]) for name in cells.column_names[len(self.kinds) :]}
        if self.operator.target_columns:
            numbers[SUMS] = sums_of_halves(numbers["first"], numbers["second"], self.exponent or 0)
        sums.add_rows(categories_of_keys(cells, len(self.kinds)), numbers.get("key_slot"), numbers)

    def finish(self, sums: Sums) -> Fitted:
        return self.operator.learned(self.operator, self.of, self.kinds, _in_order(self.operator.table(sums)))

    def refuse(self, sums: Sums, mode: Mode) -> None:
        raise ResourceError(
            f"{self.name}: the table of its categories takes {sums.nbytes / 1e6:,.1f} MB for "
            f"{sums.categories.size + 1:,} or more categories, but only {mode.memory / 1e6:,.1f} MB are available "
            "for it. Give it more memory (recsys.fit.memory_share, or fewer threads), fewer folds or statistics, or "
            "the buckets of a HashBucket instead of the categories."
        )


class LearnedByCategory(Fitted):
    """What was learned for one column or combination.

    ``totals`` maps names to sums (groups + 1, slots); the last group is that of unseen categories.
    """

    def __init__(self, operator: Any, of: Input, kinds: Sequence[pa.DataType], table: pa.Table) -> None:
        self.operator, self.of, self._kinds, self._table = operator, of, kinds, table
        self.groups = CategoryNumbers.of_groups(read_categories(table))
        self.totals: dict[str, npt.NDArray[Any]] = {
            name: np.column_stack([np.append(to_numpy(table[slot]).astype(DTYPES[name]), 0) for slot in slots])
            for name, slots in operator.table_columns.items()
        }

    def facts(self) -> dict[str, Any]:
        kinds = [str(kind) for kind in self._kinds]
        return {"of": list(columns_of(self.of)), "kinds": kinds, "categories": len(self.groups.values)}

    def tables(self) -> dict[str, pa.Table]:
        return {TABLE: self._table}

    @property
    def serving(self) -> npt.NDArray[Any]:
        """The number of each group in serving, (groups + 1,), where it depends on the group alone."""
        raise NotImplementedError

    def numbers(self, groups: Array, block: Block, mode: Mode) -> Array:
        """Return the numbers of the rows of a block, (rows,) on the device, given their groups, (rows,)."""
        return take_numbers(self.serving, groups, mode.device)

    def number_of_row(self) -> Callable[[Row], Value]:
        """Return a function that computes the number of one row in serving."""
        group_of, numbers = self.groups.of_row(self.of), self.serving
        return lambda row: numbers[group_of(row)].item()


def refuse_target(operator: str, target: str, rows: Integers, sums: Floats) -> None:
    """Raise InputError if the target is null in all rows, or infinite in one."""
    if not rows.any():
        raise InputError(f"{operator}: the target {target!r} is null in all rows fitted on. Give another.")
    if not np.isfinite(sums).all():
        raise InputError(f"{operator}: the target {target!r} has infinite values. Clip it, or give another.")


def smoothed_means(rows: npt.NDArray[Any], sums: Floats, prior: Any, smoothing: float) -> npt.NDArray[np.float32]:
    """Return ``(sums + smoothing * prior) / (rows + smoothing)``, or the prior where the divisor is 0."""
    weight, prior = rows + smoothing, np.broadcast_to(prior, rows.shape)
    means: Floats = np.divide(sums + smoothing * prior, weight, out=prior.copy(), where=weight > 0)
    return means.astype(np.float32)


def _in_order(table: pa.Table) -> pa.Table:
    """Return a table of groups ordered by the hashes of their categories, null first: the same for any row order."""
    values = read_categories(table)
    return table.take(to_arrow(np.append(0, 1 + np.argsort(hash_values(values, 0)))))


def take_numbers(numbers: Any, codes: Array, device: Device) -> Array:
    """Return the entries, at these codes on the device, of an array of numbers on the host."""
    entries: Array = device.xp.take(device.to_device(numbers), codes)
    return entries


def table_of_groups(values: pa.Array, columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return a table of groups, null first, and of columns of them; integers of 32 bits where they all fit."""
    categories = pa.concat_arrays([pa.nulls(1, values.type), values])
    return pa.table({CATEGORY: categories, **{name: to_arrow(_narrowed(each)) for name, each in columns.items()}})


def _narrowed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    limits = np.iinfo(np.int32)
    fits = numbers.dtype == np.int64 and np.all((numbers >= limits.min) & (numbers <= limits.max))
    return numbers.astype(np.int32) if fits else numbers


def read_categories(table: pa.Table) -> pa.Array:
    """Return the categories of groups 1 and following of a table of groups; raises IntegrityError if it is not one."""
    values = one_array(table[CATEGORY])
    if values.null_count != 1 or values[0].is_valid:
        raise IntegrityError("a table of categories does not begin with null, or has another. Fit again.")
    return values.slice(1)

"""Categories as groups of rows. Group 0 is that of null, which is a category of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whitewater.errors import ConfigError, IntegrityError
from whitewater.features.categories.combinations import combine, combine_one
from whitewater.features.categories.ids import category_type, scalar
from whitewater.features.categories.values import CategoryTable, as_categories, as_integers
from whitewater.features.columns.arrow import column_of
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Categories
from whitewater.features.frames import Text, any_valid, frame_class, series_of
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.columns.column import Block, Column
    from whitewater.features.frames import Frame
    from whitewater.features.operator import ApplyMode, Row
    from whitewater.features.schema import Field

Input = str | tuple[str, ...]
NULL_GROUP = 0
CATEGORY = "category"


def name_of(each: Input) -> str:
    """Return the name of a column or combination."""
    return each if isinstance(each, str) else "_".join(each)


def columns_of(each: Input) -> tuple[str, ...]:
    """Return the columns of a column or combination."""
    return (each,) if isinstance(each, str) else each


@dataclass(frozen=True)
class Grouping:
    """A column or combination ``of`` whose categories are groups, and the type of each of its columns.

    The types are string and int64.
    """

    of: Input
    kinds: tuple[pa.DataType, ...]

    @classmethod
    def bound(cls, each: Input, fields: Mapping[str, Field], *, operator: str) -> Grouping:
        """Return the grouping by a column or combination of some data.

        Raises ConfigError if a column is neither of text nor of integers.
        """
        for column in columns_of(each):
            if pa.types.is_list(fields[column].type):
                raise ConfigError(
                    f"{operator} groups rows by the column {column!r}, which is one of lists: a row would be in "
                    "several groups. Give it another column."
                )
        return cls(each, tuple(category_type(fields[column]) for column in columns_of(each)))

    @property
    def name(self) -> str:
        return name_of(self.of)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.of)

    @property
    def type(self) -> pa.DataType:
        """Type of the categories: those of a combination are binary."""
        return self.kinds[0] if isinstance(self.of, str) else pa.binary()

    def categories(self, block: Block) -> Categories:
        """Return the rows' categories."""
        columns = [as_categories(block[column]) for column in self.columns]
        return columns[0] if isinstance(self.of, str) else combine(columns)

    def category(self, row: Row) -> str | int | bytes | None:
        """Return the category of one row."""
        values = [scalar(row[column], column) for column in self.columns]
        return values[0] if isinstance(self.of, str) else combine_one(values)

    def facts(self) -> dict[str, Any]:
        """Return values of JSON of which `restore` makes it again."""
        return {"of": list(self.columns), "kinds": [str(kind) for kind in self.kinds]}

    @classmethod
    def restore(cls, facts: Mapping[str, Any]) -> Grouping:
        """Return the grouping that these facts are of; raises IntegrityError if they are of none."""
        known = {str(kind): kind for kind in (pa.string(), pa.int64())}
        of, kinds = facts.get("of", ()), facts.get("kinds", ())
        if not of or len(of) != len(kinds) or not set(kinds) <= set(known):
            raise IntegrityError(f"categories of {of} with types {kinds} are not what this version writes. Fit again.")
        return cls(of[0] if len(of) == 1 else tuple(of), tuple(known[kind] for kind in kinds))


def keys_of(block: Block, columns: Sequence[str], device: Device) -> Frame:
    """Return columns of frames as frames are grouped and merged by them: ``key_0`` and so on.

    They are text, or integers of 64 bits. Raises InputError if a value is above 2**63 - 1.
    """
    frames, given = frame_class(device), cast("list[Column | Text]", [block[name] for name in columns])
    keys = [each if isinstance(each, Text) else as_integers(each) for each in given]
    return frames({f"key_{place}": series_of(each, frames()) for place, each in enumerate(keys)})


def categories_of_keys(keys: pa.Table, count: int) -> Categories:
    """Return the categories of rows of ``count`` keys, as `keys_of` names them."""
    columns = [as_categories(column_of(keys[f"key_{place}"])) for place in range(count)]
    return columns[0] if count == 1 else combine(columns)


def without_unused(column: Categories) -> Categories:
    """Return categories with a dictionary of only those values that a row has."""
    there = np.flatnonzero(count_codes(column.codes, len(column.dictionary)))
    if len(there) == len(column.dictionary):
        return column
    # The code of null, -1, takes the last one.
    codes = np.full(len(column.dictionary) + 1, -1, np.int32)
    codes[there] = np.arange(len(there))
    return Categories(codes[column.codes], column.dictionary.take(to_arrow(there)))


def enlarge(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """Return the array with room for that many rows, at least doubled where it had too few; new ones are 0."""
    if rows <= len(array):
        return array
    larger = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class GroupTable:
    """The groups of categories that were learned; a category that was not is group ``unseen``, after the last one.

    ``values`` are the categories of groups 1 and following.
    """

    def __init__(self, grouping: Grouping, values: pa.Array) -> None:
        self.grouping = grouping
        self.unseen = len(values) + 1
        self.values = values
        self._table = CategoryTable(values)

    def __len__(self) -> int:
        """How many categories there are, without null."""
        return len(self.values)

    def groups(self, dictionary: pa.Array) -> npt.NDArray[np.int64]:
        """Return the groups, int64, of the entries of a dictionary, and then of null, so that code -1 takes that."""
        found = self._table.look_up(dictionary)
        return np.append(np.where(found < 0, self.unseen, found + 1), NULL_GROUP)

    def groups_of(self, block: Block, mode: ApplyMode) -> Array:
        """Return the group of each row, int64 (rows,), on the device."""
        if mode.engine == "dask":
            keys = keys_of(block, self.grouping.columns, mode.device)
            places = self._table.places(keys, mode.device)
            found: Array = (places + 1).fillna(self.unseen).astype("int64").where(any_valid(keys), NULL_GROUP).values
            return found
        categories = self.grouping.categories(block)
        return np.take(self.groups(categories.dictionary), categories.codes)

    def group_of_row(self) -> Callable[[Row], int]:
        """Return what tells the group of one row."""
        groups = {None: NULL_GROUP} | {value: group for group, value in enumerate(self.values.to_pylist(), start=1)}
        grouping, unseen = self.grouping, self.unseen
        return lambda row: groups.get(grouping.category(row), unseen)


def table_of(values: pa.Array, columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return a table of groups, null first, and of columns of them; integers of 32 bits where they all fit."""
    categories = pa.concat_arrays([pa.nulls(1, values.type), values])
    return pa.table({CATEGORY: categories, **{name: to_arrow(_narrowed(each)) for name, each in columns.items()}})


def _narrowed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    limits = np.iinfo(np.int32)
    fits = numbers.dtype == np.int64 and np.all((numbers >= limits.min) & (numbers <= limits.max))
    return numbers.astype(np.int32) if fits else numbers


def read_categories(table: pa.Table) -> pa.Array:
    """Return the categories of groups 1 and following of a table of groups; raises IntegrityError if it is not one."""
    if CATEGORY not in table.column_names or not len(table):
        raise IntegrityError(f"a table of categories has no column {CATEGORY!r}, or no row. Fit again.")
    values = one_array(table[CATEGORY])
    if values.null_count != 1 or values[0].is_valid:
        raise IntegrityError("a table of categories does not begin with null, or has another. Fit again.")
    return values.slice(1)


def read_numbers(table: pa.Table, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return columns of numbers of a table of groups, an entry for each group.

    Raises IntegrityError if one is missing, or not of numbers without nulls.
    """
    for name in names:
        type_ = table.schema.field(name).type if name in table.column_names else None
        numeric = type_ is not None and (pa.types.is_integer(type_) or pa.types.is_floating(type_))
        if not numeric or table[name].null_count:
            raise IntegrityError(f"a table of categories has no column {name!r} of numbers without nulls. Fit again.")
    return {name: to_numpy(table[name]) for name in names}

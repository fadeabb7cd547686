"""What `Categorify` learns: the values of columns, or of their combinations, and how many rows have each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater.engines import memory
from whitewater.errors import ConfigError, InputError
from whitewater.features.categories.combinations import combine
from whitewater.features.categories.groups import NULL_GROUP, categories_of_keys, keys_of
from whitewater.features.categories.ids import category_type
from whitewater.features.categories.values import as_categories, order_by_frequency
from whitewater.features.categories.vocabulary import Integers, Vocabulary, VocabularyFacts
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Block, Column, Lists
from whitewater.features.operator import Fitting, FromCells, Statistic
from whitewater.features.operators.by_category import ROWS, CategoryStatistic, Sums
from whitewater.features.schema import Field
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Device
    from whitewater.features.frames import Frame

Given = str | tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Columns that have one vocabulary, which has that name.

    ``combined`` tells whether a value is the combination of all columns, rather than that of one.
    """

    name: str
    columns: tuple[str, ...]
    combined: bool

    @property
    def columns_of(self) -> dict[str, tuple[str, ...]]:
        """The columns whose values become each column of ids."""
        return {self.name: self.columns} if self.combined else {name: (name,) for name in self.columns}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns of ids."""
        return tuple(self.columns_of)

    def column(self, output: str, block: Block) -> Column:
        """Return the values that become the ids of a column."""
        if not self.combined:
            return block[output]
        return combine([as_categories(block[name]) for name in self.columns])

    def counted(self, block: Block) -> Iterator[tuple[pa.Array, Integers, int]]:
        """Yield the values of a block's rows, or of its lists' elements: some, rows of each, and how many are null."""
        for name in self.outputs:
            column = self.column(name, block)
            categories = as_categories(column.values if isinstance(column, Lists) else column)
            rows: Integers = count_codes(categories.codes, len(categories.dictionary))
            yield categories.dictionary, rows, len(categories) - int(rows.sum())

    def cells(self, block: Block, device: Device) -> Frame:
        """Return the keys of the rows of frames, of all columns of ids, each being one row of its values."""
        values = keys_of(block, self.columns, device)
        if len(self.outputs) > 1:
            values = values.melt(value_vars=list(values.columns), value_name="value")[["value"]]
            values = values.rename(columns={"value": "key_0"})
        return values.assign(**{ROWS: 1})

    def counted_cells(self, cells: pa.Table) -> tuple[pa.Array, Integers, int]:
        """Return `counted` of the sums of cells."""
        found = categories_of_keys(cells, cells.num_columns - 1)
        rows = np.zeros(len(found.dictionary) + 1, np.int64)
        # The code of null, -1, takes the last one.
        np.add.at(rows, found.codes, to_numpy(cells[ROWS]))
        return found.dictionary, rows[:-1], int(rows[-1])


class RowsOfValues(Sums):
    """How many rows have each value, and how many are null."""

    def __init__(self, group: Group, kind: pa.DataType) -> None:
        super().__init__(kind, {ROWS: np.zeros((1, 1), np.int64)})
        self._group = group

    def add(self, block: Block) -> None:
        for counted in self._group.counted(block):
            self._add(*counted)

    def add_cells(self, cells: pa.Table, exponents: Sequence[int]) -> None:
        self._add(*self._group.counted_cells(cells))

    def table(self) -> tuple[pa.Array, Integers]:
        """Return the values, and the rows of null and of each value."""
        return self.groups.values(), self.totals[ROWS][: len(self.groups), 0]

    def _add(self, values: pa.Array, rows: Integers, nulls: int) -> None:
        # A dictionary may have values that no row has, and others twice.
        there = np.flatnonzero(rows)
        groups = self.groups.number(values if len(there) == len(values) else values.take(to_arrow(there)))
        self.grow()
        np.add.at(self.totals[ROWS].reshape(-1), groups, rows[there])
        self.totals[ROWS][NULL_GROUP] += nulls


@dataclass(frozen=True)
class LearnedVocabulary(CategoryStatistic):
    """The values of a group's columns by descending count; where counts are equal, by ascending value.

    Kept are values that ``least`` rows have, and of them the first ``most``, if that is not None.
    """

    group: Group
    kind: pa.DataType
    least: int
    most: int | None
    num_buckets: int

    def sums(self) -> RowsOfValues:
        return RowsOfValues(self.group, self.kind)

    def cells(self, block: Block, device: Device) -> Frame:
        return self.group.cells(block, device)

    def learned(self, table: tuple[pa.Array, Integers]) -> Vocabulary:
        values, rows = table
        nulls, rows = int(rows[NULL_GROUP]), rows[NULL_GROUP + 1 :]
        frequent = np.flatnonzero(rows >= self.least)
        order = order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))
        kept = frequent[order[: self.most]]
        about = VocabularyFacts(
            columns=self.group.outputs, kind=str(self.kind), num_buckets=self.num_buckets, values=len(kept),
            rows=nulls + int(rows.sum()), nulls=nulls,
            out_of_vocabulary_rows=int(rows.sum() - rows[kept].sum()), out_of_vocabulary_values=len(rows) - len(kept),
        )  # fmt: skip
        return Vocabulary(about, values.take(to_arrow(kept)), rows[kept])

    def refuse(self, sums: Sums, fitting: Fitting) -> None:
        # It grows by doubling, and what it was is there until then.
        what = f"counting the {len(sums.groups):,} and more values of {self.name}"
        remedy = "Take HashBucket instead, which learns nothing, or give the vocabulary (vocabs)."
        memory.forecast(2 * sums.nbytes, what=what, remedy=remedy)


@dataclass(frozen=True)
class GivenVocabulary(Statistic, FromCells):
    """How often the values of a given vocabulary occur."""

    group: Group
    given: Vocabulary

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Integers:
        """Return the rows of each value, then those of others, then of null: int64 (values + 2,)."""
        return sum(
            (self._rows(*counted) for block in blocks for counted in self.group.counted(block)),
            np.zeros(self.given.about.values + 2, np.int64),
        )

    def _rows(self, values: pa.Array, rows: Integers, nulls: int) -> Integers:
        total, places = np.zeros(self.given.about.values + 2, np.int64), self.given.places(values)
        np.add.at(total, np.where(places < 0, self.given.about.values, places), rows)
        total[-1] += nulls
        return total

    def cells(self, block: Block, device: Device) -> Frame:
        return self.group.cells(block, device)

    def learn(self, cells: pa.Table) -> Vocabulary:
        return self._learned(self._rows(*self.group.counted_cells(cells)))

    def combine(self, parts: Iterable[Integers], fitting: Fitting) -> Vocabulary:
        """Return the vocabulary with the counts of all parts; of others values only rows are known."""
        return self._learned(np.sum(list(parts), axis=0))

    def _learned(self, total: Integers) -> Vocabulary:
        others, nulls = total[-2:].tolist()
        about = replace(self.given.about, rows=int(total.sum()), nulls=nulls, out_of_vocabulary_rows=others)
        return Vocabulary(about, self.given.values, total[:-2])


def given_vocabulary(group: Group, given: Given, kind: pa.DataType, num_buckets: int) -> Vocabulary:
    """Return a given vocabulary, with counts of 0.

    Raises ConfigError if it is for a combination, has nulls or repetitions, or values of another type; InputError if
    its file cannot be read.
    """
    if group.combined:
        raise ConfigError(f"Categorify: vocabs cannot be given for {group.name}, a combination. Leave it out.")
    found = _read(Path(given)) if isinstance(given, str) else pa.array(given, None if given else kind)
    values = found.cast(kind) if category_type(Field(group.name, found.type)) == kind else found
    if values.type != kind:
        raise ConfigError(f"Categorify: vocabs gives {group.name} values of type {values.type}, but it has {kind}.")
    if values.null_count or len(pc.unique(values)) < len(values):
        raise ConfigError(f"Categorify: vocabs gives {group.name} a null, or a value more than once. Remove it.")
    about = VocabularyFacts(group.outputs, str(kind), num_buckets, len(values), 0, 0, 0, None)
    return Vocabulary(about, values, np.zeros(len(values), np.int64))


def _read(path: Path) -> pa.Array:
    try:
        with pq.ParquetFile(path) as file:
            return file.read([file.schema_arrow.names[0]]).column(0).combine_chunks()
    except (OSError, pa.ArrowException, IndexError) as error:
        raise InputError(f"Categorify: the vocabulary {path} cannot be read as Parquet: {error}.") from error

"""Vocabularies learnt from the rows of columns, or given and only counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.engines import memory
from whitewater.features.categories.combinations import combine
from whitewater.features.categories.groups import NULL, read_categories, read_numbers
from whitewater.features.categories.values import as_categories, order_by_frequency
from whitewater.features.categories.vocabulary import Integers, Vocabulary, VocabularyFacts
from whitewater.features.operator import Fitting, Statistic
from whitewater.features.operators.by_category import CategoryStatistic, Gathering
from whitewater.tables.arrow_arrays import to_arrow
from whitewater.tables.categories import count_codes
from whitewater.tables.columns import Block, Column, Lists

if TYPE_CHECKING:
    from whitewater.engines.device import Device

ROWS = "rows"


@dataclass(frozen=True)
class Group:
    """Columns that have one vocabulary, which has that name.

    ``combined`` tells whether a value is the combination of all columns, rather than that of one.
    """

    name: str
    columns: tuple[str, ...]
    combined: bool

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns of ids."""
        return (self.name,) if self.combined else self.columns

    def column(self, output: str, block: Block, device: Device) -> Column:
        """Return the values that become the ids of a column."""
        if not self.combined:
            return block[output]
        return combine([as_categories(block[name], device) for name in self.columns], device)

    def counted(self, block: Block, device: Device) -> Iterator[tuple[pa.Array, Integers, int]]:
        """Yield the values of a block's rows, or of its lists' elements: some, rows of each, and how many are null."""
        for name in self.outputs:
            column = self.column(name, block, device)
            categories = as_categories(column.values if isinstance(column, Lists) else column, device)
            rows: Integers = device.to_host(count_codes(categories.codes, len(categories.dictionary), device))
            yield categories.dictionary, rows, len(categories) - int(rows.sum())


class RowsOfValues(Gathering):
    """How many rows have each value, and how many are null."""

    def __init__(self, group: Group, kind: pa.DataType) -> None:
        super().__init__(kind, {ROWS: np.zeros(1, np.int64)})
        self._group = group

    def add(self, block: Block, device: Device) -> None:
        for values, rows, nulls in self._group.counted(block, device):
            # A dictionary may have values that no row has, and others twice.
            there = np.flatnonzero(rows)
            groups = self.groups.number(values if len(there) == len(values) else values.take(to_arrow(there)))
            self.grow()
            np.add.at(self.totals[ROWS], groups, rows[there])
            self.totals[ROWS][NULL] += nulls


@dataclass(frozen=True)
class LearntVocabulary(CategoryStatistic):
    """The values of a group's columns by descending count; where counts are equal, by ascending value.

    Kept are values that ``least`` rows have, and of them the first ``most``, if that is not None.
    """

    group: Group
    kind: pa.DataType
    least: int
    most: int | None
    num_buckets: int

    def gathering(self) -> RowsOfValues:
        return RowsOfValues(self.group, self.kind)

    def learnt(self, table: pa.Table) -> Vocabulary:
        values, rows = read_categories(table), read_numbers(table, [ROWS])[ROWS].astype(np.int64)
        nulls, rows = int(rows[NULL]), rows[NULL + 1 :]
        frequent = np.flatnonzero(rows >= self.least)
        order = order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))
        kept = frequent[order[: self.most]]
        about = VocabularyFacts(
            columns=self.group.outputs, kind=str(self.kind), num_buckets=self.num_buckets, values=len(kept),
            rows=nulls + int(rows.sum()), nulls=nulls,
            out_of_vocabulary_rows=int(rows.sum() - rows[kept].sum()), out_of_vocabulary_values=len(rows) - len(kept),
        )  # fmt: skip
        return Vocabulary(about, values.take(to_arrow(kept)), rows[kept])

    def refuse(self, gathering: Gathering, fitting: Fitting, *, merged: float) -> None:
        # It grows by doubling, and what it was is there until then.
        what = f"counting the {len(gathering.groups):,} and more values of {self.name}, after {merged:.0%} of the data,"
        remedy = "Take HashBucket instead, which learns nothing, or give the vocabulary (vocabs)."
        memory.forecast(2 * gathering.nbytes, what=what, remedy=remedy)


@dataclass(frozen=True)
class GivenVocabulary(Statistic):
    """How often the values of a given vocabulary occur."""

    group: Group
    given: Vocabulary

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Integers:
        """Return the rows of each value, then those of others, then of null: int64 (values + 2,)."""
        total = np.zeros(self.given.about.values + 2, np.int64)
        for block in blocks:
            for values, rows, nulls in self.group.counted(block, fitting.device):
                places = self.given.places(values)
                np.add.at(total, np.where(places < 0, self.given.about.values, places), rows)
                total[-1] += nulls
        return total

    def combine(self, parts: Sequence[Integers], fitting: Fitting) -> Vocabulary:
        """Return the vocabulary with the counts of all parts; of others values only rows are known."""
        total: Integers = np.sum(parts, axis=0)
        others, nulls = total[-2:].tolist()
        about = replace(self.given.about, rows=int(total.sum()), nulls=nulls, out_of_vocabulary_rows=others)
        return Vocabulary(about, self.given.values, total[:-2])

"""Vocabularies learnt from the rows of columns, or given and only counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.devices.columns import Block, Categories, Column, Lists
from whitewater.recsys.categories import count
from whitewater.recsys.category_ids import known_categories
from whitewater.recsys.combinations import combine
from whitewater.recsys.counted_values import Counted, CountsWriter, Integers, MappedCounts
from whitewater.recsys.operator import Fitted, Fitting, Statistic
from whitewater.recsys.value_counting import RESULT_SHARE, Choice, Ordered, Run, Tally, in_order, ordered
from whitewater.recsys.vocabulary import Vocabulary, VocabularyFacts

if TYPE_CHECKING:
    from whitewater.devices.protocol import Device

# A part of the data keeps at most this share of the memory until all parts are put together: there may be a thousand.
_PART_SHARE = 1024


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
        return combine([known_categories(block[name], device) for name in self.columns], device)

    def categories(self, block: Block, device: Device) -> list[Categories]:
        """Return the values that are learnt: of a block's rows, or of its lists' elements."""
        columns = [self.column(name, block, device) for name in self.outputs]
        flat = [column.values if isinstance(column, Lists) else column for column in columns]
        return [known_categories(column, device) for column in flat]


@dataclass(frozen=True)
class PartOfValues:
    """What a part of the data has: rows, nulls, and its values, some of them in ``runs`` if they are too many."""

    rows: int
    nulls: int
    values: Counted | MappedCounts
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class LearntVocabulary(Statistic):
    """The values of a group's columns that are chosen, in order."""

    name: str
    columns: tuple[str, ...]
    group: Group
    kind: pa.DataType
    choice: Choice
    num_buckets: int

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> PartOfValues:
        """Return the values of a part of the data, and how often each occurs there."""
        tally, rows, nulls = self._tally(fitting), 0, 0
        for block in blocks:
            for categories in self.group.categories(block, fitting.device):
                counts = _counts(categories, fitting.device)
                tally.add(Counted(categories.dictionary, counts))
                rows, nulls = rows + len(categories), nulls + len(categories) - int(counts.sum())
        if tally.runs:
            tally.spill()
        values = tally.counted()
        kept = values.nbytes <= fitting.memory // _PART_SHARE
        return PartOfValues(rows, nulls, values if kept else _stored(values, self.kind, fitting), tuple(tally.runs))

    def combine(self, parts: Sequence[PartOfValues], fitting: Fitting) -> Vocabulary:
        """Return the vocabulary of all parts."""
        found = self._ordered(parts, fitting)
        kept = found.kept
        if isinstance(kept, Counted) and kept.nbytes > fitting.memory // RESULT_SHARE:
            kept = _stored(kept, self.kind, fitting, for_look_up=True)
        for part in parts:
            if isinstance(part.values, MappedCounts):
                part.values.remove()
        rows, nulls = sum(part.rows for part in parts), sum(part.nulls for part in parts)
        about = VocabularyFacts(
            columns=self.group.outputs, kind=str(self.kind), num_buckets=self.num_buckets,
            values=len(kept), rows=rows, nulls=nulls,
            out_of_vocabulary_rows=found.rows - int(kept.counts.sum()),
            out_of_vocabulary_values=found.values - len(kept),
        )  # fmt: skip
        return Vocabulary(about, kept)

    def _ordered(self, parts: Sequence[PartOfValues], fitting: Fitting) -> Ordered:
        if len(parts) == 1 and not parts[0].runs:
            return in_order(parts[0].values, self.choice)
        tally = self._tally(fitting)
        for part in parts:
            tally.runs += part.runs
            tally.add(part.values)
        return ordered(tally, self.choice)

    def _tally(self, fitting: Fitting) -> Tally:
        return Tally(self.name, self.kind, memory=fitting.memory, scratch=fitting.scratch)


def _counts(categories: Categories, device: Device) -> Integers:
    counts: Integers = device.to_host(count(categories.codes, len(categories.dictionary), device))
    return counts


def _stored(values: Counted, kind: pa.DataType, fitting: Fitting, *, for_look_up: bool = False) -> MappedCounts:
    with CountsWriter(fitting.scratch, kind) as writer:
        writer.add(values)
    return writer.mapped(for_look_up=for_look_up)


@dataclass(frozen=True)
class PartOfRows:
    """What a part of the data has of a given vocabulary: rows, nulls, and rows of each value, int64 (values,)."""

    rows: int
    nulls: int
    counts: Integers


@dataclass(frozen=True)
class GivenVocabulary(Statistic):
    """How often the values of a given vocabulary occur."""

    name: str
    columns: tuple[str, ...]
    group: Group
    given: Vocabulary

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> PartOfRows:
        """Return how often each value occurs in a part of the data."""
        total, rows, nulls = np.zeros(self.given.about.values, np.int64), 0, 0
        for block in blocks:
            for categories in self.group.categories(block, fitting.device):
                counts = _counts(categories, fitting.device)
                places = self.given.places(categories.dictionary)
                np.add.at(total, places[places >= 0], counts[places >= 0])
                rows, nulls = rows + len(categories), nulls + len(categories) - int(counts.sum())
        return PartOfRows(rows, nulls, total)

    def combine(self, parts: Sequence[PartOfRows], fitting: Fitting) -> Fitted:
        """Return the vocabulary with the counts of all parts."""
        del fitting
        rows, nulls = sum(part.rows for part in parts), sum(part.nulls for part in parts)
        return self.given.counted(np.sum([part.counts for part in parts], axis=0), rows=rows, nulls=nulls)

"""What `Categorify` learns: the values of columns, or of their combinations, and how many rows have each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from whitewater.features.categories.values import CategoryTable, as_categories, order_by_frequency
from whitewater.features.categories.vocabulary import Integers, Vocabulary, VocabularyFacts
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Block, Column, Lists
from whitewater.features.operator import Resources
from whitewater.features.operators.by_category import NULLS, ROWS, CategoryStatistic, Sums
from whitewater.features.schema import Field
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Device
    from whitewater.features.frames import Frame

Given = str | tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Columns of ids by one vocabulary of that name: ``sources`` has the column, or the combination, of each."""

    name: str
    sources: Mapping[str, tuple[str, ...]]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values become ids."""
        return tuple(name for columns in self.sources.values() for name in columns)

    @property
    def combined(self) -> bool:
        """Whether a value is the combination of all columns, rather than that of one."""
        return len(self.columns) > len(self.sources)

    def column(self, output: str, block: Block) -> Column:
        """Return the values that become the ids of a column."""
        columns = [block[name] for name in self.sources[output]]
        return combine([as_categories(column) for column in columns]) if self.combined else columns[0]


@dataclass(frozen=True)
class VocabularyStatistic(CategoryStatistic):
    """The values of a group's columns by descending count; where counts are equal, by ascending value.

    It keeps values with at least ``min_rows`` rows, the first ``max_values`` of them unless None; or those ``given``.
    """

    group: Group
    kind: pa.DataType
    num_buckets: int
    min_rows: int
    max_values: int | None
    given: CategoryTable | None

    def sums(self) -> Sums:
        sums = Sums(self.kind, (ROWS, NULLS))
        if self.given is not None:
            sums.categories.add(self.given.values)
        return sums

    def add(self, sums: Sums, block: Block) -> None:
        for name in self.group.sources:
            column = self.group.column(name, block)
            categories = as_categories(column.values if isinstance(column, Lists) else column)
            rows = count_codes(categories.codes, len(categories.dictionary))
            self._add(sums, categories.dictionary, rows, len(categories) - int(rows.sum()))

    def add_cells(self, sums: Sums, cells: pa.Table) -> None:
        categories = categories_of_keys(cells, cells.num_columns - 1)
        rows = np.zeros(len(categories.dictionary) + 1, np.int64)
        # The code of null, -1, takes the last one.
        np.add.at(rows, categories.codes, to_numpy(cells[ROWS]))
        self._add(sums, categories.dictionary, rows[:-1], int(rows[-1]))

    def _add(self, sums: Sums, values: pa.Array, rows: Integers, nulls: int) -> None:
        """Add the rows of the values of a dictionary, and of null; those of values not given are those of group 0."""
        # A dictionary may have values that no row has, and others twice.
        there = np.flatnonzero(rows)
        values = values if len(there) == len(values) else values.take(to_arrow(there))
        groups = sums.groups_of(values)[:-1] if self.given is None else self.given.look_up(values) + 1
        sums.add(groups, None, {ROWS: rows[there]})
        sums.totals[NULLS][NULL_GROUP] += nulls

    def cells(self, block: Block, device: Device) -> Frame:
        values = keys_of(block, self.columns, device)
        if len(self.group.sources) > 1:
            values = values.melt(value_vars=list(values.columns), value_name="value")[["value"]]
            values = values.rename(columns={"value": "key_0"})
        return values.assign(**{ROWS: 1})

    def finish(self, sums: Sums) -> Vocabulary:
        values, total = sums.categories.values(), sums.totals[ROWS][: sums.categories.size + 1]
        nulls, rows = int(sums.totals[NULLS][NULL_GROUP]), total[NULL_GROUP + 1 :]
        kept = np.arange(len(values))
        if self.given is None:
            frequent = np.flatnonzero(rows >= self.min_rows)
            kept = frequent[order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))][: self.max_values]
        all_rows, left_out = nulls + int(total.sum()), len(rows) - len(kept) if self.given is None else None
        about = VocabularyFacts(
            columns=tuple(self.group.sources), kind=str(self.kind), num_buckets=self.num_buckets, values=len(kept),
            rows=all_rows, nulls=nulls, out_of_vocabulary_rows=all_rows - nulls - int(rows[kept].sum()),
            out_of_vocabulary_values=left_out,
        )  # fmt: skip
        return Vocabulary(about, values.take(to_arrow(kept)), rows[kept])

    def refuse(self, sums: Sums, resources: Resources) -> None:
        # It grows by doubling, and what it was is there until then.
        what = f"counting the {sums.categories.size + 1:,} and more values of {self.name}"
        remedy = "Take HashBucket instead, which learns nothing, or give the vocabulary (vocabs)."
        memory.forecast(2 * sums.nbytes, what=what, remedy=remedy)


def given_vocabulary(group: Group, given: Given, kind: pa.DataType) -> CategoryTable:
    """Return the values of a given vocabulary.

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
    return CategoryTable(values)


def _read(path: Path) -> pa.Array:
    try:
        with pq.ParquetFile(path) as file:
            return file.read([file.schema_arrow.names[0]]).column(0).combine_chunks()
    except (OSError, pa.ArrowException, IndexError) as error:
        raise InputError(f"Categorify: the vocabulary {path} cannot be read as Parquet: {error}.") from error

"""Categories as ids: by a vocabulary that is learnt or given, or by hashing, of which nothing is learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field as Setting
from pydantic import model_validator

from whitewater.engines import memory
from whitewater.errors import ConfigError, InputError
from whitewater.features.categories.groups import (
    NULL_GROUP,
    categories_of_keys,
    combine,
    combine_one,
    name_of,
    read_categories,
    read_numbers,
)
from whitewater.features.categories.hashing import hash_value, hash_values, row_hash, row_hash_one, value_hashes
from whitewater.features.categories.ids import (
    TAG,
    category_type,
    id_field,
    id_type,
    ids_of_rows,
    is_list,
    scalar,
    with_cardinality,
)
from whitewater.features.categories.values import as_categories, order_by_frequency
from whitewater.features.categories.vocabulary import (
    NULL,
    OUT_OF_VOCABULARY,
    Integers,
    Vocabulary,
    VocabularyFacts,
    restore_vocabulary,
)
from whitewater.features.columns.codes import count_codes
from whitewater.features.columns.column import Block, Column, Lists, Numbers
from whitewater.features.frames import any_known, column_of, keys_of, series_of, table_of
from whitewater.features.operator import Fitting, FromCells, Operator, Statistic
from whitewater.features.operators.by_category import CategoryStatistic, Gathering
from whitewater.features.operators.by_column import ByColumn, column_names
from whitewater.features.schema import Field
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.frames import Frame, Series
    from whitewater.features.operator import Applying, Fitted, Inputs, Row, RowFunction, Value

Given = str | tuple[str, ...] | tuple[int, ...]
SEED = 0
SEPARATOR = "_X_"
ROWS = "rows"


class Categorify(Operator):
    """The id of a category, by how often it occurs.

    Ids are 0 for padding, which fills up lists; 1 for null and NaN; from 2 those of values out of the vocabulary; then
    the vocabulary by descending frequency, equally frequent values by ascending value (texts by their bytes of UTF-8).
    They depend on the values and their counts alone: not on the order of rows, partitions, the device or memory.

    A value is out of the vocabulary if it was not there to learn from, or was too rare: its id is 2, or, with
    ``num_buckets``, ``2 + hash % num_buckets``, where the hash is XXH64 as in `HashBucket`.

    Input: text, integers, or lists of them, whose elements get ids; integers of any width are alike, but a vocabulary
    of text refuses integers and one of integers text. Output: int32, or int64 where ids need it; lists stay lists,
    empty ones too. Each output has the property ``cardinality``, which all ids are below.

    With ``encode_type="joint"`` the columns of ``["A", ["B", "C"]]`` are A, with a vocabulary of its own, and B and C,
    with one vocabulary for both: counts are added. With ``"combo"`` they are A, and ``B_C``, whose categories are the
    combinations of values of B and C; null is one where all parts are null, else a null part is a value.
    """

    takes_combinations: ClassVar[bool] = True
    freq_threshold: int = Setting(0, ge=0, description="Values with fewer rows are out of the vocabulary.")
    max_size: int = Setting(
        0, ge=0, description="Ids at most, with those of padding, null and values out of the vocabulary; 0: any number."
    )
    num_buckets: int | None = Setting(
        None, ge=1, lt=2**62, description="Ids of values out of the vocabulary, by hash; null: one."
    )
    encode_type: Literal["joint", "combo"] = Setting(
        "joint", description="Whether a list of columns shares a vocabulary, or is combined to one column."
    )
    vocabs: dict[str, Given] | None = Setting(
        None,
        description="Vocabularies that are given, by name of column, or of group joined by _: values in the order of "
        "ids, or a Parquet file whose first column has them; freq_threshold and max_size do not apply.",
    )

    @model_validator(mode="after")
    def _options_agree(self) -> Self:
        if self.freq_threshold and self.max_size:
            raise ConfigError(
                "Categorify: freq_threshold and max_size both say which values are left out. Set one of them to 0."
            )
        if self.max_size and self.max_size <= self._first:
            raise ConfigError(
                f"Categorify: max_size {self.max_size} leaves no id for a value: {self._first} are reserved. Raise it."
            )
        return self

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        return [field for group in self._groups(inputs) for field in self._fields(group, fields)]

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Statistic]:
        groups = self._groups(inputs)
        if unknown := sorted(set(self.vocabs or {}) - {group.name for group in groups}):
            raise ConfigError(
                f"Categorify: vocabs has {', '.join(unknown)}, but the vocabularies are of "
                f"{', '.join(group.name for group in groups)}. Name one of them."
            )
        return [self._statistic(group, _kind(group, fields)) for group in groups]

    def learnt_names(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[str]:
        # A file of a given vocabulary is not needed once the vocabulary is learnt.
        del fields
        return [group.name for group in self._groups(inputs)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Vocabulary:
        del inputs
        return restore_vocabulary(facts, tables)

    def described(self, fields: Sequence[Field], fitted: Mapping[str, Fitted]) -> Sequence[Field]:
        vocabularies = [each for each in fitted.values() if isinstance(each, Vocabulary)]
        cardinality = {name: each.about.cardinality for each in vocabularies for name in each.about.columns}
        return [with_cardinality(field, cardinality[field.name]) for field in fields]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        made: dict[str, Column] = {}
        for group in self._groups(inputs):
            vocabulary = cast("Vocabulary", fitted[group.name])
            for name in group.outputs:
                made[name] = ids_of_rows(
                    group.column(name, block, applying.device), vocabulary.ids,
                    null=NULL, cardinality=vocabulary.about.cardinality, device=applying.device,
                )  # fmt: skip
        return made

    def transform_frame(
        self, inputs: Inputs, frame: Frame, fitted: Mapping[str, Fitted], applying: Applying
    ) -> dict[str, Series]:
        made = {}
        for group in self._groups(inputs):
            vocabulary = cast("Vocabulary", fitted[group.name])
            for name, columns in group.columns_of.items():
                ids = _ids_of_keys(keys_of(frame, columns), vocabulary, applying.device)
                made[name] = ids.astype(np.dtype(id_type(vocabulary.about.cardinality)).name)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        functions = [each for group in self._groups(inputs) for each in _row_functions(group, fitted)]

        def ids(row: Row) -> dict[str, Value]:
            return {name: function(row) for name, function in functions}

        return ids

    @property
    def _first(self) -> int:
        """Id of the first value of a vocabulary."""
        return OUT_OF_VOCABULARY + (self.num_buckets or 1)

    def _groups(self, inputs: Inputs) -> list[Group]:
        combo = self.encode_type == "combo"
        groups = [
            Group(each, (each,), combined=False)
            if isinstance(each, str)
            else Group(name_of(each), each, combined=combo)
            for each in inputs
        ]
        names = [group.name for group in groups]
        outputs = [name for group in groups for name in group.outputs]
        for name in [*names, *outputs]:
            if names.count(name) > 1 or outputs.count(name) > 1:
                raise ConfigError(
                    f"Categorify: {name} is there more than once. A list of columns shares a vocabulary; for their "
                    "combination set encode_type to combo, and if names coincide, rename one."
                )
        return groups

    def _fields(self, group: Group, fields: Mapping[str, Field]) -> list[Field]:
        _kind(group, fields)
        made = [Field(group.name, pa.int64())] if group.combined else [fields[name] for name in group.columns]
        return [replace(id_field(field, self._first), properties={}) for field in made]

    def _statistic(self, group: Group, kind: pa.DataType) -> Statistic:
        given = (self.vocabs or {}).get(group.name)
        if given is not None:
            vocabulary = _given(group, given, kind, self.num_buckets or 1)
            return GivenVocabulary(group.name, group.columns, group, vocabulary)
        most = self.max_size - self._first if self.max_size else None
        return LearntVocabulary(
            group.name, group.columns, group, kind, self.freq_threshold, most, self.num_buckets or 1
        )


def _kind(group: Group, fields: Mapping[str, Field]) -> pa.DataType:
    """Return the type of a group's values: string, int64, or binary for combinations."""
    kinds = [category_type(fields[name]) for name in group.columns]
    if group.combined:
        if lists := [name for name in group.columns if is_list(fields[name].type)]:
            raise ConfigError(f"Categorify cannot combine lists, and {lists[0]} has some. Leave it out.")
        return pa.binary()
    if len(set(kinds)) > 1:
        raise ConfigError(
            f"Categorify: {', '.join(group.columns)} cannot share a vocabulary: some are text and some integers."
        )
    return kinds[0]


def _row_functions(group: Group, fitted: Mapping[str, Fitted]) -> list[tuple[str, Callable[[Row], Value]]]:
    """Return the columns of a group, and what gives the id, or ids, of each for a row."""
    vocabulary = cast("Vocabulary", fitted[group.name])
    id_of = vocabulary.id_of()
    # Where nothing was learnt, nothing is known of the type either.
    kind = vocabulary.kind if vocabulary.about.values else None

    def of_combination(row: Row) -> Value:
        return id_of(combine_one([scalar(row[name], name) for name in group.columns]))

    def of_column(name: str) -> Callable[[Row], Value]:
        def ids(row: Row) -> Value:
            value = row[name]
            if isinstance(value, list | tuple):
                return [id_of(scalar(each, name, kind)) for each in value]
            return id_of(scalar(value, name, kind))

        return ids

    return [(name, of_combination if group.combined else of_column(name)) for name in group.outputs]


def _ids_of_keys(keys: Frame, vocabulary: Vocabulary, device: Device) -> Series:
    """Return the id of each row of keys: by a left join with the vocabulary, or by hash."""
    about, unseen = vocabulary.about, cast("Any", OUT_OF_VOCABULARY)
    if about.num_buckets > 1:
        buckets = (_hashes_of_keys(keys, device) % np.uint64(about.num_buckets)).astype(np.int64)
        unseen = series_of(Numbers(buckets + OUT_OF_VOCABULARY), keys)
    ids = (vocabulary.frame.places(keys, device) + about.first).fillna(unseen).astype("int64")
    return ids.where(any_known(keys), NULL)


def _hashes_of_keys(keys: Frame, device: Device) -> Array:
    """Return hashes, uint64 (rows,): of combinations on the host, because no device has their bytes."""
    if len(keys.columns) == 1:
        return value_hashes(column_of(keys["key_0"]), SEED, device)(0, len(keys))
    categories = categories_of_keys(table_of(keys), len(keys.columns))
    hashes = np.append(hash_values(categories.dictionary, SEED), np.uint64(0))
    return device.to_device(hashes[categories.codes])


def _given(group: Group, given: Given, kind: pa.DataType, num_buckets: int) -> Vocabulary:
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


class HashBucket(ByColumn):
    """The bucket of a category: ``hash % num_buckets``.

    The hash is XXH64, seed 0, of a text's UTF-8 bytes or an integer's 8 little-endian bytes. It is taken of a
    dictionary on the host, so it is the same for both devices and for one row. Different categories may share a bucket.

    Input: text, integers, or lists of them. Output: int32 (int64 where ``num_buckets`` needs it); lists stay lists.
    Null and NaN: ``num_buckets``, an id that no value has, so the cardinality is ``num_buckets + 1``.
    """

    num_buckets: int = Setting(ge=1, lt=2**62, description="Number of buckets.")

    def field(self, field: Field) -> Field:
        return id_field(field, self.num_buckets + 1)

    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Column:
        def buckets(values: pa.Array) -> Any:
            return hash_values(values, SEED) % np.uint64(self.num_buckets)

        return ids_of_rows(column, buckets, null=self.num_buckets, cardinality=self.num_buckets + 1, device=device)

    def transform_frame(
        self, inputs: Inputs, frame: Frame, fitted: Mapping[str, Fitted], applying: Applying
    ) -> dict[str, Series]:
        made, xp, type_ = {}, applying.device.xp, id_type(self.num_buckets + 1)
        for name in column_names(inputs):
            keys = keys_of(frame, [name])
            hashes = value_hashes(column_of(keys["key_0"]), SEED, applying.device)(0, len(keys))
            buckets = (hashes % np.uint64(self.num_buckets)).astype(type_)
            known = any_known(keys).astype("bool").values
            made[name] = series_of(Numbers(xp.where(known, buckets, self.num_buckets).astype(type_)), keys)
        return made

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        def bucket(value: Value) -> Value:
            if isinstance(value, list | tuple):
                return [bucket(each) for each in value]
            known = scalar(value, name)
            return self.num_buckets if known is None else hash_value(known, SEED) % self.num_buckets

        return bucket


class HashedCross(Operator):
    """The bucket of a combination of categories: ``hash % num_buckets``, where the hash depends on the order.

    ``[["A", "B"]] >> HashedCross(num_buckets=1000)`` gives the column ``A_X_B``. The hashes of the parts are mixed one
    after the other (`whitewater.features.categories.hashing.row_hash`), so (a, b) and (b, a) differ, as do (a, a) and
    (b, b).

    Input: combinations of columns of text or integers. Output: int32 (int64 where ``num_buckets`` needs it) in
    [0, num_buckets). A null or NaN part is a value of its own, whatever the others are.
    """

    takes_combinations: ClassVar[bool] = True
    num_buckets: int = Setting(ge=1, lt=2**62, description="Number of buckets.")

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        type_ = pa.from_numpy_dtype(id_type(self.num_buckets))
        crosses = _crosses(inputs)
        for name in (name for cross in crosses.values() for name in cross):
            category_type(fields[name])
            if is_list(fields[name].type):
                raise ConfigError(f"column {name} has lists, which HashedCross cannot cross. Leave it out.")
        return [Field(name, type_, (TAG,), {"cardinality": self.num_buckets}) for name in crosses]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        made = {}
        for name, cross in _crosses(inputs).items():
            categories = [as_categories(block[each], applying.device) for each in cross]
            hashes = row_hash(categories, SEED, applying.device)
            made[name] = Numbers((hashes % np.uint64(self.num_buckets)).astype(id_type(self.num_buckets)))
        return made

    def transform_frame(
        self, inputs: Inputs, frame: Frame, fitted: Mapping[str, Fitted], applying: Applying
    ) -> dict[str, Series]:
        made, type_ = {}, id_type(self.num_buckets)
        for name, cross in _crosses(inputs).items():
            keys = keys_of(frame, cross)
            hashes = row_hash([column_of(keys[each]) for each in list(keys.columns)], SEED, applying.device)
            made[name] = series_of(Numbers((hashes % np.uint64(self.num_buckets)).astype(type_)), keys)
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        crosses = _crosses(inputs)

        def buckets(row: Row) -> dict[str, Value]:
            return {
                name: row_hash_one([scalar(row[each], each) for each in cross], SEED) % self.num_buckets
                for name, cross in crosses.items()
            }

        return buckets


def _crosses(inputs: Inputs) -> dict[str, tuple[str, ...]]:
    """Return combinations by the names of the columns that are made of them."""
    for each in inputs:
        if isinstance(each, str) or len(each) < 2:
            raise ConfigError(
                f'HashedCross was given {each!r}, which is no combination. Write [["A", "B"]] for that of A and B.'
            )
    return {SEPARATOR.join(each): each for each in inputs if not isinstance(each, str)}


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

    def cells(self, frame: Frame) -> Frame:
        """Return the keys of a frame's rows, of all columns of ids, each being one row of its values."""
        if self.combined:
            return keys_of(frame, self.columns).assign(**{ROWS: 1})
        values = keys_of(frame, self.columns)
        if len(self.columns) > 1:
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


class RowsOfValues(Gathering):
    """How many rows have each value, and how many are null."""

    def __init__(self, group: Group, kind: pa.DataType) -> None:
        super().__init__(kind, {ROWS: np.zeros(1, np.int64)})
        self._group = group

    def add(self, block: Block, device: Device) -> None:
        for counted in self._group.counted(block, device):
            self._add(*counted)

    def add_cells(self, cells: pa.Table) -> None:
        """Add the sums by key of what `LearntVocabulary.cells` gave."""
        self._add(*self._group.counted_cells(cells))

    def _add(self, values: pa.Array, rows: Integers, nulls: int) -> None:
        # A dictionary may have values that no row has, and others twice.
        there = np.flatnonzero(rows)
        groups = self.groups.number(values if len(there) == len(values) else values.take(to_arrow(there)))
        self.grow()
        np.add.at(self.totals[ROWS], groups, rows[there])
        self.totals[ROWS][NULL_GROUP] += nulls


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

    def cells(self, frame: Frame, device: Device) -> Frame:
        return self.group.cells(frame)

    def learn(self, cells: pa.Table) -> Vocabulary:
        gathering = self.gathering()
        gathering.add_cells(cells)
        return self.learnt(gathering.table())

    def learnt(self, table: pa.Table) -> Vocabulary:
        values, rows = read_categories(table), read_numbers(table, [ROWS])[ROWS].astype(np.int64)
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

    def refuse(self, gathering: Gathering, fitting: Fitting, *, merged: float) -> None:
        # It grows by doubling, and what it was is there until then.
        what = f"counting the {len(gathering.groups):,} and more values of {self.name}, after {merged:.0%} of the data,"
        remedy = "Take HashBucket instead, which learns nothing, or give the vocabulary (vocabs)."
        memory.forecast(2 * gathering.nbytes, what=what, remedy=remedy)


@dataclass(frozen=True)
class GivenVocabulary(Statistic, FromCells):
    """How often the values of a given vocabulary occur."""

    group: Group
    given: Vocabulary

    def observe(self, blocks: Iterator[Block], fitting: Fitting) -> Integers:
        """Return the rows of each value, then those of others, then of null: int64 (values + 2,)."""
        return sum(
            (self._rows(*counted) for block in blocks for counted in self.group.counted(block, fitting.device)),
            np.zeros(self.given.about.values + 2, np.int64),
        )

    def _rows(self, values: pa.Array, rows: Integers, nulls: int) -> Integers:
        total, places = np.zeros(self.given.about.values + 2, np.int64), self.given.places(values)
        np.add.at(total, np.where(places < 0, self.given.about.values, places), rows)
        total[-1] += nulls
        return total

    def cells(self, frame: Frame, device: Device) -> Frame:
        return self.group.cells(frame)

    def learn(self, cells: pa.Table) -> Vocabulary:
        return self._learnt(self._rows(*self.group.counted_cells(cells)))

    def combine(self, parts: Sequence[Integers], fitting: Fitting) -> Vocabulary:
        """Return the vocabulary with the counts of all parts; of others values only rows are known."""
        return self._learnt(np.sum(parts, axis=0))

    def _learnt(self, total: Integers) -> Vocabulary:
        others, nulls = total[-2:].tolist()
        about = replace(self.given.about, rows=int(total.sum()), nulls=nulls, out_of_vocabulary_rows=others)
        return Vocabulary(about, self.given.values, total[:-2])

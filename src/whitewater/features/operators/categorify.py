"""Categories as ids, by a vocabulary that is learned or given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import pyarrow as pa
from pydantic import Field as Setting
from pydantic import model_validator

from whitewater.errors import ConfigError
from whitewater.features.categories.combinations import combine_one
from whitewater.features.categories.groups import categories_of_keys, keys_of, name_of
from whitewater.features.categories.hashing import hash_values, value_hashes
from whitewater.features.categories.ids import (
    category_type,
    id_field,
    id_type,
    ids_of_rows,
    is_list,
    scalar,
    with_cardinality,
)
from whitewater.features.categories.vocabulary import NULL, OUT_OF_VOCABULARY, SEED, Vocabulary, restore_vocabulary
from whitewater.features.columns.column import Block, Column, Lists, Numbers
from whitewater.features.frames import any_known, column_of, series_of, table_of
from whitewater.features.operator import Operator, Statistic
from whitewater.features.operators.learn_vocabulary import (
    Given,
    Group,
    LearnedVocabulary,
    given_vocabulary,
)
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.frames import Frame
    from whitewater.features.operator import Applying, Fitted, Inputs, Row, RowFunction, Value


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

    Examples
    --------
    >>> from whitewater.features import Transformer, Workflow
    >>> from whitewater.features.operators import Categorify
    >>> workflow = Workflow(["city"] >> Categorify()).fit({"city": ["Rome", "Oslo", "Rome"]})
    >>> transform = Transformer(workflow)
    >>> transform({"city": "Rome"}), transform({"city": "Oslo"}), transform({"city": "Lima"}), transform({"city": None})
    ({'city': 3}, {'city': 4}, {'city': 2}, {'city': 1})
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

    def learned_names(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[str]:
        # A file of a given vocabulary is not needed once the vocabulary is learned.
        del fields
        return [group.name for group in self._groups(inputs)]

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Vocabulary:
        del inputs
        return restore_vocabulary(facts, tables)

    def describe(self, fields: Sequence[Field], fitted: Mapping[str, Fitted]) -> Sequence[Field]:
        vocabularies = [each for each in fitted.values() if isinstance(each, Vocabulary)]
        cardinality = {name: each.about.cardinality for each in vocabularies for name in each.about.columns}
        return [with_cardinality(field, cardinality[field.name]) for field in fields]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        made: dict[str, Column] = {}
        for group in self._groups(inputs):
            vocabulary = cast("Vocabulary", fitted[group.name])
            cardinality = vocabulary.about.cardinality
            for name, columns in group.sources.items():
                if applying.engine == "dask" and not isinstance(block[columns[0]], Lists):
                    keys = keys_of(block, columns, applying.device)
                    made[name] = Numbers(_ids_of_keys(keys, vocabulary, applying.device).astype(id_type(cardinality)))
                else:
                    made[name] = ids_of_rows(
                        group.column(name, block), vocabulary.ids, null=NULL, cardinality=cardinality
                    )
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
            Group(name_of(each), {name_of(each): each} if combo else {name: (name,) for name in each})
            for each in ((each,) if isinstance(each, str) else each for each in inputs)
        ]
        names = [group.name for group in groups]
        outputs = [name for group in groups for name in group.sources]
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

    def _statistic(self, group: Group, kind: pa.DataType) -> LearnedVocabulary:
        given = (self.vocabs or {}).get(group.name)
        return LearnedVocabulary(
            group.name, group.columns, group, kind, num_buckets=self.num_buckets or 1, least=self.freq_threshold,
            most=self.max_size - self._first if self.max_size else None,
            given=None if given is None else given_vocabulary(group, given, kind),
        )  # fmt: skip


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
    if group.combined:
        return [(group.name, lambda row: id_of(combine_one([scalar(row[name], name) for name in group.columns])))]
    # Where nothing was learned, nothing is known of the type either.
    kind = vocabulary.kind if vocabulary.about.values else None

    def of_column(name: str) -> Callable[[Row], Value]:
        def ids(row: Row) -> Value:
            value = row[name]
            if isinstance(value, list | tuple):
                return [id_of(scalar(each, name, kind)) for each in value]
            return id_of(scalar(value, name, kind))

        return ids

    return [(name, of_column(name)) for name in group.columns]


def _ids_of_keys(keys: Frame, vocabulary: Vocabulary, device: Device) -> Array:
    """Return the id of each row of keys, int64 (rows,): by a left join with the vocabulary, or by hash."""
    about, unseen = vocabulary.about, cast("Any", OUT_OF_VOCABULARY)
    if about.num_buckets > 1:
        buckets = (_hashes_of_keys(keys, device) % np.uint64(about.num_buckets)).astype(np.int64)
        unseen = series_of(Numbers(buckets + OUT_OF_VOCABULARY), keys)
    ids = (vocabulary.table.places(keys, device) + about.first).fillna(unseen).astype("int64")
    found: Array = ids.where(any_known(keys), NULL).values
    return found


def _hashes_of_keys(keys: Frame, device: Device) -> Array:
    """Return hashes, uint64 (rows,): of combinations on the host, because no device has their bytes."""
    if len(keys.columns) == 1:
        return value_hashes(column_of(keys["key_0"]), SEED, device)(0, len(keys))
    categories = categories_of_keys(table_of(keys), len(keys.columns))
    hashes = np.append(hash_values(categories.dictionary, SEED), np.uint64(0))
    return device.to_device(hashes[categories.codes])

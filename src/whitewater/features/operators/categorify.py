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
from whitewater.features.categories.ids import category_type, id_field, id_type, ids_of_rows, scalar, with_cardinality
from whitewater.features.categories.vocabulary import NULL, OUT_OF_VOCABULARY, SEED, Vocabulary, restore_vocabulary
from whitewater.features.columns.column import Block, Column, Lists, Numbers
from whitewater.features.frames import any_valid, column_of, series_of, table_of
from whitewater.features.operator import Operator, Statistic
from whitewater.features.operators.learn_vocabulary import Given, Group, VocabularyStatistic, given_vocabulary
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.frames import Frame
    from whitewater.features.operator import ApplyMode, Fitted, Inputs, Row, RowFunction, Value


class Categorify(Operator):
    """The id of a category, by how often it occurs.

    Ids are 0 for padding, which fills up lists; 1 for null and NaN; from 2 on for values out of the vocabulary; then
    the vocabulary by descending frequency, equally frequent values by ascending value (texts by their UTF-8 bytes).
    They depend only on the values and their counts: not on the order of rows, partitions, the device or memory.

    A value is out of the vocabulary if it is not in the data fitted on, or is too rare there: its id is 2, or, with
    ``num_buckets``, ``2 + hash % num_buckets``, where the hash is XXH64 as in `HashBucket`.

    Input: text, integers, or lists of them, whose elements get ids. Integers of all widths are treated alike, but a
    vocabulary of text refuses integers, and vice versa. Output: int32, or int64 if ids need it; lists stay lists, also
    if empty. All outputs have the property ``cardinality``, which is above all ids.

    With ``encode_type="joint"``, ``["A", ["B", "C"]]`` stands for A, with its own vocabulary, and for B and C, with one
    vocabulary for both: their counts are added. With ``"combo"`` it stands for A and for ``B_C``, whose categories are
    the combinations of values of B and C; a combination is null only if all of its values are.

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
        facts = [vocabulary.about for vocabulary in fitted.values() if isinstance(vocabulary, Vocabulary)]
        cardinality = {name: about.cardinality for about in facts for name in about.columns}
        return [with_cardinality(field, cardinality[field.name]) for field in fields]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: ApplyMode) -> Block:
        outputs: dict[str, Column] = {}
        for group in self._groups(inputs):
            vocabulary = cast("Vocabulary", fitted[group.name])
            cardinality = vocabulary.about.cardinality
            for name, columns in group.sources.items():
                if mode.engine == "dask" and not isinstance(block[columns[0]], Lists):
                    keys = keys_of(block, columns, mode.device)
                    outputs[name] = Numbers(_ids_of_keys(keys, vocabulary, mode.device).astype(id_type(cardinality)))
                else:
                    outputs[name] = ids_of_rows(
                        group.column(name, block), vocabulary.ids, null=NULL, cardinality=cardinality
                    )
        return outputs

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        functions = [pair for group in self._groups(inputs) for pair in _row_functions(group, fitted)]

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
            Group(name_of(columns), {name_of(columns): columns} if combo else {name: (name,) for name in columns})
            for columns in ((entry,) if isinstance(entry, str) else entry for entry in inputs)
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
        outputs = [Field(group.name, pa.int64())] if group.combined else [fields[name] for name in group.columns]
        return [replace(id_field(field, self._first), properties={}) for field in outputs]

    def _statistic(self, group: Group, kind: pa.DataType) -> VocabularyStatistic:
        given = (self.vocabs or {}).get(group.name)
        return VocabularyStatistic(
            group.name, group.columns, group, kind, num_buckets=self.num_buckets or 1,
            min_rows=self.freq_threshold, max_values=self.max_size - self._first if self.max_size else None,
            given=None if given is None else given_vocabulary(group, given, kind),
        )  # fmt: skip


def _kind(group: Group, fields: Mapping[str, Field]) -> pa.DataType:
    """Return the type of a group's values: string, int64, or binary for combinations."""
    kinds = [category_type(fields[name]) for name in group.columns]
    if group.combined:
        if lists := [name for name in group.columns if pa.types.is_list(fields[name].type)]:
            raise ConfigError(f"Categorify cannot combine lists, and {lists[0]} has some. Leave it out.")
        return pa.binary()
    if len(set(kinds)) > 1:
        raise ConfigError(
            f"Categorify: {', '.join(group.columns)} cannot share a vocabulary: some are text and some integers."
        )
    return kinds[0]


def _row_functions(group: Group, fitted: Mapping[str, Fitted]) -> list[tuple[str, Callable[[Row], Value]]]:
    """Return the output columns of a group, each with the function that computes its id, or ids, for a row."""
    vocabulary = cast("Vocabulary", fitted[group.name])
    id_of = vocabulary.id_of()
    if group.combined:
        return [(group.name, lambda row: id_of(combine_one([scalar(row[name], name) for name in group.columns])))]

    def function_of(name: str) -> Callable[[Row], Value]:
        def ids(row: Row) -> Value:
            value = row[name]
            if isinstance(value, list | tuple):
                return [id_of(scalar(element, name)) for element in value]
            return id_of(scalar(value, name))

        return ids

    return [(name, function_of(name)) for name in group.columns]


def _ids_of_keys(keys: Frame, vocabulary: Vocabulary, device: Device) -> Array:
    """Return the id of each row of keys, int64 (rows,): from a left join with the vocabulary, or from its hash."""
    about, unseen = vocabulary.about, cast("Any", OUT_OF_VOCABULARY)
    if about.num_buckets > 1:
        buckets = (_hashes_of_keys(keys, device) % np.uint64(about.num_buckets)).astype(np.int64)
        unseen = series_of(Numbers(buckets + OUT_OF_VOCABULARY), keys)
    ids = (vocabulary.table.places(keys, device) + about.first).fillna(unseen).astype("int64")
    ids_or_null: Array = ids.where(any_valid(keys), NULL).values
    return ids_or_null


def _hashes_of_keys(keys: Frame, device: Device) -> Array:
    """Return hashes, uint64 (rows,); those of combinations are computed on the host, which alone has their bytes."""
    if len(keys.columns) == 1:
        return value_hashes(column_of(keys["key_0"]), SEED, device)
    categories = categories_of_keys(table_of(keys), len(keys.columns))
    hashes = np.append(hash_values(categories.dictionary, SEED), np.uint64(0))
    return device.to_device(hashes[categories.codes])

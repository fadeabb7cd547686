"""Categories as ids: by a vocabulary, learned or given, or by their hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field as Setting
from pydantic import model_validator

from whitewater.engines import memory
from whitewater.engines.device import Array, Device
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features.columns.byte_strings import LARGE
from whitewater.features.columns.categories import hash_value, row_hash, row_hash_one, scalar, value_hashes
from whitewater.features.columns.column import Block, Categories, Column, Lists, Numbers, Text, as_categories
from whitewater.features.columns.groups import NULL_GROUP, SEED, CategoryNumbers, Input, columns_of, name_of
from whitewater.features.operator import Fitted, Inputs, Mode, Operator, Row, RowFunction, Value, columns_in
from whitewater.features.operators.by_category import ROWS, CategoryStatistic, LearnsCategories, Sums, category_types
from whitewater.features.operators.by_column import ByColumn
from whitewater.features.schema import Field, category_type, type_from_name
from whitewater.tables.arrow_arrays import one_array, to_arrow, to_numpy

NULL, OUT_OF_VOCABULARY = 1, 2
TABLE, TAG = "vocabulary", "categorical"
Given = str | tuple[str, ...] | tuple[int, ...]


class Categorify(LearnsCategories):
    """The id of a category, by how often it occurs.

    Id 0 is padding of lists, 1 is null and NaN, and ids from 2 on are values out of the vocabulary. Then comes the
    vocabulary, by descending frequency and then ascending value (text by its UTF-8 bytes). Ids depend only on the
    values and their counts, not on the order of rows, partitions, the device or memory.

    A value is out of the vocabulary if it is absent from the data fitted on, or too rare there. Its id is 2, or with
    ``num_buckets`` it is ``2 + hash % num_buckets``, where the hash is XXH64 as in `HashBucket`.

    Input: text, integers of any width, or lists of them. A vocabulary of text refuses integers, and vice versa. Output:
    int32, or int64 if ids need it; lists stay lists. The property ``cardinality`` is above all ids.

    With ``encode_type="joint"``, ``["A", ["B", "C"]]`` gives A its own vocabulary, and B and C one for both, with added
    counts. With ``"combo"`` it gives A and ``B_C``, whose categories are combinations of values of B and C; a
    combination is null only if all of its values are.

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import Categorify
    >>> workflow = Workflow(["city"] >> Categorify()).fit({"city": ["Rome", "Oslo", "Rome"]})
    >>> workflow.transform({"city": ["Rome", "Oslo", "Lima", None]})["city"].to_pylist()
    [3, 4, 2, 1]
    """

    output_pattern: ClassVar[str] = "{column}"
    freq_threshold: int = Setting(0, ge=0, description="Values with fewer rows are out of the vocabulary.")
    max_size: int = Setting(
        0, ge=0, description="Maximum number of ids, including padding, null and out of vocabulary; 0: no limit."
    )
    num_buckets: int | None = Setting(
        None, ge=1, lt=2**62, description="Number of ids for values out of the vocabulary, by hash; null: one."
    )
    encode_type: Literal["joint", "combo"] = Setting(
        "joint", description="Whether a list of columns shares a vocabulary, or becomes one column of combinations."
    )
    vocabs: dict[str, Given] | None = Setting(
        None,
        description="Given vocabularies, by name of column, or of group joined by _: values in the order of their ids, "
        "or a Parquet file with them in its first column; freq_threshold and max_size do not apply.",
    )

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.freq_threshold and self.max_size:
            raise ConfigError("Categorify: freq_threshold and max_size both limit the vocabulary. Set one to 0.")
        if self.max_size and self.max_size <= self.first:
            raise ConfigError(
                f"Categorify: max_size {self.max_size} leaves no id for a value: {self.first} are reserved. Raise it."
            )
        return self

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        outputs = []
        for sources in self.groups(inputs).values():
            self.category_types(sources, fields)
            for of in sources:
                field = fields[of] if isinstance(of, str) else Field(name_of(of), pa.int64())
                outputs.append(replace(id_field(field, self.first), properties={}))
        return outputs

    def statistics(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[CategoryStatistic]:
        groups, vocabs = self.groups(inputs), self.vocabs or {}
        if unknown := sorted(vocabs.keys() - groups.keys()):
            raise ConfigError(
                f"Categorify: vocabs names {', '.join(unknown)}, but the vocabularies are {', '.join(groups)}. Name "
                "one of them."
            )
        statistics = super().statistics(inputs, fields)
        return [replace(each, given=_read_vocabulary(each, vocabs.get(each.name))) for each in statistics]

    def learn(self, statistic: CategoryStatistic, sums: Sums) -> Vocabulary:
        values, given = sums.categories.values(), statistic.given
        nulls, rows = int(sums.totals[ROWS][NULL_GROUP]), sums.totals[ROWS][1 : len(values) + 1]
        all_rows, kept = int(sums.totals[ROWS].sum()), np.arange(len(values))
        if given is None:
            frequent = np.flatnonzero(rows >= self.freq_threshold)
            kept = frequent[order_by_frequency(rows[frequent], values.take(to_arrow(frequent)))]
            kept = kept[: self.max_size - self.first] if self.max_size else kept
        facts = {
            "columns": [name_of(of) for of in statistic.sources], "kind": str(statistic.type),
            "num_buckets": self.num_buckets or 1, "values": len(kept), "rows": all_rows, "nulls": nulls,
            "out_of_vocabulary_rows": all_rows - nulls - int(rows[kept].sum()),
            "out_of_vocabulary_values": len(rows) - len(kept) if given is None else None,
        }  # fmt: skip
        return Vocabulary(facts, values.take(to_arrow(kept)), rows[kept])

    def refuse(self, statistic: CategoryStatistic, sums: Sums, mode: Mode) -> None:
        # It grows by doubling, and the old table is freed only after that.
        what = f"counting {sums.size:,} or more values of {statistic.name}"
        remedy = "Use HashBucket instead, which learns nothing, or give the vocabulary (vocabs)."
        memory.forecast(2 * sums.nbytes, what=what, remedy=remedy)

    def restore(self, inputs: Inputs, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Vocabulary:
        table, kind = tables[TABLE], type_from_name(facts["kind"])
        types = [kind, pa.int64()], [LARGE.get(kind, kind), pa.int64()]
        if table.schema.types not in types or len(table.drop_null()) != facts["values"]:
            raise IntegrityError(
                f"the vocabulary of {', '.join(facts['columns'])} has {table.num_rows} values of the types "
                f"{table.schema.types}, instead of {facts['values']} of {kind} and int64 without nulls. Fit again."
            )
        what = f"the vocabulary of {', '.join(facts['columns'])}, {len(table):,} values,"
        remedy = "Fit again with freq_threshold or max_size, or with HashBucket instead of Categorify."
        # The lookup table takes 40 bytes for each value, besides the value.
        memory.forecast(table["value"].nbytes + 40 * len(table), what=what, remedy=remedy)
        return Vocabulary(dict(facts), one_array(table["value"]), to_numpy(table["count"]))

    def describe(self, fields: Sequence[Field], fitted: Mapping[str, Fitted]) -> Sequence[Field]:
        vocabularies = cast("Mapping[str, Vocabulary]", fitted).values()
        cardinality = {name: each.cardinality for each in vocabularies for name in each.facts()["columns"]}
        return [with_cardinality(field, cardinality[field.name]) for field in fields]

    @property
    def first(self) -> int:
        """The id of the first value of a vocabulary."""
        return OUT_OF_VOCABULARY + (self.num_buckets or 1)

    def groups(self, inputs: Inputs) -> dict[str, Inputs]:
        groups = [(each,) if self.encode_type == "combo" else columns_of(each) for each in inputs]
        names, outputs = [*map(name_of, inputs)], [name_of(of) for sources in groups for of in sources]
        for name in [*names, *outputs]:
            if names.count(name) > 1 or outputs.count(name) > 1:
                raise ConfigError(
                    f"Categorify: {name} occurs more than once. A list of columns shares a vocabulary; for their "
                    "combination set encode_type to combo, and if two names are equal, rename one."
                )
        return dict(zip(names, groups, strict=True))

    def category_types(self, sources: Inputs, fields: Mapping[str, Field]) -> tuple[pa.DataType, ...]:
        if not isinstance(sources[0], str):
            return super().category_types(sources, fields)
        types = tuple(category_type(fields[name]) for name in columns_in(sources))
        if len(set(types)) > 1:
            raise ConfigError(
                f"Categorify: {', '.join(columns_in(sources))} cannot share a vocabulary: some are text and some are "
                "integers. Give each its own."
            )
        return types


class Vocabulary(Fitted):
    """Categories in the order of their ids, and their counts of rows, int64 (values,)."""

    def __init__(self, facts: dict[str, Any], values: pa.Array, counts: Array) -> None:
        self._facts, self._counts = facts, counts
        first = OUT_OF_VOCABULARY + facts["num_buckets"]
        self.ids = CategoryNumbers(values, NULL, first, OUT_OF_VOCABULARY, facts["num_buckets"])
        self.cardinality = first + len(values)

    def column(self, of: Input, block: Block, mode: Mode) -> Column:
        """Return the ids of the rows of a block, on the device, or of the items of their lists."""
        column, dtype = block[columns_of(of)[0]], id_type(self.cardinality)
        if isinstance(column, Lists):
            return Lists(column.offsets, Numbers(self.ids.of_rows(as_categories(column.values), dtype)))
        return Numbers(self.ids.of_block(of, block, mode, dtype))

    def of_row(self, of: Input) -> Callable[[Row], Any]:
        return self.ids.of_row(of)

    def facts(self) -> dict[str, Any]:
        return self._facts | {"cardinality": self.cardinality}

    def tables(self) -> dict[str, pa.Table]:
        values = self.ids.values
        values = values.cast(LARGE.get(type_from_name(self._facts["kind"]), values.type))
        return {TABLE: pa.table({"value": values, "count": to_arrow(self._counts)})}


def _read_vocabulary(statistic: CategoryStatistic, given: Given | None) -> pa.Array | None:
    """Return a given vocabulary, if any.

    Raises ConfigError if it is for a combination, has nulls, duplicates or another type; InputError if its file cannot
    be read.
    """
    if given is None:
        return None
    name, kind = statistic.name, statistic.type
    if pa.types.is_binary(kind):
        raise ConfigError(f"Categorify: vocabs cannot be given for {name}, a combination. Leave it out.")
    values = _read_file(Path(given)) if isinstance(given, str) else pa.array(given, None if given else kind)
    if category_type(Field(name, values.type)) == kind:
        values = values.cast(kind)
    if values.type != kind:
        raise ConfigError(f"Categorify: vocabs gives {name} values of type {values.type}, but it has {kind}.")
    if values.null_count or len(pc.unique(values)) < len(values):
        raise ConfigError(f"Categorify: vocabs gives {name} a null, or a value more than once. Remove it.")
    return values


def _read_file(path: Path) -> pa.Array:
    try:
        with pq.ParquetFile(path) as file:
            values = file.read([file.schema_arrow.names[0]]).column(0).combine_chunks()
            return values.cast(pa.string()) if pa.types.is_large_string(values.type) else values
    except (OSError, pa.ArrowException, IndexError) as error:
        raise InputError(f"Categorify: the vocabulary {path} cannot be read as Parquet: {error}.") from error


def order_by_frequency(counts: Array, values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the positions, int64 (values,), of values by descending count and then ascending value.

    Counts are int64 (values,), values distinct and string, binary or int64. Text is ordered by its UTF-8 bytes.
    """
    table = pa.table({"count": to_arrow(counts), "value": values})
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("value", "ascending")])
    return to_numpy(order).astype(np.int64)


def id_type(cardinality: int) -> npt.DTypeLike:
    """Return the NumPy type of ids below ``cardinality``: int32 if it holds them, else int64."""
    return np.int32 if cardinality <= 2**31 else np.int64


def id_field(field: Field, cardinality: int) -> Field:
    """Return the column of ids below ``cardinality`` for one of categories or lists; else raises ConfigError."""
    category_type(field)
    return with_cardinality(Field(field.name, field.type, field.tags), cardinality).with_tags(TAG)


def with_cardinality(field: Field, cardinality: int) -> Field:
    """Return a column, or one of lists, with ids below ``cardinality``."""
    type_ = pa.from_numpy_dtype(id_type(cardinality))
    properties = {**field.properties, "cardinality": cardinality}
    return replace(field, type=pa.list_(type_) if pa.types.is_list(field.type) else type_, properties=properties)


class HashBucket(ByColumn):
    """The bucket of a category: ``hash % num_buckets``.

    The hash is XXH64, seed 0, of a text's UTF-8 bytes or an integer's 8 little-endian bytes. Different categories may
    share a bucket. Null and NaN get ``num_buckets``, which no value has, so the cardinality is ``num_buckets + 1``.

    Input: text, integers, or lists of them. Output: int32 (int64 where ``num_buckets`` needs it); lists stay lists.
    """

    num_buckets: int = Setting(ge=1, lt=2**62, description="Number of buckets.")

    def field(self, field: Field) -> Field:
        return id_field(field, self.num_buckets + 1)

    def column(self, name: str, column: Column, fitted: Fitted | None, device: Device) -> Column:
        if isinstance(column, Lists):
            return Lists(column.offsets, self._buckets(column.values, Device()))
        return self._buckets(column, device)

    def _buckets(self, column: Numbers | Categories | Text, device: Device) -> Numbers:
        column = _hashable(column)
        buckets = value_hashes(column, SEED, device) % np.uint64(self.num_buckets)
        valid = column.codes >= 0 if isinstance(column, Categories) else column.valid
        if valid is not None:
            buckets = device.xp.where(valid, buckets, np.uint64(self.num_buckets))
        return Numbers(buckets.astype(id_type(self.num_buckets + 1)))

    def value(self, name: str, fitted: Fitted | None) -> Callable[[Any], Any]:
        def bucket(value: Value) -> Value:
            if isinstance(value, list | tuple):
                return [bucket(each) for each in value]
            category = scalar(value, name)
            return self.num_buckets if category is None else hash_value(category, SEED) % self.num_buckets

        return bucket


class HashedCross(Operator):
    """The bucket of a combination of categories: ``hash % num_buckets``, where the hash depends on the order.

    ``[["A", "B"]] >> HashedCross(num_buckets=1000)`` gives the column ``A_X_B``. The hashes of the parts are mixed in
    order (`whitewater.features.columns.categories.row_hash`), so (a, b) and (b, a) differ, as do (a, a) and (b, b).

    Input: combinations of columns of text or integers. Output: int32 (int64 where ``num_buckets`` needs it) in
    [0, num_buckets). Null and NaN are values of their own.
    """

    takes_combinations: ClassVar[bool] = True
    num_buckets: int = Setting(ge=1, lt=2**62, description="Number of buckets.")

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        type_ = pa.from_numpy_dtype(id_type(self.num_buckets))
        crosses = _crosses(inputs)
        for cross in crosses.values():
            category_types(self, cross, fields)
        return [Field(name, type_, (TAG,), {"cardinality": self.num_buckets}) for name in crosses]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: Mode) -> Block:
        outputs = {}
        for name, cross in _crosses(inputs).items():
            hashes = row_hash([_hashable(block[column]) for column in cross], SEED, mode.device)
            outputs[name] = Numbers((hashes % np.uint64(self.num_buckets)).astype(id_type(self.num_buckets)))
        return outputs

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        crosses = _crosses(inputs).items()
        return lambda row: {
            name: row_hash_one([scalar(row[each], each) for each in cross], SEED) % self.num_buckets
            for name, cross in crosses
        }


def _hashable(column: Any) -> Any:
    """Return a column of floats, which has only nulls, as categories, and any other as it is."""
    is_float = isinstance(column, Numbers) and column.values.dtype.kind == "f"
    return as_categories(column) if is_float else column


def _crosses(inputs: Inputs) -> dict[str, tuple[str, ...]]:
    """Return the combinations by the name of their output."""
    if columns := [each for each in inputs if isinstance(each, str)]:
        raise ConfigError(
            f'HashedCross takes combinations, and {columns[0]!r} is a column. Write [["A", "B"]] for that of A and B.'
        )
    return {"_X_".join(columns_of(each)): columns_of(each) for each in inputs}

"""Categories as buckets of their hashes, of which nothing is learned: one by one, or combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.engines.device import Device
from whitewater.errors import ConfigError
from whitewater.features.categories.hashing import hash_value, row_hash, row_hash_one, value_hashes
from whitewater.features.categories.values import TAG, as_categories, category_type, id_field, id_type, scalar
from whitewater.features.columns.column import Block, Categories, Column, Lists, Numbers
from whitewater.features.operator import Operator
from whitewater.features.operators.by_column import ByColumn
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.features.frames import Text
    from whitewater.features.operator import ApplyMode, Fitted, Inputs, Row, RowFunction, Value

SEED = 0
SEPARATOR = "_X_"


class HashBucket(ByColumn):
    """The bucket of a category: ``hash % num_buckets``.

    The hash is XXH64, seed 0, of a text's UTF-8 bytes or an integer's 8 little-endian bytes. It is the
    same on both devices and for one row. Different categories may share a bucket.

    Input: text, integers, or lists of them. Output: int32 (int64 where ``num_buckets`` needs it); lists stay lists.
    Null and NaN: ``num_buckets``, an id that no value has, so the cardinality is ``num_buckets + 1``.
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
        known = column.codes >= 0 if isinstance(column, Categories) else column.valid
        if known is not None:
            buckets = device.xp.where(known, buckets, np.uint64(self.num_buckets))
        return Numbers(buckets.astype(id_type(self.num_buckets + 1)))

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
            if pa.types.is_list(fields[name].type):
                raise ConfigError(f"column {name} has lists, which HashedCross cannot cross. Leave it out.")
        return [Field(name, type_, (TAG,), {"cardinality": self.num_buckets}) for name in crosses]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], mode: ApplyMode) -> Block:
        made = {}
        for name, cross in _crosses(inputs).items():
            hashes = row_hash([_hashable(block[each]) for each in cross], SEED, mode.device)
            made[name] = Numbers((hashes % np.uint64(self.num_buckets)).astype(id_type(self.num_buckets)))
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        crosses = _crosses(inputs)

        def buckets(row: Row) -> dict[str, Value]:
            return {
                name: row_hash_one([scalar(row[each], each) for each in cross], SEED) % self.num_buckets
                for name, cross in crosses.items()
            }

        return buckets


def _hashable(column: Any) -> Any:
    """Return a column of floats, which is one of nulls only, as categories, and others as they are."""
    is_float = isinstance(column, Numbers) and column.values.dtype.kind == "f"
    return as_categories(column) if is_float else column


def _crosses(inputs: Inputs) -> dict[str, tuple[str, ...]]:
    """Return combinations by the names of the columns that are made of them."""
    for each in inputs:
        if isinstance(each, str) or len(each) < 2:
            raise ConfigError(
                f'HashedCross was given {each!r}, which is not a combination. Write [["A", "B"]] for that of A and B.'
            )
    return {SEPARATOR.join(each): each for each in inputs if not isinstance(each, str)}

"""Categories as buckets of their hashes, of which nothing is learned: one by one, or combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.errors import ConfigError
from whitewater.features.categories.hashing import hash_value, hash_values, row_hash, row_hash_one, value_hashes
from whitewater.features.categories.ids import TAG, category_type, id_field, id_type, ids_of_rows, is_list, scalar
from whitewater.features.categories.values import as_categories
from whitewater.features.columns.column import Block, Column, Numbers
from whitewater.features.frames import any_known, column_of, keys_of, series_of
from whitewater.features.operator import Operator
from whitewater.features.operators.by_column import ByColumn, column_names
from whitewater.features.schema import Field

if TYPE_CHECKING:
    from whitewater.engines.device import Device
    from whitewater.features.frames import Frame, Series
    from whitewater.features.operator import Applying, Fitted, Inputs, Row, RowFunction, Value

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
        def buckets(values: pa.Array) -> Any:
            return hash_values(values, SEED) % np.uint64(self.num_buckets)

        return ids_of_rows(column, buckets, null=self.num_buckets, cardinality=self.num_buckets + 1)

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
            categories = [as_categories(block[each]) for each in cross]
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
                f'HashedCross was given {each!r}, which is not a combination. Write [["A", "B"]] for that of A and B.'
            )
    return {SEPARATOR.join(each): each for each in inputs if not isinstance(each, str)}

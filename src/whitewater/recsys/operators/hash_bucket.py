"""Categories as one of a fixed number of buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field as Setting

from whitewater.recsys.category_ids import (
    id_field,
    ids_of_rows,
    row_of_ids,
    scalar,
    single_columns,
)
from whitewater.recsys.hashing import hash_value, hash_values
from whitewater.recsys.operator import Operator

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.devices.columns import Block
    from whitewater.recsys.graph import Inputs
    from whitewater.recsys.operator import Applying, Fitted, RowFunction, Value
    from whitewater.recsys.schema import Field

SEED = 0


class HashBucket(Operator):
    """The bucket of a category: ``hash % num_buckets``.

    The hash is XXH64, seed 0, of a text's UTF-8 bytes or an integer's 8 little-endian bytes. It is taken of a
    dictionary on the host, so it is the same for both devices and for one row. Different categories may share a bucket.

    Input: text, integers, or lists of them. Output: int32 (int64 where ``num_buckets`` needs it); lists stay lists.
    Null and NaN: ``num_buckets``, an id that no value has, so the cardinality is ``num_buckets + 1``. Unseen
    categories: there are none, since nothing is learnt.
    """

    num_buckets: int = Setting(ge=1, lt=2**62, description="Number of buckets.")

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        return [id_field(fields[name], self.num_buckets + 1) for name in self._columns(inputs)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        del fitted
        options: dict[str, Any] = {"null": self.num_buckets, "cardinality": self.num_buckets + 1}
        return {
            name: ids_of_rows(block[name], self._buckets, device=applying.device, **options)
            for name in self._columns(inputs)
        }

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        del fitted
        names = self._columns(inputs)
        return row_of_ids(names, {name: partial(self._bucket, name=name) for name in names})

    def _columns(self, inputs: Inputs) -> tuple[str, ...]:
        return single_columns(inputs, type(self).__name__)

    def _buckets(self, values: pa.Array) -> npt.NDArray[Any]:
        return hash_values(values, SEED) % np.uint64(self.num_buckets)

    def _bucket(self, value: Value, *, name: str) -> int:
        known = scalar(value, name)
        return self.num_buckets if known is None else hash_value(known, SEED) % self.num_buckets

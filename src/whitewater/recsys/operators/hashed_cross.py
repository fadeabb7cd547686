"""Combinations of categories as one of a fixed number of buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import Field as Setting

from whitewater.devices.columns import Numbers
from whitewater.errors import ConfigError
from whitewater.recsys.category_ids import TAG, category_type, id_type, is_list, known_categories, scalar
from whitewater.recsys.hashing import row_hash, row_hash_one
from whitewater.recsys.operator import Operator
from whitewater.recsys.schema import Field

if TYPE_CHECKING:
    from whitewater.devices.columns import Block, Column
    from whitewater.recsys.graph import Inputs
    from whitewater.recsys.operator import Applying, Fitted, Row, RowFunction, Value

SEED = 0
SEPARATOR = "_X_"


class HashedCross(Operator):
    """The bucket of a combination of categories: ``hash % num_buckets``, where the hash depends on the order.

    ``[["A", "B"]] >> HashedCross(num_buckets=1000)`` gives the column ``A_X_B``. The hashes of the parts are mixed one
    after the other (`whitewater.recsys.hashing.row_hash`), so (a, b) and (b, a) differ, as do (a, a) and (b, b).

    Input: combinations of columns of text or integers. Output: int32 (int64 where ``num_buckets`` needs it) in
    [0, num_buckets). A null or NaN part is a value of its own, whatever the others are. Unseen combinations: there are
    none, since nothing is learnt.
    """

    num_buckets: int = Setting(ge=1, lt=2**62, description="Number of buckets.")

    @property
    def takes_combinations(self) -> bool:
        return True

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> Sequence[Field]:
        return [self._field(cross, fields) for cross in _crosses(inputs)]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        del fitted
        return {
            SEPARATOR.join(cross): self._buckets([block[name] for name in cross], applying)
            for cross in _crosses(inputs)
        }

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        del fitted
        crosses = [(SEPARATOR.join(cross), cross) for cross in _crosses(inputs)]

        def buckets(row: Row) -> dict[str, Value]:
            return {name: self._bucket(row, cross) for name, cross in crosses}

        return buckets

    def _field(self, cross: tuple[str, ...], fields: Mapping[str, Field]) -> Field:
        for name in cross:
            category_type(fields[name])
            if is_list(fields[name].type):
                raise ConfigError(f"column {name} has lists, which HashedCross cannot cross. Leave it out.")
        type_ = pa.from_numpy_dtype(id_type(self.num_buckets))
        return Field(SEPARATOR.join(cross), type_, (TAG,), {"cardinality": self.num_buckets})

    def _buckets(self, columns: Sequence[Column], applying: Applying) -> Numbers:
        categories = [known_categories(column, applying.device) for column in columns]
        hashes = row_hash(categories, SEED, applying.device)
        return Numbers((hashes % np.uint64(self.num_buckets)).astype(id_type(self.num_buckets)))

    def _bucket(self, row: Row, cross: tuple[str, ...]) -> int:
        return row_hash_one([scalar(row[name], name) for name in cross], SEED) % self.num_buckets


def _crosses(inputs: Inputs) -> list[tuple[str, ...]]:
    for each in inputs:
        if isinstance(each, str) or len(each) < 2:
            raise ConfigError(
                f'HashedCross was given {each!r}, which is no combination. Write [["A", "B"]] for that of A and B.'
            )
    return [each for each in inputs if not isinstance(each, str)]

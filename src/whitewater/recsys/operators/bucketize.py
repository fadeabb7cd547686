"""Numbers as the number of the bucket that they are in."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, FiniteFloat
from pydantic import Field as Parameter

from whitewater.devices.columns import Numbers
from whitewater.errors import ConfigError
from whitewater.recsys.categories import as_floats
from whitewater.recsys.graph import Inputs
from whitewater.recsys.operator import Applying, Fitted, Operator, Row, RowFunction
from whitewater.recsys.operators.numeric import column_names, is_null, number_fields, numbers_of

if TYPE_CHECKING:
    from whitewater.devices.columns import Block
    from whitewater.recsys.schema import Field


def _ascending(boundaries: tuple[float, ...]) -> tuple[float, ...]:
    if any(left >= right for left, right in pairwise(boundaries)):
        raise ValueError("boundaries must ascend, each above the one before")
    return boundaries


Boundaries = Annotated[tuple[FiniteFloat, ...], Parameter(min_length=1), AfterValidator(_ascending)]


class Bucketize(Operator):
    """The number of boundaries that a value has reached: 0 below the first one, len(boundaries) from the last one on.

    Bucket *i* is boundaries[i - 1] <= x < boundaries[i], or with ``right`` boundaries[i - 1] < x <= boundaries[i], as
    numpy.digitize numbers them. Null stays null: put FillMissing before it where null is to have a bucket. Minus
    infinity is in the first bucket and infinity in the last one. Type: int32; the property ``cardinality`` is the
    number of buckets.
    """

    boundaries: Boundaries | dict[str, Boundaries] = Parameter(
        description="Ascending boundaries of all columns, or those of each by its name."
    )
    right: bool = Parameter(False, description="Whether a boundary belongs to the bucket that ends with it.")

    def _of(self, name: str) -> tuple[float, ...]:
        return self.boundaries[name] if isinstance(self.boundaries, dict) else self.boundaries

    def output(self, inputs: Inputs, fields: Mapping[str, Field]) -> list[Field]:
        """Return each input as int32.

        Raises
        ------
        ConfigError
            If a column has no boundaries, or boundaries have no column.
        """
        given = number_fields(self, inputs, fields)
        if isinstance(self.boundaries, dict):
            _refuse_difference({field.name for field in given}, set(self.boundaries))
        return [
            replace(
                field, type=pa.int32(), properties={**field.properties, "cardinality": len(self._of(field.name)) + 1}
            )
            for field in given
        ]

    def transform(self, inputs: Inputs, block: Block, fitted: Mapping[str, Fitted], applying: Applying) -> Block:
        """Return the buckets."""
        del fitted
        device, xp = applying.device, applying.device.xp
        made = {}
        for name in column_names(self, inputs):
            values = as_floats(numbers_of(self, name, block[name]), device)
            boundaries = device.from_host(np.array(self._of(name), np.float64))
            buckets = xp.searchsorted(boundaries, values, side="left" if self.right else "right")
            made[name] = Numbers(buckets.astype(np.int32), ~xp.isnan(values))
        return made

    def row(self, inputs: Inputs, fitted: Mapping[str, Fitted]) -> RowFunction:
        """Return the bucket of each value."""
        del fitted
        bisect = bisect_left if self.right else bisect_right
        boundaries = [(name, self._of(name)) for name in column_names(self, inputs)]

        def compute(row: Row) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, bounds in boundaries:
                value: Any = row[name]
                made[name] = None if is_null(value) else bisect(bounds, float(value))
            return made

        return compute


def _refuse_difference(columns: set[str], bounded: set[str]) -> None:
    if without := sorted(columns - bounded):
        raise ConfigError(f"Bucketize has no boundaries for {', '.join(without)}. Add them to boundaries.")
    if unused := sorted(bounded - columns):
        raise ConfigError(
            f"Bucketize has boundaries for {', '.join(unused)}, which it is not given. Add the columns, or take the "
            "boundaries away."
        )

"""The feature matrix, float64 (rows, features) with NaN for null, and the forms in which models use it.

The matrix is small, so it is sent to each worker once; models make their own form from it:

======== ================== ==================================================== ==========================
feature  in the matrix      linear model                                         forest
======== ================== ==================================================== ==========================
category number of a level  one column for each level (one-hot), all 0 for null  the number; -1 for null
number   its value          sign(x) log(1 + abs(x)), 0 for null                  the value; -1 for null
======== ================== ==================================================== ==========================

A column "<feature> is null" lets the linear model tell null from 0. Nothing depends on other rows, so a row has the
same features in every sample, fold and partition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from whitewater.engines import Array, Device

NULL_LEVEL = -1.0


@dataclass(frozen=True)
class Features:
    """Names of features in the order of the matrix; a subclass defines the levels of its categories."""

    features: tuple[str, ...]
    never_null: ClassVar[frozenset[str]] = frozenset()

    def levels(self, feature: str) -> Mapping[float, str]:
        """Return the names of a category's levels by number; empty for a number."""
        return {}

    def linear_columns(self) -> tuple[str, ...]:
        """Return the names of the columns of `linear`."""
        return tuple(name for name, _ in self._columns(np.empty((0, len(self.features))), np))

    def linear(self, features: Array, device: Device) -> Array:
        """Return the form for linear models: float64 (rows, `linear_columns`), Fortran order, finite."""
        result: Array = device.xp.empty((len(features), len(self.linear_columns())), order="F")
        for position, (_, column) in enumerate(self._columns(features, device.xp)):
            result[:, position] = column
        return result

    def _columns(self, features: Array, xp: ModuleType) -> Iterator[tuple[str, Array]]:
        for position, feature in enumerate(self.features):
            values, levels = xp.ascontiguousarray(features[:, position]), self.levels(feature)
            null = xp.isnan(values)
            yield from ((f"{feature} {name}", values == level) for level, name in levels.items())
            if not levels:
                yield feature, xp.where(null, 0.0, xp.copysign(xp.log1p(xp.abs(values)), values))
            if feature not in self.never_null:
                yield f"{feature} is null", null

    def tree(self, features: Array, device: Device) -> Array:
        """Return the form for forests: float32 (rows, features), C order, null as -1."""
        return device.xp.where(device.xp.isnan(features), NULL_LEVEL, features).astype(device.xp.float32)

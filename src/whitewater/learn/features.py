"""What models see of a row: a matrix of features, and the forms in which models take it.

The *feature matrix* is float64 (rows, features), NaN for null. It is small, so it travels to the workers once; a model
makes its own form from it:

======== ================== ==================================================== ==========================
feature  in the matrix      linear model                                         forest
======== ================== ==================================================== ==========================
category number of a level  one column for each level (one-hot), all 0 for null  the number; -1 for null
number   its value          sign(x) log(1 + abs(x)), 0 for null                  the value; -1 for null
======== ================== ==================================================== ==========================

A column "<feature> is null" lets the linear model tell null from 0. No vocabulary and no null policy depends on the
data, so a row has the same features in whichever sample, fold or partition it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from whitewater.engines import Array, Device

NULL_LEVEL = -1.0


@dataclass(frozen=True)
class Features:
    """Names of features in the order of the matrix; a subclass knows the levels of its categories."""

    features: tuple[str, ...]
    never_null: ClassVar[frozenset[str]] = frozenset()

    def levels(self, feature: str) -> Mapping[float, str]:
        """Return the numbers of a category and their names; empty for a number."""
        return {}

    def linear_columns(self) -> tuple[str, ...]:
        """Return the names of the columns of `linear`."""
        names: list[str] = []
        for feature in self.features:
            levels = self.levels(feature)
            names += [f"{feature} {name}" for name in levels.values()] or [feature]
            names += [] if feature in self.never_null else [f"{feature} is null"]
        return tuple(names)

    def linear(self, features: Array, device: Device) -> Array:
        """Return the form of a feature matrix that linear models take.

        It is float64 (trips, columns) in Fortran order, finite; the columns are those of `linear_columns`.
        """
        xp = device.xp
        result: Array = xp.empty((len(features), len(self.linear_columns())), xp.float64, order="F")
        filled = 0
        for position, feature in enumerate(self.features):
            values = xp.ascontiguousarray(features[:, position])
            null = xp.isnan(values)
            for level in self.levels(feature):
                result[:, filled] = values == level
                filled += 1
            if not self.levels(feature):
                result[:, filled] = xp.where(null, 0.0, xp.copysign(xp.log1p(xp.abs(values)), values))
                filled += 1
            if feature not in self.never_null:
                result[:, filled] = null
                filled += 1
        return result

    def tree(self, features: Array, device: Device) -> Array:
        """Return the form of a feature matrix that forests take: float32 (trips, features) in C order, null as -1."""
        xp = device.xp
        result: Array = xp.where(xp.isnan(features), NULL_LEVEL, features).astype(xp.float32)
        return result

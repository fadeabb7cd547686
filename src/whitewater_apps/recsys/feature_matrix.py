"""The features of a folder that are numbers, as a matrix for models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.engines import memory
from whitewater.errors import InputError
from whitewater.features.categories.values import as_floats
from whitewater.features.columns.parquet import read_columns
from whitewater.features.feature_folder import FeatureFolder
from whitewater.features.log_folder import LABEL, ROW_ID

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

_CELL = np.dtype(np.float32)


@dataclass(frozen=True)
class FeatureMatrix:
    """``X`` float32 (rows, features), NaN where a feature is null; ``y`` float32 (rows,), 0 or 1; on the device.

    ``of`` are the rows of the folder, of which these were drawn.
    """

    X: Array
    y: Array
    of: int


@dataclass(frozen=True)
class Parts:
    """The three parts of the data, with the same features in the same order."""

    names: tuple[str, ...]
    train: FeatureMatrix
    valid: FeatureMatrix
    test: FeatureMatrix

    def choose(self, names: Sequence[str], device: Device) -> Parts:
        """Return some of the features."""
        places = device.to_device(np.array([self.names.index(name) for name in names]))
        chosen = [FeatureMatrix(part.X[:, places], part.y, part.of) for part in (self.train, self.valid, self.test)]
        return Parts(tuple(names), *chosen)


def groups_of(folder: FeatureFolder) -> dict[str, list[str]]:
    """Return the features that are numbers by their group, the last tag of each; features without one are ``other``.

    Raises InputError if there are none.
    """
    groups: dict[str, list[str]] = {}
    for name in numeric_columns(folder):
        tags = folder.schema[name].tags
        groups.setdefault(tags[-1] if tags else "other", []).append(name)
    if not groups:
        raise InputError(f"{folder.path} has no features that are numbers. Check recsys.fit.features.")
    return groups


def numeric_columns(folder: FeatureFolder) -> list[str]:
    """Return the names of the features that are numbers, one a row: not lists, not the label, not the key."""
    return [
        field.name
        for field in folder.schema
        if field.name not in (LABEL, ROW_ID)
        and pa.types.is_primitive(field.type)
        and not pa.types.is_temporal(field.type)
    ]


def load_matrix(folder: FeatureFolder, names: Sequence[str], device: Device, *, maximum_rows: int) -> FeatureMatrix:
    """Read features that are numbers, and labels, of at most so many rows: of more every second, third ... is taken.

    Raises InputError if the folder has no label; ResourceError if the arrays do not fit into memory.
    """
    if LABEL not in folder.schema.names:
        raise InputError(f"{folder.path} has no column {LABEL!r}, so there is nothing to learn.")
    step = max(1, -(-folder.rows // maximum_rows))
    rows = len(range(0, folder.rows, step))
    memory.forecast(
        2 * rows * (len(names) + 1) * _CELL.itemsize,
        what=f"a matrix of {rows:,} rows and {len(names)} features",
        remedy="Lower recsys.train.maximum_rows.",
        device=device,
    )
    xp = device.xp
    X, y = xp.empty((rows, len(names)), _CELL), xp.empty(rows, _CELL)
    seen = filled = 0
    for path, row_group, count in folder.row_groups():
        block = read_columns(device, path, row_group, [*names, LABEL])
        first = -seen % step
        taken = len(range(first, count, step))
        for place, name in enumerate(names):
            X[filled : filled + taken, place] = as_floats(block[name], device)[first::step]
        y[filled : filled + taken] = as_floats(block[LABEL], device)[first::step]
        seen, filled = seen + count, filled + taken
    return FeatureMatrix(X, y, folder.rows)

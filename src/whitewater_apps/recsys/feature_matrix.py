"""The features of a folder that are numbers, as a matrix for models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.engines import memory
from whitewater.errors import InputError
from whitewater.features.feature_folder import CATEGORICAL, CONTINUOUS, LABEL, FeatureFolder
from whitewater.features.loader import Batches

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device

_CELL, _CELLS = np.dtype(np.float32), (CONTINUOUS, CATEGORICAL)


@dataclass(frozen=True)
class FeatureMatrix:
    """``X`` float32 (rows, features), NaN where a feature is null; ``y`` float32 (rows,), 0 or 1; on the device.

    ``of`` are the rows of the folder, of which these were drawn.
    """

    X: Array
    y: Array
    of: int


def groups_of(folder: FeatureFolder) -> dict[str, list[str]]:
    """Return the features that are numbers or ids, one a row, by their group; those without one are ``other``.

    The group is the last tag; lists, label and key are in none. Raises InputError if there are no features.
    """
    groups: dict[str, list[str]] = {}
    loaded = {name for matrix in folder.matrices if matrix.name in _CELLS for name in matrix.columns}
    for field in folder.schema:
        if field.name in loaded and not pa.types.is_list(field.type):
            groups.setdefault(field.tags[-1] if field.tags else "other", []).append(field.name)
    if not groups:
        raise InputError(f"{folder.path} has no features that are numbers. Check recsys.fit.features.")
    return groups


def load_matrix(folder: FeatureFolder, names: Sequence[str], device: Device, *, maximum_rows: int) -> FeatureMatrix:
    """Read features that are numbers, and labels, of at most so many rows: of more every second, third ... is taken.

    Raises InputError if the folder has no label; ResourceError if the arrays do not fit into memory.
    """
    labels = [field.name for field in folder.schema if LABEL in field.tags]
    if not labels:
        raise InputError(f"{folder.path} has no column with the tag {LABEL!r}, so there is nothing to learn.")
    step = max(1, -(-folder.rows // maximum_rows))
    rows = len(range(0, folder.rows, step))
    memory.forecast(
        2 * rows * (len(names) + 1) * _CELL.itemsize,
        what=f"a matrix of {rows:,} rows and {len(names)} features",
        remedy="Lower recsys.train.maximum_rows.",
        device=device,
    )
    xp, batches = device.xp, Batches(folder, columns=[*names, *labels], shuffle=False)
    found = {array: batches.columns[array] for array in _CELLS if array in batches.columns}
    places = device.to_device(np.array([names.index(name) for columns in found.values() for name in columns]))
    X, y = xp.empty((rows, len(names)), _CELL), xp.empty(rows, _CELL)
    seen = filled = 0
    for batch in batches.epoch():
        drawn = slice(-seen % step, None, step)
        label = batch[LABEL][drawn]
        numbers = np.concatenate([batch[array][drawn] for array in found], axis=1, dtype=_CELL)
        X[filled : filled + len(label), places] = device.to_device(numbers)
        y[filled : filled + len(label)] = device.to_device(label)
        seen, filled = seen + len(batch[LABEL]), filled + len(label)
    return FeatureMatrix(X, y, folder.rows)

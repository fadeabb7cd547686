"""Features and labels of a folder as arrays that models take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater import memory
from whitewater.devices.columns import Numbers
from whitewater.errors import InputError

if TYPE_CHECKING:
    from whitewater.devices.protocol import Array, Device
    from whitewater.recsys.feature_folder import FeatureFolder

LABEL, KEY = "label", "row_id"
_CELL = np.dtype(np.float32)


@dataclass(frozen=True)
class FeatureMatrix:
    """``X`` float32 (rows, features), NaN where a feature is null; ``y`` float32 (rows,), 0 or 1; on the device.

    ``of`` are the rows of the folder, of which these were drawn.
    """

    X: Array
    y: Array
    of: int


def numeric_columns(folder: FeatureFolder) -> list[str]:
    """Return the names of the features that are numbers, one a row: not lists, not the label, not the key."""
    return [
        field.name
        for field in folder.schema
        if field.name not in (LABEL, KEY) and pa.types.is_primitive(field.type) and not pa.types.is_temporal(field.type)
    ]


def load_matrix(folder: FeatureFolder, names: Sequence[str], device: Device, *, maximum_rows: int) -> FeatureMatrix:
    """Read features, and labels.

    Parameters
    ----------
    folder
        Where they are.
    names
        Features that are numbers.
    device
        Where the arrays are to be.
    maximum_rows
        Rows at most: of more every second, every third ... is taken.

    Raises
    ------
    InputError
        If the folder has no label.
    ResourceError
        If the arrays do not fit into memory.
    """
    if LABEL not in folder.schema.names:
        raise InputError(f"{folder.path} has no column {LABEL!r}, so there is nothing to learn.")
    step = max(1, -(-folder.rows // maximum_rows))
    rows = len(range(0, folder.rows, step))
    memory.forecast(
        2 * rows * (len(names) + 1) * _CELL.itemsize,
        what=f"a matrix of {rows:,} rows and {len(names)} features",
        remedy="Lower recsys.train.maximum_rows.",
    )
    xp = device.xp
    X, y = xp.empty((rows, len(names)), _CELL), xp.empty(rows, _CELL)
    seen = filled = 0
    for path, row_group, count in folder.row_groups():
        block = device.read_columns(path, row_group, [*names, LABEL])
        first = -seen % step
        taken = len(range(first, count, step))
        for place, name in enumerate(names):
            X[filled : filled + taken, place] = _floats(block[name], device)[first::step]
        y[filled : filled + taken] = _floats(block[LABEL], device)[first::step]
        seen, filled = seen + count, filled + taken
    return FeatureMatrix(X, y, folder.rows)


def _floats(column: object, device: Device) -> Array:
    if not isinstance(column, Numbers):
        raise InputError("a feature is not of numbers, as the folder's description says it is. Run features again.")
    values: Array = column.values.astype(_CELL)
    return values if column.valid is None else device.xp.where(column.valid, values, np.nan)

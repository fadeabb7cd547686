"""Reading `vertices.parquet`, the table of the vertices: a row a vertex, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def read_column(vertices: Path, name: str) -> npt.NDArray[Any]:
    """Return a column of numbers of `vertices.parquet`, a row a vertex, in the order of their numbers."""
    import pyarrow.parquet as pq

    column: npt.NDArray[Any] = pq.read_table(vertices, columns=[name])[name].to_numpy()
    return column


def read_names(vertices: Path, rows: Sequence[int]) -> list[str]:
    """Return the names of some rows of `vertices.parquet`, or their ids where vertices have no names.

    Only the row groups that hold them are read.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(vertices)
    column = "name" if "name" in file.schema_arrow.names else "vertex"
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    ends = np.cumsum(sizes)
    found: dict[int, str] = {}
    for group in sorted(set(np.searchsorted(ends, rows, side="right").tolist())):
        values = file.read_row_group(group, columns=[column])[column]
        first = int(ends[group]) - sizes[group]
        found |= {row: str(values[row - first].as_py()) for row in rows if first <= row < ends[group]}
    return [found[row] for row in rows]

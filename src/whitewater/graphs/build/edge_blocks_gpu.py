"""Columns of a row group of edges on a GPU, read by cuDF."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cudf

if TYPE_CHECKING:
    from whitewater.engines import Array
    from whitewater.io.folder import RowGroup


def gpu_edge_columns(group: RowGroup, names: list[str]) -> list[Array]:
    """Return columns of a row group; see `whitewater.graphs.build.edge_blocks`.

    Raises ValueError if the file is damaged or a column has a null.
    """
    try:
        # By default cuDF reads columns off the names of directories.
        frame = cudf.read_parquet(
            group.path,
            columns=names,
            row_groups=[group.number],
            use_pandas_metadata=False,
            dataset_kwargs={"partitioning": None},
        )
    except RuntimeError as error:
        # libcudf has one error for everything.
        raise ValueError(f"row group {group.number}: {error}") from error
    for name in names:
        if frame[name].has_nulls:
            raise ValueError(f"column {name!r} has a null")
    return [frame[name].to_cupy() for name in names]

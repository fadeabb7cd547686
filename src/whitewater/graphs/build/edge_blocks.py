"""Edges of a row group as arrays, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.graphs.edges_folder import FORMAT
from whitewater.tables.arrow_arrays import to_numpy

if TYPE_CHECKING:
    from whitewater.engines import Array
    from whitewater.io.folder import RowGroup

# Sources and targets, int64 (edges,), and weights, float64 (edges,), if there are any.
Block = tuple["Array", "Array", "Array | None"]
TYPES = {"source": pa.int64(), "target": pa.int64(), "weight": pa.float64()}
_BUFFER_BYTES = 1 << 20


def edge_blocks(group: RowGroup, *, weighted: bool, rows: int) -> Iterator[Block]:
    """Yield the edges of a row group of a folder of edges, at most ``rows`` of them at a time, read-only.

    Raises InputError if the file is damaged, or a column is not there, is of another type, or has a null.
    """
    names = list(TYPES)[: 2 + weighted]
    # A buffer, and nothing read ahead: memory is bounded by what is asked for, not by the row group.
    with FORMAT.explained(group.path), pq.ParquetFile(
        group.path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
    ) as file:  # fmt: skip
        check_types(file.schema_arrow, names)
        for batch in file.iter_batches(rows, [group.number], names, use_threads=False):
            source, target, *weight = (_numbers(batch.column(name), name) for name in names)
            yield source, target, weight[0] if weighted else None


def check_types(schema: pa.Schema, names: Sequence[str]) -> None:
    """Raise ValueError if a column has another type than it should."""
    for name in names:
        found = schema.field(name).type
        if found != TYPES[name]:
            raise ValueError(f"column {name!r} is of type {found}, not {TYPES[name]}")


def _numbers(column: pa.Array, name: str) -> Array:
    if column.null_count:
        raise ValueError(f"column {name!r} has a null")
    return to_numpy(column)

"""A folder of edges in any order, in numbered Parquet files, and a table of vertices that may have no edges.

==================== ==================================================================================================
file                 what it holds
==================== ==================================================================================================
``edges.json``       format, rows, whether weighted, directed and named, the number of vertices or null, the counts
``edges-*.parquet``  source int64, target int64, and where weighted weight float64, above 0, `LARGEST_WEIGHT` at most
``vertices.parquet`` vertex int64, ascending, each once; where named also name, text
==================== ==================================================================================================

The vertices of the graph are the ends of the edges and the rows of ``vertices.parquet``. This file has all vertices if
they are named, and is left out if it would be empty. Where ``directed`` is false, a row stands for both directions. The
counts reconcile: ``read`` is the sum of ``edges`` and of every count that begins with ``dropped_``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.errors import IntegrityError
from whitewater.graphs.vertex_ids import Ids
from whitewater.io.folder import Format, RowGroup, RowGroupWriter, numbered_files, numbered_path
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

FORMAT = Format("edges.json", 1, "edges")
# 16 MB of ids, which one task works on.
GROUP_ROWS = 1 << 20
# A rank of 1e-10 divided by more is a subnormal float64 with fewer than twelve digits.
LARGEST_WEIGHT = 1e302


@dataclass(frozen=True)
class Batch:
    """Edges read from a file."""

    source: Ids  # int64 (rows,), as target
    target: Ids
    weight: Array | None = None  # float64 (rows,)
    firsts: Ids | None = None  # int64: the vertices at the start of lines
    names: pa.Table | None = None  # vertex and name of all these vertices, if they are named
    counts: Counter[str] = field(default_factory=Counter)  # lines by kind, such as comments


@dataclass(frozen=True)
class EdgesFolder:
    """An open folder of edges."""

    path: Path
    edges: int  # rows
    weighted: bool
    directed: bool  # whether a row stands for one direction
    named: bool  # whether the vertices have names
    vertex_rows: int | None  # of the table of vertices, None without a table
    counts: dict[str, int]  # rows read, and rows dropped by each rule

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups of all parts in order; see `Format.row_groups`."""
        return FORMAT.row_groups(*numbered_files(self.path, "edges"), folder=self.path, rows=self.edges)

    def vertices(self) -> pa.Table | None:
        """Return the table of vertices, or None if they are just the ends of the edges; see `Format.table`."""
        if self.vertex_rows is None:
            return None
        columns = ["vertex", "name"] if self.named else ["vertex"]
        return FORMAT.table(self.path / "vertices.parquet", columns, rows=self.vertex_rows)


def open_edges(path: Path) -> EdgesFolder:
    """Open a folder of edges. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, lambda path, vertices, **fields: EdgesFolder(path, vertex_rows=vertices, **fields))


def edge_schema(*, weighted: bool) -> pa.Schema:
    """Return the columns of edges."""
    return pa.schema([("source", pa.int64()), ("target", pa.int64()), ("weight", pa.float64())][: 2 + weighted])


def edge_blocks(group: RowGroup, *, weighted: bool, rows: int) -> Iterator[Batch]:
    """Yield the edges of a row group in read-only batches of at most ``rows``.

    Raises InputError if the file is damaged, or a column is missing, has another type, or has a null.
    """
    schema = edge_schema(weighted=weighted)
    # Nothing is read ahead, so that memory is bounded by `rows`, not by the row group.
    with FORMAT.explain_errors(group.path), pq.ParquetFile(
        group.path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True
    ) as file:  # fmt: skip
        check_types(file.schema_arrow, schema)
        for batch in file.iter_batches(rows, [group.number], schema.names, use_threads=False):
            for name in schema.names:
                if batch.column(name).null_count:
                    raise ValueError(f"column {name!r} has a null")
            arrays: dict[str, Any] = {name: to_numpy(batch.column(name)) for name in schema.names}
            yield Batch(**arrays)


def check_types(actual: pa.Schema, expected: pa.Schema) -> None:
    """Raise ValueError if an expected column has another type."""
    for field_ in expected:
        if (actual_type := actual.field(field_.name).type) != field_.type:
            raise ValueError(f"column {field_.name!r} is of type {actual_type}, not {field_.type}")


class EdgesWriter(RowGroupWriter):
    """Writes one part of a folder of edges; a context manager. A part without edges leaves no file.

    Parts are numbered by the order of the input, so that the folder does not depend on the number of workers.
    """

    def __init__(self, folder: Path, part: int, *, weighted: bool, group_rows: int = GROUP_ROWS) -> None:
        # Ids repeat too rarely for a dictionary.
        super().__init__(numbered_path(folder, "edges", part), edge_schema(weighted=weighted), group_rows=group_rows,
                         compression="snappy", use_dictionary=False)  # fmt: skip

    def add(self, source: Ids, target: Ids, weight: npt.NDArray[np.float64] | None = None) -> None:
        """Add edges: int64 (edges,), int64 (edges,), and float64 (edges,) where weighted.

        The arrays are kept until a row group is full, so they must not change.
        """
        arrays = [source, target] if weight is None else [source, target, weight]
        self.write(pa.Table.from_arrays([to_arrow(array) for array in arrays], schema=self.schema))


def finish_edges(
    folder: Path, *, weighted: bool, directed: bool, vertices: pa.Table | None, counts: Mapping[str, int]
) -> EdgesFolder:
    """Write the table of vertices, which are unique and ascending, and last ``edges.json``; open the folder.

    Raises IntegrityError if the counts do not reconcile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped = sum(count for name, count in counts.items() if name.startswith("dropped_"))
    if counts["read"] != counts["edges"] + dropped:
        raise IntegrityError(f"{folder}: the counts do not add up: {dict(counts)}. Report this as a bug.")
    if vertices is not None:
        pq.write_table(vertices, folder / "vertices.parquet", compression="zstd", use_dictionary=False)
    named, rows = (False, None) if vertices is None else ("name" in vertices.column_names, vertices.num_rows)
    FORMAT.write(folder, {"edges": counts["edges"], "weighted": weighted, "directed": directed, "counts": dict(counts),
                          "named": named, "vertices": rows})  # fmt: skip
    return open_edges(folder)

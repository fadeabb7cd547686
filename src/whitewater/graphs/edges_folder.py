"""A folder of edges: parts of two columns of ids, in any order, and the vertices that are more than their ends.

==================== ==================================================================================================
file                 what it holds
==================== ==================================================================================================
``edges.json``       format, rows, whether weighted, directed and named, the number of vertices or null, the counts
``edges-*.parquet``  source int64, target int64, and where weighted weight float64, above 0, `LARGEST_WEIGHT` at most
``vertices.parquet`` vertex int64, ascending, each once; where named also name, text
==================== ==================================================================================================

The vertices of the graph are the ends of the edges and those in ``vertices.parquet``, which has all of them if they are
named, and is not there if it has none. Where ``directed`` is false, a row stands for both directions. The counts
reconcile: ``read`` is ``edges`` and all that begin with ``dropped_`` together.
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
from whitewater.io.folder import Format, RowGroup, RowGroupWriter, numbered, numbered_files
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

FORMAT = Format("edges.json", 1, "edges")
_COLUMNS = [("source", pa.int64()), ("target", pa.int64()), ("weight", pa.float64())]
# Rows of a row group: 16 MB of ids, the work of one task.
GROUP_ROWS = 1 << 20
# A rank of 1e-10 divided by more has fewer than twelve digits, as the smallest numbers of float64 have.
LARGEST_WEIGHT = 1e302
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Batch:
    """Some edges, as they come from a file.

    ``source`` and ``target`` int64 (rows,), ``weight`` float64 (rows,); ``firsts`` int64 are the vertices that lines
    begin with; ``names``, vertex and name, are those of all these where they have any; ``counts`` tells how many lines
    were read, and what those are that are not rows.
    """

    source: Ids
    target: Ids
    weight: Array | None = None
    firsts: Ids | None = None
    names: pa.Table | None = None
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class EdgesFolder:
    """An open folder of edges."""

    path: Path
    edges: int  # rows
    weighted: bool
    directed: bool  # whether a row stands for one direction
    named: bool  # whether the vertices have names
    vertex_rows: int | None  # of the table of the vertices, None where there is none
    counts: dict[str, int]  # what was read, and what each rule left out

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups, in the order of the parts; see `Format.row_groups`."""
        return FORMAT.row_groups(*numbered_files(self.path, "edges"), folder=self.path, rows=self.edges)

    def vertices(self) -> pa.Table | None:
        """Return the table of the vertices, or None where they are just the ends of the edges; see `Format.table`."""
        if self.vertex_rows is None:
            return None
        columns = ["vertex", "name"] if self.named else ["vertex"]
        return FORMAT.table(self.path / "vertices.parquet", columns, rows=self.vertex_rows)


def open_edges(path: Path) -> EdgesFolder:
    """Open a folder of edges. Raises InputError if it is not one, or of another format."""
    return FORMAT.read(path, lambda path, vertices, **found: EdgesFolder(path, vertex_rows=vertices, **found))


def edge_schema(*, weighted: bool) -> pa.Schema:
    """Return the names and types of the columns of edges."""
    return pa.schema(_COLUMNS[: 2 + weighted])


def edge_blocks(group: RowGroup, *, weighted: bool, rows: int) -> Iterator[Batch]:
    """Yield the edges of a row group of a folder of edges, at most ``rows`` of them at a time, read-only.

    Raises InputError if the file is damaged, or a column is not there, is of another type, or has a null.
    """
    schema = edge_schema(weighted=weighted)
    # A buffer, and nothing read ahead: memory is bounded by what is asked for, not by the row group.
    with FORMAT.explained(group.path), pq.ParquetFile(
        group.path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
    ) as file:  # fmt: skip
        check_types(file.schema_arrow, schema)
        for batch in file.iter_batches(rows, [group.number], schema.names, use_threads=False):
            for name in schema.names:
                if batch.column(name).null_count:
                    raise ValueError(f"column {name!r} has a null")
            arrays: dict[str, Any] = {name: to_numpy(batch.column(name)) for name in schema.names}
            yield Batch(**arrays)


def check_types(found: pa.Schema, wanted: pa.Schema) -> None:
    """Raise ValueError if a column that is wanted has another type than it should."""
    for name, type_ in zip(wanted.names, wanted.types, strict=True):
        if found.field(name).type != type_:
            raise ValueError(f"column {name!r} is of type {found.field(name).type}, not {type_}")


class EdgesWriter(RowGroupWriter):
    """Writes one part of a folder of edges; use it as a context manager. A part without edges leaves no file.

    Parts are numbered by the order of the input, so that tasks on any number of workers leave the same folder.
    """

    def __init__(self, folder: Path, part: int, *, weighted: bool, group_rows: int = GROUP_ROWS) -> None:
        # Ids of vertices repeat too rarely for a dictionary to pay.
        super().__init__(numbered(folder, "edges", part), edge_schema(weighted=weighted), group_rows=group_rows,
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
    """Write the table of the vertices, if they are known, and last what makes the folder one of edges; open it.

    ``vertices`` ascend, each once. Raises IntegrityError if the counts do not reconcile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped = sum(count for name, count in counts.items() if name.startswith("dropped_"))
    if counts["read"] != counts["edges"] + dropped:
        raise IntegrityError(f"{folder}: the counts do not add up: {dict(counts)}. Report this as a bug.")
    if vertices is not None:
        pq.write_table(vertices, folder / "vertices.parquet", compression="zstd", use_dictionary=False)
    described = {"edges": counts["edges"], "weighted": weighted, "directed": directed, "counts": dict(counts)}
    named, known = (False, None) if vertices is None else ("name" in vertices.column_names, vertices.num_rows)
    FORMAT.write(folder, {**described, "named": named, "vertices": known})
    return open_edges(folder)

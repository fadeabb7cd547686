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

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.arrow_arrays import to_arrow
from whitewater.errors import InputError, IntegrityError
from whitewater.store import read_json, write_json

if TYPE_CHECKING:
    import numpy.typing as npt

FORMAT = 1
# Rows of a row group: 16 MB of ids, the work of one task.
GROUP_ROWS = 1 << 20
# A rank of 1e-10 divided by more has fewer than twelve digits, as the smallest numbers of float64 have.
LARGEST_WEIGHT = 1e302
_AGAIN = "Run the step that writes it again."
_REPORT = "Report this as a bug."


@dataclass(frozen=True)
class Described:
    """What `edges.json` holds."""

    edges: int
    weighted: bool
    directed: bool
    named: bool
    vertices: int | None
    counts: dict[str, int]
    format: int = FORMAT


@dataclass(frozen=True)
class EdgesFolder:
    """An open folder of edges."""

    path: Path
    described: Described

    @property
    def edges(self) -> int:
        """The number of rows."""
        return self.described.edges

    @property
    def weighted(self) -> bool:
        """Whether rows have a weight."""
        return self.described.weighted

    @property
    def directed(self) -> bool:
        """Whether a row stands for one direction."""
        return self.described.directed

    @property
    def named(self) -> bool:
        """Whether the vertices have names."""
        return self.described.named

    @property
    def counts(self) -> dict[str, int]:
        """What was read, and what each rule left out."""
        return self.described.counts

    def row_groups(self) -> list[tuple[Path, int, int]]:
        """Return file, index and rows of each row group, in the order of the parts.

        Raises
        ------
        InputError
            If a part cannot be read.
        IntegrityError
            If the rows are not those that `edges.json` tells of.
        """
        return self._row_groups

    def vertices(self) -> pa.Table | None:
        """Return the table of the vertices, or None where they are just the ends of the edges.

        Raises
        ------
        InputError
            If it cannot be read.
        IntegrityError
            If it is not of the number of rows that `edges.json` tells of.
        """
        if self.described.vertices is None:
            return None
        path = self.path / "vertices.parquet"
        try:
            table = pq.read_table(path, columns=["vertex", "name"] if self.named else ["vertex"])
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read: {error}. {_AGAIN}") from error
        if table.num_rows != self.described.vertices:
            raise IntegrityError(f"{path} has {table.num_rows} rows, not {self.described.vertices}. {_AGAIN}")
        return table

    @cached_property
    def _row_groups(self) -> list[tuple[Path, int, int]]:
        found = [group for path in sorted(self.path.glob("edges-*.parquet")) for group in _groups_of(path)]
        rows = sum(group[2] for group in found)
        if rows != self.edges:
            raise IntegrityError(f"{self.path} has {rows} edges, but edges.json tells of {self.edges}. {_AGAIN}")
        return found


def open_edges(path: Path) -> EdgesFolder:
    """Open a folder of edges.

    Raises
    ------
    InputError
        If it is none, or of another format.
    """
    found = read_json(path / "edges.json")
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise InputError(f"{path} has format {version}; this version reads {FORMAT}. Make it again.")
    try:
        return EdgesFolder(path, Described(**found))
    except TypeError as error:
        raise InputError(f"{path}/edges.json describes no edges: {error}. Make it again.") from error


def _groups_of(path: Path) -> list[tuple[Path, int, int]]:
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}. {_AGAIN}") from error
    return [(path, index, metadata.row_group(index).num_rows) for index in range(metadata.num_row_groups)]


class EdgesWriter:
    """Writes one part of a folder of edges; use it as a context manager. A part without edges leaves no file.

    Parts are numbered by the order of the input, so that tasks on any number of workers leave the same folder.
    """

    def __init__(self, folder: Path, part: int, *, weighted: bool, group_rows: int = GROUP_ROWS) -> None:
        self.rows = 0
        self._path = folder / f"edges-{part:05d}.parquet"
        self._columns = ["source", "target", "weight"] if weighted else ["source", "target"]
        self._group_rows = group_rows
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._writer: pq.ParquetWriter | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        source: npt.NDArray[np.int64],
        target: npt.NDArray[np.int64],
        weight: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Add edges: int64 (edges,), int64 (edges,), and float64 (edges,) where weighted.

        The arrays are kept until a row group is full, so they must not change.
        """
        arrays = [source, target] if weight is None else [source, target, weight]
        columns = [to_arrow(array) for array in arrays]
        self._pending.append(pa.Table.from_arrays(columns, names=self._columns))
        self._pending_rows += len(source)
        self.rows += len(source)
        if self._pending_rows >= self._group_rows:
            self._write(all_rows=False)

    def _write(self, *, all_rows: bool) -> None:
        table = pa.concat_tables(self._pending)
        whole = table.num_rows if all_rows else table.num_rows // self._group_rows * self._group_rows
        if self._writer is None:
            # Ids of vertices repeat too rarely for a dictionary to pay.
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="snappy", use_dictionary=False)
        self._writer.write_table(table.slice(0, whole), row_group_size=self._group_rows)
        self._pending = [table.slice(whole)]
        self._pending_rows = table.num_rows - whole

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._pending_rows:
            self._write(all_rows=True)
        if self._writer is not None:
            self._writer.close()


def finish_edges(
    folder: Path,
    *,
    edges: int,
    weighted: bool,
    directed: bool,
    vertices: pa.Table | None,
    counts: Mapping[str, int],
) -> None:
    """Write the table of the vertices, if they are known, and last the file that makes the folder one of edges.

    Raises
    ------
    IntegrityError
        If the vertices are not in ascending order, or the counts do not reconcile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped = sum(count for name, count in counts.items() if name.startswith("dropped_"))
    if counts["edges"] != edges or counts["read"] != edges + dropped:
        raise IntegrityError(f"{folder}: {edges} edges were written, but the counts are {dict(counts)}. {_REPORT}")
    if vertices is not None:
        ids = vertices["vertex"].to_numpy()
        if (ids[1:] <= ids[:-1]).any():
            raise IntegrityError(f"{folder}: the vertices are not in ascending order. {_REPORT}")
        pq.write_table(vertices, folder / "vertices.parquet", compression="zstd", use_dictionary=False)
    named = vertices is not None and "name" in vertices.column_names
    known = None if vertices is None else vertices.num_rows
    write_json(folder / "edges.json", asdict(Described(edges, weighted, directed, named, known, dict(counts))))


def write_edges(
    folder: Path,
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    directed: bool = True,
    vertices: pa.Table | None = None,
    group_rows: int = GROUP_ROWS,
) -> EdgesFolder:
    """Write edges that are in memory as a folder of one part, and open it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> write_edges(Path(mkdtemp()), [1, 2, 3], [2, 3, 1]).edges
    3
    """
    sources, targets = np.asarray(source, np.int64), np.asarray(target, np.int64)
    weights = None if weight is None else np.asarray(weight, np.float64)
    with EdgesWriter(folder, 0, weighted=weight is not None, group_rows=group_rows) as writer:
        writer.add(sources, targets, weights)
    finish_edges(
        folder,
        edges=writer.rows,
        weighted=weight is not None,
        directed=directed,
        vertices=vertices,
        counts={"read": writer.rows, "edges": writer.rows},
    )
    return open_edges(folder)

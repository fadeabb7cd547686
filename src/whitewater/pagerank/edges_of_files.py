"""Edges from files: lines of text, plain or gzip, and Parquet, with or without a table of the vertices.

Files are read in parts, each by a task of its own and into a part of the folder of its own, so that the result is the
same for any number of workers. Memory is that of some blocks for each worker, and of the vertices where they are known:
those of a table, of names, or of adjacency.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.config.pagerank import Edges
from whitewater.errors import ConfigError, InputError
from whitewater.pagerank.edge_files import parquet, text
from whitewater.pagerank.edge_files.batches import Batch, Ids
from whitewater.pagerank.edge_files.names import Merging, Names, merged
from whitewater.pagerank.edge_files.text_files import Unit, open_text, units
from whitewater.pagerank.edge_rules import Judged, Known, judge, total
from whitewater.pagerank.edges_folder import EdgesFolder, EdgesWriter, finish_edges, open_edges

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules
    from whitewater.devices.protocol import Array
    from whitewater.pagerank.pages import PagesFolder
    from whitewater.step import Run
    from whitewater.workers import Workers


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file."""

    path: Path
    index: int


@dataclass(frozen=True)
class Part:
    """What one task reads, and the number of the part that it writes."""

    number: int
    unit: Unit | RowGroup


@dataclass(frozen=True)
class Found:
    """What a task found: its counts, and vertices that the table must have besides the ends of edges, or for a name."""

    counts: Counter[str]
    vertices: pa.Table


@dataclass(frozen=True)
class Reading:
    """How parts are read: settings, rules, the folder that is written, and the vertices where a table gave them."""

    settings: Edges
    rules: EdgeRules
    folder: Path
    known: Known | None


def edges_of_files(run: Run[EdgeRules], fetched: PagesFolder, folder: Path) -> EdgesFolder:
    """Write the edges of the files that a folder of pages names, and their vertices, where they are known.

    Raises
    ------
    InputError
        If a file cannot be read, a row is not as the settings say, or there is neither an edge nor a vertex.
    """
    settings = Edges.model_validate(fetched.settings)
    if settings.weighted and settings.layout == "adjacency":
        raise ConfigError(
            "pagerank.fetch.edges: layout adjacency has no weights. Set weighted to false, or layout to pairs."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with run.cluster() as client:
        repeated, table = _read_table(run, _paths(fetched, "vertices"), settings, client)
        known = None if table is None else Known(table["vertex"].to_numpy())
        reading = Reading(settings, run.settings, folder, known)
        counts, vertices = _read_edges(run, _parts(_paths(fetched, "edges"), settings), reading, table, client)
    finish_edges(
        folder,
        edges=counts["edges"],
        weighted=settings.weighted,
        directed=settings.directed,
        vertices=vertices,
        counts=total(counts + repeated),
    )
    return _checked(open_edges(folder), fetched)


def _read_edges(
    run: Run[EdgeRules], parts: Sequence[Part], reading: Reading, table: pa.Table | None, client: Workers
) -> tuple[Counter[str], pa.Table | None]:
    """Read all parts; return the counts, and the vertices: those of the table, if there is one, and those found."""
    counts: Counter[str] = Counter()
    vertices = Merging([] if table is None else [table])
    work = partial(read_part, reading=reading)
    for found in run.map(work, parts, client=client, label="edges", ordered=True):
        counts += found.counts
        if found.vertices.num_rows:
            vertices.add(_like(table, found.vertices))
    return counts, vertices.table()


def read_part(part: Part, *, reading: Reading) -> Found:
    """Write the edges of a part; the same part leaves the same file whenever it runs."""
    counts: Counter[str] = Counter()
    named = reading.settings.ids == "text"
    vertices = _Collected(named=named)
    with EdgesWriter(reading.folder, part.number, weighted=reading.settings.weighted) as writer:
        for batch in _batches(part.unit, reading.settings):
            judged = judge(batch.source.ids, batch.target.ids, _broken(batch, reading.known), reading.rules)
            counts += judged.counts
            _write(writer, batch, judged.kept)
            if reading.known is None:
                _collect(vertices, batch, judged, named=named)
            elif reading.rules.broken == "keep":
                _collect_unknown(vertices, batch, reading.known)
    return Found(counts, vertices.table())


def _batches(unit: Unit | RowGroup, settings: Edges) -> Iterator[Batch]:
    if isinstance(unit, RowGroup):
        return parquet.read_pairs(unit.path, unit.index, settings)
    read = text.read_adjacency if settings.layout == "adjacency" else text.read_pairs
    return read(unit, settings)


def _broken(batch: Batch, known: Known | None) -> Array | None:
    if known is None:
        return None
    broken: Array = ~(known.holds(batch.source.ids) & known.holds(batch.target.ids))
    return broken


def _write(writer: EdgesWriter, batch: Batch, kept: Array) -> None:
    arrays = [batch.source.ids, batch.target.ids, *([] if batch.weight is None else [batch.weight])]
    writer.add(*(arrays if kept.all() else [array[kept] for array in arrays]))


class _Collected:
    """Vertices that were met, with their names where they have any."""

    def __init__(self, *, named: bool) -> None:
        self._names = Names() if named else None
        self._ids: list[Array] = []

    def add(self, text_: Array, ids: Ids, chosen: Array) -> None:
        if self._names is None:
            self._ids.append(np.unique(ids.ids[chosen]))
        elif ids.spans is not None:
            self._names.add(text_, ids.spans[chosen], ids.ids[chosen])

    def table(self) -> pa.Table:
        if self._names is not None:
            return self._names.table()
        return pa.table({"vertex": pa.array(np.unique(np.concatenate([np.empty(0, np.int64), *self._ids])))})


def _collect(vertices: _Collected, batch: Batch, judged: Judged, *, named: bool) -> None:
    """Add the vertices that lines begin with, those of loops that are dropped, and where they have names all ends."""
    dropped = judged.loops & ~judged.kept
    for ids, chosen in ((batch.source, dropped | named), (batch.target, np.full(len(dropped), named))):
        vertices.add(batch.text, ids, chosen)
    if batch.firsts is not None:
        vertices.add(batch.text, batch.firsts, np.ones(len(batch.firsts.ids), bool))


def _collect_unknown(vertices: _Collected, batch: Batch, known: Known) -> None:
    """Add the vertices that the table lacks."""
    for ids in (batch.source, batch.target, batch.firsts):
        if ids is not None:
            vertices.add(batch.text, ids, ~known.holds(ids.ids))


def _like(table: pa.Table | None, found: pa.Table) -> pa.Table:
    """Return vertices that a table of names lacks with a name: their id."""
    if table is None or "name" not in table.column_names or "name" in found.column_names:
        return found
    return found.append_column("name", found["vertex"].cast(pa.large_string()))


def _paths(fetched: PagesFolder, role: str) -> list[Path]:
    return [Path(path) for path in fetched.files.get(role, [])]


def _parts(paths: Sequence[Path], settings: Edges) -> list[Part]:
    return [Part(number, unit) for number, unit in enumerate(_units(paths, settings))]


def _units(paths: Iterable[Path], settings: Edges) -> Iterator[Unit | RowGroup]:
    for path in paths:
        if parquet.is_parquet(path):
            yield from (RowGroup(path, index) for index in range(parquet.row_groups(path)))
        else:
            delimiter = text.DELIMITERS[settings.delimiter]
            file = open_text(path, has_header=settings.header, delimiter=delimiter)
            if file.symmetric and settings.directed:
                raise ConfigError(f"{path} is a symmetric matrix. Set pagerank.fetch.edges.directed to false.")
            yield from units(file)


def _read_table(
    run: Run[EdgeRules], paths: Sequence[Path], settings: Edges, client: Workers
) -> tuple[Counter[str], pa.Table | None]:
    """Read files of vertices; return how many rows repeat a vertex, and the table, or None where there are no files."""
    if not paths:
        return Counter(), None
    rows, tables = 0, []
    work = partial(_read_vertices, settings=settings)
    for count, table in run.map(work, _parts(paths, settings), client=client, label="vertices", ordered=True):
        rows += count
        tables += [table] if count else []
    if not tables:
        raise InputError(f"{paths[0]} and the other files of vertices hold none. Check pagerank.fetch.edges.vertices.")
    if len({table.schema for table in tables}) > 1:
        raise InputError("some files of vertices give names and others do not. Give all vertices a name, or none.")
    vertices = merged(tables)
    return Counter({"repeated_vertices": rows - vertices.num_rows}), vertices


def _read_vertices(part: Part, *, settings: Edges) -> tuple[int, pa.Table]:
    if isinstance(part.unit, RowGroup):
        return parquet.read_vertices(part.unit.path, part.unit.index, settings)
    return text.read_vertices(part.unit, settings)


def _checked(folder: EdgesFolder, fetched: PagesFolder) -> EdgesFolder:
    if not folder.edges and not folder.described.vertices:
        raise InputError(f"{', '.join(fetched.files.get('edges', [])[:3])}: no edge was found, and no vertex. "
                         "Check pagerank.fetch.edges and the rules in section pagerank.edges.")  # fmt: skip
    return folder

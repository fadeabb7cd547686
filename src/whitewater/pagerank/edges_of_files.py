"""Edges from files: lines of text, plain or gzip, and Parquet, with or without a table of the vertices.

Files are read in parts, each by a task of its own and into a part of the folder of its own, so that the result is the
same for any number of workers. Memory is that of some blocks for each worker, and of the vertices where they are known:
those of a table, of names, or of adjacency.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from whitewater.arrow_arrays import to_arrow
from whitewater.config.pagerank import Edges
from whitewater.errors import ConfigError, InputError, WhitewaterError
from whitewater.folder import RowGroup
from whitewater.pagerank.edge_files import parquet, text
from whitewater.pagerank.edge_files.matrix_market import cut_off
from whitewater.pagerank.edge_files.names import Batch, Merging, merged
from whitewater.pagerank.edge_files.text import TextFile, Unit
from whitewater.pagerank.edge_rules import Judged, Known, judge, total
from whitewater.pagerank.edges_folder import EdgesFolder, EdgesWriter, finish_edges, open_edges

if TYPE_CHECKING:
    from whitewater.config.pagerank import EdgeRules
    from whitewater.devices.protocol import Array
    from whitewater.pagerank.pages import PagesFolder
    from whitewater.step import Run
    from whitewater.workers import Workers


logger = logging.getLogger(__name__)

# What lines of text are that are no rows.
LINES = ("lines", "comments", "empty_lines", "headers")
# Files that an error names; more could not be read.
_NAMED = 10
Result = TypeVar("Result")
# By path; None where a file is Parquet.
Files = dict[Path, TextFile | None]


@dataclass(frozen=True)
class Part:
    """What one task reads, and the number of the part that it writes."""

    number: int
    unit: Unit | RowGroup


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
        of_table, table = _read_table(run, _paths(fetched, "vertices"), settings, client)
        known = None if table is None else Known(table["vertex"].to_numpy())
        reading = Reading(settings, run.settings, folder, known)
        counts, vertices = _read_edges(run, _opened(_paths(fetched, "edges"), settings), reading, table, client)
    counts += of_table
    if counts["lines"]:
        logger.info("%d lines, of which %d are comments, %d empty and %d headers", *(counts[name] for name in LINES))
    finish_edges(
        folder,
        edges=counts["edges"],
        weighted=settings.weighted,
        directed=settings.directed,
        vertices=vertices,
        counts={**dict.fromkeys(LINES, 0), **total(counts)},
    )
    return _checked(open_edges(folder), fetched)


def _read_edges(
    run: Run[EdgeRules], files: Files, reading: Reading, table: pa.Table | None, client: Workers
) -> tuple[Counter[str], pa.Table | None]:
    """Read all files; return the counts, and the vertices: those of the table, if there is one, and those found."""
    counts = _head_counts(files)
    vertices = Merging([] if table is None else [table])
    work = partial(read_part, reading=reading)
    for part, (counted, found) in _mapped(run, work, _parts(files), label="edges", client=client):
        counts[part.unit.path].update(counted)
        if found is not None and found.num_rows:
            vertices.add(_like(table, found))
    _check_declared(files, counts)
    _warn_of_unread(files, counts, reading.settings)
    return _sum(counts), vertices.table()


def _mapped(
    run: Run[EdgeRules], work: Callable[[Part], Result], parts: Sequence[Part], *, label: str, client: Workers
) -> Iterator[tuple[Part, Result]]:
    """Yield parts with what a function makes of them, in their order; at last raise what is wrong with all files."""
    faults: dict[Path, WhitewaterError] = {}
    outcomes = run.map(partial(_outcome, work=work), parts, client=client, label=label, ordered=True)
    for part, outcome in zip(parts, outcomes, strict=True):
        if isinstance(outcome, WhitewaterError):
            faults.setdefault(part.unit.path, outcome)
        else:
            yield part, outcome
    _raise(list(faults.values()))


def _outcome(part: Part, *, work: Callable[[Part], Result]) -> Result | WhitewaterError:
    try:
        return work(part)
    except (ConfigError, InputError) as error:
        return error


def _raise(faults: Sequence[WhitewaterError]) -> None:
    """Raise one error that tells what is wrong with each file, if anything is."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        more = f"\n... and {len(faults) - _NAMED:,} more files." if len(faults) > _NAMED else ""
        raise type(faults[0])(f"{len(faults)} files cannot be read:\n" + "\n".join(map(str, faults[:_NAMED])) + more)


def _check_declared(files: Files, counts: Mapping[Path, Counter[str]]) -> None:
    """Compare the edges of files with what these declare; what a comment says may be out of date."""
    faults: list[WhitewaterError] = []
    for path, file in files.items():
        read = counts[path]["read"]
        if file and file.matrix and file.matrix.entries != read:
            faults.append(cut_off(path, file.matrix, read))
        if file and file.declared is not None and file.declared != read:
            logger.warning("%s: a comment tells of %d edges, but it has %d. Is it whole?", path, file.declared, read)
    _raise(faults)


def _warn_of_unread(files: Files, counts: Mapping[Path, Counter[str]], settings: Edges) -> None:
    """Warn of weights that are not read, and of comments that might be edges."""
    unread = [path for path, file in files.items() if _may_have_weights(path, file, counts[path], settings)]
    if unread and not settings.weighted:
        logger.warning("%s: a third field, or a column %r, is not read. If it is a weight, set pagerank.fetch.edges."
                       "weighted to true", _shortened(unread), settings.weight_column)  # fmt: skip
    doubtful = [path for path, file in files.items() if file and text.may_be_edge(file.comment, settings)]
    if doubtful:
        logger.warning("%s: the line at its head that begins with # or %% is a comment, though it could be an edge. If "
                       "it is one, set pagerank.fetch.edges.comment to 'none'", _shortened(doubtful))  # fmt: skip


def _may_have_weights(path: Path, file: TextFile | None, counts: Counter[str], settings: Edges) -> bool:
    columns = file.header if file else parquet.column_names(path)
    return settings.weight_column in columns or bool(counts["unread_fields"] and not columns)


def _shortened(paths: Sequence[Path]) -> str:
    return f"{paths[0]} and {len(paths) - 1} more files" if len(paths) > 1 else str(paths[0])


def read_part(part: Part, *, reading: Reading) -> tuple[Counter[str], pa.Table | None]:
    """Write the edges of a part; the same part leaves the same file whenever it runs.

    Return counts, and the vertices that the table must have besides the ends of edges, or for a name.
    """
    counts: Counter[str] = Counter()
    vertices = Merging([])
    with EdgesWriter(reading.folder, part.number, weighted=reading.settings.weighted) as writer:
        for batch in _batches(part.unit, reading.settings):
            judged = judge(batch.source, batch.target, _broken(batch, reading.known), reading.rules)
            counts += judged.counts + batch.counts
            arrays = [batch.source, batch.target, *([] if batch.weight is None else [batch.weight])]
            writer.add(*(arrays if judged.kept.all() else [array[judged.kept] for array in arrays]))
            if reading.known is None or reading.rules.broken == "keep":
                vertices.add(_vertices(batch, judged, reading.known))
    return counts, vertices.table()


def _batches(unit: Unit | RowGroup, settings: Edges) -> Iterator[Batch]:
    return parquet.read_edges(unit, settings) if isinstance(unit, RowGroup) else text.read_edges(unit, settings)


def _broken(batch: Batch, known: Known | None) -> Array | None:
    if known is None:
        return None
    broken: Array = ~(known.holds(batch.source) & known.holds(batch.target))
    return broken


def _vertices(batch: Batch, judged: Judged, known: Known | None) -> pa.Table:
    """Return the vertices that the table lacks, if there is one.

    Else those that have names, or that lines begin with, or that are ends of loops that are dropped.
    """
    if batch.names is not None:
        return batch.names if known is None else batch.names.filter(~known.holds(batch.names["vertex"].to_numpy()))
    firsts = [] if batch.firsts is None else [batch.firsts]
    if known is None:
        ids = np.unique(np.concatenate([batch.source[judged.loops & ~judged.kept], *firsts]))
    else:
        ids = np.unique(np.concatenate([batch.source, batch.target, *firsts]))
        ids = ids[~known.holds(ids)]
    return pa.table({"vertex": to_arrow(ids)})


def _like(table: pa.Table | None, found: pa.Table) -> pa.Table:
    """Return vertices that a table of names lacks with a name: their id."""
    if table is None or "name" not in table.column_names or "name" in found.column_names:
        return found
    return found.append_column("name", found["vertex"].cast(pa.large_string()))


def _paths(fetched: PagesFolder, role: str) -> list[Path]:
    return [Path(path) for path in fetched.files.get(role, [])]


def _opened(paths: Sequence[Path], settings: Edges) -> Files:
    """Recognise files, and read what is ahead of their rows."""
    files: Files = {}
    faults: list[WhitewaterError] = []
    for path in paths:
        try:
            files[path] = None if parquet.is_parquet(path) else text.open_file(path, settings)
        except (ConfigError, InputError) as error:
            faults.append(error)
    _raise(faults)
    return files


def _parts(files: Files) -> list[Part]:
    units = (unit for path, file in files.items() for unit in (text.units(file) if file else parquet.units(path)))
    return [Part(number, unit) for number, unit in enumerate(units)]


def _head_counts(files: Files) -> dict[Path, Counter[str]]:
    """Return the counts of the lines ahead of the rows of each file."""
    return {path: Counter(file.counts if file else {}) for path, file in files.items()}


def _sum(counts: Mapping[Path, Counter[str]]) -> Counter[str]:
    return sum(counts.values(), Counter[str]())


def _read_table(
    run: Run[EdgeRules], paths: Sequence[Path], settings: Edges, client: Workers
) -> tuple[Counter[str], pa.Table | None]:
    """Read files of vertices; return counts of rows that repeat a vertex and of lines, and the table, if any."""
    if not paths:
        return Counter(), None
    files, tables = _opened(paths, settings), []
    counts = _head_counts(files)
    work = partial(_read_vertices, settings=settings)
    for part, (found, several) in _mapped(run, work, _parts(files), label="vertices", client=client):
        counts[part.unit.path].update(found)
        tables += several
    if not tables:
        raise InputError(f"{paths[0]} and the other files of vertices hold none. Check pagerank.fetch.edges.vertices.")
    if len({table.schema for table in tables}) > 1:
        raise InputError("some files of vertices give names and others do not. Give all vertices a name, or none.")
    vertices, counted = merged(tables), _sum(counts)
    lines = {f"vertex_{name}": counted[name] for name in LINES}
    return Counter(repeated_vertices=counted["rows"] - vertices.num_rows, **lines), vertices


def _read_vertices(part: Part, *, settings: Edges) -> tuple[Counter[str], list[pa.Table]]:
    if isinstance(part.unit, RowGroup):
        return parquet.read_vertices(part.unit, settings)
    return text.read_vertices(part.unit, settings)


def _checked(folder: EdgesFolder, fetched: PagesFolder) -> EdgesFolder:
    if not folder.edges and not folder.vertex_rows:
        raise InputError(f"{', '.join(fetched.files.get('edges', [])[:3])}: no edge was found, and no vertex. "
                         "Check pagerank.fetch.edges and the rules in section pagerank.edges.")  # fmt: skip
    return folder

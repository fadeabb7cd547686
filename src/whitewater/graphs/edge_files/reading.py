"""Edges from files: lines of text, plain or gzip, and Parquet, with or without a table of the vertices.

Files are read in parts, each by a task of its own and into a part of the folder of its own, so that the result is the
same for any number of workers. Memory is that of some blocks for each worker, and of the vertices where they are known:
those of a table, of names, or of adjacency.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from whitewater.engines import Array
from whitewater.engines.workers import Workers
from whitewater.errors import ConfigError, InputError, WhitewaterError
from whitewater.graphs.config import EdgeFiles, EdgeRules
from whitewater.graphs.edge_files import text
from whitewater.graphs.edge_files.text import TextFile, Unit
from whitewater.graphs.edges_folder import LARGEST_WEIGHT, Batch, EdgesFolder, EdgesWriter, finish_edges
from whitewater.graphs.vertex_ids import Ids, ids_of, merged, places_of, vertices_of
from whitewater.io.folder import Files, RowGroup
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow

logger = logging.getLogger(__name__)

PARQUET = Files(remedy="Fetch it again.")
# Rows of Parquet that are read at once.
BLOCK_ROWS = 1 << 20
# What is counted in any case. The rows read are the edges and those dropped by each rule.
COUNTS = ("read", "edges", "broken", "dropped_broken", "self_loops", "dropped_self_loops")
# What lines of text are that are not rows.
LINES = ("lines", "comments", "empty_lines", "headers")
# Files that an error names; more could not be read.
_NAMED = 10
Result = TypeVar("Result")
Mask = npt.NDArray[np.bool_]
# By path; None where a file is Parquet.
Opened = dict[Path, TextFile | None]
# The number of a part of the folder that one task writes, and what it reads.
Part = tuple[int, Unit | RowGroup]


def edges_of_files(
    run: Run[EdgeRules], files: Mapping[str, Sequence[str]], folder: Path, *, settings: EdgeFiles
) -> EdgesFolder:
    """Write the edges of files, ``edges`` and maybe ``vertices``, and their vertices where they are known.

    Raises InputError if a file cannot be read, a row is not as the settings say, or there is neither an edge nor a
    vertex, and ConfigError if the settings are not those of a file.
    """
    if settings.weighted and settings.layout == "adjacency":
        raise ConfigError(
            "pagerank.fetch.edges: layout adjacency has no weights. Set weighted to false, or layout to pairs."
        )
    with run.workers() as workers:
        of_table, table = _read_table(_opened(files.get("vertices", []), settings), settings, workers)
        known = None if table is None else table["vertex"].to_numpy()
        read = partial(read_part, settings=settings, rules=run.settings, folder=folder, known=known)
        counts, vertices = _read_edges(_opened(files["edges"], settings), read, settings, table, workers)
    counts += of_table
    if counts["lines"]:
        logger.info("%d lines, of which %d are comments, %d empty and %d headers", *(counts[name] for name in LINES))
    if not counts["edges"] and not (vertices is not None and vertices.num_rows):
        raise InputError(f"{', '.join(files['edges'][:3])}: no edge was found, and no vertex. "
                         "Check pagerank.fetch.edges and the rules in section pagerank.edges.")  # fmt: skip
    every_count = {**dict.fromkeys((*LINES, *COUNTS), 0), **counts}
    return finish_edges(
        folder, weighted=settings.weighted, directed=settings.directed, vertices=vertices, counts=every_count
    )


def _read_edges(
    files: Opened, read: Callable[[Part], Any], settings: EdgeFiles, table: pa.Table | None, workers: Workers
) -> tuple[Counter[str], pa.Table | None]:
    """Read all files; return the counts, and the vertices: those of the table, if there is one, and those found."""
    counts = {path: Counter(file.counts if file else {}) for path, file in files.items()}
    named = table is not None and "name" in table.column_names

    def found() -> Iterator[pa.Table]:
        yield from [] if table is None else [table]
        for path, (counted, some) in _read(files, read, workers, label="edges"):
            counts[path].update(counted)
            if some is not None and some.num_rows:
                # A vertex that a table of names lacks is named by its id.
                is_nameless = named and "name" not in some.column_names
                names = some["vertex"].cast(pa.large_string())
                yield some.append_column("name", names) if is_nameless else some

    vertices = merged(found())
    list(_sound(_reviewed(files, counts, settings)))
    return sum(counts.values(), Counter[str]()), vertices


def _read_table(files: Opened, settings: EdgeFiles, workers: Workers) -> tuple[Counter[str], pa.Table | None]:
    """Read files of vertices; return counts of rows that repeat a vertex and of lines, and the table, if any."""
    if not files:
        return Counter(), None
    counts = sum((file.counts for file in files.values() if file), Counter[str]())
    tables = list[pa.Table]()
    for _, (counted, some) in _read(files, partial(_read_vertices, settings=settings), workers, label="vertices"):
        counts.update(counted)
        tables += some
    if len({table.schema for table in tables}) > 1:
        raise InputError("some files of vertices give names and others do not. Give all vertices a name, or none.")
    vertices = merged(tables)
    if vertices is None:
        raise InputError(f"{next(iter(files))} and the other files of vertices hold none. Check "
                         "pagerank.fetch.edges.vertices.")  # fmt: skip
    lines = {f"vertex_{name}": counts[name] for name in LINES}
    return Counter(repeated_vertices=counts["rows"] - vertices.num_rows, **lines), vertices


def _opened(paths: Sequence[str], settings: EdgeFiles) -> Opened:
    """Recognize files, and read what is ahead of their rows."""

    def opened(path: Path) -> TextFile | None:
        # What cannot be read is told by `open_file`.
        with suppress(OSError), path.open("rb") as stream:
            if stream.read(4) == b"PAR1":
                return None
        return text.open_file(path, settings)

    return dict(_sound((path, _outcome(path, work=opened)) for path in map(Path, paths)))


def _read(
    files: Opened, work: Callable[[Part], Result], workers: Workers, *, label: str
) -> Iterator[tuple[Path, Result]]:
    """Yield what a function makes of each part of the files, with its path, in their order."""
    units = [
        (path, unit)
        for path, file in files.items()
        for unit in (text.units(file) if file else PARQUET.row_groups(path))
    ]
    parts = list(enumerate(unit for _, unit in units))
    outcomes = workers.map(partial(_outcome, work=work), parts, label=label, ordered=True)
    return _sound((path, outcome) for (path, _), outcome in zip(units, outcomes, strict=True))


def _outcome(task: Any, *, work: Callable[[Any], Result]) -> Result | WhitewaterError:
    try:
        return work(task)
    except (ConfigError, InputError) as error:
        return error


def _sound(outcomes: Iterable[tuple[Path, Result | WhitewaterError]]) -> Iterator[tuple[Path, Result]]:
    """Yield results with their paths; at last raise one error that tells what is wrong with each file, if anything."""
    by_path: dict[Path, WhitewaterError] = {}
    for path, outcome in outcomes:
        if isinstance(outcome, WhitewaterError):
            by_path.setdefault(path, outcome)
        else:
            yield path, outcome
    faults = list(by_path.values())
    if len(faults) > 1:
        more = f"\n... and {len(faults) - _NAMED:,} more files." if len(faults) > _NAMED else ""
        raise type(faults[0])(f"{len(faults)} files cannot be read:\n" + "\n".join(map(str, faults[:_NAMED])) + more)
    for fault in faults:
        raise fault


def _reviewed(
    files: Opened, counts: Mapping[Path, Counter[str]], settings: EdgeFiles
) -> Iterator[tuple[Path, WhitewaterError]]:
    """Yield files that have other edges than they declare, and the error; warn of what may be meant otherwise."""
    unread, doubtful = list[Path](), list[Path]()
    for path, file in files.items():
        read, names = counts[path]["read"], file.header if file else PARQUET.footer(path).schema.names
        if settings.weight_column in names or (counts[path]["unread_fields"] and not names):
            unread.append(path)
        if file and file.is_doubtful:
            doubtful.append(path)
        if file and file.declared not in {None, read}:
            if file.size:
                yield path, InputError(f"{path} declares {file.declared:,} entries, but has {read:,}: it is cut off or "
                                       "was changed. Fetch it again, or correct the line of sizes.")  # fmt: skip
            else:
                logger.warning(
                    "%s: a comment tells of %d edges, but it has %d. Is it whole?", path, file.declared, read
                )
    if unread and not settings.weighted:
        logger.warning("%s: a third field, or a column %r, is not read. If it is a weight, set pagerank.fetch.edges."
                       "weighted to true", _shortened(unread), settings.weight_column)  # fmt: skip
    if doubtful:
        logger.warning("%s: the line at its head that begins with # or %% is a comment, though it could be an edge. If "
                       "it is one, set pagerank.fetch.edges.comment to 'none'", _shortened(doubtful))  # fmt: skip


def _shortened(paths: Sequence[Path]) -> str:
    return f"{paths[0]} and {len(paths) - 1} more files" if len(paths) > 1 else str(paths[0])


def _read_vertices(part: Part, *, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    _, unit = part
    return vertices_of_group(unit, settings) if isinstance(unit, RowGroup) else text.read_vertices(unit, settings)


def read_part(
    part: Part, *, settings: EdgeFiles, rules: EdgeRules, folder: Path, known: Ids | None
) -> tuple[Counter[str], pa.Table | None]:
    """Write the edges of a part; see `write_part`."""
    number, unit = part
    batches = edges_of_group(unit, settings) if isinstance(unit, RowGroup) else text.read_edges(unit, settings)
    return write_part(folder, number, batches, rules=rules, known=known, weighted=settings.weighted)


def write_part(
    folder: Path, number: int, batches: Iterable[Batch], *, rules: EdgeRules, known: Ids | None, weighted: bool = False
) -> tuple[Counter[str], pa.Table | None]:
    """Write edges as a part of a folder; the same ones leave the same file whenever this runs.

    ``known`` are the vertices, where a table gave them. Return counts, and the vertices that the table must have
    besides the ends of edges, or for a name.
    """
    counts, vertices = Counter[str](), list[pa.Table]()
    with EdgesWriter(folder, number, weighted=weighted) as writer:
        for batch in batches:
            kept, loops, judged = judge(batch.source, batch.target, known, rules)
            counts += judged + batch.counts
            arrays = [batch.source, batch.target, *([] if batch.weight is None else [batch.weight])]
            writer.add(*(arrays if kept.all() else [array[kept] for array in arrays]))
            if known is None:
                vertices.append(_vertices(batch, [batch.source[loops & ~kept]]))
            elif rules.broken == "keep":
                table = _vertices(batch, [batch.source, batch.target])
                vertices.append(table.filter(pa.array(places_of(table["vertex"].to_numpy(), known) < 0)))
    return counts, merged(vertices)


def judge(source: Ids, target: Ids, known: Ids | None, rules: EdgeRules) -> tuple[Mask, Mask, Counter[str]]:
    """Return which rows are edges by the rules, and which are self-loops, both bool (rows,); and the counts.

    A row is broken if an end is not among the vertices, where these are known; a dropped row is not a self-loop.
    """
    broken = np.zeros(len(source), bool)
    if known is not None:
        broken = (places_of(source, known) < 0) | (places_of(target, known) < 0)
    drop_broken, drop_loops = rules.broken == "drop", rules.self_loops == "drop"
    loops = (source == target) & ~(broken & drop_broken)
    kept = ~((broken & drop_broken) | (loops & drop_loops))
    rows = [len(source), kept.sum(), broken.sum(), broken.sum() * drop_broken, loops.sum(), loops.sum() * drop_loops]
    return kept, loops, Counter(dict(zip(COUNTS, map(int, rows), strict=True)))


def _vertices(batch: Batch, ends: list[Ids]) -> pa.Table:
    """Return the vertices that have names, or else those that lines begin with and some ends."""
    if batch.names is not None:
        return batch.names
    firsts = [] if batch.firsts is None else [batch.firsts]
    return pa.table({"vertex": to_arrow(np.unique(np.concatenate([*ends, *firsts])))})


def edges_of_group(group: RowGroup, settings: EdgeFiles) -> Iterator[Batch]:
    """Yield the edges of a row group."""
    with PARQUET.explained(group.path), pq.ParquetFile(group.path) as file:
        names = settings.columns_of(group.path, file.schema_arrow.names)
        for batch in file.iter_batches(BLOCK_ROWS, [group.number], names, use_threads=False):
            (source, target), named = ids_of([_ids(batch[name], _where(group, name), settings) for name in names[:2]])
            weights = [_weights(batch[name], _where(group, name)) for name in names[2:]]
            yield Batch(source, target, weights[0] if weights else None, names=named)


def vertices_of_group(group: RowGroup, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    """Return the count of ``rows`` of a row group, and its vertices as tables of vertex and, if any, name.

    The first column holds the ids, whatever its name; the second one, if it is text and ids are not, the names.
    """
    with PARQUET.explained(group.path), pq.ParquetFile(group.path) as file:
        schema = file.schema_arrow
        named = settings.ids == "integer" and len(schema) > 1 and _is_text(schema.types[1])
        table = file.read_row_group(group.number, schema.names[: 1 + named], use_threads=False)
    first, *second = (column.combine_chunks() for column in table.columns)
    ids = _ids(first, _where(group, schema.names[0]), settings)
    vertices = vertices_of(ids, _texts(second[0], _where(group, schema.names[1])) if named else None)
    return Counter(rows=table.num_rows), [vertices] if table.num_rows else []


def _where(group: RowGroup, column: str) -> str:
    return f"{group.path}, row group {group.number}: column {column!r}"


def _ids(column: pa.Array, where: str, settings: EdgeFiles) -> pa.Array:
    """Return numbers as int64, or names."""
    if _is_text(column.type) != (settings.ids == "text"):
        kind, other = ("integers", "text") if settings.ids == "integer" else ("text", "integer")
        raise ConfigError(f"{where} is {'text' if _is_text(column.type) else column.type}, but ids are {kind}. Set "
                          f"pagerank.fetch.edges.ids to {other}.")  # fmt: skip
    if settings.ids == "text":
        return _texts(column, where)
    if column.null_count or not pt.is_integer(column.type):
        problem = "a null" if column.null_count else f"{column.type}, and no integers"
        raise InputError(f"{where} has {problem}: each row names a vertex. Correct the file.")
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{where} has an id that does not fit 64 bits with sign ({error}). Write ids as text, and set "
                         "pagerank.fetch.edges.ids to text.") from error  # fmt: skip


def _texts(column: pa.Array, where: str) -> pa.Array:
    texts = column.cast(pa.large_string())
    texts.validate(full=True)
    if texts.null_count or (len(texts) and not pc.min(pc.binary_length(texts)).as_py()):
        raise InputError(f"{where} has a null or an empty text, which names no vertex. Correct the file.")
    return texts


def _is_text(type_: pa.DataType) -> bool:
    values = type_.value_type if pt.is_dictionary(type_) else type_
    return bool(pt.is_string(values) or pt.is_large_string(values))


def _weights(column: pa.Array, where: str) -> Array:
    weights: Array = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    wrong = ~((weights > 0) & (weights <= LARGEST_WEIGHT))
    if wrong.any():
        raise InputError(
            f"{where} has {weights[wrong][0]} (or null), which is not a number above 0 and up to {LARGEST_WEIGHT:g}. "
            "Correct the file, or set pagerank.fetch.edges.weighted to false if weights shall not count."
        )
    return weights

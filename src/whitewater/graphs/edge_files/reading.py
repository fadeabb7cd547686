"""Reads edges from files, text or Parquet, with or without a table of the vertices.

One task reads each part of a file and writes one part of the folder, so that the result is the same for any number of
workers. A few blocks per worker are in memory, and the vertices of a table, of names or of adjacency lists.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from whitewater.graphs.vertex_ids import Ids, compute_ids, find_positions, merge_vertices, vertex_table
from whitewater.io.folder import Files, RowGroup
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow

logger = logging.getLogger(__name__)

PARQUET = Files(remedy="Fetch it again.")
# Parquet rows that are read at once.
BLOCK_ROWS = 1 << 20
# Counts that are always written. The rows read are the edges and those dropped by each rule.
COUNTS = ("read", "edges", "broken", "dropped_broken", "self_loops", "dropped_self_loops")
# Counts of lines, and of those that are not rows.
LINES = ("lines", "comments", "empty_lines", "headers")
_LISTED_ERRORS = 10
Result = TypeVar("Result")
Mask = npt.NDArray[np.bool_]
# By path; None for Parquet.
OpenFiles = dict[Path, TextFile | None]
# The part of the folder that one task writes, and what it reads.
Part = tuple[int, Unit | RowGroup]


def edges_of_files(
    run: Run[EdgeRules], files: Mapping[str, Sequence[str]], folder: Path, *, settings: EdgeFiles
) -> EdgesFolder:
    """Write a folder of edges from ``files["edges"]`` and, if there are any, ``files["vertices"]``.

    Raises InputError if a file cannot be read, a row does not match the settings, or there are no edges and vertices;
    and ConfigError if the settings do not match a file.
    """
    if settings.weighted and settings.layout == "adjacency":
        raise ConfigError(
            "pagerank.fetch.edges: layout adjacency has no weights. Set weighted to false, or layout to pairs."
        )
    with run.workers() as workers:
        vertex_counts, table = _read_table(_open_files(files.get("vertices", []), settings), settings, workers)
        known = None if table is None else table["vertex"].to_numpy()
        read = partial(_read_edges_of_part, settings=settings, rules=run.settings, folder=folder, known=known)
        counts, vertices = _read_edges(_open_files(files["edges"], settings), read, settings, table, workers)
    counts += vertex_counts
    if counts["lines"]:
        logger.info("%d lines, of which %d are comments, %d empty and %d headers", *(counts[name] for name in LINES))
    if not counts["edges"] and not (vertices is not None and vertices.num_rows):
        raise InputError(f"{', '.join(files['edges'][:3])}: no edge was found, and no vertex. "
                         "Check pagerank.fetch.edges and the rules in section pagerank.edges.")  # fmt: skip
    return finish_edges(folder, weighted=settings.weighted, directed=settings.directed, vertices=vertices,
                        counts={**dict.fromkeys((*LINES, *COUNTS), 0), **counts})  # fmt: skip


def _read_edges(
    files: OpenFiles, read: Callable[[Part], Any], settings: EdgeFiles, table: pa.Table | None, workers: Workers
) -> tuple[Counter[str], pa.Table | None]:
    """Read all files; return the counts, and the vertices of the table, if there is one, and of the files."""
    counts = {path: Counter(file.counts if file else {}) for path, file in files.items()}
    is_named = table is not None and "name" in table.column_names

    def vertex_tables() -> Iterator[pa.Table]:
        yield from [] if table is None else [table]
        for path, (part_counts, vertices) in _read_parts(files, read, workers, label="edges"):
            counts[path].update(part_counts)
            if vertices is not None and vertices.num_rows:
                # A vertex that is missing in a table of names is named by its id.
                needs_names = is_named and "name" not in vertices.column_names
                names = vertices["vertex"].cast(pa.large_string())
                yield vertices.append_column("name", names) if needs_names else vertices

    all_vertices = merge_vertices(vertex_tables())
    list(_raise_errors(_check_counts(files, counts, settings)))
    return sum(counts.values(), Counter[str]()), all_vertices


def _read_table(files: OpenFiles, settings: EdgeFiles, workers: Workers) -> tuple[Counter[str], pa.Table | None]:
    """Read files of vertices; return the counts of lines and repeated vertices, and the table, if any."""
    if not files:
        return Counter(), None
    counts = sum((file.counts for file in files.values() if file), Counter[str]())
    tables = list[pa.Table]()
    read = partial(_read_vertices, settings=settings)
    for _, (part_counts, part_tables) in _read_parts(files, read, workers, label="vertices"):
        counts.update(part_counts)
        tables += part_tables
    if len({table.schema for table in tables}) > 1:
        raise InputError("some files of vertices give names and others do not. Give all vertices a name, or none.")
    vertices = merge_vertices(tables)
    if vertices is None:
        raise InputError(f"{next(iter(files))} and the other files of vertices hold none. Check "
                         "pagerank.fetch.edges.vertices.")  # fmt: skip
    if counts["unread_fields"]:
        logger.warning("%d lines of %s have fields after the name, which are not read. If there are blanks in names, "
                       "separate the fields by tabs or commas, and set pagerank.fetch.edges.delimiter",
                       counts["unread_fields"], _join_paths(list(files)))  # fmt: skip
    lines = {f"vertex_{name}": counts[name] for name in (*LINES, "unread_fields")}
    return Counter(repeated_vertices=counts["rows"] - vertices.num_rows, **lines), vertices


def _open_files(paths: Sequence[str], settings: EdgeFiles) -> OpenFiles:
    work = partial(text.open_file, settings=settings)
    return dict(_raise_errors((path, _catch_error(path, work=work)) for path in map(Path, paths)))


def _read_parts(
    files: OpenFiles, work: Callable[[Part], Result], workers: Workers, *, label: str
) -> Iterator[tuple[Path, Result]]:
    """Yield the path of each part of the files and the result of ``work`` for it, in order."""
    units = [
        (path, unit)
        for path, file in files.items()
        for unit in (text.units(file) if file else PARQUET.row_groups(path))
    ]
    parts = list(enumerate(unit for _, unit in units))
    results = workers.map(partial(_catch_error, work=work), parts, label=label, ordered=True)
    return _raise_errors((path, result) for (path, _), result in zip(units, results, strict=True))


def _catch_error(task: Any, *, work: Callable[[Any], Result]) -> Result | WhitewaterError:
    try:
        return work(task)
    except (ConfigError, InputError) as error:
        return error


def _raise_errors(results: Iterable[tuple[Path, Result | WhitewaterError]]) -> Iterator[tuple[Path, Result]]:
    """Yield results with their paths; then raise one error that lists the first error of each file, if any."""
    by_path: dict[Path, WhitewaterError] = {}
    for path, result in results:
        if isinstance(result, WhitewaterError):
            by_path.setdefault(path, result)
        else:
            yield path, result
    errors = list(by_path.values())
    if len(errors) > 1:
        lines = [f"{len(errors)} files cannot be read:", *map(str, errors[:_LISTED_ERRORS])]
        if len(errors) > _LISTED_ERRORS:
            lines.append(f"... and {len(errors) - _LISTED_ERRORS:,} more files.")
        raise type(errors[0])("\n".join(lines))
    if errors:
        raise errors[0]


def _check_counts(
    files: OpenFiles, counts: Mapping[Path, Counter[str]], settings: EdgeFiles
) -> Iterator[tuple[Path, WhitewaterError]]:
    """Yield an error for each file without the number of edges that it declares; warn of doubtful lines."""
    unread, doubtful = list[Path](), [path for path, file in files.items() if file and file.is_doubtful]
    for path, file in files.items():
        read, names = counts[path]["read"], file.header if file else PARQUET.footer(path).schema.names
        if settings.weight_column in names or (counts[path]["unread_fields"] and not names):
            unread.append(path)
        if file and file.declared not in {None, read}:
            if file.size:
                yield path, InputError(f"{path} declares {file.declared:,} entries, but has {read:,}: it is cut off or "
                                       "was changed. Fetch it again, or correct the line of sizes.")  # fmt: skip
            else:
                logger.warning(
                    "%s: a comment tells of %d edges, but it has %d. Is it complete?", path, file.declared, read
                )
    if unread and not settings.weighted:
        logger.warning("%s: a third field, or a column %r, is not read. If it is a weight, set pagerank.fetch.edges."
                       "weighted to true", _join_paths(unread), settings.weight_column)  # fmt: skip
    if doubtful:
        logger.warning("%s: the first line with # or %% is read as a comment, but could be an edge. If it "
                       "is one, set pagerank.fetch.edges.comment to 'none'", _join_paths(doubtful))  # fmt: skip


def _join_paths(paths: Sequence[Path]) -> str:
    return f"{paths[0]} and {len(paths) - 1} more files" if len(paths) > 1 else str(paths[0])


def _read_vertices(part: Part, *, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    _, unit = part
    return vertices_of_group(unit, settings) if isinstance(unit, RowGroup) else text.read_vertices(unit, settings)


def _read_edges_of_part(
    part: Part, *, settings: EdgeFiles, rules: EdgeRules, folder: Path, known: Ids | None
) -> tuple[Counter[str], pa.Table | None]:
    number, unit = part
    batches = edges_of_group(unit, settings) if isinstance(unit, RowGroup) else text.read_edges(unit, settings)
    return write_part(folder, number, batches, rules=rules, known=known, weighted=settings.weighted)


def write_part(
    folder: Path, number: int, batches: Iterable[Batch], *, rules: EdgeRules, known: Ids | None, weighted: bool = False
) -> tuple[Counter[str], pa.Table | None]:
    """Write edges as a part of a folder; return the counts, and vertices to add to the table of vertices.

    These are vertices with names, or vertices that are not the end of a kept edge. ``known`` are the vertices of the
    table, if there is one.
    """
    counts, vertices = Counter[str](), list[pa.Table]()
    with EdgesWriter(folder, number, weighted=weighted) as writer:
        for batch in batches:
            is_kept, is_loop, row_counts = _apply_rules(batch.source, batch.target, known, rules)
            counts += row_counts + batch.counts
            arrays = [batch.source, batch.target, *([] if batch.weight is None else [batch.weight])]
            writer.add(*(arrays if is_kept.all() else [array[is_kept] for array in arrays]))
            if known is None:
                vertices.append(_vertex_table(batch, [batch.source[is_loop & ~is_kept]]))
            elif rules.broken == "keep":
                table = _vertex_table(batch, [batch.source, batch.target])
                vertices.append(table.filter(pa.array(find_positions(table["vertex"].to_numpy(), known) < 0)))
    return counts, merge_vertices(vertices)


def _apply_rules(source: Ids, target: Ids, known: Ids | None, rules: EdgeRules) -> tuple[Mask, Mask, Counter[str]]:
    """Return masks of the kept rows and of the self-loops, bool (rows,), and the counts.

    A row is broken if an end is not among the ``known`` vertices. A broken row that is dropped is not a self-loop.
    """
    broken = np.zeros(len(source), bool)
    if known is not None:
        broken = (find_positions(source, known) < 0) | (find_positions(target, known) < 0)
    drop_broken, drop_loops = rules.broken == "drop", rules.self_loops == "drop"
    loops = (source == target) & ~(broken & drop_broken)
    kept = ~((broken & drop_broken) | (loops & drop_loops))
    rows = [len(source), kept.sum(), broken.sum(), broken.sum() * drop_broken, loops.sum(), loops.sum() * drop_loops]
    return kept, loops, Counter(dict(zip(COUNTS, map(int, rows), strict=True)))


def _vertex_table(batch: Batch, ends: list[Ids]) -> pa.Table:
    """Return the named vertices of a batch, or without names the given ends and the first vertices of lines."""
    if batch.names is not None:
        return batch.names
    firsts = [] if batch.firsts is None else [batch.firsts]
    return pa.table({"vertex": to_arrow(np.unique(np.concatenate([*ends, *firsts])))})


def edges_of_group(group: RowGroup, settings: EdgeFiles) -> Iterator[Batch]:
    """Yield the edges of a row group."""
    with PARQUET.explain_errors(group.path), pq.ParquetFile(group.path) as file:
        names = settings.columns_of(group.path, file.schema_arrow.names)
        for batch in file.iter_batches(BLOCK_ROWS, [group.number], names, use_threads=False):
            columns = [_check_ids(batch[name], _locate(group, name), settings) for name in names[:2]]
            (source, target), names_table = compute_ids(columns)
            weights = [_check_weights(batch[name], _locate(group, name)) for name in names[2:]]
            yield Batch(source, target, weights[0] if weights else None, names=names_table)


def vertices_of_group(group: RowGroup, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    """Return the count of ``rows`` of a row group, and its vertices as tables of vertex and, if any, name.

    The ids are the first column, whatever its name; the names the second, if it is text and the ids are integers.
    """
    with PARQUET.explain_errors(group.path), pq.ParquetFile(group.path) as file:
        schema = file.schema_arrow
        is_named = settings.ids == "integer" and len(schema) > 1 and _is_text(schema.types[1])
        table = file.read_row_group(group.number, schema.names[: 1 + is_named], use_threads=False)
    columns = [column.combine_chunks() for column in table.columns]
    ids = _check_ids(columns[0], _locate(group, schema.names[0]), settings)
    vertices = vertex_table(ids, _check_names(columns[1], _locate(group, schema.names[1])) if is_named else None)
    return Counter(rows=table.num_rows), [vertices] if table.num_rows else []


def _locate(group: RowGroup, column: str) -> str:
    return f"{group.path}, row group {group.number}: column {column!r}"


def _check_ids(column: pa.Array, where: str, settings: EdgeFiles) -> pa.Array:
    """Return integer ids as int64, or names as large_string."""
    if _is_text(column.type) != (settings.ids == "text"):
        kind, other = ("integers", "text") if settings.ids == "integer" else ("text", "integer")
        raise ConfigError(f"{where} is {'text' if _is_text(column.type) else column.type}, but ids are {kind}. Set "
                          f"pagerank.fetch.edges.ids to {other}.")  # fmt: skip
    if settings.ids == "text":
        return _check_names(column, where)
    if column.null_count or not pt.is_integer(column.type):
        problem = "a null" if column.null_count else f"the type {column.type}, not an integer type"
        raise InputError(f"{where} has {problem}: each row names a vertex. Correct the file.")
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{where} has an id that does not fit 64 bits with sign ({error}). Write ids as text, and set "
                         "pagerank.fetch.edges.ids to text.") from error  # fmt: skip


def _check_names(column: pa.Array, where: str) -> pa.Array:
    texts = column.cast(pa.large_string())
    texts.validate(full=True)
    if texts.null_count or (len(texts) and not pc.min(pc.binary_length(texts)).as_py()):
        raise InputError(f"{where} has a null or an empty text: each row names a vertex. Correct the file.")
    return texts


def _is_text(type_: pa.DataType) -> bool:
    values = type_.value_type if pt.is_dictionary(type_) else type_
    return bool(pt.is_string(values) or pt.is_large_string(values) or pt.is_string_view(values))


def _check_weights(column: pa.Array, where: str) -> Array:
    try:
        weights: Array = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise InputError(f"{where} cannot be read as weights ({error}). Correct the file, or set pagerank.fetch.edges."
                         "weighted to false to ignore weights.") from error  # fmt: skip
    is_wrong = ~((weights > 0) & (weights <= LARGEST_WEIGHT))
    if is_wrong.any():
        raise InputError(
            f"{where} has {weights[is_wrong][0]} (or null), which is not a number above 0 and up to "
            f"{LARGEST_WEIGHT:g}. Correct the file, or set pagerank.fetch.edges.weighted to false to ignore weights."
        )
    return weights

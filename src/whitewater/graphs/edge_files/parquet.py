"""Columns of Parquet files as edges and vertices, a row group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from whitewater.errors import ConfigError, InputError
from whitewater.graphs.edge_files.names import Batch, ids_of, vertices_of, wrong_column
from whitewater.graphs.edges_folder import LARGEST_WEIGHT
from whitewater.io.folder import RowGroup

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.graphs.config import Edges

BLOCK_ROWS = 1 << 20
_MAGIC = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Return whether a file begins as one of Parquet; a file that cannot be read is none."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def units(path: Path) -> list[RowGroup]:
    """Return the row groups of a file. Raises InputError if it is cut off or damaged."""
    with _opened(path) as file:
        return [RowGroup(path, each, file.metadata.row_group(each).num_rows) for each in range(file.num_row_groups)]


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a file."""
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def read_edges(group: RowGroup, settings: Edges) -> Iterator[Batch]:
    """Yield the edges of a row group.

    Raises ConfigError if a column is missing or there twice, or is text where the settings tell integers, or the other
    way round, and InputError if an id is null or no integer of 64 bits, or a weight is not finite and above 0.
    """
    names = [settings.source_column, settings.target_column, *([settings.weight_column] * settings.weighted)]
    where = f"{group.path}, row group {group.number}"
    with _opened(group.path) as file:
        for name in names:
            if file.schema_arrow.names.count(name) != 1:
                raise wrong_column(group.path, name, file.schema_arrow.names)
        for batch in file.iter_batches(BLOCK_ROWS, [group.number], names, use_threads=False):
            (source, target), named = ids_of([_ids(batch.column(name), name, where, settings) for name in names[:2]])
            weight = _weights(batch.column(names[2]), names[2], where) if settings.weighted else None
            yield Batch(source, target, weight, names=named)


def read_vertices(group: RowGroup, settings: Edges) -> tuple[Counter[str], list[pa.Table]]:
    """Return the count of ``rows`` of a row group, and its vertices as tables of vertex and, if any, name.

    The first column holds the ids, whatever its name; the second one, if it is text and ids are not, the names.
    """
    with _opened(group.path) as file:
        schema = file.schema_arrow
        named = settings.ids == "integer" and len(schema) > 1 and _is_text(schema.types[1])
        table = file.read_row_group(group.number, schema.names[: 1 + named], use_threads=False).combine_chunks()
    where = f"{group.path}, row group {group.number}"
    ids, *names = [table.column(place).combine_chunks() for place in range(1 + named)]
    found = vertices_of(_ids(ids, schema.names[0], where, settings),
                        _texts(names[0], schema.names[1], where) if names else None)  # fmt: skip
    return Counter(rows=len(ids)), [found] if len(ids) else []


def _ids(column: pa.Array, name: str, where: str, settings: Edges) -> pa.Array:
    """Return numbers as int64, or names."""
    if _is_text(column.type) != (settings.ids == "text"):
        kind, other = ("text", "integers") if _is_text(column.type) else (str(column.type), "text")
        raise ConfigError(f"{where}: column {name!r} is {kind}, but ids are {other}. Set pagerank.fetch.edges.ids to "
                          f"{'text' if other == 'integers' else 'integer'}.")  # fmt: skip
    if settings.ids == "text":
        return _texts(column, name, where)
    if column.null_count or not pt.is_integer(column.type):
        found = "a null" if column.null_count else f"{column.type}, and no integers"
        raise InputError(f"{where}: column {name!r} has {found}: each row names a vertex. Correct the file.")
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{where}: column {name!r} has an id that does not fit 64 bits with sign ({error}). Write ids "
                         "as text, and set pagerank.fetch.edges.ids to text.") from error  # fmt: skip


def _texts(column: pa.Array, name: str, where: str) -> pa.Array:
    texts = column.cast(pa.large_string())
    texts.validate(full=True)
    if texts.null_count or (len(texts) and not pc.min(pc.binary_length(texts)).as_py()):
        raise InputError(f"{where}: column {name!r} has a null or an empty text, which names no vertex. Correct the "
                         "file.")  # fmt: skip
    return texts


def _is_text(type_: pa.DataType) -> bool:
    values = type_.value_type if pt.is_dictionary(type_) else type_
    return bool(pt.is_string(values) or pt.is_large_string(values))


def _weights(column: pa.Array, name: str, where: str) -> Array:
    weights: Array = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    wrong = ~((weights > 0) & (weights <= LARGEST_WEIGHT))
    if wrong.any():
        raise InputError(
            f"{where}: column {name!r} has {weights[wrong][0]} (or null), which is not a number above 0 and up to "
            f"{LARGEST_WEIGHT:g}. Correct the file, or set pagerank.fetch.edges.weighted to false if weights shall "
            "not count."
        )
    return weights


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a whole Parquet file: {str(error).rstrip('.')}. Fetch it again.") from error

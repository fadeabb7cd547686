"""Columns of Parquet files as edges and vertices, a row group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from whitewater.errors import ConfigError, InputError
from whitewater.graphs.edges_folder import LARGEST_WEIGHT, Batch
from whitewater.graphs.vertex_ids import ids_of, vertices_of
from whitewater.io.folder import Files, RowGroup

if TYPE_CHECKING:
    from whitewater.engines.device import Array
    from whitewater.graphs.config import EdgeFiles

BLOCK_ROWS = 1 << 20
FILES = Files(remedy="Fetch it again.")


def read_edges(group: RowGroup, settings: EdgeFiles) -> Iterator[Batch]:
    """Yield the edges of a row group.

    Raises ConfigError if a column is missing or there twice, or is text where the settings tell integers, or the other
    way round, and InputError if an id is null or no integer of 64 bits, or a weight is not finite and above 0.
    """
    with FILES.explained(group.path), pq.ParquetFile(group.path) as file:
        names = settings.columns_of(group.path, file.schema_arrow.names)
        for batch in file.iter_batches(BLOCK_ROWS, [group.number], names, use_threads=False):
            (source, target), named = ids_of([_ids(batch[name], _where(group, name), settings) for name in names[:2]])
            weights = [_weights(batch[name], _where(group, name)) for name in names[2:]]
            yield Batch(source, target, weights[0] if weights else None, names=named)


def read_vertices(group: RowGroup, settings: EdgeFiles) -> tuple[Counter[str], list[pa.Table]]:
    """Return the count of ``rows`` of a row group, and its vertices as tables of vertex and, if any, name.

    The first column holds the ids, whatever its name; the second one, if it is text and ids are not, the names.
    """
    with FILES.explained(group.path), pq.ParquetFile(group.path) as file:
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

"""Columns of Parquet files as edges and vertices, a row group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.devices import Encoded, Kind
from whitewater.devices.parquet import cpu_row_group_blocks
from whitewater.errors import ConfigError, InputError
from whitewater.pagerank.edge_files.batches import Batch, Ids, ids_of, spans_of, wrong_column
from whitewater.pagerank.edge_files.names import table_of
from whitewater.pagerank.edges_folder import LARGEST_WEIGHT

if TYPE_CHECKING:
    from whitewater.config.pagerank import Edges
    from whitewater.devices.protocol import Array

BLOCK_ROWS = 1 << 20
_MAGIC = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Return whether a file begins as one of Parquet; a file that cannot be read is none."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def row_groups(path: Path) -> int:
    """Return the number of row groups of a Parquet file.

    Raises
    ------
    InputError
        If it is cut off or damaged.
    """
    return int(_metadata(path).num_row_groups)


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    return list(_metadata(path).schema.to_arrow_schema().names)


def read_pairs(path: Path, row_group: int, settings: Edges) -> Iterator[Batch]:
    """Yield the edges of a row group.

    Raises
    ------
    ConfigError
        If a column is missing, or is text where the settings tell integers.
    InputError
        If an id is null or no integer of 64 bits, or a weight is not finite and above 0.
    """
    kind: Kind = "text" if settings.ids == "text" else "id"
    columns: dict[str, Kind] = {settings.source_column: kind, settings.target_column: kind}
    if settings.weighted:
        columns[settings.weight_column] = "float64"
    _check_columns(path, columns)
    where = f"{path}, row group {row_group}: column"
    for block in cpu_row_group_blocks(path, row_group, columns, block_rows=BLOCK_ROWS):
        weight = _weights(block[settings.weight_column], where, settings) if settings.weighted else None
        text, (source, target) = _ids({name: block[name] for name in list(columns)[:2]}, where)
        yield Batch(text, source, target, weight)


def read_vertices(path: Path, row_group: int, settings: Edges) -> tuple[Counter[str], pa.Table]:
    """Return the count of ``rows`` of a row group, and its vertices as a table of vertex and, where there is one, name.

    The first column holds the ids, whatever its name; the second one, if it is text and ids are not, the names.
    """
    metadata = _metadata(path)
    schema, rows = metadata.schema.to_arrow_schema(), metadata.row_group(row_group).num_rows
    columns: dict[str, Kind] = {schema.names[0]: "text" if settings.ids == "text" else "id"}
    if settings.ids == "integer" and len(schema) > 1 and _is_text(schema.types[1]):
        columns[schema.names[1]] = "text"
    [block] = cpu_row_group_blocks(path, row_group, columns, block_rows=max(1, rows))
    text, found = _ids(block, f"{path}, row group {row_group}: column")
    named = found[-1].spans
    counts = Counter(rows=rows)
    if named is None:
        return counts, pa.table({"vertex": pa.array(found[0].ids)})
    return counts, table_of(text, named, found[0].ids)


def _check_columns(path: Path, columns: Mapping[str, Kind]) -> None:
    """Refuse what the settings can remedy: other names of columns, and names where ids are said to be integers."""
    schema = _metadata(path).schema.to_arrow_schema()
    for name, kind in columns.items():
        if schema.names.count(name) != 1:
            raise wrong_column(path, name, schema.names)
        if kind == "id" and _is_text(schema.field(name).type):
            raise ConfigError(
                f"{path}: column {name!r} is text, but ids are integers. Set pagerank.fetch.edges.ids to text."
            )


def _is_text(type_: pa.DataType) -> bool:
    values = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values))


def _ids(columns: Mapping[str, Array | Encoded], where: str) -> tuple[Array, list[Ids]]:
    """Return the ids of each column, and one text of all names, which their spans are of."""
    words = [word for column in columns.values() if isinstance(column, Encoded) for word in column.vocabulary]
    text, spans = spans_of(pa.array(words, pa.large_string()))
    found = []
    start = 0
    for name, column in columns.items():
        if not isinstance(column, Encoded):
            found.append(Ids(column))
            continue
        if (column.codes < 0).any():
            raise InputError(f"{where} {name!r} has a null or an empty text, which names no vertex. Correct the file.")
        found.append(ids_of(text, spans[column.codes + start], named=True))
        start += len(column.vocabulary)
    return text, found


def _weights(values: Array | Encoded, where: str, settings: Edges) -> Array:
    weights = np.asarray(values)
    wrong = ~((weights > 0) & (weights <= LARGEST_WEIGHT))
    if wrong.any():
        raise InputError(
            f"{where} {settings.weight_column!r} has {weights[wrong][0]} (or null), which is no number above 0 and up "
            f"to {LARGEST_WEIGHT:g}. Correct the file, or set pagerank.fetch.edges.weighted to false if weights shall "
            "not count."
        )
    return weights


def _metadata(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a whole Parquet file: {str(error).rstrip('.')}. Fetch it again.") from error

"""Personalization: where the random walk restarts, read from a table of vertices and weights."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from whitewater.errors import InputError, shorten_list
from whitewater.graphs.graph_folder import GraphFolder
from whitewater.graphs.vertex_ids import find_positions, vertex_ids


def read_personalization(path: Path, graph: GraphFolder) -> npt.NDArray[np.float64]:
    """Read a personalization vector: float64 (vertices,), sum 1.

    The file is CSV with a header, or Parquet. It has the column ``vertex`` (the id) or ``name``, and optionally
    ``weight``, which is 1 by default. The weights of rows with the same vertex are added up.

    Raises InputError if the file cannot be read, lacks these columns, names an unknown vertex, or has weights that are
    negative, not finite, or all 0.
    """
    table = _read_table(path)
    numbers = _find_vertices(table, path, graph)
    weights = table["weight"].to_numpy() if "weight" in table.column_names else np.ones(len(table))
    invalid_rows = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(invalid_rows):
        raise InputError(
            f"{path}: {len(invalid_rows)} weights are negative, missing or not finite, the first in row "
            f"{invalid_rows[0] + 1}. Weights are 0 or above."
        )
    highest_weight = weights.max(initial=0)
    if not highest_weight:
        raise InputError(f"{path}: the weights add up to 0. Give at least one vertex a weight above 0.")
    # Divided by the highest weight first, because the sum of the weights may overflow, or be too small to divide by.
    vector = np.bincount(numbers, weights / highest_weight, minlength=graph.vertices)
    return vector / vector.sum()


def _read_table(path: Path) -> pa.Table:
    types = {"vertex": pa.int64(), "name": pa.string(), "weight": pa.float64()}
    try:
        options = csv.ConvertOptions(column_types=types)
        table = pq.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path, convert_options=options)
        table.validate(full=True)  # text must be UTF-8
        if len(set(table.column_names)) < table.num_columns:
            raise InputError(f"{path} has the columns {', '.join(table.column_names)}. Keep one of each name.")
        if unclear := [name for name in table.column_names if name != "weight" == name.strip().lower()]:
            raise InputError(f"{path} has a column {unclear[0]!r}. Write it in lower case, without blanks.")
        return table.cast(pa.schema([(field.name, types.get(field.name, field.type)) for field in table.schema]))
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"pagerank.rank.personalization: {path} cannot be read: {error}. Name a CSV file with a header, or "
            "Parquet, of vertex, an integer, or name, and weight, a number."
        ) from error


def _find_vertices(table: pa.Table, path: Path, graph: GraphFolder) -> npt.NDArray[np.int64]:
    """Return the vertex number of each row."""
    keys = [name for name in ("vertex", "name") if name in table.column_names]
    if len(keys) != 1:
        raise InputError(
            f"{path} has the columns {', '.join(table.column_names)}; it needs either vertex, the id, or name."
        )
    [key] = keys
    if key == "name" and not graph.named:
        raise InputError(f"{path} has names, but the vertices of this graph have none. Give the column vertex, the id.")
    column = table[key]
    if column.null_count:
        raise InputError(f"{path}: {column.null_count} rows have no {key}. Remove them.")
    ids = vertex_ids(column.to_pylist()) if key == "name" else column.to_numpy()
    numbers = find_positions(ids, graph.ids)
    unknown_rows = np.flatnonzero(numbers < 0)
    if len(unknown_rows):
        unknown = shorten_list(column.take(unknown_rows).cast(pa.string()).to_pylist())
        raise InputError(
            f"{path}: {len(unknown_rows)} of {len(ids)} rows name no vertex of the graph: {unknown}. Remove them, or "
            "write names as in vertices.parquet."
        )
    return numbers

"""Edges as they come from a file, some rows at a time; ids of vertices that have names, and each name once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whitewater.engines.device import Array
from whitewater.errors import ConfigError, IntegrityError
from whitewater.graphs.vertex_ids import vertex_ids
from whitewater.io.terminal_text import shorten
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.graphs.config import EdgeFiles

# Columns of a list of names in an error.
_LONGEST_LIST = 300
SCHEMA = pa.schema([("vertex", pa.int64()), ("name", pa.large_string())])


@dataclass(frozen=True)
class Batch:
    """Some edges.

    ``source`` and ``target`` int64 (rows,), ``weight`` float64 (rows,); ``firsts`` int64 are the vertices that lines
    begin with; ``names``, vertex and name, are those of all these where they have any; ``counts`` tells how many lines
    were read, and what those are that are not rows.
    """

    source: Array
    target: Array
    weight: Array | None = None
    firsts: Array | None = None
    names: pa.Table | None = None
    counts: Counter[str] = field(default_factory=Counter)


def ids_of(columns: Sequence[pa.Array]) -> tuple[list[Array], pa.Table | None]:
    """Return the ids of integers, or of names: int64 (rows,) of each column, and the table of the names, each once."""
    if pa.types.is_integer(columns[0].type):
        return [to_numpy(column) for column in columns], None
    words = pa.concat_arrays(columns).dictionary_encode()
    ids = vertex_ids(words.dictionary.to_pylist())
    bounds = np.cumsum([len(column) for column in columns])[:-1]
    names = pa.table({"vertex": to_arrow(ids), "name": words.dictionary}).cast(SCHEMA)
    return np.split(ids[to_numpy(words.indices)], bounds), names


def vertices_of(vertices: pa.Array, names: pa.Array | None) -> pa.Table:
    """Return a table of vertices, which are ids with or without names, or names."""
    if names is not None:
        return _merged([pa.table({"vertex": vertices, "name": names}).cast(SCHEMA)])
    [ids], named = ids_of([vertices])
    return pa.table({"vertex": to_arrow(ids)}) if named is None else _merged([named])


def edge_columns(path: Path, columns: Sequence[str], settings: EdgeFiles) -> list[str]:
    """Return the columns of source, target and, where edges have one, weight.

    Raises ConfigError if one is not among the ``columns`` of a file, or more than once.
    """
    names = [settings.source_column, settings.target_column, *([settings.weight_column] * settings.weighted)]
    for name in names:
        if columns.count(name) != 1:
            listed = shorten(", ".join(columns), columns=_LONGEST_LIST)
            raise ConfigError(
                f"{path} has {'more than one' if name in columns else 'no'} column {name!r}; it has {listed}. Set "
                "pagerank.fetch.edges.source_column, .target_column and .weight_column, or of text .header and "
                ".delimiter."
            )
    return names


def merged(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Return one table, ascending by vertex, of tables of vertices, or of vertices and names, where each may be known.

    What waits is merged when it is as large as what was merged before. Without tables, None.

    Raises IntegrityError if an id has two names.
    """
    waiting = list[pa.Table]()
    for table in tables:
        waiting.append(table)
        if len(waiting) > 1 and sum(each.num_rows for each in waiting[1:]) > waiting[0].num_rows:
            waiting = [_merged(waiting)]
    return _merged(waiting) if waiting else None


def _merged(tables: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(tables).sort_by("vertex")
    ids = table["vertex"].to_numpy()
    again = ids[1:] == ids[:-1]
    if "name" in table.column_names and again.any():
        names = table["name"]
        different = np.flatnonzero(again & pc.not_equal(names[1:], names[:-1]).to_numpy())
        if len(different):
            raise IntegrityError(
                f"vertex {ids[different[0]]} has two names. A table of vertices must give each one name; where ids are "
                "hashes of names, two names have one by chance, once in 2**65 / n**2 graphs of n names: leave one out, "
                "or use integer ids."
            )
    return table.filter(pa.array(np.append(True, ~again)[: len(ids)]))

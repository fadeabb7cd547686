"""Ids of vertices that have names, such as URLs: XXH64, seed 0, of the name in UTF-8, read as a signed integer.

So every page has its id before any other is known, on every machine. Two names of one id (expected once in 2**65 / n**2
runs with n names) are found and refused where tables of vertices are merged.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.8.2, section XXH64.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from whitewater.errors import IntegrityError
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

Ids = npt.NDArray[np.int64]
SCHEMA = pa.schema([("vertex", pa.int64()), ("name", pa.large_string())])


def vertex_id(name: str) -> int:
    """Return the id of a name, -2**63 <= id < 2**63.

    Examples
    --------
    >>> vertex_id("https://example.org/")
    5946287761419108731
    """
    unsigned: int = xxhash.xxh64_intdigest(name.encode())
    return unsigned - (unsigned >> 63 << 64)


def vertex_ids(names: Sequence[str]) -> Ids:
    """Return the ids of names, int64 (names,)."""
    return np.fromiter((vertex_id(name) for name in names), np.int64, len(names))


def places_of(ids: Ids, known: Ids) -> Ids:
    """Return the place of each id, int64 (ids,), among those known, which ascend, each once; -1 where it is not."""
    if not len(known):
        return np.full(len(ids), -1)
    if int(known[-1]) - int(known[0]) == len(known) - 1:
        # Ids in a row, as those of Common Crawl, need no search, which would miss the cache at each step.
        places = ids.view(np.uint64) - known[:1].view(np.uint64)
        return np.where(places < len(known), places.view(np.int64), -1)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[places] == ids, places, -1)


def ids_of(columns: Sequence[pa.Array]) -> tuple[list[Ids], pa.Table | None]:
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

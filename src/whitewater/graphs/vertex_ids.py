"""Ids of named vertices, such as pages: XXH64 (seed 0) of the name in UTF-8, as a signed integer.

A page has the same id on every machine, whatever the other pages are. Merging tables of vertices refuses two names with
one id, expected once in 2**65 / n**2 runs with n names. Source: Y. Collet, "xxHash fast digest algorithm", version
0.8.2, section XXH64.
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


def find_positions(ids: Ids, known: Ids) -> Ids:
    """Return the position of each id in ``known``, int64 (ids,), -1 if missing; ``known`` is ascending and unique."""
    if not len(known):
        return np.full(len(ids), -1)
    if int(known[-1]) - int(known[0]) == len(known) - 1:
        # Consecutive ids, such as Common Crawl's, need no binary search, which would miss the cache at each step.
        places = ids.view(np.uint64) - known[:1].view(np.uint64)
        return np.where(places < len(known), places.view(np.int64), -1)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[places] == ids, places, -1)


def compute_ids(columns: Sequence[pa.Array]) -> tuple[list[Ids], pa.Table | None]:
    """Return the ids of columns of integers or names: int64 (rows,) per column; and the table of the unique names."""
    if pa.types.is_integer(columns[0].type):
        return [to_numpy(column) for column in columns], None
    words = pa.concat_arrays(columns).dictionary_encode()
    ids = vertex_ids(words.dictionary.to_pylist())
    bounds = np.cumsum([len(column) for column in columns])[:-1]
    names = pa.table({"vertex": to_arrow(ids), "name": words.dictionary}).cast(SCHEMA)
    return np.split(ids[to_numpy(words.indices)], bounds), names


def vertex_table(vertices: pa.Array, names: pa.Array | None) -> pa.Table:
    """Return the table of vertices that are given as ids, as ids with names, or as names."""
    if names is not None:
        return _merge_tables([pa.table({"vertex": vertices, "name": names}).cast(SCHEMA)])
    [ids], table = compute_ids([vertices])
    return pa.table({"vertex": to_arrow(ids)}) if table is None else _merge_tables([table])


def merge_vertices(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Merge tables of vertices, with or without names, into one with unique, ascending ids; None without tables.

    Raises IntegrityError if an id has two names.
    """
    pending = list[pa.Table]()
    for table in tables:
        pending.append(table)
        # Merged only once the new rows outnumber the merged ones, so that no row is sorted often.
        if len(pending) > 1 and sum(new.num_rows for new in pending[1:]) > pending[0].num_rows:
            pending = [_merge_tables(pending)]
    return _merge_tables(pending) if pending else None


def _merge_tables(tables: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(tables).sort_by("vertex")
    ids = table["vertex"].to_numpy()
    is_repeated = ids[1:] == ids[:-1]
    if "name" in table.column_names and is_repeated.any():
        names = table["name"]
        conflicts = np.flatnonzero(is_repeated & pc.not_equal(names[1:], names[:-1]).to_numpy())
        if len(conflicts):
            raise IntegrityError(
                f"vertex {ids[conflicts[0]]} has two names. Give each vertex of the table one name. If ids are hashes "
                "of names, two names collided by chance, once in 2**65 / n**2 graphs of n names: leave one of them "
                "out, or use integer ids."
            )
    return table.filter(pa.array(np.append(True, ~is_repeated)[: len(ids)]))

"""Rows that repeat an earlier row of their file: found exactly, in bounded memory, on the host by Polars.

Rows whose hashes of a few columns agree are compared in all their columns. Hashes and such rows lie on disk; memory
holds about `HASHES` hashes, or `ROWS` rows, at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whitewater.engines import Array
from whitewater.engines.workers import Workers
from whitewater.tables.partitions import Partition
from whitewater.tables.with_polars import scan

HASHES, ROWS = 2**24, 2**20
HASH, PLACE = "hash of the row", "place of the row"


def mark_duplicates(
    partitions: Sequence[Partition], schema: pa.Schema, *, hashed: Sequence[str], folder: Path, workers: Workers
) -> list[Partition]:
    """Return partitions that name, in files in a folder, where each has rows that repeat an earlier one of their file.

    Rows repeat each other when they have the same bits in every column of the schema, nulls included; the first one
    counts as none. ``hashed`` are columns that all parts have and that are seldom equal.
    """
    if not partitions:
        return []
    numbered = [*enumerate(partitions)]
    each = [folder / f"{number}.npy" for number, _ in numbered]
    list(workers.map(partial(_write_hashes, columns=hashed, folder=folder), numbered, label="hashes"))
    np.save(folder / "repeated.npy", _repeated([np.load(path, mmap_mode="r") for path in each]))
    list(workers.map(partial(_write_candidates, schema=schema, folder=folder), numbered, label="candidates"))
    for places in _later_rows(folder):
        for number in np.unique(places >> 32):
            rows = places[places >> 32 == number] & 0xFFFFFFFF
            np.save(each[number], np.append(np.load(each[number]), rows))
    return [replace(partition, repeats=path) for partition, path in zip(partitions, each, strict=True)]


def _write_hashes(task: tuple[int, Partition], *, columns: Sequence[str], folder: Path) -> None:
    """Write a uint64 of the file and some columns of each row, the same for equal ones."""
    number, partition = task
    rows = scan(partition, pa.schema([])).select("file", *columns).collect()
    np.save(folder / f"{number}.npy", rows.hash_rows().to_numpy())


def _repeated(hashes: Sequence[Array]) -> Array:
    """Return the hashes that are there more than once, ascending."""
    pieces = np.uint64(sum(map(len, hashes)) // HASHES + 1)
    repeated = []
    for piece in range(int(pieces)):
        near = np.sort(np.concatenate([each[each % pieces == piece] for each in hashes]))
        repeated.append(np.unique(near[1:][near[1:] == near[:-1]]))
    return np.sort(np.concatenate(repeated))


def _write_candidates(task: tuple[int, Partition], *, schema: pa.Schema, folder: Path) -> None:
    """Write the rows whose hash is repeated, of equal ones the first; those after it are known to be duplicates."""
    number, partition = task
    path = folder / f"{number}.npy"
    hashes, repeated = np.load(path), np.load(folder / "repeated.npy", mmap_mode="r")
    rows = np.flatnonzero(np.searchsorted(repeated, hashes) < np.searchsorted(repeated, hashes, side="right"))
    frame = scan(partition, schema).select("file", *schema.names).collect()[rows]
    table = frame.to_arrow().cast(pa.schema([("file", pa.int64()), *schema]))
    first = _first_places(table.append_column(PLACE, pa.array(rows)))
    np.save(path, np.setdiff1d(rows, first))
    places = pa.array(number << 32 | first)
    candidates = table.take(pa.array(np.searchsorted(rows, first))).append_column(PLACE, places)
    keyed = candidates.append_column(HASH, pa.array(hashes[first])).sort_by(HASH)
    pq.write_table(keyed, folder / f"{number}.parquet", row_group_size=ROWS // 16)


def _later_rows(folder: Path) -> Iterator[Array]:
    """Yield the places, partition << 32 | row, of candidates that are equal to one at an earlier place."""
    files = sorted(folder.glob("*.parquet"))
    hashes = np.sort(pq.read_table(files, columns=[HASH])[HASH].to_numpy())
    bounds = [*np.unique(hashes[::ROWS]), None]
    for low, high in pairwise(bounds):
        below = [] if high is None else [(HASH, "<", high)]
        near = pq.read_table(files, filters=[(HASH, ">=", low), *below]).drop_columns([HASH])
        yield np.setdiff1d(near[PLACE].to_numpy(), _first_places(near))


def _first_places(table: pa.Table) -> Array:
    """Return the least place of each set of rows that are equal in all other columns, ascending."""
    columns = [name for name in table.column_names if name != PLACE]
    return np.sort(table.group_by(columns).aggregate([(PLACE, "min")])[f"{PLACE}_min"].to_numpy())

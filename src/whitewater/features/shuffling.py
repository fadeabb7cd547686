"""Rows in an order that looks random and depends on a seed and the rows' numbers only.

The order is that of the hash of each row's number, with the seed. Rows are parted by the first bits of the hash into
buckets on disk, and each bucket is sorted: a part of the data, or a bucket, for each thread is in memory at a time.
Neither the order nor the parts of the data, nor threads, change what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whitewater.errors import IntegrityError
from whitewater.features.categories.hashing import row_hash
from whitewater.features.dataset import Dataset, Part
from whitewater.features.feature_folder import FeatureFile, file_name
from whitewater.features.rows import as_table
from whitewater.features.transform import Transformation, even
from whitewater.tables.arrow_arrays import to_arrow, to_numpy
from whitewater.tables.columns import moved
from whitewater.tables.parquet.columns import column_of
from whitewater.tables.parquet.writing import write_columns

if TYPE_CHECKING:
    from whitewater.engines.device import Array, Device
    from whitewater.features.operator import Applying
    from whitewater.features.schema import Schema

# Rows of a bucket, about: of 40 columns of four bytes, 84 MB.
BUCKET_ROWS = 524_288
# Of a bucket, for each row and column: as read, in order, and as written.
ROW_BYTES = 24
_HASH = "hash"


@dataclass(frozen=True)
class Shuffle:
    """How rows are shuffled: ``key`` is the column of their numbers, of which each is there once."""

    key: str
    seed: int
    buckets: int
    scratch: Path
    schema: Schema
    row_group_rows: int


def buckets_of(rows: int) -> int:
    """Return the number of buckets for so many rows."""
    return max(1, -(-rows // BUCKET_ROWS))


def scatter(
    task: tuple[int, Part], *, shuffle: Shuffle, transformation: Transformation, dataset: Dataset, applying: Applying
) -> Path:
    """Transform a part; write its rows by bucket, in the order of their hashes; return the file."""
    number, part = task
    device, xp = applying.device, applying.device.xp
    block = transformation.part_block(part, dataset, applying)
    hashes = row_hash([block[shuffle.key]], shuffle.seed, device)
    order = xp.argsort(hashes)
    sorted_hashes = device.to_host(hashes[order])
    bounds = np.searchsorted(_bucket(sorted_hashes, shuffle.buckets), np.arange(shuffle.buckets + 1))
    rows = as_table(block, shuffle.schema.types, device).take(to_arrow(device.to_host(order)))
    rows = rows.append_column(_HASH, to_arrow(sorted_hashes)).combine_chunks()
    path = shuffle.scratch / f"{number:06d}.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        for start, stop in pairwise(bounds):
            writer.write_batch(_one_batch(rows.slice(int(start), int(stop - start))))
    return path


def gather(bucket: int, *, paths: Sequence[Path], shuffle: Shuffle, device: Device, folder: Path) -> FeatureFile:
    """Sort the rows of a bucket and write them as a file; raises IntegrityError if two rows have one number."""
    rows = pa.Table.from_batches([_batch(path, bucket) for path in paths])
    hashes = to_numpy(rows[_HASH])
    order = np.argsort(hashes)
    if len(order) > 1 and not np.diff(hashes[order]).all():
        raise IntegrityError(
            f"the column {shuffle.key!r} has a number twice, so the rows have no order. Make the log again."
        )
    sorted_rows = rows.drop_columns([_HASH]).combine_chunks().take(to_arrow(order))
    block = {name: moved(column_of(sorted_rows[name]), device.to_device) for name in shuffle.schema.names}
    name = file_name(bucket)
    if len(order):
        size = even(len(order), shuffle.row_group_rows)
        write_columns(block, folder / name, shuffle.schema.types, device, row_group_rows=size)
    return FeatureFile(name, len(order))


def _bucket(hashes: Array, buckets: int) -> Array:
    """Return the bucket of each hash; it ascends with the hash."""
    return (hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def _batch(path: Path, number: int) -> pa.RecordBatch:
    with pa.ipc.open_file(pa.memory_map(str(path))) as file:
        return file.get_batch(number)

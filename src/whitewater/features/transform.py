"""Applying a fitted plan to a dataset, part by part, and writing the results as a folder of features."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater.engines.device import Device
from whitewater.errors import IntegrityError
from whitewater.features.columns.categories import row_hash
from whitewater.features.dataset import Dataset, Part, as_table, cast_columns, check_seconds
from whitewater.features.feature_folder import FeatureFile, write_features, write_file
from whitewater.features.log_folder import ROW_ID, Log
from whitewater.features.operator import Mode
from whitewater.features.plan import Plan
from whitewater.features.schema import Schema
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Block
    from whitewater.step import Run

# Bytes per row and column of a block: as read, as computed, and as written.
ROW_BYTES = 16
# About how many rows a bucket has: 84 MB with 40 columns of four bytes.
BUCKET_ROWS = 524_288
# Bytes per row and column of a bucket: as read, as sorted, and as written.
SHUFFLED_ROW_BYTES = 24
_HASH = "hash"


@dataclass(frozen=True)
class _Results:
    """What a fitted plan makes of a dataset: columns of this schema."""

    plan: Plan
    dataset: Dataset
    mode: Mode
    schema: Schema

    def block(self, part: Part) -> Block:
        """Return the results for a part of the dataset, on the host."""
        plan, dataset, mode = self.plan, self.dataset, self.mode
        carried = {name: dataset.schema[name].type for name in self.schema.names if name not in plan.outputs}
        types = carried | {name: plan.schema[name].type for name in plan.data_columns(training=mode.training)}
        if mode.engine == "dask":
            from whitewater.features import with_dask

            read_part = with_dask.reader(part, dataset, types, mode.device)
        else:

            def read_part(names: Sequence[str]) -> Block:
                return cast_columns(dataset.read(part, names), types)

        def read(names: Sequence[str]) -> Block:
            columns = read_part(names)
            for name in columns.keys() & set(plan.seconds):
                check_seconds(name, columns[name])
            return columns

        results = plan.evaluate(read, {**plan.outputs, **dict.fromkeys(carried)}, mode)
        return results if mode.engine == "local" else with_dask.on_host(results, mode.device)

    def table(self, part: Part) -> pa.Table:
        """Return `block` as a table."""
        return as_table(self.block(part), self.schema.types)


def tables(plan: Plan, dataset: Dataset, *, run: Run[Any], workers: Workers, training: bool) -> Iterator[pa.Table]:
    """Yield the results part by part, in order; a few parts are in memory at a time."""
    results = _prepare(plan, dataset, run=run, workers=workers, training=training, tags={})
    parts, batch_size = dataset.parts, 2 * sum(workers.threads)
    for first in range(0, len(parts), batch_size):
        batch = parts[first : first + batch_size]
        yield from workers.map(_table, batch, label="transform", ordered=True, shared={"results": results})


def _table(part: Part, *, results: _Results) -> pa.Table:
    return results.table(part)


def _prepare(
    plan: Plan, dataset: Dataset, *, run: Run[Any], workers: Workers, training: bool, tags: Mapping[str, str]
) -> _Results:
    """Check a dataset, and that its parts fit into memory; ``tags`` are added to the columns that they name."""
    plan.check(dataset.schema, training=training)
    rows = max((part.rows for part in dataset.parts), default=0)
    columns = max(len(plan.data_columns(training=True)), len(plan.outputs))
    workers.forecast(
        run.device,
        a_task=rows * columns * ROW_BYTES,
        tasks=len(dataset.parts),
        what=f"transforming parts of up to {rows:,} rows",
        remedy="Make smaller row groups (recsys.fetch.row_group_rows), or take fewer threads.",
    )
    fields = plan.fields(dataset.schema)
    schema = Schema(tuple(field.with_tags(tags[field.name]) if field.name in tags else field for field in fields))
    return _Results(plan, dataset, Mode(run.device, training, run.engine), schema)


def write_in_order(
    plan: Plan,
    dataset: Dataset,
    folder: Path,
    *,
    run: Run[Any],
    workers: Workers,
    row_group_rows: int,
    tags: Mapping[str, str] | None = None,
    training: bool = False,
) -> int:
    """Write the results for a dataset, one file per part; return the number of rows.

    ``tags`` tells what the carried columns are for. Raises InputError if the data do not suit the plan, IntegrityError
    if a row is lost, and ResourceError if a part does not fit into memory.
    """
    results = _prepare(plan, dataset, run=run, workers=workers, training=training, tags=tags or {})
    folder.mkdir(parents=True)
    shared = {"results": results, "folder": folder, "row_group_rows": row_group_rows}
    files = workers.map(_write, list(enumerate(dataset.parts)), label="transform", ordered=True, shared=shared)
    return _finish(folder, results.schema, list(files), expected=dataset.rows, seed=None)


def _finish(folder: Path, schema: Schema, files: Sequence[FeatureFile], *, expected: int, seed: int | None) -> int:
    """Complete a folder of features; return its number of rows. Raises IntegrityError if it is not the expected one."""
    written = sum(file.rows for file in files)
    if written != expected:
        raise IntegrityError(f"{written} rows were written to {folder}, of {expected}. Report this as a bug.")
    write_features(folder, schema, [file for file in files if file.rows], seed=seed)
    return written


def _write(task: tuple[int, Part], *, results: _Results, folder: Path, row_group_rows: int) -> FeatureFile:
    number, part = task
    return write_file(folder, number, results.table(part), results.schema, row_group_rows=row_group_rows)


def write_shuffled(
    plan: Plan,
    log: Log,
    folder: Path,
    *,
    run: Run[Any],
    workers: Workers,
    row_group_rows: int,
    seed: int,
) -> int:
    """Write the results for the rows of a log, for training, in pseudorandom order; return the number of rows.

    Rows are sorted by a seeded hash of their numbers: the first bits of the hash distribute them to buckets on disk,
    and then every bucket is sorted. Each thread has one part of the data, or one bucket, in memory at a time. Neither
    the order of the rows, nor the parts of the data, nor the threads change the result. Raises as `write_in_order`
    does, and IntegrityError if two rows have the same number.
    """
    dataset, buckets = Dataset(log.path), max(1, -(-log.rows // BUCKET_ROWS))
    results = _prepare(plan, dataset, run=run, workers=workers, training=True, tags=log.tags)
    scratch, schema = folder / "scratch", results.schema
    scratch.mkdir(parents=True)
    # Rows are sorted on the host, whatever the device.
    workers.forecast(
        Device(),
        a_task=log.rows // buckets * len(schema.fields) * SHUFFLED_ROW_BYTES,
        tasks=buckets,
        what=f"shuffling {log.rows:,} rows in {buckets} buckets",
        remedy="Take fewer threads.",
    )
    tasks = [(part, scratch / f"{number:06d}.arrow") for number, part in enumerate(dataset.parts)]
    shared: dict[str, Any] = {"results": results, "buckets": buckets, "seed": seed}
    paths = list(workers.map(_scatter, tasks, label="transform train", ordered=True, shared=shared))
    shared = {"paths": paths, "folder": folder, "schema": schema, "row_group_rows": row_group_rows}
    files = list(workers.map(_gather, range(buckets), label="shuffle train", ordered=True, shared=shared))
    shutil.rmtree(scratch)
    return _finish(folder, schema, files, expected=log.rows, seed=seed)


def _scatter(task: tuple[Part, Path], *, results: _Results, buckets: int, seed: int) -> Path:
    """Transform a part, and write its rows to a file as one batch per bucket, sorted by hash; return its path."""
    part, path = task
    block = results.block(part)
    hashes = row_hash([block[ROW_ID]], seed, Device())
    order = np.argsort(hashes)
    sorted_hashes = hashes[order]
    # Larger hashes are in later buckets.
    of_bucket = (sorted_hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)
    bounds = np.searchsorted(of_bucket, np.arange(buckets + 1))
    table = as_table(block, results.schema.types).take(to_arrow(order))
    (rows,) = table.append_column(_HASH, to_arrow(sorted_hashes)).combine_chunks().to_batches()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        for start, stop in pairwise(bounds.tolist()):
            writer.write_batch(rows.slice(start, stop - start))
    return path


def _gather(bucket: int, *, paths: Sequence[Path], folder: Path, schema: Schema, row_group_rows: int) -> FeatureFile:
    """Sort the rows of a bucket and write them to a file; raises IntegrityError if two rows have the same number."""
    rows = pa.Table.from_batches([pa.ipc.open_file(pa.memory_map(str(path))).get_batch(bucket) for path in paths])
    hashes = to_numpy(rows[_HASH])
    order = np.argsort(hashes)
    if len(order) > 1 and not np.diff(hashes[order]).all():
        raise IntegrityError(
            f"two rows have the same number in the column {ROW_ID!r}, so their order is undefined. Make the log again."
        )
    sorted_rows = rows.drop_columns([_HASH]).combine_chunks().take(to_arrow(order))
    return write_file(folder, bucket, sorted_rows, schema, row_group_rows=row_group_rows)

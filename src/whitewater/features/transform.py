"""Applying a fitted plan to a dataset part by part, and writing the results to a folder of features."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whitewater.engines.device import Device
from whitewater.engines.workers import Workers
from whitewater.errors import IntegrityError
from whitewater.features.columns.categories import row_hash
from whitewater.features.columns.column import Block
from whitewater.features.dataset import SMALLER_PARTS, Dataset, Part, as_table, cast_columns, check_seconds
from whitewater.features.feature_folder import FeatureFile, write_features, write_file
from whitewater.features.log_folder import ROW_ID
from whitewater.features.operator import Mode
from whitewater.features.plan import PassState, Plan
from whitewater.features.schema import Schema
from whitewater.step import Run
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

# Bytes per row and column of a block: as read, as computed, and as written.
ROW_BYTES = 16
# Approximate rows of a bucket: 84 MB with 40 columns of four bytes.
BUCKET_ROWS = 524_288
# The same for a bucket: as read, as sorted, and as written.
SHUFFLED_ROW_BYTES = 24
_HASH = "hash"


@dataclass(frozen=True)
class _Results(PassState):
    schema: Schema  # of the results


def _block(part: Part, results: _Results) -> Block:
    """Return the results for a part of the dataset, on the host."""
    plan, dataset, mode = results.plan, results.dataset, results.mode
    carried = {name: dataset.schema[name].type for name in results.schema.names if name not in plan.outputs}
    types = carried | {name: plan.schema[name].type for name in plan.data_columns(training=mode.training)}
    if mode.engine == "dask":
        from whitewater.features import with_dask

        read_part = with_dask.reader(with_dask.read_span((part,), dataset=dataset, types=types, device=mode.device))

    def read(names: Sequence[str]) -> Block:
        columns = read_part(names) if mode.engine == "dask" else cast_columns(dataset.read(part, names), types)
        for name in columns.keys() & set(plan.seconds):
            check_seconds(name, columns[name])
        return columns

    block = plan.evaluate(read, {**plan.outputs, **dict.fromkeys(carried)}, mode)
    return block if mode.engine == "local" else with_dask.on_host(block, mode.device)


def _table(part: Part, *, results: _Results) -> pa.Table:
    return as_table(_block(part, results), results.schema.types)


def tables(plan: Plan, dataset: Dataset, *, run: Run[Any], workers: Workers, training: bool) -> Iterator[pa.Table]:
    """Yield the results of each part in order; a few parts are in memory at a time."""
    results = _prepare(plan, dataset, run=run, workers=workers, training=training, tags={})
    parts, batch_size = dataset.parts, 2 * sum(workers.threads)
    for first in range(0, len(parts), batch_size):
        batch = parts[first : first + batch_size]
        yield from workers.map(_table, batch, label="transform", ordered=True, shared={"results": results})


def _prepare(
    plan: Plan, dataset: Dataset, *, run: Run[Any], workers: Workers, training: bool, tags: Mapping[str, str]
) -> _Results:
    """Check that a dataset fits the plan, and its parts fit into memory; ``tags`` maps columns to tags to add."""
    plan.check(dataset.schema, training=training)
    rows = max((part.rows for part in dataset.parts), default=0)
    columns = max(len(plan.data_columns(training=True)), len(plan.outputs))
    needed, what = rows * columns * ROW_BYTES, f"transforming parts of up to {rows:,} rows"
    workers.forecast(run.device, a_task=needed, tasks=len(dataset.parts), what=what, remedy=SMALLER_PARTS)
    fields = plan.fields(dataset.schema)
    schema = Schema(tuple(field.with_tags(tags[field.name]) if field.name in tags else field for field in fields))
    return _Results(plan, dataset, Mode(run.device, training, run.engine), schema)


def write_results(
    plan: Plan,
    dataset: Dataset,
    folder: Path,
    *,
    run: Run[Any],
    workers: Workers,
    row_group_rows: int,
    tags: Mapping[str, str] | None = None,
    training: bool = False,
    seed: int | None = None,
) -> int:
    """Write the results for a dataset as a folder of features; return the number of rows.

    ``tags`` has the roles of carried columns. Without a ``seed``, each part becomes a file, in order. With one, rows
    are sorted by a seeded hash of ``row_id``, whatever their order, the parts and the threads: the leading bits send
    them to buckets on disk, and then each bucket is sorted. A thread has one part or bucket in memory at a time.

    Raises InputError if the data do not suit the plan, IntegrityError if a row is lost or shuffled rows share a
    ``row_id``, and ResourceError if a part does not fit into memory.
    """
    results = _prepare(plan, dataset, run=run, workers=workers, training=training, tags=tags or {})
    folder.mkdir(parents=True)
    if seed is None:
        shared = {"results": results, "folder": folder, "row_group_rows": row_group_rows}
        tasks = list(enumerate(dataset.parts))
        files = list(workers.map(_write, tasks, label="transform", ordered=True, shared=shared))
    else:
        files = _shuffle(results, folder, seed, workers=workers, row_group_rows=row_group_rows)
    written = sum(file.rows for file in files)
    if written != dataset.rows:
        raise IntegrityError(f"{written} of {dataset.rows} rows were written to {folder}. Report this as a bug.")
    write_features(folder, results.schema, [file for file in files if file.rows], seed=seed)
    return written


def _write(task: tuple[int, Part], *, results: _Results, folder: Path, row_group_rows: int) -> FeatureFile:
    number, part = task
    return write_file(folder, number, _table(part, results=results), results.schema, row_group_rows=row_group_rows)


def _shuffle(results: _Results, folder: Path, seed: int, *, workers: Workers, row_group_rows: int) -> list[FeatureFile]:
    rows, schema, scratch = results.dataset.rows, results.schema, folder / "scratch"
    buckets = max(1, -(-rows // BUCKET_ROWS))
    needed = rows // buckets * len(schema.fields) * SHUFFLED_ROW_BYTES
    what = f"shuffling {rows:,} rows in {buckets} buckets"
    # Rows are sorted on the host.
    workers.forecast(Device(), a_task=needed, tasks=buckets, what=what, remedy="Take fewer threads.")
    scratch.mkdir()
    tasks = [(part, scratch / f"{number:06d}.arrow") for number, part in enumerate(results.dataset.parts)]
    shared: dict[str, Any] = {"results": results, "buckets": buckets, "seed": seed}
    paths = list(workers.map(_scatter, tasks, label="transform train", ordered=True, shared=shared))
    shared = {"paths": paths, "folder": folder, "schema": schema, "row_group_rows": row_group_rows}
    files = list(workers.map(_gather, range(buckets), label="shuffle train", ordered=True, shared=shared))
    shutil.rmtree(scratch)
    return files


def _scatter(task: tuple[Part, Path], *, results: _Results, buckets: int, seed: int) -> Path:
    """Transform a part, and write its rows to a file as one batch per bucket, sorted by hash; return its path."""
    part, path = task
    block = _block(part, results)
    hashes = row_hash([block[ROW_ID]], seed, Device())
    order = np.argsort(hashes)
    sorted_hashes = hashes[order]
    # Larger hashes are in later buckets.
    bucket = (sorted_hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)
    bounds = np.searchsorted(bucket, np.arange(buckets + 1))
    table = as_table(block, results.schema.types).take(to_arrow(order))
    (rows,) = table.append_column(_HASH, to_arrow(sorted_hashes)).combine_chunks().to_batches()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        for start, stop in pairwise(bounds.tolist()):
            writer.write_batch(rows.slice(start, stop - start))
    return path


def _gather(bucket: int, *, paths: Sequence[Path], folder: Path, schema: Schema, row_group_rows: int) -> FeatureFile:
    """Sort the rows of a bucket and write them to a file."""
    rows = pa.Table.from_batches([pa.ipc.open_file(pa.memory_map(str(path))).get_batch(bucket) for path in paths])
    hashes = to_numpy(rows[_HASH])
    order = np.argsort(hashes)
    if len(order) > 1 and not np.diff(hashes[order]).all():
        raise IntegrityError(
            f"two rows have the same number in the column {ROW_ID!r}, so their order is undefined. Make the log again."
        )
    sorted_rows = rows.drop_columns([_HASH]).combine_chunks().take(to_arrow(order))
    return write_file(folder, bucket, sorted_rows, schema, row_group_rows=row_group_rows)

"""A fitted plan applied to the rows of a block or a dataset, whose results may become a folder of features."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whitewater.engines.device import Device
from whitewater.errors import InputError, IntegrityError
from whitewater.features.categories.hashing import row_hash
from whitewater.features.dataset import Dataset, Part, as_fitted, as_table, refuse_other_times
from whitewater.features.feature_folder import FeatureFile, write_features, write_file
from whitewater.features.log_folder import ROW_ID, Log
from whitewater.features.operator import Applying
from whitewater.features.plan import Learned, Plan, evaluate
from whitewater.features.schema import Field, Schema, kind
from whitewater.tables.arrow_arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    import dask.dataframe as dd

    from whitewater.engines.device import Array
    from whitewater.engines.workers import Workers
    from whitewater.features.columns.column import Block
    from whitewater.step import Run

# Of a block, for each row and column: what is read, what is made of it, and what is written.
ROW_BYTES = 16
# Rows of a bucket, about: of 40 columns of four bytes, 84 MB.
BUCKET_ROWS = 524_288
# Of a bucket, for each row and column: as read, in order, and as written.
SHUFFLED_ROW_BYTES = 24
_HASH = "hash"


@dataclass(frozen=True)
class Transformation:
    """What makes results of rows: a fitted plan, and columns that go along unchanged where the data have them.

    ``seconds`` are columns of the data that are seconds since 1970: numbers of another unit are refused in them.
    """

    plan: Plan
    learned: Learned
    carried: tuple[str, ...] = ()
    seconds: tuple[str, ...] = ()

    def columns(self, *, training: bool) -> list[str]:
        """Return the columns that the data must have."""
        return self.plan.data_columns(self.plan.outputs, training=training)

    def fields(self, schema: Schema) -> tuple[Field, ...]:
        """Return the columns of the results for data of a schema."""
        made = self.plan.output_fields()
        return (*made, *(schema[name] for name in self._carried(schema)))

    def check(self, schema: Schema, *, training: bool) -> None:
        """Check that data have the columns that are needed, of the kind that was fitted on.

        Raises InputError, naming every column that is missing or of another kind.
        """
        if faults := list(_faults(self.plan.schema, schema, self.columns(training=training))):
            raise InputError(
                f"the data do not suit the workflow: {'; '.join(faults)}. Give columns as those that it was fitted on."
            )

    def tables(self, dataset: Dataset, *, run: Run[Any], workers: Workers, training: bool) -> Iterator[pa.Table]:
        """Yield the results part by part, in order; a few parts are in memory at a time."""
        shared = self.prepare(dataset, run=run, workers=workers, training=training)
        parts, at_once = dataset.parts(), 2 * sum(workers.threads)
        for first in range(0, len(parts), at_once):
            some = parts[first : first + at_once]
            yield from workers.map(_table, some, label="transform", ordered=True, shared=shared)

    def prepare(self, dataset: Dataset, *, run: Run[Any], workers: Workers, training: bool) -> dict[str, Any]:
        """Check a dataset; return what `part_block` needs besides a part."""
        self.check(dataset.schema, training=training)
        applying = Applying(run.device, training, run.engine)
        self._forecast(dataset, run.device, workers)
        return {"transformation": self, "dataset": dataset, "applying": applying}

    def part_block(self, part: Part, dataset: Dataset, applying: Applying) -> Block:
        """Return the results for a part of a dataset, on the host."""
        if applying.engine == "dask":
            from whitewater.features import with_dask

            return with_dask.part_block(self, part, dataset, applying)
        types = self.given(dataset.schema, training=applying.training)

        def read(names: Sequence[str]) -> Block:
            found = as_fitted(dataset.read(part, names), types)
            for name in self.seconds:
                if name in found:
                    refuse_other_times(name, found[name])
            return found

        wanted = {**self.plan.outputs, **dict.fromkeys(self._carried(dataset.schema))}
        made: Block = evaluate(self.plan, self.learned, read, wanted, applying)
        return made

    def given(self, schema: Schema, *, training: bool) -> dict[str, pa.DataType]:
        """Return the types of the columns that are read from data of a schema: as they were when it was fitted."""
        carried = {name: schema[name].type for name in self._carried(schema)}
        return carried | {name: self.plan.schema[name].type for name in self.columns(training=training)}

    def frames(self, dataset: Dataset, applying: Applying) -> dd.DataFrame:
        """Return the results as a Dask DataFrame, of pandas or cuDF, in the order of the rows."""
        from whitewater.features import with_dask

        self.check(dataset.schema, training=applying.training)
        return with_dask.frames(self, dataset, replace(applying, engine="dask"))

    def _carried(self, schema: Schema) -> list[str]:
        return [name for name in self.carried if name in schema.names]

    def _forecast(self, dataset: Dataset, device: Device, workers: Workers) -> None:
        parts = dataset.parts()
        rows = max((part.rows for part in parts), default=0)
        columns = max(len(self.columns(training=True)), len(self.plan.outputs))
        workers.forecast(
            device,
            a_task=rows * columns * ROW_BYTES,
            tasks=len(parts),
            what=f"transforming parts of up to {rows:,} rows",
            remedy="Make smaller row groups (recsys.fetch.row_group_rows), or take fewer threads.",
        )


def _table(part: Part, *, transformation: Transformation, dataset: Dataset, applying: Applying) -> pa.Table:
    types = {each.name: each.type for each in transformation.fields(dataset.schema)}
    return as_table(transformation.part_block(part, dataset, applying), types)


def _faults(fitted: Schema, found: Schema, names: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with columns: those that are missing, or of another kind than what was fitted on."""
    known = set(found.names)
    for name in names:
        if name not in known:
            yield found.fault(name) if name in found.unusable else f"column {name!r} is missing"
            continue
        wanted, given = kind(fitted[name].type), kind(found[name].type)
        if wanted != given and "nulls" not in (wanted, given):
            yield f"column {name!r} is of {given}, but was of {wanted} when it was fitted"


def write_in_order(
    transformation: Transformation,
    dataset: Dataset,
    folder: Path,
    *,
    run: Run[Any],
    workers: Workers,
    row_group_rows: int,
    tags: Mapping[str, str] | None = None,
    training: bool = False,
) -> int:
    """Write the results for a dataset, a file for each of its parts; return the number of rows.

    ``tags`` say what columns that are carried along are for. Raises InputError if the data do not suit the
    transformation, IntegrityError if a row is lost, and ResourceError if a part does not fit into memory.
    """
    shared = transformation.prepare(dataset, run=run, workers=workers, training=training)
    schema = tagged(transformation, dataset, tags or {})
    folder.mkdir(parents=True)
    shared |= {"folder": folder, "schema": schema, "row_group_rows": row_group_rows}
    tasks = list(enumerate(dataset.parts()))
    files = list(workers.map(_write, tasks, label="transform", ordered=True, shared=shared))
    return _finish(folder, schema, files, expected=dataset.rows, seed=None)


def tagged(transformation: Transformation, dataset: Dataset, tags: Mapping[str, str]) -> Schema:
    """Return the columns of the results, some of them with a tag more."""
    fields = transformation.fields(dataset.schema)
    return Schema(tuple(each.tagged(tags[each.name]) if each.name in tags else each for each in fields))


def _finish(folder: Path, schema: Schema, files: Sequence[FeatureFile], *, expected: int, seed: int | None) -> int:
    """Make files a folder of features; return their rows. Raises IntegrityError if rows were lost, or made."""
    written = sum(file.rows for file in files)
    if written != expected:
        raise IntegrityError(f"{written} rows were written to {folder}, of {expected}. Report this as a bug.")
    write_features(folder, schema, [file for file in files if file.rows], seed=seed)
    return written


def _write(
    task: tuple[int, Part],
    *,
    transformation: Transformation,
    dataset: Dataset,
    applying: Applying,
    folder: Path,
    schema: Schema,
    row_group_rows: int,
) -> FeatureFile:
    number, part = task
    table = as_table(transformation.part_block(part, dataset, applying), schema.types)
    return write_file(folder, number, table, schema, row_group_rows=even(len(table), row_group_rows))


def even(rows: int, most: int) -> int:
    """Return the rows of row groups of about one size, at most ``most`` each, so that none is tiny."""
    return -(-rows // max(1, -(-rows // most))) or 1


def write_shuffled(
    transformation: Transformation,
    log: Log,
    folder: Path,
    *,
    run: Run[Any],
    workers: Workers,
    row_group_rows: int,
    seed: int,
) -> int:
    """Write the results for the rows of a log, for training, in an order that looks random; return the number of rows.

    The order is that of the hash of each row's number, with the seed. Rows are parted by the first bits of the hash
    into buckets on disk, and each bucket is sorted: a part of the data, or a bucket, for each thread is in memory at a
    time. Neither the order nor the parts of the data, nor threads, change what comes out. Raises as `write_in_order`
    does, and IntegrityError if two rows have one number.
    """
    dataset, buckets = Dataset(log.path), max(1, -(-log.rows // BUCKET_ROWS))
    shared = transformation.prepare(dataset, run=run, workers=workers, training=True)
    scratch, schema = folder / "scratch", tagged(transformation, dataset, log.tags)
    scratch.mkdir(parents=True)
    # Rows are sorted on the host, whatever the device.
    workers.forecast(
        Device(),
        a_task=log.rows // buckets * len(schema.fields) * SHUFFLED_ROW_BYTES,
        tasks=buckets,
        what=f"shuffling {log.rows:,} rows in {buckets} buckets",
        remedy="Take fewer threads.",
    )
    mapped = partial(workers.map, ordered=True)
    tasks = [(part, scratch / f"{number:06d}.arrow") for number, part in enumerate(dataset.parts())]
    shared |= {"schema": schema, "buckets": buckets, "seed": seed}
    paths = list(mapped(_scatter, tasks, label="transform train", shared=shared))
    shared = {"paths": paths, "folder": folder, "schema": schema, "row_group_rows": row_group_rows}
    files = list(mapped(_gather, range(buckets), label="shuffle train", shared=shared))
    shutil.rmtree(scratch)
    return _finish(folder, schema, files, expected=log.rows, seed=seed)


def _scatter(
    task: tuple[Part, Path],
    *,
    transformation: Transformation,
    dataset: Dataset,
    applying: Applying,
    schema: Schema,
    buckets: int,
    seed: int,
) -> Path:
    """Transform a part; write its rows by bucket, in the order of their hashes; return the file."""
    part, path = task
    block = transformation.part_block(part, dataset, applying)
    hashes = row_hash([block[ROW_ID]], seed, Device())
    order = np.argsort(hashes)
    sorted_hashes = hashes[order]
    bounds = np.searchsorted(_bucket(sorted_hashes, buckets), np.arange(buckets + 1))
    table = as_table(block, schema.types).take(to_arrow(order)).append_column(_HASH, to_arrow(sorted_hashes))
    (rows,) = table.combine_chunks().to_batches()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        for start, stop in pairwise(bounds.tolist()):
            writer.write_batch(rows.slice(start, stop - start))
    return path


def _gather(bucket: int, *, paths: Sequence[Path], folder: Path, schema: Schema, row_group_rows: int) -> FeatureFile:
    """Sort the rows of a bucket and write them as a file; raises IntegrityError if two rows have one number."""
    rows = pa.Table.from_batches([pa.ipc.open_file(pa.memory_map(str(path))).get_batch(bucket) for path in paths])
    hashes = to_numpy(rows[_HASH])
    order = np.argsort(hashes)
    if len(order) > 1 and not np.diff(hashes[order]).all():
        raise IntegrityError(
            f"the column {ROW_ID!r} has a number twice, so the rows have no order. Make the log again."
        )
    sorted_rows = rows.drop_columns([_HASH]).combine_chunks().take(to_arrow(order))
    return write_file(folder, bucket, sorted_rows, schema, row_group_rows=even(len(order), row_group_rows))


def _bucket(hashes: Array, buckets: int) -> Array:
    """Return the bucket of each hash; it ascends with the hash."""
    return (hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)

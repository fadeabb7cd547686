"""The results of a transformation as a folder of features, in the order of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whitewater.errors import IntegrityError
from whitewater.recsys.dataset import Dataset, Part
from whitewater.recsys.feature_folder import FeatureFile, file_name, write_features
from whitewater.recsys.rows import rows_of
from whitewater.recsys.schema import Schema

if TYPE_CHECKING:
    from whitewater.recsys.operator import Applying
    from whitewater.recsys.transforming import Transformation
    from whitewater.step import Run
    from whitewater.workers import Workers


def write_in_order(
    transformation: Transformation,
    dataset: Dataset,
    folder: Path,
    *,
    run: Run[Any],
    client: Workers,
    row_group_rows: int,
    tags: Mapping[str, str] | None = None,
    training: bool = False,
) -> int:
    """Write the results for a dataset, a file for each of its parts; return the number of rows.

    ``tags`` say what columns that are carried along are for. Raises InputError if the data do not suit the
    transformation, IntegrityError if a row is lost, and ResourceError if a part does not fit into memory.
    """
    shared = transformation.prepared(dataset, run=run, training=training)
    schema = tagged(transformation, dataset, tags or {})
    folder.mkdir(parents=True)
    shared |= {"folder": folder, "schema": schema, "row_group_rows": row_group_rows}
    tasks = list(enumerate(dataset.parts()))
    files = list(run.map(_write, tasks, client=client, label="transform", ordered=True, shared=shared))
    written = sum(file.rows for file in files)
    check_rows(written, dataset.rows, folder)
    write_features(folder, schema, [file for file in files if file.rows], seed=None)
    return written


def tagged(transformation: Transformation, dataset: Dataset, tags: Mapping[str, str]) -> Schema:
    """Return the columns of the results, some of them with a tag more."""
    fields = transformation.fields(dataset.schema)
    return Schema(tuple(each.tagged(tags[each.name]) if each.name in tags else each for each in fields))


def check_rows(written: int, expected: int, folder: Path) -> None:
    """Raise IntegrityError if rows were lost, or made."""
    if written != expected:
        raise IntegrityError(f"{written} rows were written to {folder}, of {expected}. Report this as a bug.")


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
    block = transformation.part_block(part, dataset, applying)
    file = FeatureFile(file_name(number), rows_of(block))
    size = even(file.rows, row_group_rows)
    applying.device.write_columns(block, folder / file.name, schema.types, row_group_rows=size)
    return file


def even(rows: int, most: int) -> int:
    """Return the rows of row groups of about one size, at most ``most`` each, so that none is tiny."""
    return -(-rows // max(1, -(-rows // most))) or 1

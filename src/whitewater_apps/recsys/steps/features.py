"""Step `features`: the three parts of the log through the fitted workflow; the training rows in shuffled order."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from whitewater.engines import memory
from whitewater.features.artefact import load
from whitewater.features.dataset import Dataset
from whitewater.features.feature_folder import write_features
from whitewater.features.log_folder import ROW_ID, Log, open_log
from whitewater.features.shuffling import ROW_BYTES, Shuffle, buckets_of, gather, scatter
from whitewater.features.transform import Transformation, check_rows, tagged, write_in_order
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Features

if TYPE_CHECKING:
    from whitewater.engines.workers import Workers


def features(
    run: Run[Features],
    *,
    train: Path,
    valid: Path,
    test: Path,
    workflow: Path,
    train_features: Output,
    valid_features: Output,
    test_features: Output,
) -> None:
    """Transform the training rows, shuffled, with statistics that leave their own fold out, and the others in order.

    Raises InputError if a log or the workflow is missing or damaged, or a log lacks a column of the workflow;
    IntegrityError if a row is lost; ResourceError if row groups do not fit into memory.
    """
    fitted = load(workflow)
    in_order = {"valid": (valid, valid_features), "test": (test, test_features)}
    with run.workers() as workers:
        counts = {"train": write_shuffled(fitted, open_log(train), train_features, run=run, workers=workers)}
        for name, (part, folder) in in_order.items():
            tags, size = _tags(open_log(part)), run.settings.row_group_rows
            counts[name] = write_in_order(
                fitted, Dataset(part), folder, run=run, workers=workers, row_group_rows=size, tags=tags
            )
    run.note(rows=counts)


def write_shuffled(fitted: Transformation, log: Log, folder: Path, *, run: Run[Features], workers: "Workers") -> int:
    """Write the features of training rows, shuffled; return how many there are."""
    settings = run.settings
    dataset = Dataset(log.path)
    shared = fitted.prepared(dataset, run=run, training=True)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    shuffle = Shuffle(
        key=ROW_ID,
        seed=settings.seed,
        buckets=buckets_of(log.rows),
        scratch=scratch,
        schema=tagged(fitted, dataset, _tags(log)),
        row_group_rows=settings.row_group_rows,
    )
    memory.forecast(
        min(run.threads, shuffle.buckets) * log.rows // shuffle.buckets * len(shuffle.schema.fields) * ROW_BYTES,
        what=f"shuffling {log.rows:,} rows in {shuffle.buckets} buckets",
        remedy="Take fewer threads.",
    )
    paths = list(
        workers.map(
            scatter, list(enumerate(dataset.parts())),
            label="transform train", ordered=True, shared={**shared, "shuffle": shuffle},
        )
    )  # fmt: skip
    gathered = workers.map(
        gather, range(shuffle.buckets), label="shuffle train", ordered=True,
        shared={"paths": paths, "shuffle": shuffle, "device": run.device, "folder": folder},
    )  # fmt: skip
    files = list(gathered)
    shutil.rmtree(scratch)
    written = sum(file.rows for file in files)
    check_rows(written, log.rows, folder)
    write_features(folder, shuffle.schema, [file for file in files if file.rows], seed=settings.seed)
    return written


def _tags(log: Log) -> dict[str, str]:
    return {log.label: "label", ROW_ID: "key"}


if __name__ == "__main__":
    main(features)

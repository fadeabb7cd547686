"""Step `features`: apply the fitted workflow to the three parts of the log, and shuffle the training rows."""

from pathlib import Path

from whitewater.features.artifact import load
from whitewater.features.dataset import Dataset
from whitewater.features.log_folder import open_log
from whitewater.features.transform import write_results
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Features


def features(
    run: Run[Features], *, train: Path, valid: Path, test: Path, workflow: Path, train_features: Output,
    valid_features: Output, test_features: Output,
) -> None:  # fmt: skip
    """Transform the training rows, shuffled and encoded out of fold, and the others in order.

    Raises InputError if a log or the workflow is missing or damaged, or a log lacks a column of the workflow;
    IntegrityError if a row is lost; ResourceError if row groups do not fit into memory.
    """
    fitted, size = load(workflow), run.settings.row_group_rows
    counts = {}
    with run.workers() as workers:
        for name, part, folder in (
            ("train", train, train_features), ("valid", valid, valid_features), ("test", test, test_features)
        ):  # fmt: skip
            is_train = name == "train"
            counts[name] = write_results(
                fitted, Dataset(part), folder, run=run, workers=workers, row_group_rows=size,
                tags=open_log(part).tags, training=is_train, seed=run.settings.seed if is_train else None,
            )  # fmt: skip
    run.note(rows=counts)


if __name__ == "__main__":
    main(features)

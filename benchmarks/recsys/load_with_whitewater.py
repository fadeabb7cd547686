"""Whitewater: windows of rows put in place, straight from the mapped files, ahead of the one in use."""

from __future__ import annotations

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS
from benchmarks.recsys.load_variant import BATCH_ROWS, WINDOW_ROWS, Epoch, Work, main
from whitewater.features.feature_folder import open_features
from whitewater.features.loader import Batches


def open_batches(work: Work) -> Epoch:
    """Return the epochs."""
    columns = [*CONTINUOUS, *CATEGORICAL, "label", "row_id"]
    folder = open_features(work.folder)
    return Batches(
        folder,
        columns=columns,
        batch_rows=BATCH_ROWS,
        window_rows=WINDOW_ROWS,
        threads=work.threads,
        device=work.placement.resolve(),
    ).epoch


if __name__ == "__main__":
    main(open_batches, is_placed=True)

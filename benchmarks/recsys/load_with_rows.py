"""A data set of rows as PyTorch's `DataLoader` takes it: a row by its number, a sampler, and rows put together.

All rows are in memory. One epoch is timed, because it takes so long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS
from benchmarks.recsys.load_variant import BATCH_ROWS, Batch, Epoch, Work, main

Row = tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], np.float32, np.int64]


@dataclass(frozen=True)
class Rows:
    """A data set of the map style."""

    continuous: npt.NDArray[np.float32]
    categorical: npt.NDArray[np.int32]
    label: npt.NDArray[np.float32]
    row_id: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.label)

    def __getitem__(self, index: int) -> Row:
        """Return a row."""
        return self.continuous[index], self.categorical[index], self.label[index], self.row_id[index]


def collate(rows: Sequence[Row]) -> Batch:
    """Put rows together."""
    continuous, categorical, label, row_id = zip(*rows, strict=True)
    return {
        "continuous": np.stack(continuous),
        "categorical": np.stack(categorical),
        "label": np.array(label),
        "row_id": np.array(row_id),
    }


def open_batches(work: Work) -> Epoch:
    """Return the epochs."""
    table = pq.read_table(work.files, columns=[*CONTINUOUS, *CATEGORICAL, "label", "row_id"])
    columns: dict[str, npt.NDArray[Any]] = {name: table[name].to_numpy() for name in table.column_names}
    rows = Rows(
        np.stack([columns[name] for name in CONTINUOUS], axis=1),
        np.stack([columns[name] for name in CATEGORICAL], axis=1),
        columns["label"].astype(np.float32),
        columns["row_id"],
    )

    def epoch(number: int) -> Iterator[Batch]:
        order = np.random.default_rng(number).permutation(len(rows)).tolist()
        for start in range(0, len(order), BATCH_ROWS):
            yield collate([rows[index] for index in order[start : start + BATCH_ROWS]])

    return epoch


if __name__ == "__main__":
    main(open_batches, epochs=1)

"""pyarrow: row groups read in random order, some of them put together, and rows taken by index for each batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS
from benchmarks.recsys.load_variant import BATCH_ROWS, WINDOW_ROWS, Batch, Epoch, Work, main

COLUMNS = [*CONTINUOUS, *CATEGORICAL, "label", "row_id"]


def open_batches(work: Work) -> Epoch:
    """Return the epochs."""
    pa.set_cpu_count(work.threads)
    files = [pq.ParquetFile(path, memory_map=True) for path in work.files]
    groups = [(file, group) for file in files for group in range(file.num_row_groups)]

    def epoch(number: int) -> Iterator[Batch]:
        generator = np.random.default_rng(number)
        window: list[pa.Table] = []
        for place in generator.permutation(len(groups)):
            file, group = groups[place]
            window.append(file.read_row_group(group, columns=COLUMNS))
            if sum(map(len, window)) >= WINDOW_ROWS:
                yield from batches_of(pa.concat_tables(window), generator)
                window = []
        if window:
            yield from batches_of(pa.concat_tables(window), generator)

    return epoch


def batches_of(table: pa.Table, generator: np.random.Generator) -> Iterator[Batch]:
    """Yield the rows of a table as batches, in random order."""
    whole = table.combine_chunks()
    order = generator.permutation(len(whole))
    for start in range(0, len(order), BATCH_ROWS):
        rows = whole.take(pa.array(order[start : start + BATCH_ROWS]))
        yield {
            "continuous": np.stack([rows[name].to_numpy() for name in CONTINUOUS], axis=1),
            "categorical": np.stack([rows[name].to_numpy() for name in CATEGORICAL], axis=1),
            "label": rows["label"].to_numpy().astype(np.float32),
            "row_id": rows["row_id"].to_numpy(),
        }


if __name__ == "__main__":
    main(open_batches)
